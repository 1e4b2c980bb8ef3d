"""The first steps to a server, one by one, for ``mirror worker check``: its name, TCP, TLS, and until when its
certificate is valid. Requests judge all that by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from datetime import datetime
from urllib.parse import urlsplit

from cryptography import x509

from mirror.kube.credentials import Endpoint
from mirror.kube.errors import Unreachable
from mirror.model.failures import failure_words


class NoTls(Unreachable):
    """A connection was made, and TLS was not: another server, another authority, an expired certificate."""


async def certificate_end(endpoint: Endpoint, *, deadline_seconds: float = 5.0) -> datetime | None:
    """When the certificate of the server ends; None where there is no TLS, or a proxy in between.

    Raises:
        NoTls: the handshake failed.
        Unreachable: it did not get that far: the name was not found, or no connection could be made.
    """
    if endpoint.tls is None or endpoint.proxy is not None:
        return None
    try:
        async with asyncio.timeout(deadline_seconds):
            writer = await _connection(endpoint)
    except TimeoutError:
        raise Unreachable(f"connection timed out after {deadline_seconds:g} s") from None
    except OSError as error:
        raise Unreachable(failure_words(error)) from error
    try:
        async with asyncio.timeout(deadline_seconds):
            shown = await _certificate(endpoint, endpoint.tls, writer)
    except TimeoutError:
        raise NoTls(f"TLS handshake timed out after {deadline_seconds:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise NoTls(f"its certificate is not accepted: {failure_words(error)}") from error
    except (OSError, ssl.SSLError) as error:
        raise NoTls(f"TLS handshake failed: {failure_words(error)}") from error
    finally:
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()
    try:
        return x509.load_der_x509_certificate(shown).not_valid_after_utc if shown else None
    except ValueError:  # OpenSSL took it, which reads less of it
        return None


async def _connection(endpoint: Endpoint) -> asyncio.StreamWriter:
    """A connection to the first of its addresses that accepts one; raises the last one's OSError."""
    parts = urlsplit(endpoint.server)
    host, port = parts.hostname or "", parts.port or 443
    failed: OSError = OSError("the name has no address")
    for _, _, _, _, peer in await asyncio.get_running_loop().getaddrinfo(host, port, type=1):
        address = str(peer[0])
        # A name may lead elsewhere than its kubeconfig was judged by.
        why = endpoint.refuse_address(address) if endpoint.refuse_address is not None else None
        if why is not None:
            raise Unreachable(f"refused to connect: {why}")
        try:
            _, writer = await asyncio.open_connection(address, port)
            return writer
        except OSError as error:
            failed = error
    raise failed


async def _certificate(endpoint: Endpoint, tls: ssl.SSLContext, writer: asyncio.StreamWriter) -> bytes | None:
    name = endpoint.server_hostname or urlsplit(endpoint.server).hostname
    await writer.start_tls(tls, server_hostname=name)
    found = writer.get_extra_info("ssl_object")
    shown: bytes | None = found.getpeercert(binary_form=True) if found is not None else None
    return shown
