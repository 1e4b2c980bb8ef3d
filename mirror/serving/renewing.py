"""What is kept of certificates that we make ourselves, and what of it is to be renewed now. Pure, but for new keys.

Called by ``certificates``. A serving certificate is renewed after two thirds of its life. So is the authority, but its
successor is only trusted at first, and signs from a day later on, when every client has heard of it. Not here: where
it is kept, and how replicas agree (``certificates``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509 as der
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from mirror.serving.x509 import CLOCKS_DIFFER_BY, Authority, KeyPair, general_name, private_pem

SERVING_VALID = timedelta(days=90)
SIGNS_AFTER = timedelta(days=1)
TRUSTED_STILL = timedelta(days=7)
"""So long after a successor began to sign, its predecessor is still trusted."""

AUTHORITIES, AUTHORITY_KEYS, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
"""The keys of the Secret, as cert-manager and Secrets of type ``kubernetes.io/tls`` have them."""

_BLOCK = re.compile(rb"-----BEGIN [A-Z ]+-----.*?-----END [A-Z ]+-----", re.DOTALL)
_UNREADABLE = (ValueError, TypeError)


@dataclass(frozen=True, slots=True)
class Kept:
    """Authorities, the newest first, and what is served with; what could not be read is not there."""

    authorities: tuple[KeyPair, ...] = ()
    serving: KeyPair | None = None

    @property
    def trusted(self) -> bytes:
        """What clients are to trust, PEM."""
        return b"".join(pair.certificate for pair in self.authorities)


def read(data: Mapping[str, bytes]) -> Kept:
    """What a Secret holds; parts that are missing or broken count as not there."""
    keys = {}
    for text in _blocks(data.get(AUTHORITY_KEYS, b"")):
        with suppress(*_UNREADABLE):
            key = serialization.load_pem_private_key(text, None)
            if isinstance(key, ec.EllipticCurvePrivateKey):
                keys[_public(key.public_key())] = private_pem(key)
    authorities = []
    for text in _blocks(data.get(AUTHORITIES, b"")):
        with suppress(*_UNREADABLE):
            certificate = der.load_pem_x509_certificate(text)
            public = certificate.public_key()
            if isinstance(public, ec.EllipticCurvePublicKey) and _public(public) in keys:
                pem = certificate.public_bytes(serialization.Encoding.PEM)
                authorities.append((certificate.not_valid_before_utc, KeyPair(pem, keys[_public(public)])))
    authorities.sort(key=lambda found: found[0], reverse=True)
    certificate_pem, key_pem = data.get(CERTIFICATE, b""), data.get(KEY, b"")
    serving = KeyPair(certificate_pem, key_pem) if _belong_together(certificate_pem, key_pem) else None
    return Kept(tuple(pair for _, pair in authorities), serving)


def written(kept: Kept) -> dict[str, bytes]:
    """The same as the data of a Secret."""
    serving = kept.serving or KeyPair(b"", b"")
    keys = b"".join(pair.key for pair in kept.authorities)
    return {
        AUTHORITIES: kept.trusted,
        AUTHORITY_KEYS: keys,
        CERTIFICATE: serving.certificate,
        KEY: serving.key,
    }


def renewed(kept: Kept, names: Sequence[str], now: datetime) -> Kept:
    """What is to be kept from now on; the very same value when nothing is due.

    Args:
        names: what the certificate must be good for; names that it has beside these stay, so that two replicas with
            different settings do not undo each other's work.
    """
    usable = tuple(pair for pair in kept.authorities if _is_valid(_certificate(pair), now))
    if not usable or _is_old(_certificate(usable[0]), now):
        made = Authority.new("jobmirror", now=now)
        usable = (made.pair, *usable)
    signer = _signer(usable, now)
    trusted = _still_trusted(usable, signer, now)
    serving = kept.serving
    if serving is None or _must_go(_certificate(serving), signer, names, now):
        had = _names(_certificate(serving)) if serving is not None else ()
        serving = Authority(signer, now=now).issue_server((*names, *had), valid=SERVING_VALID)
    if trusted == kept.authorities and serving is kept.serving:
        return kept
    return Kept(trusted, serving)


def expiry(pair: KeyPair) -> datetime:
    """When a certificate ends.

    Raises:
        ValueError: it cannot be read.
    """
    return der.load_pem_x509_certificate(pair.certificate).not_valid_after_utc


def first_name(pair: KeyPair) -> str:
    """A name or IP address that a certificate is good for, of the first in it; empty: it has none."""
    found = next(iter(_names(der.load_pem_x509_certificate(pair.certificate))), "")
    return found.replace("*", "manager", 1)


def _signer(usable: Sequence[KeyPair], now: datetime) -> KeyPair:
    """The newest authority that has been known for long enough; if there is none, the oldest."""
    for pair in usable:
        if now - _made_at(pair) >= SIGNS_AFTER:
            return pair
    return usable[-1]


def _still_trusted(usable: tuple[KeyPair, ...], signer: KeyPair, now: datetime) -> tuple[KeyPair, ...]:
    """Without those whose successor has been signing for long enough."""
    if now - _made_at(signer) < SIGNS_AFTER + TRUSTED_STILL:
        return usable
    return usable[: usable.index(signer) + 1]


def _must_go(certificate: der.Certificate, signer: KeyPair, names: Collection[str], now: datetime) -> bool:
    try:
        certificate.verify_directly_issued_by(_certificate(signer))
    except (*_UNREADABLE, InvalidSignature):
        return True
    wanted = {str(general_name(name).value) for name in names}
    return not _is_valid(certificate, now) or _is_old(certificate, now) or not wanted <= set(_names(certificate))


def _names(certificate: der.Certificate) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(der.SubjectAlternativeName).value
    except (*_UNREADABLE, der.ExtensionNotFound):
        return ()
    return tuple(str(name.value) for name in found if isinstance(name, der.DNSName | der.IPAddress))


def _is_valid(certificate: der.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def _is_old(certificate: der.Certificate, now: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return now >= certificate.not_valid_before_utc + life * 2 / 3


def _made_at(pair: KeyPair) -> datetime:
    return _certificate(pair).not_valid_before_utc + CLOCKS_DIFFER_BY


def _certificate(pair: KeyPair) -> der.Certificate:
    return der.load_pem_x509_certificate(pair.certificate)


def _belong_together(certificate_pem: bytes, key_pem: bytes) -> bool:
    try:
        certificate = der.load_pem_x509_certificate(certificate_pem)
        key = serialization.load_pem_private_key(key_pem, None)
        return bool(certificate.public_key() == key.public_key())
    except (*_UNREADABLE, AttributeError):
        return False


def _public(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _blocks(pem: bytes) -> list[bytes]:
    """Each PEM block of a text; at most eight, as nobody needs more."""
    return _BLOCK.findall(pem)[:8]
