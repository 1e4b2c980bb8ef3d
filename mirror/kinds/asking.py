"""What follows from a kind's answers about an object: whether it is ours, its state, how it is released. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.terms import manager_in, may_name_manager

_MOVED, _RETRYING = names.MOVED.encode(), names.RETRYING.encode()


def is_ours(kind: Kind, found: Object, managed_by: str) -> bool:
    """D1: exactly our value, which is the setting ``managedBy`` or the kind's own."""
    return kind.managed_by(found) == (kind.managed_by_value or managed_by)


def asks_us_alone(kind: Kind, found: Object, managed_by: str) -> bool:
    """Whether an object asks to be mirrored by a value that nobody else has: a mirror never does, wherever it is (D1).

    Where a kind's API server takes only some values, a worker's own controllers may put such a one on what runs there,
    as Kueue does.
    """
    return not kind.managed_by_value and is_ours(kind, found, managed_by)


def annotates_apart(kind: Kind) -> bool:
    """Whether annotations take a request of their own, beside that to ``/status`` which records the worker (D25)."""
    return not (kind.keeps_metadata_in_status or kind.records_by_annotation)


def manager_of(kind: Kind, found: Object) -> str | None:
    """The namespace of the manager that has placed a source, as its annotation says, or else its record (D2).

    The record does where annotations take a request of their own, which may come late (D25). None: neither says so.
    """
    mark = found.annotations.get(names.MANAGER)
    if mark is not None or kind.keeps_metadata_in_status or not may_name_manager(bytes(found.status)):
        return mark
    return manager_in(found.status_dict()) or None


def state(kind: Kind, found: Object) -> str:
    """A mirror's state for metrics: running, suspended or finished."""
    if kind.summary(found).is_finished:
        return "finished"
    return "suspended" if kind.is_suspended(found) else "running"


def release_operations(kind: Kind, found: Object) -> list[Mapping[str, Any]]:
    """The JSON Patch that unsuspends a source as it was seen, and takes the mark away."""
    mark = names.HELD.replace("~", "~0").replace("/", "~1")
    return [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": found.metadata.resource_version},
        kind.set_suspended(False),
        {"op": "remove", "path": f"/metadata/annotations/{mark}"},
    ]


def was_moved(source: Object) -> bool:
    """Whether a source may have left something behind (D14), without decoding anything: few have."""
    return _MOVED in bytes(source.status)


def was_retried(source: Object) -> bool:
    """Whether a source is or was tried on another worker (D31), without decoding anything: few were."""
    return _RETRYING in bytes(source.status)
