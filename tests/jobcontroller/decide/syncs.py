"""Syncs in few words: a pod, a spec, a snapshot, and all three steps of one sync with every request succeeding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, NamedTuple

from msgspec.structs import replace

from mirror.batch import conditions, times
from mirror.batch.feature_gates import FeatureGates
from mirror.batch.status_rules import check_status_update
from mirror.jobcontroller.decide.assess import assess
from mirror.jobcontroller.decide.track import settle, track
from mirror.jobcontroller.decide.values import (
    Assessment,
    Constants,
    Container,
    Done,
    Pod,
    PodCondition,
    Settled,
    Snapshot,
    Tracking,
)

Json = dict[str, Any]

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
AT = times.of(NOW)
STARTED = times.of(NOW - timedelta(seconds=60))
LONG_AGO = NOW - timedelta(hours=1)
ALL_GATES = FeatureGates()

FAIL_42 = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
FAIL_DISRUPTED = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
IGNORE_1 = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}
FIRST_INDEX = {"rules": [{"succeededIndexes": "0"}]}

_numbers = count()


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def pod(
    phase: str = "Running",
    *,
    index: int | None = None,
    finished: float | None = None,
    code: int = 1,
    is_ready: bool | None = None,
    going: bool = False,
    has: Mapping[str, str] | None = None,
    **more: Any,
) -> Pod:
    """A pod: ``finished`` and ``code`` are of its only container, ``has`` are conditions; ``going``: it is deleted."""
    number = next(_numbers)
    found = [PodCondition(type_name, status, LONG_AGO) for type_name, status in (has or {}).items()]
    if is_ready is not None:
        found.insert(0, PodCondition("Ready", "True" if is_ready else "False", LONG_AGO))
    containers: tuple[Container, ...] = ()
    if phase in ("Succeeded", "Failed"):
        containers = (Container("main", exit_code=code if phase == "Failed" else 0, finished_at=ago(finished or 0)),)
    return Pod(
        **{
            "uid": f"uid-{number}",
            "name": f"train-{number}",
            "namespace": "n",
            "phase": phase,
            "node": "node",
            "created": LONG_AGO,
            "index": index,
            "containers": containers,
            "conditions": tuple(found),
            "deleted": NOW if going else None,
        }
        | more
    )


def pods(number: int, phase: str = "Running", **more: Any) -> list[Pod]:
    return [pod(phase, **more) for _ in range(number)]


def spec(**fields: Any) -> Json:
    """As the API serves it: one completion unless said otherwise; None takes a field away."""
    only_failed = fields.get("podFailurePolicy") is not None
    whole = {
        "completions": 1,
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "Failed" if only_failed else "TerminatingOrFailed",
        "template": {"spec": {"restartPolicy": fields.pop("restartPolicy", "Never")}},
    } | fields
    return {name: value for name, value in whole.items() if value is not None}


def indexed(number: int, *, parallelism: int | None = None, **fields: Any) -> Json:
    per_index = {"backoffLimit": 2**31 - 1} if "backoffLimitPerIndex" in fields else {}
    sizes = {"completions": number, "parallelism": number if parallelism is None else parallelism}
    return spec(completionMode="Indexed", **sizes, **per_index | fields)


def policy(*rules: Json, **more: Any) -> Json:
    return {"podFailurePolicy": {"rules": list(rules)}, **more}


def condition(type_name: str, status: str = "True", reason: str = "", message: str = "") -> Json:
    return conditions.new(type_name, status, reason=reason, message=message, at=STARTED)


def running(active: int = 0, ready: int = 0, terminating: int = 0, **fields: Any) -> Json:
    """The status of a Job that has started and had these pods at its last sync."""
    counts = {"active": active} if active else {}
    return counts | {
        "ready": ready,
        "terminating": terminating,
        "startTime": STARTED,
        "uncountedTerminatedPods": {},
        **fields,
    }


def snapshot(
    of: Json | None = None,
    found: Sequence[Pod] = (),
    *,
    status: Json | None = None,
    **more: Any,
) -> Snapshot:
    return Snapshot(
        **{
            "key": "n/train",
            "uid": "job-uid",
            "spec": of or spec(),
            "status": status or {},
            "annotations": {},
            "is_deleting": False,
            "pods": list(found),
            "settled_failed": (),
            "expectations_met": True,
            "backoff": None,
            "now": NOW,
            "constants": Constants(),
            "gates": ALL_GATES,
        }
        | more
    )


class Sync(NamedTuple):
    """What one sync did."""

    assessment: Assessment
    tracking: Tracking
    settled: Settled

    @property
    def writes(self) -> list[Json]:
        first = [self.tracking.status] if self.tracking.flush else []
        return [*first, self.settled.status] if self.settled.flush else first

    @property
    def status(self) -> Json:
        """As the sync leaves it, stored or not."""
        return self.settled.status

    @property
    def events(self) -> list[str]:
        return [event.reason for event in (*self.tracking.events, *self.settled.events)]

    @property
    def true_conditions(self) -> list[tuple[str, str]]:
        return [
            (one["type"], one.get("reason", "")) for one in self.status.get("conditions", ()) if one["status"] == "True"
        ]


def everything(found: Snapshot, assessment: Assessment) -> Done:
    return Done(
        deleted=len(assessment.deletes),
        deleted_ready=sum(one.is_ready for one in assessment.deletes),
        created=len(assessment.births),
    )


def sync(found: Snapshot, *, done: Done | None = None, removed: Sequence[Pod] | None = None) -> Sync:
    """All three steps; each status that is to be stored must be one that the API accepts."""
    assessment = assess(found)
    tracking = track(found, assessment, everything(found, assessment) if done is None else done)
    job: Json = {"spec": found.spec, "status": found.status}
    if tracking.flush:
        assert check_status_update(job, tracking.status) == []
        job["status"] = tracking.status
    gone = frozenset(one.uid for one in (tracking.removals if removed is None else removed))
    settled = settle(tracking, gone, found.now)
    if settled.flush:
        assert check_status_update(job, settled.status) == []
    return Sync(assessment, tracking, settled)


def later(found: Snapshot, seconds: float, **changes: Any) -> Snapshot:
    return replace(found, now=found.now + timedelta(seconds=seconds), **changes)
