"""How long the certificate of a server is good, for ``mirror worker check``; requests judge it by themselves."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from datetime import datetime
from urllib.parse import urlsplit

from cryptography import x509

from mirror.kube.credentials import Endpoint
from mirror.kube.errors import Unreachable


async def certificate_end(endpoint: Endpoint, *, deadline_seconds: float = 5.0) -> datetime | None:
    """When the certificate of the server ends; None where there is no TLS, or a proxy in between.

    Raises:
        Unreachable: no handshake; the text says why, in OpenSSL's words where it is the certificate.
    """
    if endpoint.tls is None or endpoint.proxy is not None:
        return None
    parts = urlsplit(endpoint.server)
    host, port = parts.hostname or "", parts.port or 443
    try:
        async with asyncio.timeout(deadline_seconds):
            shown = await _shown(endpoint, host, port)
    except TimeoutError:
        raise Unreachable(f"no TLS handshake within {deadline_seconds:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise Unreachable(f"its certificate is not accepted: {error.verify_message}") from error
    except (OSError, ssl.SSLError) as error:
        raise Unreachable(f"no TLS handshake: {type(error).__name__}") from error
    try:
        return x509.load_der_x509_certificate(shown).not_valid_after_utc if shown else None
    except ValueError:  # OpenSSL took it, which reads less of it
        return None


async def _shown(endpoint: Endpoint, host: str, port: int) -> bytes | None:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)
    address = str(found[0][4][0])
    # A name may lead elsewhere than its kubeconfig was judged by.
    if endpoint.refuse_address is not None and endpoint.refuse_address(address) is not None:
        raise Unreachable("its address leads where it must not")
    name = endpoint.server_hostname or host
    _, writer = await asyncio.open_connection(address, port, ssl=endpoint.tls, server_hostname=name)
    try:
        tls = writer.get_extra_info("ssl_object")
        shown: bytes | None = tls.getpeercert(binary_form=True) if tls is not None else None
        return shown
    finally:
        writer.close()
        with contextlib.suppress(OSError, ssl.SSLError):
            await writer.wait_closed()
