"""Snapshots for decisions, in few words: ``seen(...)`` begins with the usual case and changes what a test is about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from doubles.jobs import as_object, condition
from msgspec.structs import replace

from mirror.decide.identity import Identity
from mirror.decide.rules import RULES, decide
from mirror.decide.snapshot import AssignmentState, Memory, Policy, Snapshot, Source, WorkerSight
from mirror.kinds.base import Changes, is_held
from mirror.kinds.registry import JOB
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.keys import SourceKey

Json = dict[str, Any]

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
BEFORE = "2026-03-01T11:59:00Z"
MONOTONIC = 1000.0

PLACED = condition(names.PLACED, BEFORE, reason="Placed", message="east")
MIRRORED = condition(names.MIRRORED, BEFORE, reason="MirrorCreated", message="m")
COMPLETE = [condition("SuccessCriteriaMet", BEFORE), condition("Complete", BEFORE)]
RUNNING = {"active": 1, "ready": 1, "terminating": 0, "uncountedTerminatedPods": {}, "startTime": BEFORE}
ON_EAST = {names.ASSIGNED_WORKER: "east"}
NEAR = WorkerSight("east", is_reachable=True)


def lost(seconds: float) -> WorkerSight:
    return WorkerSight("east", is_reachable=False, lost_for_seconds=seconds, because="network")


def source(status: Json | None = None, *, spec: Json | None = None, **metadata: Any) -> Source:
    """The user's Job; placed on east unless its status says otherwise."""
    status = {"conditions": [PLACED]} if status is None else status
    spec = {"completions": 1, "parallelism": 1} | (spec or {})
    annotations = dict(ON_EAST if PLACED in status.get("conditions", ()) else {})
    metadata = {"name": "train", "namespace": "n", "uid": "u", "annotations": annotations} | metadata
    found = as_object({"metadata": metadata, "spec": spec, "status": status})
    stored = JOB.stored(found)
    is_suspended = bool(spec.get("suspend"))
    return Source(
        JOB,
        found,
        stored,
        is_suspended,
        is_held(JOB, found),
        stored.is_finished,
        stored.has_started,
        stored.placed_worker,
    )


def mirror(status: Json | None = None, *, uid: str = "m", spec: Json | None = None, **metadata: Any) -> Object:
    """Its mirror on east."""
    plain = {"name": "train", "namespace": "n", "uid": uid} | metadata
    return as_object({"metadata": plain, "spec": spec or {}, "status": status or {}})


def seen(
    of: Source | None = None,
    *,
    worker: WorkerSight | None = NEAR,
    assignment: AssignmentState | None = None,
    policy: Policy | None = None,
    memory: Memory | None = None,
    **more: Any,
) -> Snapshot:
    """A snapshot; the worker counts only for a source that is placed."""
    of, memory = of or source(), memory or Memory("u")
    if (found := more.get("mirror")) is not None and "identity" not in more:
        recorded = memory.mirror_uid or of.stored.mirror_uid
        is_other = recorded is not None and recorded != found.metadata.uid
        more["identity"] = Identity.REPLACED if is_other else Identity.OURS
        if more.get("mirror_is_stale"):
            more["identity"] = Identity.NAMESAKE
    return Snapshot(
        key=SourceKey("Job", "n", "train"),
        source=of,
        now=NOW,
        monotonic=MONOTONIC,
        policy=policy or Policy(),
        memory=memory,
        worker=worker if of.placed else None,
        assignment=assignment or AssignmentState(),
        **more,
    )


def actions_of(found: Snapshot) -> list[str]:
    """What the plan does, by name."""
    return [type(action).__name__ for action in decide(found).actions]


def rule_of(found: Snapshot) -> str:
    """The name of the rule that decides."""
    return next(rule.__name__ for rule in RULES if rule(found) is not None)


def remembering(**fields: object) -> Memory:
    return replace(Memory("u"), **fields)


UNPLACED = source({})
STARTED = source({"conditions": [PLACED, MIRRORED], **RUNNING}, annotations=ON_EAST | {names.MIRROR_UID: "m"})
UNRECORDED = source({"conditions": [PLACED], **RUNNING})
ENDED = {
    "startTime": BEFORE,
    "completionTime": BEFORE,
    "succeeded": 1,
    "ready": 0,
    "terminating": 0,
    "uncountedTerminatedPods": {},
    "conditions": COMPLETE,
}
FINISHED = source(
    {"conditions": [*COMPLETE, PLACED, MIRRORED], "startTime": BEFORE, "completionTime": BEFORE, "succeeded": 1},
    annotations=ON_EAST | {names.MIRROR_UID: "m"},
)
SUSPENDED = source({"conditions": [PLACED]}, spec={"suspend": True})
CHANGES = Changes(({"op": "add", "path": "/x", "value": 1},), "d1")
