"""One stretch of a trace as a value, with ids that follow from what it is about, so that a repeat is the same span.

Pure; made by kinds, sent by ``telemetry/otlp``, the only one who knows OpenTelemetry.
"""

from __future__ import annotations

import hashlib
import uuid

import msgspec


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """From ``start`` to ``end``, nanoseconds since 1970, never negative; ``parent`` is 0 for the root."""

    trace: int
    id: int
    parent: int = 0
    name: str
    start: int
    end: int
    attributes: tuple[tuple[str, str], ...] = ()
    error: str | None = None
    """Why it went wrong; None: it did not."""


def trace_id(uid: str) -> int:
    """A uid's own 128 bits, so that a Job's trace is found by its uid; of what is no UUID, a hash. Never 0."""
    try:
        number = uuid.UUID(uid).int
    except ValueError:
        number = 0
    return number or _hash(uid, 16)


def span_id(uid: str, name: str) -> int:
    """64 bits for a uid's span of this name. Never 0."""
    return _hash(f"{uid}/{name}", 8)


def _hash(text: str, size: int) -> int:
    return int.from_bytes(hashlib.sha256(text.encode(errors="replace")).digest()[:size], "big") or 1
