"""Whether a certificate and a private key in PEM belong together, as the server warns of it (Secrets of type TLS)."""

from __future__ import annotations

_PREFIX = "tls: "


def mismatch(certificate: bytes, key: bytes) -> str:
    """What is wrong with the pair, in the words of Go's ``tls.X509KeyPair``; empty if nothing is."""
    # Needed by hardly any request, and slow to import.
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    if b"-----BEGIN " not in certificate:
        return f"{_PREFIX}failed to find any PEM data in certificate input"
    if b"-----BEGIN CERTIFICATE-----" not in certificate:
        told = "failed to find certificate PEM data in certificate input, but did find a private key"
        return f"{_PREFIX}{told}; PEM inputs may have been switched"
    if b"-----BEGIN " not in key:
        return f"{_PREFIX}failed to find any PEM data in key input"
    if b"PRIVATE KEY-----" not in key:
        return f"{_PREFIX}found a certificate rather than a key in the PEM for the private key"
    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return f"{_PREFIX}failed to parse private key"
    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    if type(private.public_key()) is not type(public):
        return f"{_PREFIX}private key type does not match public key type"
    if private.public_key().public_bytes(*form) != public.public_bytes(*form):
        return f"{_PREFIX}private key does not match public key"
    return ""
