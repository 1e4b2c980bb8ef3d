"""Gathers what one decision looks at, from caches only: it makes no request and changes nothing.

What has to be put right before is ``preparing``'s.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from mirror.controllers.leases import Leases
from mirror.controllers.move_turns import MoveTurns
from mirror.controllers.observing_pods import failure_of, pods_of
from mirror.controllers.requesting import (
    avoided_workers,
    placement_request_of,
    refusal_texts,
    tried_workers,
    without,
)
from mirror.controllers.state import MirroringState
from mirror.decide.draining import is_to_leave, is_unmade
from mirror.decide.expired_leases import has_ended_by_lease
from mirror.decide.fencing import Instant, concerns, fence_state
from mirror.decide.identity import Identity
from mirror.decide.loss_policies import is_to_be_fenced
from mirror.decide.moving import is_completed_copy, is_to_be_moved
from mirror.decide.requested_moves import BY_POLICY
from mirror.decide.retrying import seconds_until_due
from mirror.decide.snapshot import (
    AssignmentState,
    FenceState,
    Memory,
    Policy,
    RecordTrust,
    RetrySight,
    ReturnedCopy,
    Snapshot,
    Source,
    WorkerSight,
)
from mirror.kinds.asking import was_retried
from mirror.kinds.base import BadAnnotation, Kind, is_held
from mirror.kube.errors import Unreachable
from mirror.kube.objects import Object, Partial
from mirror.model import names
from mirror.model.keys import SourceKey
from mirror.model.losses import OnNamespace
from mirror.model.move_requests import MoveRequest, Step, Why
from mirror.model.reasons import Obstruction, Reason
from mirror.model.terms import NO_TERMS, request_in, term_of
from mirror.workers.worker import Worker

_NONE: frozenset[str] = frozenset()
NOT_REGISTERED = "no Secret registers it"


def source_of(kind: Kind, found: Object) -> Source:
    stored = kind.stored(found)
    return Source(
        kind=kind,
        found=found,
        stored=stored,
        is_suspended=stored.is_suspended,
        is_held=is_held(kind, found),
        is_finished=stored.is_finished,
        has_started=stored.has_started and not stored.waits_after_move,
        placed=stored.placed_worker,
    )


class Observer:
    """Looks at one source and all that belongs to it."""

    def __init__(
        self,
        state: MirroringState,
        policy: Policy,
        moves: MoveTurns,
        leases: Leases,
        *,
        have_workers_settled: Callable[[], bool],
        on_loss_of: Callable[[str], OnNamespace],
    ) -> None:
        """``have_workers_settled``: ``Registry.have_settled`` of workers; ``on_loss_of``: what a Namespace says."""
        self._leases = leases
        self._state = state
        self._policy = policy
        self._moves = moves
        self._have_workers_settled = have_workers_settled
        self._on_loss_of = on_loss_of
        self._origin = state.transform.origin
        self._has_others = not state.share.is_whole

    def look(self, key: SourceKey) -> Snapshot | None:
        """What there is to see about a source; None when it does not exist."""
        state = self._state
        if (found := state.sources.get(key)) is None:
            return None
        memory = state.memories.of((source := source_of(state.sources.kinds[key.kind], found)).uid)
        monotonic, now = state.environment.clock.monotonic(), state.environment.clock.now()
        worker = state.workers.get(source.placed) if source.placed else None
        mirror, identity = self._mirror_of(source, worker)
        source = self._as_it_ran(source, mirror, memory) if memory.ran else source
        own = mirror if not (is_stale := identity is Identity.NAMESAKE) else None
        sight = _sight(source.placed, worker, now) if source.placed else None
        on_loss = self._on_loss_of(key.namespace)
        is_fenced = is_to_be_fenced(source, self._policy, on_loss)
        concerns_lease, fence = concerns(source, own, memory, is_wanted=is_fenced), None
        if concerns_lease and sight is not None:
            sight, fence = self._fence_of(source, sight, memory, own, is_wanted=is_fenced)
        is_moving = is_to_be_moved(source, sight, self._policy, on_loss, fence)
        request = request_in(source.stored.status) if self._has_others else None
        held = self._held(source.kind, sight, request, is_moving=is_moving)
        if concerns_lease and not is_moving:
            is_moving = has_ended_by_lease(source, own if sight is not None and sight.is_reachable else None, memory)
        refused_now, retry = _refused_now(source, memory), self._retry_of(source, worker, sight, own, memory, on_loss)
        is_due = self._is_to_be_tried(retry, request)
        goes = bool(refused_now) or ((is_moving or request is not None) and not held) or is_due
        goes = goes or is_to_leave(source, sight, own, self._policy, on_loss)
        assignment, avoided = AssignmentState(), _NONE
        if (source.placed is None or goes) and not (source.is_finished or source.is_deleting):
            assignment, avoided = self._assignment_of(key, source, memory, request, goes=goes, is_due=is_due)
        pods, failures = pods_of(source, worker, own, memory)
        seen = Snapshot(
            key=key,
            source=source,
            now=now,
            monotonic=monotonic,
            policy=self._policy,
            memory=memory,
            worker=sight,
            term=self._term_of(assignment) if state.terms is not NO_TERMS else "",
            mirror=mirror,
            mirror_is_stale=is_stale,
            identity=identity,
            is_watched=mirror is None or mirror.labels.get(names.ORIGIN) == self._origin,
            changes=state.comparison.changes(source, own),
            held_because=self._held_because(source, own) if state.workload_reasons is not None else "",
            pods=pods,
            failures_before=failures,
            failure=failure_of(source, worker, mirror, memory) if not is_stale else None,
            refused_now=refused_now,
            trust=self._trust_of(source, memory) if source.kind.records_by_annotation else None,
            assignment=assignment,
            moves_held=held,
            returned=self._returned_copy(source),
            namespace_on_loss=on_loss,
            concerns_lease=concerns_lease,
            fence=fence,
            retry=retry,
            avoided=avoided,
        )
        return self._shared(seen, request) if self._has_others else self._alone(seen)

    def _alone(self, seen: Snapshot) -> Snapshot:
        """The same; a create of who led before may be under way only where no mirror is known."""
        if not is_unmade(seen.source, seen.memory):
            return seen
        return replace(seen, settles_in_seconds=self._moves.settles_in_seconds)

    def _shared(self, seen: Snapshot, request: MoveRequest | None) -> Snapshot:
        """The same, with what of it is done by whom (S2)."""
        source, state = seen.source, self._state
        is_found, is_requested = seen.assignment.found_on is not None, request is not None
        return replace(
            seen,
            part=state.share.part_of(source.placed, is_found=is_found, is_requested=is_requested),
            request=request,
            is_request_current=is_requested and state.terms.of(source.placed or "") == term_of(source.stored.status),
            settles_in_seconds=self._moves.settles_in_seconds,
        )

    def _held(self, kind: Kind, sight: WorkerSight | None, request: MoveRequest | None, *, is_moving: bool) -> str:
        """Why it is not moved from its worker now, nor another one given to it that is requested."""
        if sight is None:
            return ""
        if request is not None and self._state.share.assigns:
            return self._moves.held(sight.name, kind.name) if request.why in BY_POLICY else ""
        return self._moves.held(sight.name, kind.name) if is_moving and not sight.is_gone else ""

    def _retry_of(
        self,
        source: Source,
        worker: Worker | None,
        sight: WorkerSight | None,
        mirror: Object | None,
        memory: Memory,
        on_loss: OnNamespace,
    ) -> RetrySight | None:
        """Whether it is tried on another worker; nothing where that is not wanted, and not under way (D31)."""
        if self._policy.retry_after_seconds is None and not was_retried(source.found):
            return None
        record = source.stored.retries
        pods = worker.pods if worker is not None else None
        now, due_in = self._state.environment.clock.now(), None
        if pods is not None:
            due_in = seconds_until_due(source, sight, mirror, self._policy, on_loss, memory, now)
        if due_in is None and not record.is_under_way:
            return None
        uid = record.uid if record.is_under_way else mirror.metadata.uid if mirror is not None else ""
        proof = pods.proofs.of(uid) if pods is not None else None
        return RetrySight(due_in, proof, pods is not None and pods.proofs.has_room)

    def _is_to_be_tried(self, retry: RetrySight | None, request: MoveRequest | None) -> bool:
        """Whether it needs another place since no pod of it became ready: who assigns has that by request (D31)."""
        if request is not None and self._state.share.assigns:
            return request.why is Why.RETRIED
        return retry is not None and retry.due_in == 0

    def _avoided(self, source: Source, memory: Memory, *, is_due: bool) -> frozenset[str]:
        """Workers that it is not to be placed on: on those where nothing of it runs it is, where there is no other."""
        now = self._state.environment.clock.now()
        if is_due:
            return tried_workers(source.kind, source.found, now) | frozenset((source.placed or "",))
        with suppress(BadAnnotation):
            return avoided_workers(self._state.assigner, source.kind, source.found, memory, now)
        return frozenset()

    def _term_of(self, assignment: AssignmentState) -> str:
        """In which the slot of its worker is held, of the one that it is to be recorded on, too (S6)."""
        return self._state.terms.of(assignment.assigned or assignment.available or "")

    def _fence_of(
        self, source: Source, sight: WorkerSight, memory: Memory, mirror: Object | None, *, is_wanted: bool
    ) -> tuple[WorkerSight, FenceState | None]:
        """What concerns leases: nothing where there are none, and none is wanted."""
        if not (is_wanted or (mirror is not None and names.FENCE in mirror.annotations)):
            return sight, None
        now, clock = self._state.environment.clock.now(), self._state.environment.clock.monotonic()
        sight = self._leases.sight(sight, now)
        if sight.is_reachable or not is_wanted:
            return sight, None
        return sight, fence_state(source, sight, self._policy, mirror, memory, Instant(now, clock))

    def _assignment_of(
        self,
        key: SourceKey,
        source: Source,
        memory: Memory,
        request: MoveRequest | None,
        *,
        goes: bool,
        is_due: bool,
    ) -> tuple[AssignmentState, frozenset[str]]:
        """Of a source that has no worker, or ``goes``: was refused where it is recorded, or is to leave that.

        With the workers that it is not to be placed on; ``is_due``: it is tried elsewhere (D31).
        """
        avoided = self._avoided(source, memory, is_due=is_due)
        assignment = self._assignment_without(avoided, key, source, memory, request, goes=goes)
        return assignment, avoided | _to_leave(source, request)

    def _assignment_without(
        self,
        avoided: frozenset[str],
        key: SourceKey,
        source: Source,
        memory: Memory,
        asked: MoveRequest | None,
        *,
        goes: bool,
    ) -> AssignmentState:
        state, refused_now = self._state, _refused_now(source, memory)
        found_on = None if goes else self._where_found(source)
        if not self._state.share.assigns:
            return AssignmentState(obstruction=_refusal_of(memory, refused_now), found_on=found_on)
        try:
            request = without(placement_request_of(source.kind, source.found, memory), avoided)
        except BadAnnotation as error:
            why = Obstruction(error.reason, str(error))
            return AssignmentState(obstruction=why, found_on=found_on)
        if (stopped := state.stopped.why(source.kind)) is not None:
            return AssignmentState(obstruction=stopped, found_on=found_on)
        assigned, available, unplaced = state.assigner.assigned_to(key, source.uid), None, None
        if assigned is None and not refused_now:
            was_found = asked is not None and asked.step is Step.FOUND
            leaves = _to_leave(source, asked)
            available = state.assigner.available_for(without(request, leaves), comes_first=was_found)
        if assigned is None and available is None and self._have_workers_settled():
            unplaced = state.assigner.why(request, refusal_texts(memory, avoided))
        return AssignmentState(assigned=assigned, available=available, obstruction=unplaced, found_on=found_on)

    def _trust_of(self, source: Source, memory: Memory) -> RecordTrust:
        """What confirms a record that users can write."""
        state, placed = self._state, source.placed
        recorded = state.workers.get(placed) if placed else None
        has_mirror = recorded is not None and self._has_mirror(source, recorded)
        known = (placed or "") if has_mirror else self._where_found(source) or memory.recorded_on
        is_allowed = placed is None or bool(known)
        if not is_allowed and placed is not None:
            with suppress(BadAnnotation):
                is_allowed = state.assigner.may_have(placement_request_of(source.kind, source.found, memory), placed)
        return RecordTrust(known=known, is_allowed=is_allowed, all_seen=not state.workers.unreachable)

    def _has_mirror(self, source: Source, worker: Worker) -> bool:
        mirror, identity = self._mirror_of(source, worker)
        if mirror is None or identity is Identity.NAMESAKE:
            return False
        return not worker.mirrors_of(source.kind).is_going(mirror)

    def _mirror_of(self, source: Source, worker: Worker | None) -> tuple[Object | None, Identity | None]:
        """The object that has this source's name on the worker, and what it is; None for one that is not ours (D1)."""
        if worker is None:
            return None, None
        metadata = source.found.metadata
        mirror = worker.mirrors_of(source.kind).get(worker.namespace_of(metadata.namespace), metadata.name)
        if mirror is None:
            return None, None
        identity = self._state.comparison.identity_of(source.kind, source.found, mirror)
        if identity is Identity.FOREIGN:
            return None, None
        if isinstance(mirror, Partial) and identity is not Identity.NAMESAKE and worker.name == source.placed:
            return None, None  # ``preparing`` could not read it: its worker is unreachable
        return mirror, identity

    def _as_it_ran(self, source: Source, mirror: Object | None, memory: Memory) -> Source:
        """It has started where its mirror had, which is gone since (D11)."""
        is_its = bool(source.placed) and memory.ran == self._state.memories.recorded_uid(source.kind, source.found)
        is_gone = mirror is None or mirror.metadata.uid != memory.ran
        return replace(source, has_started=True) if is_its and is_gone else source

    def _held_because(self, source: Source, mirror: Object | None) -> str:
        """What the queue of its worker says, where it holds the mirror."""
        reasons = self._state.workload_reasons
        if reasons is None or mirror is None or source.placed is None or not source.kind.is_suspended(mirror):
            return ""
        return reasons.of(source.placed, mirror.metadata.uid)

    def _returned_copy(self, source: Source) -> ReturnedCopy | None:
        """A Complete copy on a worker that it was moved from; only the recorded uid tells that it is one (D1)."""
        metadata = source.found.metadata
        for left in source.stored.moves.left_behind:
            worker = self._state.workers.get(left.worker)
            if worker is None or not worker.is_reachable:
                continue
            mirror = worker.mirrors_of(source.kind).get(worker.namespace_of(metadata.namespace), metadata.name)
            if (
                mirror is None
                or isinstance(mirror, Partial)
                or not is_completed_copy(source.kind, source.found, left, mirror)
            ):
                continue
            return ReturnedCopy(left.worker, mirror, worker.client.clock_offset_seconds)
        return None

    def _where_found(self, source: Source) -> str | None:
        """The first worker that has its mirror, by name."""
        for worker in self._state.workers.holders_of(source.kind, source.found):
            if self._has_mirror(source, worker):
                return worker.name
        return None


