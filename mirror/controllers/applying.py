"""Performs plans, action by action: on sources by ``writing_sources``, on mirrors by ``writing_mirrors``."""

from __future__ import annotations

from contextlib import suppress
from typing import assert_never

from mirror.controllers.leases import Leases
from mirror.controllers.move_turns import MoveTurns
from mirror.controllers.requesting import mover_of, waiter_of
from mirror.controllers.rereading import LookAgain
from mirror.controllers.seeding import seed_mirror
from mirror.controllers.stopped_kinds import what_to_do
from mirror.controllers.write_context import WriteContext
from mirror.controllers.writing_mirrors import MirrorWriter
from mirror.controllers.writing_sources import SourceWriter
from mirror.decide.moving import TURN_LASTS_SECONDS
from mirror.decide.other_managers import LONGEST_NAMESPACE
from mirror.decide.plan import (
    Action,
    AwaitMove,
    ConfirmRequest,
    CoverLeases,
    CreateMirror,
    DeleteMirror,
    DeleteSource,
    EmitEvent,
    FindMirror,
    JudgeMirror,
    PatchMirror,
    ProvePods,
    ProveStep,
    ReleaseSource,
    RenewLease,
    ReportOtherManager,
    RequestAssignment,
    RestoreLabels,
    SeedMirror,
    StopKind,
    TouchMirror,
    WriteSource,
)
from mirror.decide.snapshot import Snapshot
from mirror.kube.errors import KubeError
from mirror.model.keys import MirrorKey
from mirror.model.reasons import Reason
from mirror.model.text import clean
from mirror.placement.move_order import Mover
from mirror.placement.preferences import spread_key_of

LOG_AGAIN_SECONDS = 60.0


