"""Failures of the HTTP library in words; those of sockets, TLS and the system are in ``model.failures``.

Used by ``transport``, and by others that speak HTTP themselves.
"""

from __future__ import annotations

import aiohttp

from mirror.model.failures import API_SERVER, failure_words


def http_words(error: BaseException, *, peer: str = API_SERVER) -> str:
    """What went wrong with a request, without names of classes; never what was sent.

    Args:
        error: what aiohttp, a socket or TLS raised.
        peer: who was at the other end.
    """
    match error:
        case aiohttp.ClientProxyConnectionError():
            return f"proxy: {failure_words(error.os_error, peer='the proxy')}"
        case aiohttp.ClientConnectorCertificateError():
            return failure_words(error.certificate_error, peer=peer)
        case aiohttp.ClientConnectorError():
            return failure_words(error.os_error, peer=peer)
        case aiohttp.ClientHttpProxyError():
            return f"proxy: it answered {error.status} to CONNECT"
        case aiohttp.ServerFingerprintMismatch():
            return "certificate is not the expected one"
        case aiohttp.ServerTimeoutError():
            return "connection timed out"
        case aiohttp.ServerDisconnectedError():
            return f"connection closed by {peer} before it answered"
        case aiohttp.ClientConnectionResetError():
            return f"connection closed by {peer}"
        case aiohttp.ClientPayloadError():
            return f"connection closed by {peer} before the response was complete"
        case aiohttp.InvalidURL():
            return "the address is not a valid URL"
        case aiohttp.ClientResponseError():
            return "the response is not valid HTTP"
        case aiohttp.ClientError() if isinstance(error, OSError):
            # aiohttp puts its own text in the place of the system's.
            return failure_words(error.__cause__ if isinstance(error.__cause__, OSError) else error, peer=peer)
    return failure_words(error, peer=peer)
