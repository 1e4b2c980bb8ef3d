"""Calls webhooks over HTTPS. The only place of the API server that opens a connection."""

from __future__ import annotations

import asyncio
import ssl
from functools import lru_cache
from typing import Protocol
from urllib.parse import urlsplit

import aiohttp

from mirror.kube.failure_words import http_words

LARGEST_ANSWER = 3 * 2**20

_PEER = "the webhook"


class CallFailed(Exception):
    """No usable answer came; the text says why, without anything that was sent."""


class Caller(Protocol):
    """How a webhook is reached."""

    async def post(self, url: str, body: bytes, *, authorities: bytes, seconds: float, address: str = "") -> bytes:
        """Post a review and return the answer's body.

        Args:
            url: where to; its host is the name that the certificate must have.
            body: JSON.
            authorities: PEM of whom to trust; empty: whom the system trusts.
            seconds: how long to wait for the whole answer.
            address: ``host:port`` to connect to instead of the URL's.

        Raises:
            CallFailed: no answer with a status of 2xx came.
        """
        ...


class HttpsCaller:
    """The real thing: a connection for each call, since webhooks of a test are few and come and go."""

    async def post(self, url: str, body: bytes, *, authorities: bytes, seconds: float, address: str = "") -> bytes:
        parts = urlsplit(url)
        target = parts._replace(netloc=address).geturl() if address else url
        try:
            connector = aiohttp.TCPConnector(ssl=_trust(authorities), force_close=True)
            async with (
                asyncio.timeout(seconds),
                aiohttp.ClientSession(
                    connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()
                ) as session,
                session.post(
                    target,
                    data=body,
                    params={"timeout": f"{seconds:.0f}s"},
                    headers={"content-type": "application/json", "accept": "application/json"},
                    server_hostname=parts.hostname,
                    allow_redirects=False,
                ) as response,
            ):
                answer = await _read(response.content)
                if not 200 <= response.status < 300:
                    raise CallFailed(_refusal(response.status))
                return answer
        except TimeoutError as error:
            raise CallFailed(f'Post "{url}?timeout={seconds:.0f}s": context deadline exceeded') from error
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
            why = f"tls: failed to verify certificate: {http_words(error, peer=_PEER)}"
            raise CallFailed(f'Post "{url}?timeout={seconds:.0f}s": {why}') from error
        except aiohttp.ClientConnectorError as error:
            why = f"dial tcp {error.host}:{error.port}: connect: {http_words(error, peer=_PEER)}"
            raise CallFailed(f'Post "{url}?timeout={seconds:.0f}s": {why}') from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise CallFailed(f'Post "{url}?timeout={seconds:.0f}s": {http_words(error, peer=_PEER)}') from error


async def _read(content: aiohttp.StreamReader) -> bytes:
    """Raises: CallFailed if there is no end to it."""
    answer = bytearray()
    async for piece in content.iter_any():
        answer += piece
        if len(answer) > LARGEST_ANSWER:
            raise CallFailed(f"the answer is longer than {LARGEST_ANSWER} bytes")
    return bytes(answer)


@lru_cache(maxsize=64)
def _trust(authorities: bytes) -> ssl.SSLContext:
    """Raises: ValueError if it is no PEM."""
    if not authorities:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=authorities.decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise ValueError("unable to load root certificates: unable to parse bytes as PEM block") from error


def _refusal(status: int) -> str:
    """What a client library makes of a status."""
    match status:
        case 404:
            return "the server could not find the requested resource"
        case 401:
            return "the server has asked for the client to provide credentials"
        case 403:
            return "forbidden"
        case 429:
            return "the server has received too many requests and has asked us to try again later"
        case 503:
            return "the server is currently unable to handle the request"
        case code if code >= 500:
            return "an error on the server has prevented the request from succeeding"
        case _:
            return "the server rejected our request for an unknown reason"