def _to_leave(source: Source, request: MoveRequest | None) -> frozenset[str]:
    """Its worker may be reachable again, and the holder of that about to withdraw the request."""
    return frozenset((source.placed or "",)) if request is not None and not request.may_stay else _NONE


def _refused_now(source: Source, memory: Memory) -> str:
    """The worker a source is recorded on, if it definitely refused the very first create (D1)."""
    return memory.refused_on if memory.refused_on and memory.refused_on == source.placed else ""


def _refusal_of(memory: Memory, worker: str) -> Obstruction | None:
    """What a worker said when it refused a source, for whoever assigns it another one (S6)."""
    text = memory.refusal_texts.get(worker)
    return Obstruction(Reason.REFUSED_BY_WORKERS, f"worker {worker}: {text}") if text is not None else None


def _sight(name: str, worker: Worker | None, now: datetime) -> WorkerSight:
    """A worker as a decision sees it; one that nobody knows is a lost one (D13)."""
    if worker is None:
        return WorkerSight(name=name, is_reachable=False, because=NOT_REGISTERED)
    connection, spec, is_reachable = worker.connection, worker.spec, worker.is_reachable
    return WorkerSight(
        name=name,
        is_reachable=is_reachable,
        lost_for_seconds=0.0 if is_reachable else connection.lost_for_seconds(now),
        because=connection.because or "connecting",
        is_gone=worker.is_gone and not connection.is_connected,
        clock_offset_seconds=_clock_offset(worker) if is_reachable else None,
        drain=spec.drain if spec is not None else "",
    )


def _clock_offset(worker: Worker) -> float | None:
    """How far its clock is ahead of ours; None: that is not known, or it is another replica's to know (S1)."""
    try:
        return worker.client.clock_offset_seconds
    except Unreachable:
        return None
