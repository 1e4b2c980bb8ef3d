"""Tokens that are older than they are, so that a manager renews them at once: signed with a control plane's own key.

An API server makes none that is due in less than six minutes, and waits for nobody. What it checks is the signature,
the account and the end. Used where rights are taken away (``without_rights``). Not here: clocks that are wrong
(``test_token_renewal_live``).
"""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane

_SHARE = 0.75
"""Of its life; it is renewed after two thirds."""
_NUMBER_BYTES = 32


def age(kubeconfig: Path, plane: ControlPlane) -> None:
    """Replace the token in this file by one most of whose life is over, of one of our own control planes."""
    text = kubeconfig.read_text()
    token = text.split("token: ")[1].split()[0]
    kubeconfig.write_text(text.replace(token, _aged(token, (plane.directory / "tokens.key").read_bytes())))


def _aged(token: str, key: bytes) -> str:
    header, payload, _ = token.split(".")
    claims: Json = msgspec.json.decode(_bytes(payload))
    earlier = int((claims["exp"] - claims["iat"]) * _SHARE)
    moved = {name: claims[name] - earlier for name in ("exp", "iat", "nbf")}
    signed = f"{header}.{_text(msgspec.json.encode({**claims, **moved}))}"
    return f"{signed}.{_text(_signature(signed, key))}"


def _signature(signed: str, key: bytes) -> bytes:
    """As JWTs have it (ES256): both numbers, bare, in a fixed length."""
    private = load_pem_private_key(key, None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    both = utils.decode_dss_signature(private.sign(signed.encode(), ec.ECDSA(SHA256())))
    return b"".join(number.to_bytes(_NUMBER_BYTES, "big") for number in both)


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
