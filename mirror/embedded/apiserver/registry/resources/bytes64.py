"""Bytes as JSON carries them: base64, whose text tells how many bytes they are."""

from __future__ import annotations

import binascii


def length(text: str) -> int:
    """How many bytes a canonical base64 text stands for."""
    return len(text) * 3 // 4 - text.count("=", -2)


def canonical(text: str) -> str:
    """The text as it comes back: bits beyond the last byte are not kept."""
    return encoded(decoded(text)) if text.endswith("=") else text


def decoded(text: str) -> bytes:
    """The bytes of a canonical text; none if it is no base64 (decoding a body has refused such)."""
    try:
        return binascii.a2b_base64(text)
    except (ValueError, binascii.Error):
        return b""


def encoded(value: bytes) -> str:
    """The text of bytes."""
    return binascii.b2a_base64(value, newline=False).decode("ascii")
