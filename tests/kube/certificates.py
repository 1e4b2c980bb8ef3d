"""A certificate authority for the tests of this room, and what it signs."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("authority")
        self._certificate = self._sign(self._name, self._key.public_key(), [], is_ca=True)
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        common_name: str,
        *names: str,
        begins: timedelta = timedelta(hours=-1),
        ends: timedelta = timedelta(hours=1),
    ) -> Pair:
        """For a server with these names and addresses, or for a client; valid from and until so far from now."""
        key, valid = ec.generate_private_key(ec.SECP256R1()), (begins, ends)
        certificate = self._sign(_name(common_name), key.public_key(), list(names), is_ca=False, valid=valid)
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))

    def server_context(self, pair: Pair, folder: Path, *, ask_for_client: bool = False) -> ssl.SSLContext:
        (folder / "server.pem").write_bytes(pair.certificate + pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem")
        if ask_for_client:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(cadata=self.pem.decode())
        return context

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        names: list[str],
        *,
        is_ca: bool,
        valid: tuple[timedelta, timedelta] = (timedelta(hours=-1), timedelta(hours=1)),
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + valid[0])
            .not_valid_after(now + valid[1])
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
            )
        return builder.sign(self._key, hashes.SHA256())


def key_pem(key: ec.EllipticCurvePrivateKey, passphrase: bytes = b"") -> bytes:
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        encryption = serialization.BestAvailableEncryption(passphrase)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


def encrypted_key() -> bytes:
    return key_pem(ec.generate_private_key(ec.SECP256R1()), b"secret")


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