class Applier:
    """Performs one action after the other; an error ends the plan and is retried by the loop."""

    def __init__(
        self, context: WriteContext, sources: SourceWriter, mirrors: MirrorWriter, moves: MoveTurns, leases: Leases
    ) -> None:
        self._t = context
        self._leases = leases
        self._moves = moves
        moves.on_turn = self._give_turn
        self._log = context.environment.log
        self._sources = sources
        self._mirrors = mirrors
        self._other_manager_logged_at = float("-inf")

    async def apply(self, seen: Snapshot, actions: tuple[Action, ...]) -> None:
        """Perform a plan that was made for what was just seen.

        Raises:
            KubeError: a write did not go well.
        """
        for number, action in enumerate(actions, start=1):
            try:
                await self._perform(seen, action)
            except KubeError:
                await self._renew_all_the_same(seen, actions[number:])
                raise

    async def _renew_all_the_same(self, seen: Snapshot, rest: tuple[Action, ...]) -> None:
        """Whatever cannot be written, a mirror's lease must not end for that (D14)."""
        for action in rest:
            if isinstance(action, RenewLease):
                with suppress(KubeError, LookAgain):
                    await self._leases.renew(seen, self._t.worker(action.worker), action)

    async def _perform(self, seen: Snapshot, action: Action) -> None:
        match action:
            case WriteSource():
                await self._sources.write(seen, action)
            case ReleaseSource():
                await self._sources.release(seen)
            case RequestAssignment():
                self._request_assignment(seen, action)
            case AwaitMove():
                self._await_move(seen, takes_turn=action.takes_turn)
            case ConfirmRequest():
                await self._confirm_request(seen, action)
            case CreateMirror():
                await self._mirrors.create(seen, self._t.worker(action.worker))
            case FindMirror():
                await self._mirrors.find(seen, self._t.worker(action.worker), action)
            case JudgeMirror():
                self._t.judge_mirror(seen, action.worker)
            case RestoreLabels():
                await self._mirrors.restore_labels(seen, self._t.worker(action.worker))
            case TouchMirror():
                await self._mirrors.touch(seen, self._t.worker(action.worker), action.uid)
            case PatchMirror():
                worker = self._t.worker(action.worker)
                await self._mirrors.patch(seen, worker, action.changes, lease=action.lease)
            case SeedMirror():
                await seed_mirror(self._t, seen, self._t.worker(action.worker), action.status)
            case CoverLeases():
                await self._leases.cover(self._t.worker(action.worker), action.ends_in_seconds)
                self._leases.note_ends_in(seen.source.uid, action.ends_in_seconds)
            case RenewLease():
                await self._leases.renew(seen, self._t.worker(action.worker), action)
            case DeleteMirror():
                worker = self._t.worker(action.worker)
                namespace = worker.namespace_of(seen.key.namespace)
                key = MirrorKey(worker.name, seen.key.kind, namespace, seen.key.name)
                await self._mirrors.delete(worker, key, action.uid, because=action.because, version=action.version)
            case ProvePods():
                self._prove(seen, action)
            case DeleteSource():
                await self._sources.delete(seen)
            case StopKind():
                self._stop_kind(seen, action)
            case ReportOtherManager():
                self._report_other_manager(seen, action)
            case EmitEvent():
                self._t.record_event(seen, action.reason, action.message, is_warning=action.is_warning)
            case _:
                assert_never(action)

    def _request_assignment(self, seen: Snapshot, action: RequestAssignment) -> None:
        """Nothing was awaited since it was decided, so what was available still is."""
        assigner = self._t.state.assigner
        if action.worker is not None:
            spread_by = spread_key_of(seen.source.found.annotations)
            assigner.assign(seen.key, seen.source.uid, action.worker, spread_by=spread_by)
        else:
            assigner.request(waiter_of(seen, self._t.state.priorities), is_reason_reported=action.is_reason_reported)

    async def _confirm_request(self, seen: Snapshot, action: ConfirmRequest) -> None:
        """Note whether the term is the current one, as it is read after the request was seen."""
        t = self._t
        if await t.state.terms.current(action.worker) != action.term:
            self._log.info("move request not confirmed", source=seen.key, worker=action.worker)
            return
        t.state.memories.set(seen.source.uid, request_confirmed=seen.source.found.metadata.resource_version)
        t.state.intake.add(seen.key)

    def _prove(self, seen: Snapshot, action: ProvePods) -> None:
        """Nothing is awaited: what is found out names the key."""
        pods, mirror = self._t.worker(action.worker).pods, seen.mirror
        if pods is None:
            return
        match action.step:
            case ProveStep.BEGIN if mirror is not None:
                selector, namespace = seen.source.kind.pod_selectors(mirror)[0], mirror.metadata.namespace
                pods.proofs.begin(action.uid, seen.source.uid, namespace, selector)
            case ProveStep.CONFIRM if mirror is not None:
                pods.proofs.confirm(action.uid, mirror.metadata.resource_version)
            case ProveStep.DROP:
                pods.proofs.drop(action.uid)

    def _stop_kind(self, seen: Snapshot, action: StopKind) -> None:
        kind, state = seen.source.kind, self._t.state
        worker = state.workers.get(seen.source.placed or "")
        if state.stopped.note(kind, seen.source.uid, worker=worker, is_new=action.is_new):
            text = what_to_do(kind)
            self._log.warning("kind runs here", kind=kind.name, source=seen.key, because=text)
            self._t.record_event(seen, Reason.KIND_RUNS_HERE, text)

    def _report_other_manager(self, seen: Snapshot, action: ReportOtherManager) -> None:
        """On each Job, and in the log now and then: whoever may annotate a Job may put any name there."""
        self._t.record_event(seen, Reason.OTHER_MANAGER, action.message)
        now, jobs = seen.monotonic, len(self._t.state.memories.others)
        if now - self._other_manager_logged_at >= LOG_AGAIN_SECONDS:
            self._other_manager_logged_at = now
            manager = clean(action.manager, longest=LONGEST_NAMESPACE)
            self._log.error("two managers", other=manager, source=seen.key, jobs=jobs, because=action.message)

    def _await_move(self, seen: Snapshot, *, takes_turn: bool) -> None:
        """Have it wait for a turn, unless it has one; until then it keeps nobody else from being assigned."""
        memories, uid = self._t.state.memories, seen.source.uid
        if not takes_turn:
            self._t.state.assigner.note_record_failed(seen.key)
            return
        turn = memories.of(uid).move_at
        if turn is None or seen.monotonic > turn + TURN_LASTS_SECONDS:
            self._t.state.assigner.note_record_failed(seen.key)
            self._moves.request(mover_of(seen, self._t.state.priorities))

    def _give_turn(self, mover: Mover, at: float) -> None:
        self._t.state.memories.set(mover.uid, move_at=at)
        self._t.state.intake.add(mover.key)
