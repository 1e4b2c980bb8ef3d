"""How a Lease is written."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from mirror.kube.errors import BadAnswer


def lease_of(answer: bytes) -> dict[str, Any]:
    """A lease as it came.

    Raises:
        BadAnswer: it is none.
    """
    try:
        found = msgspec.json.decode(answer, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer("the response is not a Lease") from error
    if not all(isinstance(found.get(part) or {}, dict) for part in ("metadata", "spec")):
        raise BadAnswer("the response is not a Lease: metadata or spec is not an object")
    return found


def micro_time(moment: datetime) -> str:
    """A moment in UTC as its times have it (MicroTime)."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
