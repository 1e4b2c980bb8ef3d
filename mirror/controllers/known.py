"""What the manager knows, put for people: ``model.views.Known`` over caches and ``history``. Asks no cluster.

The page and ``access`` read it; a standby's is as good as a leader's, but for what only the leader saw.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from mirror.controllers.history import Changes, Entry
from mirror.controllers.requesting import avoided_workers, placement_request_of, refusal_texts, without
from mirror.controllers.sources import source_key
from mirror.controllers.state import MirroringState
from mirror.decide.snapshot import Memory
from mirror.kinds.base import BadAnnotation, Kind, Progress, is_held
from mirror.kinds.read_model import moments_of, view_of
from mirror.kube.objects import Meta, Object
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.model.loss_texts import follows_of
from mirror.model.views import JobView, Moment, WorkerView
from mirror.placement.explaining import Choice
from mirror.workers.worker import Worker

_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


@dataclass(frozen=True, slots=True)
class Knowledge:
    """``model.views.Known`` of one manager."""

    state: MirroringState

    def workers(self) -> tuple[WorkerView, ...]:
        """All workers, by name."""
        found = sorted(self.state.workers.values(), key=lambda worker: worker.name)
        return tuple(self._worker_view(worker) for worker in found)

    def jobs(
        self, namespace: str | None = None, *, kind: str | None = None, most: int | None = None
    ) -> tuple[JobView, ...]:
        """All sources, or the newest of them, newest first."""
        sources = self.state.sources.metadata(kind)
        found = [one for one in sources if namespace is None or one[1].namespace == namespace]
        newest = heapq.nlargest(len(found) if most is None else most, found, key=_age)
        keys = (SourceKey(of.name, metadata.namespace, metadata.name) for of, metadata in newest)
        return tuple(view for view in map(self.job, keys) if view is not None)

    def keys(self) -> tuple[SourceKey, ...]:
        """All sources, in any order."""
        return tuple(self.state.sources.all_keys())

    def job(self, key: SourceKey) -> JobView | None:
        """One source."""
        found = self._get(key)
        return self._view(self.state.sources.kinds[key.kind], found) if found is not None else None

    def _get(self, key: SourceKey) -> Object | None:
        return self.state.sources.get(key) if key.kind in self.state.sources.kinds.by_name else None

    def timeline(self, key: SourceKey) -> tuple[Moment, ...]:
        """What happened to it, oldest first: what was seen, and before that what the source itself shows."""
        found = self._get(key)
        if found is None:
            return ()
        kind = self.state.sources.kinds[key.kind]
        progress = kind.progress(found)
        seen = self.state.history.of(found.metadata.uid)
        kinds = {entry.kind for entry in seen}
        is_known = kinds | ({"Started"} if "Status" in kinds else set())
        own = [one for one in self._own_entries(kind, found, was_held="Released" in kinds) if one.kind not in is_known]
        if progress.placed:
            since, until = _seconds(progress.placed_at), _ended_at(progress, seen)
            own += [one for one in self.state.history.of_worker(progress.placed) if since <= one.at <= until]
        return tuple(map(_moment, sorted((*own, *seen), key=lambda entry: entry.at)))

    def placement_obstacles(self, key: SourceKey) -> Mapping[str, str]:
        """For each worker that is not eligible: why."""
        found = self._get(key)
        if found is None:
            return {}
        return self._obstacles(self.state.sources.kinds[key.kind], found, self.state.memories.of(found.metadata.uid))

    def kept_elsewhere(self, key: SourceKey) -> str:
        """Nothing: whoever stands by beside this manager knows no more."""
        return ""

    def ownership(self) -> Hashable:
        """Always the same: there is one manager that works."""
        return None

    def obstacles_of_draft(self, kind: Kind, draft: Object) -> Mapping[str, str]:
        """The same for one that does not exist yet, whatever uid is written in it."""
        return self._obstacles(kind, draft, Memory(""))

    def choice_for_draft(self, kind: Kind, draft: Object) -> Choice:
        """Where one that does not exist yet would be placed now, and why there."""
        try:
            request = placement_request_of(kind, draft, Memory(""))
        except BadAnnotation as error:
            return Choice(reason=error.reason, because=str(error))
        return self.state.assigner.explain(request, {})

    def _obstacles(self, kind: Kind, found: Object, memory: Memory) -> Mapping[str, str]:
        """Under ``""`` what is wrong with itself."""
        try:
            avoided = self._avoided(kind, found, memory)
            request = without(placement_request_of(kind, found, memory), avoided)
        except BadAnnotation as error:
            return {"": str(error)}
        return self.state.assigner.obstacles(request, refusal_texts(memory, avoided))

    def _avoided(self, kind: Kind, found: Object, memory: Memory) -> frozenset[str]:
        """Workers that it is not placed on since nothing of it became ready there not long ago (D31)."""
        return avoided_workers(self.state.assigner, kind, found, memory, self.state.environment.clock.now())

    def changes(self) -> Changes:
        """Which sources changed since the last time."""
        return self.state.history.changes()

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
            dead=worker.is_gone,
            jobs=self.state.sources.load_of(worker.name),
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

    def _view(self, kind: Kind, found: Object) -> JobView:
        summary = kind.summary(found)
        placed = summary.placed or ""
        lag_seconds = self.state.pending.lag_seconds(source_key(kind, found)) if placed else None
        because = "" if summary.is_finished else self._because(kind, found, placed)
        return view_of(kind, found, because=because, lag_seconds=lag_seconds)

    def _because(self, kind: Kind, found: Object, worker: str) -> str:
        known = self.state.workers.get(worker) if worker else None
        stored = found.annotations.get(names.WAITING_BECAUSE, "")
        if worker and (known is None or not known.is_reachable):
            why = known.connection.because if known else "no Secret registers it"
            text = f"worker {worker} is unreachable{': ' + why if why else ''}"
            return f"{text}; {follows}" if (follows := follows_of(stored, worker)) else text
        if stored or worker or (kind.is_suspended(found) and not is_held(kind, found)):
            return stored
        # Not yet in its annotation, which is written at most once in a while (D21).
        obstruction = self.state.memories.of(found.metadata.uid).in_the_way
        return obstruction.text if obstruction is not None else self._why_unplaced(kind, found)

    def _why_unplaced(self, kind: Kind, found: Object) -> str:
        memory = self.state.memories.of(found.metadata.uid)
        try:
            avoided = self._avoided(kind, found, memory)
            request = without(placement_request_of(kind, found, memory), avoided)
        except BadAnnotation as error:
            return str(error)
        why = self.state.assigner.why(request, refusal_texts(memory, avoided))
        return why.text if why is not None else ""

    def _own_entries(self, kind: Kind, found: Object, *, was_held: bool) -> Iterator[Entry]:
        """What a source and its mirror say of what happened before we looked, in the order of a Job's life."""
        for moment in moments_of(kind, found, was_held=was_held):
            yield Entry(_seconds(moment.at), moment.kind, moment.text, moment.worker)
            if moment.kind == "Placed":
                yield from self._entries_of_mirror(kind, found, moment.worker)
        for step in kind.steps(found):
            if step.kind == "Moved":
                yield Entry(_seconds(step.at), step.kind, step.text, step.worker)

    def _entries_of_mirror(self, kind: Kind, found: Object, worker_name: str) -> list[Entry]:
        worker = self.state.workers.get(worker_name)
        if worker is None:
            return []
        mirror = worker.mirrors_of(kind).get(worker.namespace_of(found.metadata.namespace), found.metadata.name)
        if mirror is None or mirror.labels.get(names.SOURCE_UID) != found.metadata.uid:
            return []
        created = _seconds(mirror.metadata.creation_timestamp)
        return [Entry(created, "Mirrored", f"{kind.name} created on worker", worker_name)]


def _age(source: tuple[Kind, Meta]) -> tuple[str, str, str]:
    metadata = source[1]
    return metadata.creation_timestamp or "", metadata.namespace, metadata.name


def _ended_at(progress: Progress, seen: Sequence[Entry]) -> float:
    """Until when it matters to a source how its worker is; conditions' times are of whole seconds."""
    if not progress.end:
        return math.inf
    noted = [entry.at for entry in seen if entry.kind == "Finished"]
    return noted[0] if noted else _seconds(progress.ended_at) + 1


def _moment(entry: Entry) -> Moment:
    return Moment(at=_text_of(entry.at), kind=entry.kind, text=entry.text, worker=entry.worker)


def _text_of(seconds: float) -> str:
    whole = float(seconds).is_integer()
    at = datetime.fromtimestamp(seconds, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if whole else f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def _text(moment: datetime | None) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


def _seconds(text: str | None) -> float:
    """Seconds since 1970 of a time that a cluster has sent; 0 where there is none, or none that could be shown."""
    try:
        seconds = datetime.fromisoformat(text).timestamp() if text else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return seconds if 0 <= seconds < _LATEST else 0.0
