"""What a real control plane needs of its own beside certificates (``mirror.serving.x509``): a key that signs tokens."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization

from mirror.serving.x509 import KeyPair, new_key, private_pem


def new_signing_key() -> KeyPair:
    """A key for service account tokens; ``certificate`` holds the bare public key."""
    key = new_key()
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(public, private_pem(key))
