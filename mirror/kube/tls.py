"""TLS contexts from PEM bytes; key material never stays in a file.

Used by ``kubeconfig`` to check, by ``auth`` to build, and by ``credentials`` when a plugin hands out a certificate.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator

_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"
_MOST_CERTIFICATES = 256
"""More than any system trusts; each takes OpenSSL a moment."""


class BadCertificate(Exception):
    """PEM that does not load. The text says what is wrong and quotes nothing."""


def client_context(*, ca_pem: bytes, verify: bool = True) -> ssl.SSLContext:
    """A context for talking to an API server; an empty ``ca_pem`` means the system's authorities.

    Raises:
        BadCertificate: ``ca_pem`` holds no usable certificate.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A cluster's CA data may be an intermediate, or the serving certificate itself; client-go trusts both.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca_pem:
        load_authorities(context, ca_pem)
    else:
        context.load_default_certs()
    return context


def load_authorities(context: ssl.SSLContext, ca_pem: bytes) -> None:
    """Trust these certificates.

    Raises:
        BadCertificate: there is none in it, one that does not load, or there are too many.
    """
    blocks = _certificates(ca_pem)
    if len(blocks) > _MOST_CERTIFICATES:
        raise BadCertificate(f"holds more than {_MOST_CERTIFICATES} certificates")
    try:
        context.load_verify_locations(cadata=b"\n".join(blocks).decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise BadCertificate("holds no certificate that loads") from error


def _certificates(pem: bytes) -> list[bytes]:
    """The blocks of a bundle, which carries comments in any encoding around them; each byte is looked at once."""
    blocks, begin = list[bytes](), pem.find(_BEGIN)
    while begin >= 0 and (end := pem.find(_END, begin)) >= 0:
        blocks.append(pem[begin : end + len(_END)])
        begin = pem.find(_BEGIN, end)
    return blocks


def load_client_certificate(context: ssl.SSLContext, certificate_pem: bytes, key_pem: bytes) -> None:
    """Present this certificate in handshakes from now on.

    Raises:
        BadCertificate: one of both does not load, they do not belong together, or the key is encrypted.
    """

    def no_passphrase() -> str:
        raise BadCertificate("the key is encrypted, and there is nobody to ask for its passphrase")

    try:
        with _as_file(certificate_pem) as certificate, _as_file(key_pem) as key:
            context.load_cert_chain(certificate, key, password=no_passphrase)
    except (ssl.SSLError, ValueError) as error:
        raise BadCertificate("certificate and key do not load, or do not belong together") from error


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path under which OpenSSL, which only reads files, finds the content; gone afterwards, whatever happens.

    Anonymous memory where the system has it: not even a kill at the wrong moment leaves a key behind.
    """
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        number = os.memfd_create("pem", os.MFD_CLOEXEC)
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{number}"
        return
    with tempfile.NamedTemporaryFile(prefix="pem-") as file:  # mode 0600
        file.write(content)
        file.flush()
        yield file.name
