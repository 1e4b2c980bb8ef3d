"""What the manager knows, put for people: ``model.views.Known`` over caches and ``history``. Asks no cluster.

The page and ``access`` read it; a standby's is as good as a leader's, but for what only the leader saw.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from mirror.controllers.applying import Applier
from mirror.controllers.history import Changes, Entry, History, status_moment
from mirror.controllers.memory import Memories
from mirror.controllers.observing import BY_WORKER, BadAnnotation, wish_of
from mirror.controllers.placing import Placing
from mirror.controllers.routes import source_key
from mirror.decide.seen import Memory
from mirror.kube.objects import JUNK, Object
from mirror.model import names
from mirror.model.views import JobKey, JobView, Moment, WorkerView
from mirror.runtime.clock import Clock
from mirror.runtime.store import Store
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker


class _Condition(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    message: str | None = None
    last_transition_time: str | None = None


class _Status(msgspec.Struct, gc=False, rename="camel"):
    conditions: list[_Condition] | None = None
    start_time: str | None = None
    completion_time: str | None = None
    active: int | None = None
    succeeded: int | None = None
    failed: int | None = None

    def true(self, *types: str) -> _Condition | None:
        """The first condition of these types that is True."""
        return next((one for one in self.conditions or () if one.type in types and one.status == "True"), None)


class _Spec(msgspec.Struct, gc=False):
    suspend: bool | None = None
    completions: int | None = None


_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_status = msgspec.json.Decoder(_Status | None)
_spec = msgspec.json.Decoder(_Spec | None)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """``model.views.Known`` of one manager."""

    sources: Store
    registry: Registry
    placing: Placing
    memories: Memories
    applier: Applier
    history: History
    clock: Clock

    def workers(self) -> tuple[WorkerView, ...]:
        """All workers, by name."""
        found = sorted(self.registry.workers.values(), key=lambda worker: worker.name)
        return tuple(self._worker_view(worker) for worker in found)

    def jobs(self, namespace: str | None = None, *, most: int | None = None) -> tuple[JobView, ...]:
        """All sources, or the newest of them, newest first."""
        found = [one for one in self.sources if namespace is None or one.metadata.namespace == namespace]
        newest = heapq.nlargest(len(found) if most is None else most, found, key=_age)
        return tuple(map(self._view, newest))

    def keys(self) -> tuple[JobKey, ...]:
        """All sources, in any order."""
        return tuple((found.metadata.namespace, found.metadata.name) for found in self.sources)

    def job(self, namespace: str, name: str) -> JobView | None:
        """One source."""
        found = self.sources.get(namespace, name)
        return self._view(found) if found is not None else None

    def timeline(self, namespace: str, name: str) -> tuple[Moment, ...]:
        """What happened to it, oldest first: what was seen, and before that what the source itself tells."""
        found = self.sources.get(namespace, name)
        if found is None:
            return ()
        seen = self.history.of(found.metadata.uid)
        kinds = {entry.kind for entry in seen}
        told = [entry for entry in self._told_by(found, was_held="Released" in kinds) if entry.kind not in kinds]
        placed = _read_status(found).true(names.PLACED)
        if placed is not None and placed.message:
            since = _seconds(placed.last_transition_time)
            until = self._ended_at(found, seen)
            told += [one for one in self.history.of_worker(placed.message) if since <= one.at <= until]
        return tuple(map(_moment, sorted((*told, *seen), key=lambda entry: entry.at)))

    def _ended_at(self, found: Object, seen: Sequence[Entry]) -> float:
        """Until when it matters to a source how its worker is; conditions' times are of whole seconds."""
        end = _read_status(found).true("Complete", "Failed")
        if end is None:
            return math.inf
        noted = [entry.at for entry in seen if entry.kind == "Finished"]
        return noted[0] if noted else _seconds(end.last_transition_time) + 1

    def lacks(self, namespace: str, name: str) -> Mapping[str, str]:
        """For each worker that cannot take it: why."""
        found = self.sources.get(namespace, name)
        return self._lacks(found, self.memories.of(found.metadata.uid)) if found is not None else {}

    def lacks_of(self, draft: Object) -> Mapping[str, str]:
        """The same for a Job that does not exist yet, whatever uid is written in it."""
        return self._lacks(draft, Memory(""))

    def _lacks(self, found: Object, memory: Memory) -> Mapping[str, str]:
        """Under ``""`` what is wrong with itself."""
        try:
            wish = wish_of(found, memory, self.clock.monotonic())
        except BadAnnotation as error:
            return {"": str(error)}
        return self.placing.obstacles(wish, memory.refusal_texts)

    def changes(self) -> Changes:
        """Which sources changed since the last time."""
        return self.history.changes()

    # -- views --------------------------------------------------------------------------------------------------------

    def _worker_view(self, worker: Worker) -> WorkerView:
        spec, connection = worker.spec, worker.connection
        problems = "; ".join(map(str, worker.problems))
        seen = WorkerView(
            name=worker.name,
            state=connection.state.value,
            since=_text(connection.since),
            lost_since=_text(connection.lost_since),
            because="; ".join(filter(None, (connection.because, problems))),
            jobs=self.sources.count(BY_WORKER, worker.name),
            uid=worker.uid,
            version=worker.version,
            token_expires=_text(worker.token.expires),
        )
        if spec is None:
            return seen
        return msgspec.structs.replace(
            seen,
            cordoned=spec.cordoned,
            draining=spec.draining,
            capacity=spec.capacity,
            weight=spec.weight,
            labels=dict(spec.labels),
        )

    def _view(self, found: Object) -> JobView:
        metadata, status, spec = found.metadata, _read_status(found), _read_spec(found)
        placed, end = status.true(names.PLACED), status.true("Complete", "Failed")
        worker = (placed.message or "") if placed else ""
        state = _state(found, status, spec)
        return JobView(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            state=state,
            worker=worker,
            because="" if end else self._because(found, worker, state),
            created=metadata.creation_timestamp or "",
            started=status.start_time or "",
            finished=(end.last_transition_time or "") if end else "",
            active=status.active or 0,
            succeeded=status.succeeded or 0,
            failed=status.failed or 0,
            completions=spec.completions,
            lag_seconds=self._lag_seconds(found) if worker else None,
        )

    def _because(self, found: Object, worker: str, state: str) -> str:
        known = self.registry.workers.get(worker) if worker else None
        if worker and (known is None or not known.is_reachable):
            why = known.connection.because if known else "no Secret registers it"
            return f"worker {worker} is out of reach{': ' + why if why else ''}"
        if (stored := found.annotations.get(names.WAITING_BECAUSE)) or state != "Waiting":
            return stored or ""
        # Not yet in its annotation, which is written at most once in a while (D21).
        return self.memories.of(found.metadata.uid).in_the_way or self._why_unplaced(found)

    def _why_unplaced(self, found: Object) -> str:
        memory = self.memories.of(found.metadata.uid)
        try:
            wish = wish_of(found, memory, self.clock.monotonic())
        except BadAnnotation as error:
            return str(error)
        return self.placing.why(wish, memory.refusal_texts)

    def _lag_seconds(self, found: Object) -> float | None:
        arrived = self.applier.arrived_at.get(source_key(found))
        return None if arrived is None else max(0.0, self.clock.monotonic() - arrived)

    def _told_by(self, found: Object, *, was_held: bool) -> list[Entry]:
        """What a source and its mirror tell of what happened before we looked."""
        metadata, status = found.metadata, _read_status(found)
        created = _seconds(metadata.creation_timestamp)
        told = [Entry(created, "Created", "", "")]
        if was_held or names.HELD in found.annotations:
            told.append(Entry(created, "Held", "suspended until a worker is chosen", ""))
        placed = status.true(names.PLACED)
        if placed is not None:
            told.append(Entry(_seconds(placed.last_transition_time), "Placed", "", placed.message or ""))
            told += self._told_by_mirror(found, placed.message or "")
        if status.start_time:
            told.append(Entry(_seconds(status.start_time), "Status", "started", placed.message or "" if placed else ""))
        if end := status.true("Complete", "Failed"):
            told.append(Entry(_seconds(end.last_transition_time), *status_moment(found.status_dict()), ""))
        if metadata.deletion_timestamp:
            told.append(Entry(_seconds(metadata.deletion_timestamp), "Deleting", "", ""))
        return told

    def _told_by_mirror(self, found: Object, worker_name: str) -> list[Entry]:
        worker = self.registry.workers.get(worker_name)
        if worker is None:
            return []
        mirror = worker.mirrors.get(worker.namespace_of(found.metadata.namespace), found.metadata.name)
        if mirror is None or mirror.labels.get(names.SOURCE_UID) != found.metadata.uid:
            return []
        return [Entry(_seconds(mirror.metadata.creation_timestamp), "Mirrored", "Job created on worker", worker_name)]


