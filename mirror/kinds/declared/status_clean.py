"""What a worker says about an object whose kind is data, made safe: bounded, and none of it ours (D7, D18).

The CRD's schema judges the rest; what it leaves open is copied as it is. Conditions are cleaned one by one, since one
that the API server refuses would keep the whole status from being stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from mirror.batch import times, views
from mirror.kinds.declared.form import Form, path_of
from mirror.kinds.declared.status_bounds import ENOUGH, Room, bounded
from mirror.kinds.declared.status_schema import StatusSchema
from mirror.model import names
from mirror.model.field_paths import at, strip, without
from mirror.model.text import clean

Json = Any

MAX_CONDITIONS = 64
MAX_REASON = 1024
MAX_MESSAGE = 4096
"""Characters; metav1 has 32 KiB, which nobody reads."""
MAX_DEPTH = 32
_STATUSES = frozenset(("True", "False", "Unknown"))
_TYPE = re.compile(r"([a-z0-9][-a-z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_WORDS = re.compile(r"[A-Za-z0-9_,:]+")


class Cleaned(msgspec.Struct, frozen=True):
    """A worker's status as far as it is usable."""

    status: Mapping[str, Json]
    cut: int = 0
    """How many values were dropped or shortened."""


def cleaned(form: Form, found: object, schema: StatusSchema | None = None, *, room: Room = ENOUGH) -> Cleaned:
    """Take what is usable of any JSON value. Never raises.

    Args:
        form: of its kind.
        found: what a worker says.
        schema: what the definition here takes, as far as it is known.
        room: see ``status_bounds.room_beside``.
    """
    if not isinstance(found, Mapping):
        return Cleaned({}, cut=int(found is not None))
    status: Json = {key: value for key, value in found.items() if isinstance(key, str)}
    cut = 0
    for path in map(path_of, form.entry.status.drop):
        status = strip(status, path)
    for key in [key for key, value in status.items() if _is_too_deep(value, MAX_DEPTH)]:
        del status[key]
        cut += 1
    if "conditions" in status:
        conditions, dropped = _conditions(status["conditions"])
        status["conditions"] = conditions
        cut += dropped
    if schema is not None:
        status, dropped = schema.fitted(status)
        cut += dropped
    for path in map(path_of, form.entry.status.complete):
        for place in reversed(list(path.places(status))):
            if at(status, place) is None:
                status = without(status, place[:-1])
                cut += 1
    kept, dropped = bounded(status, form.entry.status.limit_bytes, room, telling=form.telling)
    return Cleaned(kept, cut + dropped)


def _is_too_deep(value: Json, left: int) -> bool:
    if isinstance(value, Mapping):
        return not left or any(_is_too_deep(one, left - 1) for one in value.values())
    if isinstance(value, list):
        return not left or any(_is_too_deep(one, left - 1) for one in value)
    return False


def _conditions(found: object) -> tuple[list[Mapping[str, Json]], int]:
    """Conditions that any CRD takes, one of a type, the last one said; and how many were dropped or changed."""
    listed = views.items(found)
    kept: dict[str, Mapping[str, Json]] = {}
    cut = int(found is not None and not isinstance(found, list))
    for one in map(views.mapping, listed):
        name, status = views.text(one.get("type")), views.text(one.get("status"))
        is_valid = status in _STATUSES and not name.startswith(names.PREFIX) and _TYPE.fullmatch(name)
        if not is_valid or (name not in kept and len(kept) == MAX_CONDITIONS):
            cut += 1
            continue
        shaped = _condition(one)
        cut += shaped != one or name in kept
        kept[name] = shaped
    return list(kept.values()), cut


def _condition(found: Mapping[str, Json]) -> Mapping[str, Json]:
    shaped = dict(found)
    for name in ("lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime"):
        if name in shaped and not _is_time(shaped[name]):
            del shaped[name]
    for name, longest in (("message", MAX_MESSAGE), ("reason", MAX_REASON)):
        if name in shaped:
            shaped[name] = clean(views.text(shaped[name]), longest=longest - 1)
    if reason := shaped.get("reason"):
        shaped["reason"] = reason if _REASON.fullmatch(reason) else _as_reason(reason)
    if "observedGeneration" in shaped and views.optional_number(shaped["observedGeneration"]) is None:
        del shaped["observedGeneration"]
    return shaped


def _as_reason(text: str) -> str:
    """What of a text a reason may have: kubeflow's have a slash, which their CRDs take and others' do not."""
    words = "_".join(_REASON_WORDS.findall(text))
    return found[0] if (found := _REASON.search(words)) else "Unknown"


def _is_time(value: object) -> bool:
    if value is None:
        return True
    try:
        times.seconds(views.text(value))
    except times.BadTime:
        return False
    return True
