"""A second kind, for tests alone: ``Drill``, a small custom resource that keeps everything elsewhere than a Job does.

``spec.run.managedBy`` and ``spec.run.paused``; it is over with the condition Succeeded or Broken. ``KINDS`` is the
table with it beside Job, ``definition()`` its CRD, and ``run_drills`` plays the controller of a worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.kinds import explaining
from mirror.kinds.base import BadDraft, Changes, MirrorTransform, Progress, StatusSummary
from mirror.kinds.dependencies import Reference
from mirror.kinds.movable import UnmovableSource
from mirror.kinds.pod_roles import NO_ROLES
from mirror.kinds.registry import JOB, Kinds
from mirror.kinds.report import STRIPPED, Difference, Report
from mirror.kinds.stored_source import NextStatus, Status
from mirror.kube.errors import BadAnswer
from mirror.kube.objects import Object, decode_object
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.model.reasons import Obstruction
from mirror.model.views import Moment
from mirror.telemetry.spans import Span

Json = dict[str, Any]

DRILLS = Resource("example.com", "v1", "drills", "Drill")
POD_LABEL = "example.com/drill-uid"
_ENDS = ("Succeeded", "Broken")
_STRIPPED = Difference(path="spec.run.managedBy", kind=STRIPPED, because="the worker's own controller runs the mirror")


def _of(found: Mapping[str, Any], type_name: str) -> Mapping[str, Any] | None:
    """The condition of this type, if it is True."""
    listed = found.get("conditions")
    for one in listed if isinstance(listed, list) else ():
        if one["type"] == type_name and one["status"] == "True":
            return dict(one)
    return None


def _with(status: Mapping[str, Any], now: datetime, **conditions: tuple[str, str, str] | None) -> Status:
    """The status with these conditions: status, reason and message of each, or None for one that is to go."""
    wanted = {name.replace("jobmirror_", names.PREFIX): value for name, value in conditions.items()}
    listed = [one for one in status.get("conditions") or () if one["type"] not in wanted]
    at = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    for name, value in wanted.items():
        if value is not None:
            state, reason, message = value
            one = {"type": name, "status": state, "reason": reason, "message": message, "lastTransitionTime": at}
            listed.append(one)
    return {**status, "conditions": listed}


class StoredDrill(UnmovableSource):
    """``base.StoredSource`` of a Drill."""

    def __init__(self, spec: Json, status: Json) -> None:
        self._run = spec.get("run") or {}
        self.status: Mapping[str, Any] = status

    @property
    def is_suspended(self) -> bool:
        return bool(self._run.get("paused"))

    @property
    def is_finished(self) -> bool:
        return any(_of(self.status, end) for end in _ENDS)

    @property
    def has_started(self) -> bool:
        return bool(self.status.get("rounds")) or self.is_finished

    @property
    def placed_worker(self) -> str | None:
        found = _of(self.status, names.PLACED)
        return found["message"] if found else None

    @property
    def mirror_uid(self) -> str | None:
        found = _of(self.status, names.MIRRORED)
        return found["message"] if found else None

    def next_status(
        self,
        mirror: Object,
        *,
        now: datetime,
        mirror_suspended: bool = False,
        clock_offset_seconds: float | None = None,
        settled: bool = False,
    ) -> NextStatus:
        theirs, ours = mirror.status_dict(), self.status.get("conditions") or ()
        kept = [one for one in ours if one["type"].startswith(names.PREFIX)]
        status = {**theirs, "conditions": [*kept, *(theirs.get("conditions") or ())]}
        if self.is_finished or not theirs or status == self.status:
            return NextStatus(None, "already stored")
        return NextStatus(status, "the mirror's status")

    def suspended_status(self, now: datetime) -> Status | None:
        if _of(self.status, "Paused"):
            return None
        return _with(self.status, now, Paused=("True", "Paused", ""))

    def lost_status(self, now: datetime, *, message: str, reason: str) -> Status | None:
        return None if self.is_finished else _with(self.status, now, Broken=("True", reason, message))

    def placed_status(self, worker: str | None, now: datetime) -> Status | None:
        if worker == self.placed_worker:
            return None
        if worker is None:
            return _with(self.status, now, jobmirror_Placed=None, jobmirror_Mirrored=None)
        return _with(self.status, now, jobmirror_Placed=("True", "Placed", worker))

    def mirrored_status(self, status: Mapping[str, Any] | None, mirror_uid: str, now: datetime) -> Status:
        base = self.status if status is None else status
        return _with(base, now, jobmirror_Mirrored=("True", "MirrorCreated", mirror_uid))

    @property
    def obstruction_reason(self) -> str:
        return explaining.reason_of(self.status.get("conditions") or ())

    def explained_status(
        self, status: Mapping[str, Any] | None, why: Obstruction | None, *, is_placed: bool, now: datetime
    ) -> Status | None:
        base = self.status if status is None else status
        listed = base.get("conditions") or []
        changed = explaining.explained(listed, why, is_placed=is_placed, at=now.strftime("%Y-%m-%dT%H:%M:%SZ"))
        return {**base, "conditions": changed} if changed != listed else None


class Drill:
    """``base.Kind`` of Drills."""

    resource = DRILLS
    name = DRILLS.kind
    short_names = ("dr",)
    managed_by_field = "spec.run.managedBy"
    managed_by_value = ""
    pod_index = ""
    pod_roles = NO_ROLES
    pod_owners: tuple[Resource, ...] = ()
    needed: tuple[Resource, ...] = ()
    keeps_metadata_in_status = False
    records_by_annotation = False
    never_ends = False
    counts_pods = False
    counts_ready = False
    honoured_since = ""
    unusable: tuple[str, ...] = ()
    has_time_to_live = False
    can_move = False
    fence = None
    retry = None
    can_vanish = False

    def doubt_schema(self) -> None:
        """Its definition is known."""

    def as_stored(self, status: Mapping[str, Any]) -> tuple[Mapping[str, Any], str | None]:
        return status, None

    def seconds_to_live(self, source: Object) -> float | None:
        """They have none."""
        return None

    def managed_by(self, found: Object) -> str | None:
        return self._run(found).get("managedBy")

    def is_suspended(self, found: Object) -> bool:
        return bool(self._run(found).get("paused"))

    def _run(self, found: Object) -> Json:
        run = found.spec_dict().get("run")
        return run if isinstance(run, dict) else {}

    def stored(self, found: Object) -> StoredDrill:
        return StoredDrill(found.spec_dict(), found.status_dict())

    def summary(self, found: Object) -> StatusSummary:
        stored = self.stored(found)
        return StatusSummary(stored.placed_worker, stored.is_finished, stored.mirror_uid)

    def has_unready_pods(self, found: Object) -> bool:
        return False

    def lacks_pods(self, found: Object) -> bool:
        return False

    def is_unstarted(self, found: Object) -> bool:
        return not found.status_dict()

    def progress(self, found: Object) -> Progress:
        stored = self.stored(found)
        end = next(filter(None, (_of(stored.status, one) for one in _ENDS)), None)
        return Progress(
            end=end["type"] if end else "",
            ended_at=end["lastTransitionTime"] if end else "",
            placed=stored.placed_worker or "",
            is_suspended=stored.is_suspended,
        )

    def priority_class(self, found: Object) -> str:
        return ""

    def check(self, found: Object) -> None:
        """It has no annotations of its own."""

    @property
    def own_annotations(self) -> Mapping[str, Callable[[Object], str]]:
        return {}

    def is_awaited_by_cron_job(self, found: Object) -> bool:
        return False

    def mirror_body(self, source: Object, *, namespace: str, transform: MirrorTransform) -> Json:
        spec = source.spec_dict()
        spec["run"] = {"paused": False, **{key: value for key, value in spec["run"].items() if key != "managedBy"}}
        if pod_labels := transform.pod_labels(source):
            spec["template"] = {**(spec.get("template") or {}), "metadata": {"labels": pod_labels}}
        labels = {**source.labels, names.ORIGIN: transform.origin, names.SOURCE_UID: source.metadata.uid}
        metadata = {"name": source.metadata.name, "namespace": namespace, "labels": labels}
        return {"apiVersion": DRILLS.api_version, "kind": DRILLS.kind, "metadata": metadata, "spec": spec}

    def stopping(self, mirror: Object) -> tuple[Mapping[str, Any], ...]:
        return ()

    def has_stopped(self, mirror: Object) -> bool:
        return False

    def is_resuming(self, mirror: Object) -> bool:
        return False

    def ends_when_suspended(self, mirror: Object) -> bool:
        return False

    def has_succeeded(self, found: Object) -> bool:
        return False

    def held_body(self, body: dict[str, Any]) -> dict[str, Any]:
        return body

    def is_held_for_seed(self, mirror: Object) -> bool:
        return False

    def has_ended_for_now(self, found: Object) -> bool:
        return False

    def is_as_sent(self, body: Mapping[str, Any], created: Object) -> bool:
        return bool(created.spec_dict() == body["spec"])

    def changes(self, source: Object, mirror: Object, *, transform: MirrorTransform) -> Changes | None:
        wanted = self.is_suspended(source)
        if self.is_suspended(mirror) == wanted:
            return None
        return Changes((self.set_suspended(wanted),), digest=str(wanted))

    def dry_run_body(self) -> Json:
        return {"apiVersion": DRILLS.api_version, "kind": DRILLS.kind, "spec": {"run": {"paused": True}, "rounds": 1}}

    @property
    def knows_pods(self) -> bool:
        return True

    def pod_selectors(self, mirror: Object) -> tuple[str, ...]:
        return (f"{POD_LABEL}={mirror.metadata.uid}",)

    def references(self, source: Object) -> tuple[Reference, ...]:
        return ()

    def requirements(self, source: Object) -> tuple[Reference, ...]:
        return ()

    def claim_operations(self, found: Object, managed_by: str) -> list[Mapping[str, Any]]:
        return [
            {"op": "add", "path": "/spec/run", "value": {**self._run(found), "managedBy": managed_by, "paused": True}}
        ]

    @property
    def can_be_suspended(self) -> bool:
        return True

    def set_suspended(self, value: bool) -> Mapping[str, Any]:
        return {"op": "add", "path": "/spec/run/paused", "value": value}

    def is_final(self, status: Mapping[str, Any] | None) -> bool:
        return any(_of(status or {}, end) for end in _ENDS)

    def seconds_since_end(self, status: Mapping[str, object], now: datetime) -> float:
        end = next(filter(None, (_of(status, one) for one in _ENDS)), None)
        return (now - datetime.fromisoformat(end["lastTransitionTime"])).total_seconds() if end else 0.0

    def describe(self, status: Mapping[str, Any]) -> tuple[str, str]:
        end = next((one for one in _ENDS if _of(status, one)), "")
        return ("Finished", end) if end else ("Status", f"rounds {status.get('rounds', 0)}")

    def steps(self, found: Object) -> Sequence[Moment]:
        paused = _of(found.status_dict(), "Paused")
        return (Moment(at=paused["lastTransitionTime"], kind="Status", text="paused"),) if paused else ()

    def ended_at(self, status: Mapping[str, object]) -> int | None:
        return None

    def spans(self, source: Object, status: Mapping[str, object], *, stored_at: int | None) -> tuple[Span, ...]:
        return ()

    def drafts_in(self, document: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
        if (document.get("apiVersion"), document.get("kind")) == (DRILLS.api_version, DRILLS.kind):
            yield document

    def draft(self, raw: bytes) -> Object:
        try:
            found = decode_object(raw)
        except BadAnswer as error:
            raise BadDraft("this is no Drill") from error
        if "rounds" not in found.spec_dict():
            raise BadDraft("this is no Drill: spec.rounds is missing")
        return found

    def differences_before(self, source: Object, *, transform: MirrorTransform, managed_by: str) -> Report:
        return Report(differences=(_STRIPPED,))

    def differences_between(
        self, source: Object, mirror: Object, *, transform: MirrorTransform, managed_by: str
    ) -> Report:
        return Report(differences=(_STRIPPED,))


DRILL = Drill()
KINDS = Kinds.of(JOB, DRILL)


def definition() -> Json:
    """Its CRD, with a status subresource."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": DRILLS.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "metadata": {"name": f"{DRILLS.plural}.{DRILLS.group}"},
        "spec": {
            "group": DRILLS.group,
            "scope": "Namespaced",
            "names": {"plural": DRILLS.plural, "kind": DRILLS.kind, "shortNames": [*Drill.short_names]},
            "versions": [version],
        },
    }


