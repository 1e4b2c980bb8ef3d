"""``fenceable.Fence`` of batch/v1 Jobs: ``activeDeadlineSeconds``, enforced by kube-controller-manager (F1 to F4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mirror.batch import conditions, views
from mirror.batch.conditions import FAILED, FAILURE_TARGET, SUSPENDED
from mirror.kinds import queueing
from mirror.kinds.batch_job import spec_rare
from mirror.kinds.batch_job.body import SUSPEND
from mirror.kinds.batch_job.spec_rare import RareSpec
from mirror.kinds.fenceable import Lease
from mirror.kinds.following import noted_as
from mirror.kube.objects import Object
from mirror.model import names

DEADLINE_EXCEEDED = "DeadlineExceeded"
GRACE_SECONDS = 30.0
LONGEST_GRACE_SECONDS = 10 * 365 * 86_400.0
_ENDS = frozenset((FAILED, FAILURE_TARGET))


class JobFence:
    """See ``fenceable.Fence``."""

    def lease(self, mirror: Object) -> Lease:
        spec, status = _read(mirror), mirror.status_dict()
        listed = conditions.of(status)
        decided = [one for one in listed if one.get("status") == "True" and one.get("type") in conditions.DECIDING]
        by_deadline = [one for one in decided if one.get("type") in _ENDS and one.get("reason") == DEADLINE_EXCEEDED]
        pods = any(views.number(status.get(name)) for name in ("active", "terminating"))
        return Lease(
            seconds=spec.active_deadline_seconds,
            is_ours=names.FENCE in mirror.annotations,
            started_at=self.running_since(status),
            is_over=bool(decided),
            has_expired=bool(by_deadline) and len(by_deadline) == len(decided),
            has_ended=conditions.is_finished(listed),
            has_pods=pods,
            is_held=bool(spec.suspend) and not pods and _is_suspended_by_us(mirror),
        )

    def is_run_by_queue(self, mirror: Object) -> bool:
        return bool(queueing.queue_of(mirror)) and queueing.is_admitted((mirror.spec_dict().get("template"),))

    def user_seconds(self, source: Object) -> int | None:
        return _read(source).active_deadline_seconds

    def running_since(self, status: Mapping[str, Any]) -> int | None:
        return None if conditions.is_true(conditions.of(status), SUSPENDED) else self.started_at(status)

    def started_at(self, status: Mapping[str, Any]) -> int | None:
        return spec_rare.started_at(status)

    def grace_seconds(self, source: Object) -> float:
        asked = _read(source).grace_seconds
        return GRACE_SECONDS if asked is None else min(max(0.0, asked), LONGEST_GRACE_SECONDS)

    def pods(self, source: Object) -> int:
        asked = _read(source).parallelism
        return 1 if asked is None else max(0, asked)

    def operations(self, mirror: Object, seconds: int | None, *, is_ours: bool) -> Sequence[Mapping[str, Any]]:
        path, has = "/spec/activeDeadlineSeconds", _read(mirror).active_deadline_seconds is not None
        operations: list[Mapping[str, Any]] = []
        if seconds is not None:
            operations.append({"op": "add", "path": path, "value": seconds})
        elif has:
            operations.append({"op": "remove", "path": path})
        if is_ours != (names.FENCE in mirror.annotations):
            annotations = {key: value for key, value in mirror.annotations.items() if key != names.FENCE}
            annotations |= {names.FENCE: "true"} if is_ours else {}
            operations.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
        return operations

    def progress_of_expired(self, source: Object, mirror: Object) -> Object:
        status, stored = mirror.status_dict(), source.status_dict()
        listed = [one for one in conditions.of(status) if one.get("type") not in conditions.DECIDING]
        kept = {**status, "failed": views.number(stored.get("failed")), "conditions": listed}
        kept["failedIndexes"] = stored.get("failedIndexes")
        return msgspec.structs.replace(mirror, status=msgspec.Raw(msgspec.json.encode(kept)))


def _is_suspended_by_us(mirror: Object) -> bool:
    """By the note on it, which is another one where somebody on its worker, or a queue there, holds it."""
    carried = mirror.annotations.get(names.CARRIED, "")
    return carried == noted_as(carried, SUSPEND.name, value=True)


def _read(found: Object) -> RareSpec:
    return spec_rare.read(found) or RareSpec()
