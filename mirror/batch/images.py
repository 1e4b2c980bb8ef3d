"""The tag in the name of an image, by which its pull policy is defaulted."""

from __future__ import annotations

import re

LATEST = "latest"

_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>{_DOMAIN}/{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?"
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_LONGEST_NAME = 255


def tag_of(image: str) -> str:
    """The tag; ``latest`` if there is neither a tag nor a digest, and nothing if this is no image name at all."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    first, slash, rest = image.partition("/")
    if not slash or not (set(".:") & set(first) or first == "localhost" or first != first.lower()):
        first, rest = "docker.io", image
    if first in ("docker.io", "index.docker.io") and "/" not in rest:
        rest = f"library/{rest}"
    found = _REFERENCE.fullmatch(f"{first}/{rest}")
    if found is None or len(found["name"]) > _LONGEST_NAME:
        return ""
    return found["tag"] or ("" if found["digest"] else LATEST)
