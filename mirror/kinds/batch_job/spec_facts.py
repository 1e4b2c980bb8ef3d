"""What is asked of a Job's spec time and again: read once while the spec stays, whatever else of the Job changes.

Asked by ``reading`` for each event of a Job and several times a look, mostly about specs of kilobytes. A store keeps a
spec that has not changed as the same bytes (``kube.objects.keep_spec``), and by these it is known here.
"""

from __future__ import annotations

from typing import Any, Final, TypedDict, TypeVar

import msgspec

from mirror.batch.status_change import Spec
from mirror.kube.objects import JUNK

T = TypeVar("T")

_MOST_REMEMBERED: Final = 256
_LONGEST_REMEMBERED_BYTES: Final = 8192
"""Specs are half of that; what users may make longer is read each time it is asked for."""


class Asked(TypedDict, total=False):
    """Those fields of a spec that anything is asked of, as they came."""

    managedBy: Any
    suspend: Any
    completions: Any
    parallelism: Any
    completionMode: Any
    backoffLimitPerIndex: Any
    successPolicy: Any


class _Head(msgspec.Struct, rename="camel", gc=False):
    managed_by: str | None = None
    suspend: bool | None = None


class Size(msgspec.Struct, gc=False):
    """How many pods it is to have."""

    suspend: bool | None = None
    completions: int | None = None
    parallelism: int | None = None


class SpecFacts(msgspec.Struct, frozen=True, gc=False):
    """What cannot be read is as if it was not there: a worker may answer anything (D7)."""

    asked: Asked | None = None
    wanted: Spec | None = None
    """What decides about statuses."""
    size: Size | None = None
    managed_by: str | None = None
    is_suspended: bool = False


_decode = msgspec.json.Decoder(Asked | None).decode
_NONE = SpecFacts()
# By the identity of the bytes, which are kept beside it: nothing else has their id meanwhile.
_known: dict[int, tuple[msgspec.Raw, SpecFacts]] = {}


def facts_of(spec: msgspec.Raw) -> SpecFacts:
    """What a spec says, without decoding the rest of it."""
    known = _known.get(id(spec))
    if known is not None:
        return known[1]
    found = _read(spec)
    if len(spec) <= _LONGEST_REMEMBERED_BYTES:
        if len(_known) >= _MOST_REMEMBERED:
            _known.clear()
        _known[id(spec)] = spec, found
    return found


def _read(spec: msgspec.Raw) -> SpecFacts:
    try:
        asked = _decode(spec)
    except JUNK:
        return _NONE
    if asked is None:
        return _NONE
    head = _converted(asked, _Head) or _Head()
    return SpecFacts(asked, Spec.of(asked), _converted(asked, Size), head.managed_by, bool(head.suspend))


def _converted(asked: Asked, to: type[T]) -> T | None:
    try:
        return msgspec.convert(asked, to)
    except msgspec.ValidationError:
        return None
