"""Why its pods failed is reported with the end of a Job, by event: a finished Job's conditions stay as they are (D22).

The Job and its pods are watched apart, so either may be seen first. Used by ``rules`` and ``following``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.decide.plan import Action, EmitEvent
from mirror.decide.snapshot import MemoryChange, Snapshot
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model.reasons import Obstruction
from mirror.model.views import FAILED


def has_failed(kind: Kind, mirror: Object) -> bool:
    """Whether a mirror is over and has failed."""
    return kind.summary(mirror).is_finished and kind.progress(mirror).end == FAILED


def report_failure(
    seen: Snapshot, mirror: Object, status: Mapping[str, Any] | None
) -> tuple[tuple[Action, ...], MemoryChange]:
    """What is said of the pods with this status, which its mirror brings; and what to remember.

    Nothing unless it ends the source, and as failed. Where nothing is known of its pods yet, ``report_late`` follows.
    """
    kind = seen.source.kind
    if status is None or not has_failed(kind, mirror) or not kind.is_final(status):
        return (), {}
    if seen.failure is None:
        return (), {"is_failure_untold": True}
    return _events(seen, seen.failure), {"pods_told": seen.failure.reason, "is_failure_untold": False}


def report_late(seen: Snapshot) -> tuple[tuple[Action, ...], MemoryChange]:
    """The same for a source that this process has seen to fail, and whose pods are seen only now."""
    if not seen.memory.is_failure_untold or seen.failure is None:
        return (), {}
    return _events(seen, seen.failure), {"pods_told": seen.failure.reason, "is_failure_untold": False}


def _events(seen: Snapshot, failure: Obstruction) -> tuple[Action, ...]:
    """One for each Job and reason."""
    is_told = failure.reason in (seen.memory.pods_told, seen.source.stored.obstruction_reason)
    return () if is_told else (EmitEvent(failure.reason, failure.message),)
