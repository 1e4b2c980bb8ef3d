"""Making certificates: an authority, what it signs for servers and clients, and TLS contexts that use them.

The manager's HTTPS (``certificates``), embedded control planes and the end-to-end tests make theirs here. Keys are
elliptic-curve ones, since they take a millisecond each. Not here: where certificates are kept, and when they are
renewed (``certificates``, ``renewing``).
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mirror.kube.tls import load_authorities, load_client_certificate

AUTHORITY_VALID = timedelta(days=3650)
VALID = timedelta(days=365)
CLOCKS_DIFFER_BY = timedelta(hours=1)
"""A certificate is good from this long before it was made, for clients whose clocks are behind."""
_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2; those of 1.3 are all good."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates of servers and of clients.

    Args:
        pair: its own; see ``new``.
        now: the time from which on certificates are valid, less an hour.
    """

    def __init__(self, pair: KeyPair, *, now: datetime) -> None:
        self.pair = pair
        self.certificate = pair.certificate
        self.saved = pair.certificate + pair.key
        """Both, PEM; a secret."""
        self._now = now
        key = serialization.load_pem_private_key(pair.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the authority's key is of another kind")
        self._key = key
        self._name = x509.load_pem_x509_certificate(pair.certificate).subject

    @classmethod
    def new(cls, name: str, *, now: datetime) -> Self:
        """One that nobody knows yet."""
        key = new_key()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} authority")])
        certificate = (
            _builder(subject, subject, key.public_key(), key, now, AUTHORITY_VALID)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private_pem(key)), now=now)

    def issue_client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A client certificate: the common name is taken for the user, the organizations for the groups."""
        names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
        return self._issue(subject, x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]))

    def issue_server(self, addresses: Sequence[str], *, valid: timedelta = VALID) -> KeyPair:
        """A serving certificate for these IP addresses and host names."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jobmirror")])
        alternatives = x509.SubjectAlternativeName([general_name(address) for address in dict.fromkeys(addresses)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        return self._issue(subject, usage, alternatives, valid=valid)

    def _issue(self, subject: x509.Name, *extensions: x509.ExtensionType, valid: timedelta = VALID) -> KeyPair:
        key = new_key()
        builder = (
            _builder(subject, self._name, key.public_key(), self._key, self._now, valid)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), private_pem(key))


def server_context(pair: KeyPair, *, client_authority: bytes = b"") -> ssl.SSLContext:
    """What to serve with: TLS 1.2 and later; with ``client_authority`` (PEM), clients may show one of its certificates.

    Raises:
        BadCertificate: the pair does not load, or the authority.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_alpn_protocols(["http/1.1"])
    if client_authority:
        load_authorities(context, client_authority)
        context.verify_mode = ssl.CERT_OPTIONAL
        # As an API server has it: each authority is trusted as it is, an intermediate one too.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    load(context, pair)
    return context


def client_context(authority: bytes, pair: KeyPair | None = None) -> ssl.SSLContext:
    """What to reach such a server with."""
    context = ssl.create_default_context(cadata=authority.decode())
    if pair is not None:
        load(context, pair)
    return context


def load(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Show this certificate in handshakes from now on; those that are over keep theirs.

    Raises:
        BadCertificate: it does not load, or its key is not its own. A context that served before is then to be thrown
            away: it may have taken half of it.
    """
    load_client_certificate(context, pair.certificate, pair.key)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A private key on P-256."""
    return ec.generate_private_key(ec.SECP256R1())


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as text."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def general_name(address: str) -> x509.DNSName | x509.IPAddress:
    """A host name or an IP address, as certificates have it."""
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePrivateKey,
    now: datetime,
    valid: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER_BY)
        .not_valid_after(now + valid)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