def drill(name: str = "train", **run: Any) -> Json:
    """One that is ours."""
    spec = {"run": {"managedBy": names.DEFAULT_MANAGED_BY, **run}, "rounds": 3}
    return {"apiVersion": DRILLS.api_version, "kind": DRILLS.kind, "metadata": {"name": name}, "spec": spec}


class Cluster(Protocol):
    """What ``run_drills`` needs of one."""

    async def list(self, path: str) -> list[Json]: ...

    async def merge(self, path: str, body: Json) -> object: ...


def after_a_round(found: Json) -> Json | None:
    """The status that its controller writes next; None: it does not run."""
    run, status = found["spec"].get("run") or {}, found.get("status") or {}
    if run.get("managedBy") or run.get("paused") or any(_of(status, end) for end in _ENDS):
        return None
    rounds = status.get("rounds", 0) + 1
    new: Json = {"rounds": rounds, "observedGeneration": found["metadata"].get("generation", 0)}
    if rounds >= found["spec"]["rounds"]:
        created = datetime.fromisoformat(found["metadata"]["creationTimestamp"])
        new = _with(new, created, Succeeded=("True", "", ""))
    return new


async def run_drills(cluster: Cluster, *, every_seconds: float = 1.0) -> None:
    """Play the controller of one cluster: count a round at a time, and say so; until cancelled."""
    while True:
        for found in await cluster.list(DRILLS.path()):
            if (new := after_a_round(found)) is None:
                continue
            path = DRILLS.path(found["metadata"]["namespace"], found["metadata"]["name"], "status")
            try:
                await cluster.merge(path, {"status": new})
            except StatusError:
                continue  # gone meanwhile
        await asyncio.sleep(every_seconds)