def _age(found: Object) -> tuple[str, str, str]:
    metadata = found.metadata
    return metadata.creation_timestamp or "", metadata.namespace, metadata.name


def _state(found: Object, status: _Status, spec: _Spec) -> str:
    if found.metadata.deletion_timestamp is not None:
        return "Deleting"
    if end := status.true("Complete", "Failed"):
        return end.type
    is_placed = status.true(names.PLACED) is not None
    if spec.suspend:
        # One that our webhook holds waits for a worker like any other (D16).
        return "Waiting" if names.HELD in found.annotations and not is_placed else "Suspended"
    if not is_placed:
        return "Waiting"
    return "Running" if status.start_time else "Placed"


def _read_status(found: Object) -> _Status:
    try:
        return _status.decode(found.status) or _Status()
    except JUNK:
        return _Status()


def _read_spec(found: Object) -> _Spec:
    try:
        return _spec.decode(found.spec) or _Spec()
    except JUNK:
        return _Spec()


def _moment(entry: Entry) -> Moment:
    return Moment(at=_text_of(entry.at), kind=entry.kind, text=entry.text, worker=entry.worker)


def _text_of(seconds: float) -> str:
    whole = float(seconds).is_integer()
    at = datetime.fromtimestamp(seconds, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if whole else f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def _text(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _seconds(text: str | None) -> float:
    """Seconds since 1970 of a time that a cluster told; 0 where there is none, or none that could be shown."""
    try:
        seconds = datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return seconds if 0 <= seconds < _LATEST else 0.0
