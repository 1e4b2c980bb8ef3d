"""A source of which no pod ever ran is tried on another worker, where that is a definite fact (D2, D31). Pure.

What proves it, the states and what must stay true are in decision 0016: waiting → draining → proved → gone. The record
is the condition ``jobmirror.io/Retrying``; what was seen of pods is this process's (``workers.pod_proofs``). Whatever
is not as it should be ends it: the mirror stays, and is resumed by ``following`` as any that its source wants to run.
"""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from mirror.batch import times
from mirror.decide.following import follow, problem_and_patch
from mirror.decide.identity import Identity
from mirror.decide.loss_policies import is_to_be_fenced
from mirror.decide.move_requests import WITHDRAWN, request_move, seconds_until_carried_out, withdraw
from mirror.decide.plan import (
    AT_ONCE,
    NO_TURN,
    Action,
    AwaitMove,
    DeleteMirror,
    EmitEvent,
    FindMirror,
    Plan,
    ProvePods,
    ProveStep,
    RequestAssignment,
    WriteSource,
)
from mirror.decide.snapshot import Look, Memory, MemoryChange, Policy, Snapshot, Source, WorkerSight
from mirror.decide.writing import FromMirror, source_write
from mirror.kinds.base import Changes
from mirror.kube.objects import Object
from mirror.model.drains import MOVING
from mirror.model.losses import OnNamespace
from mirror.model.move_requests import MoveRequest, Step, Why
from mirror.model.reasons import Obstruction, Reason
from mirror.model.retries import MOST_TRIED, ProofState, Retries, RetryState
from mirror.model.terms import with_request
from mirror.sharding.share import Part

GOES_LOOK_SECONDS = 1.0
LOOK_SECONDS = 15.0
PLACE_LOOK_SECONDS = 60.0
PLACE_WAIT_SECONDS = 15.0
"""So long what its pods have proved is kept until there is a place: others wait for room to prove theirs."""
KEPT_SECONDS = 60.0
"""So long a place is kept for what cannot go on since its worker is lost, or since its mirror does not go."""
AGAIN_SECONDS = 300.0
"""After it could not be proved for a cause that may go away."""
BEGUN, RETRIED, GIVEN_UP = "Begun", "Retried", "GivenUp"
"""Outcomes, as they are counted."""
STOP = "stopped to be tried elsewhere"
"""Names the change that suspends a mirror."""
UNSEEN = "this process has not seen all of its pods"
_KEEP = AwaitMove(takes_turn=False)
PLACE_TO_RETRY = MoveRequest(Step.PLACE, Why.RETRIED)


def seconds_until_due(  # noqa: PLR0913 - what speaks for and against it is all over
    source: Source,
    worker: WorkerSight | None,
    mirror: Object | None,
    policy: Policy,
    on_namespace: OnNamespace,
    memory: Memory,
    now: datetime,
) -> float | None:
    """Until its mirror has had no ready pod for as long as the setting says; None: it is not tried elsewhere."""
    retry, after, stored = source.kind.retry, policy.retry_after_seconds, source.stored
    if after is None or retry is None or worker is None or not worker.is_reachable or mirror is None:
        return None
    if source.is_suspended or source.is_finished or source.is_deleting or stored.has_verdict or stored.moves.count:
        return None
    if worker.drain in MOVING or is_to_be_fenced(source, policy, on_namespace):
        return None
    if stored.retries.is_under_way or len(stored.retries.tried) >= MOST_TRIED:
        return None
    metadata = mirror.metadata
    if memory.retry_ruled_out == metadata.uid or memory.ended is not None or metadata.deletion_timestamp is not None:
        return None
    since = retry.unready_since(source.found, mirror)
    if since is None:
        return None
    return max(0.0, since + after - now.timestamp() - (worker.clock_offset_seconds or 0.0))


# -- waiting -----------------------------------------------------------------------------------------------------------


def begin_retry(seen: Snapshot) -> Plan | None:
    """No pod of it became ready for long: its pods are looked at, and the record comes first (D31)."""
    retry, memory = seen.retry, seen.memory
    if retry is None or retry.due_in is None or seen.identity is not Identity.OURS or not seen.is_watched:
        return None
    plan = follow(seen)
    wait = max(retry.due_in, memory.retry_at - seen.monotonic)
    if plan is None or wait > 0:
        return None if plan is None else _with(plan, again=wait)
    return _look_at_pods(seen, plan)


def _look_at_pods(seen: Snapshot, plan: Plan) -> Plan:
    worker, mirror, retry = seen.worker, seen.mirror, seen.retry
    assert worker is not None
    assert mirror is not None
    assert retry is not None
    uid, proof = mirror.metadata.uid, retry.proof
    drop = ProvePods(worker.name, uid, ProveStep.DROP)
    drops: tuple[Action, ...] = () if proof is None else (drop,)
    returns = None if seen.request is None else AT_ONCE  # what was requested for it
    if proof is not None and proof.state is ProofState.STARTED:
        return _with(plan, drop, again=returns, remember={"retry_ruled_out": uid})
    if proof is not None and proof.state is ProofState.BROKEN:
        text = f"it is not tried on another worker: {proof.because}"
        told = () if seen.memory.retry_told == text else (EmitEvent("NotRetried", text),)
        later: MemoryChange = {"retry_at": seen.monotonic + AGAIN_SECONDS, "retry_told": text}
        return _with(plan, drop, *told, again=AGAIN_SECONDS if returns is None else returns, remember=later)
    if proof is None and not retry.has_room:
        # Its turn may be far away: a place that has come meanwhile is for others.
        return withdraw(seen) if _requested(seen) is Step.FOUND else _with(plan, again=LOOK_SECONDS)
    if seen.part is not Part.HOLDER and (waiting := _take_place(seen, plan, drops)) is not None:
        return waiting
    if proof is None:
        if _requested(seen) is Step.PLACE:
            return _with(plan, again=PLACE_LOOK_SECONDS)
        return _with(plan, ProvePods(worker.name, uid, ProveStep.BEGIN), _KEEP, again=LOOK_SECONDS)
    if proof.state is ProofState.LOOKING:
        return _with(plan, _KEEP, again=LOOK_SECONDS)
    if any(isinstance(one, WriteSource) for one in plan.actions):
        return _with(plan, _KEEP, again=AT_ONCE)  # what the mirror says is stored first
    record = seen.source.stored.retries.draining(uid)
    status = seen.source.stored.retrying_status(None, record, seen.now)
    if status is None:
        return _refused(seen)
    if seen.part is Part.HOLDER and (waiting := _wait_until_found(seen, plan, drop)) is not None:
        return waiting
    write, _ = source_write(seen, status=status, waiting=_shown(seen))
    return Plan(
        f"no pod became ready on {worker.name}: it is to be tried elsewhere", (*_counted(write, BEGUN), _KEEP), AT_ONCE
    )


def _take_place(seen: Snapshot, plan: Plan, drops: tuple[Action, ...]) -> Plan | None:
    """Without another place it waits where it is; None: one is kept for it. ``drops``: what was proved so far."""
    here, assignment = seen.source.placed, seen.assignment
    if assignment.assigned not in (None, here):
        return None
    if assignment.available in (None, here):
        return _with(plan, *drops, again=PLACE_LOOK_SECONDS)
    # First of all: nothing is awaited since it was available.
    plan = replace(plan, actions=(RequestAssignment(assignment.available), *plan.actions))
    return _with(plan, _KEEP, again=AT_ONCE, remember=NO_TURN)


def _wait_until_found(seen: Snapshot, plan: Plan, drop: Action) -> Plan | None:
    """The same where whoever assigns says so in the record: what its pods prove comes first, so that it goes on then.

    Who is proved waits for an answer with that for a while, and then without: its request stands.
    """
    match _requested(seen):
        case Step.FOUND:
            return None
        case Step.PLACE:
            left = seen.memory.place_wanted_at + PLACE_WAIT_SECONDS - seen.monotonic
            return _with(plan, again=left) if left > 0 else _with(plan, drop, again=PLACE_LOOK_SECONDS)
        case _:
            request = request_move(seen, PLACE_TO_RETRY)
            return replace(request, again_after_seconds=AT_ONCE, remember={"place_wanted_at": seen.monotonic})


def _requested(seen: Snapshot) -> Step | None:
    """How far the request for another worker is; None: there is none of our own term."""
    return seen.request.step if seen.request is not None and seen.is_request_current else None


def is_to_be_retried(seen: Snapshot) -> bool:
    """Whether another place is wanted for it since no pod of it became ready, or it is on its way there.

    Its worker's clock is known to about a second: what was due is not taken back where that says something else by now.
    """
    if seen.source.stored.retries.is_under_way:
        return not (_is_lost(seen) or _does_not_go(seen))
    due_in = seen.retry.due_in if seen.retry is not None else None
    return due_in is not None and due_in <= LOOK_SECONDS and seen.memory.retry_at <= seen.monotonic


def _is_lost(seen: Snapshot) -> bool:
    worker = seen.worker
    if worker is None or worker.is_reachable:
        return worker is None
    return worker.lost_for_seconds >= min(KEPT_SECONDS, seen.policy.lost_after_seconds)


def _does_not_go(seen: Snapshot) -> bool:
    """Whether its mirror was deleted, and is kept by something: for how long, nobody knows."""
    deleted_at = seen.mirror.metadata.deletion_timestamp if seen.mirror is not None else None
    if not deleted_at:
        return False
    offset = seen.worker.clock_offset_seconds if seen.worker is not None else None
    try:
        return seen.now.timestamp() + (offset or 0.0) - times.seconds(deleted_at) >= KEPT_SECONDS
    except times.BadTime:
        return True


def _with(plan: Plan, *actions: Action, again: float | None = None, remember: MemoryChange | None = None) -> Plan:
    """What is done for it anyway, and this."""
    soonest = min((one for one in (plan.again_after_seconds, again) if one is not None), default=None)
    return replace(
        plan,
        actions=(*plan.actions, *actions),
        again_after_seconds=soonest,
        remember={**plan.remember, **(remember or {})},
    )


# -- under way ---------------------------------------------------------------------------------------------------------


def retry_elsewhere(seen: Snapshot) -> Plan | None:
    """It is to be tried elsewhere: its mirror stops, and goes once it is proved that nothing of it ever ran (D31)."""
    if seen.retry is None or seen.worker is None:
        return None
    record = seen.source.stored.retries
    if not record.is_under_way:
        return None
    return _drain(seen, record) if record.state is RetryState.DRAINING else _leave(seen, record)


def _why_not(seen: Snapshot, record: Retries, mark: str = "") -> str:
    """What ends it, of all that its objects say; empty: nothing does. ``mark``: of whoever may have suspended it."""
    source, mirror, worker, retry = seen.source, seen.mirror, seen.worker, seen.source.kind.retry
    if mirror is None or seen.identity is not Identity.OURS or mirror.metadata.uid != record.uid:
        return "its mirror there is not the one that was looked at"
    if source.is_suspended:
        return "the Job was suspended"
    if source.stored.has_verdict or seen.memory.ended is not None or source.kind.summary(mirror).is_finished:
        return "it has ended"
    if worker is not None and worker.drain in MOVING:
        return "the worker is drained"
    if is_to_be_fenced(source, seen.policy, seen.namespace_on_loss):
        return "it is to be fenced"
    if retry is None or retry.has_counted(mirror) or retry.has_counted(source.found):
        return "pods of it were counted"
    if source.kind.is_suspended(mirror) and not retry.is_only_stopped(mirror, mark):
        return "it was changed there"
    return ""


def _drain(seen: Snapshot, record: Retries) -> Plan:
    source, mirror, retry = seen.source, seen.mirror, seen.source.kind.retry
    proof = seen.retry.proof if seen.retry is not None else None
    why = _why_not(seen, record, proof.mark if proof is not None else "")
    if mirror is not None and mirror.metadata.deletion_timestamp is not None:
        why = why or "its mirror is being deleted there"
    if proof is None or proof.state in (ProofState.LOOKING, ProofState.STARTED, ProofState.BROKEN):
        why = why or (proof.because if proof is not None else "") or UNSEEN
    if why or mirror is None or retry is None or proof is None:
        return _give_up(seen, record, why)
    if not source.kind.is_suspended(mirror):
        return _stop(seen, record, mirror, proof.mark)
    following = source.stored.next_status(
        mirror,
        now=seen.now,
        mirror_suspended=True,
        clock_offset_seconds=seen.worker.clock_offset_seconds if seen.worker is not None else None,
    )
    write, _ = source_write(seen, waiting=_shown(seen), mirror=FromMirror(mirror.metadata.uid, following))
    if write:
        return Plan("its pods go", (*write, _KEEP), AT_ONCE)
    if not retry.is_drained(mirror) or retry.has_pods(source.found):
        return Plan("its pods go", (_KEEP,), LOOK_SECONDS)
    version = mirror.metadata.resource_version
    if proof.state is not ProofState.CONFIRMED or proof.confirmed_version != version:
        confirm = ProvePods(_name(seen), record.uid, ProveStep.CONFIRM)
        return Plan("its pods are gone, as its controller says", (confirm, _KEEP), LOOK_SECONDS)
    status = source.stored.retrying_status(None, record.proved(source.stored.kept_start), seen.now)
    if status is None:
        return _refused(seen)
    write, _ = source_write(seen, status=status, waiting=_shown(seen))
    return Plan(f"no pod of it ever ran on {_name(seen)}", (*write, _KEEP), AT_ONCE)


def _stop(seen: Snapshot, record: Retries, mirror: Object, mark: str) -> Plan:
    """Suspend the mirror as it was looked at: in this version no pod of it is known to have run."""
    source, retry = seen.source, seen.source.kind.retry
    if retry is None or retry.unready_since(source.found, mirror) is None:
        return _give_up(seen, record, "it was changed there")
    changes = Changes(operations=retry.stopping(mirror, mark), digest=f"{STOP}: {record.uid}")
    problem, patch = problem_and_patch(replace(seen, changes=changes))
    if problem is not None:
        return _give_up(seen, record, problem.text)
    return Plan(f"stops on {_name(seen)}", (*patch, _KEEP), LOOK_SECONDS)


def _leave(seen: Snapshot, record: Retries) -> Plan:
    """Nothing of it ever ran: its mirror is deleted as it was seen, and once it is gone the record follows."""
    mirror, retry, memory = seen.mirror, seen.source.kind.retry, seen.memory
    if mirror is None:
        if (left := seconds_until_carried_out(seen)) > 0:
            return Plan("one that was sent before may come yet", (_KEEP,), left)
        if memory.look is None or memory.looked_for != record.uid:
            find = FindMirror(_name(seen), record.uid)
            return Plan("its mirror is not in the cache", (find, _KEEP), GOES_LOOK_SECONDS)
        if memory.look is Look.GONE:
            return _clear(seen, record)
        return _give_up(seen, record, "something else has its name there")
    if mirror.metadata.uid == record.uid and mirror.metadata.deletion_timestamp is not None:
        return Plan(f"its mirror on {_name(seen)} goes", (_KEEP,), LOOK_SECONDS)
    why = _why_not(seen, record)
    if why or retry is None or not retry.is_drained(mirror):
        return _give_up(seen, record, why or "it was changed there")
    because = "nothing of it ran, and its source is tried on another worker"
    delete = DeleteMirror(_name(seen), record.uid, mirror.metadata.resource_version, because)
    return Plan(f"no pod of it ran on {_name(seen)}: it goes", (delete, _KEEP), GOES_LOOK_SECONDS)


def _clear(seen: Snapshot, record: Retries) -> Plan:
    """It has no mirror any more, and in one write no worker; which it was is kept, so that it is avoided."""
    worker = _name(seen)
    status = seen.source.stored.retried_status(record.left(worker, times.of(seen.now)), seen.now)
    if status is None:
        return _refused(seen)
    write, _ = source_write(seen, status=status, clears=True)
    text = f"no pod of it became ready on worker {worker}, and none ran: it is tried on another worker"
    drop = ProvePods(worker, record.uid, ProveStep.DROP)
    return Plan(text, (*_counted(write, RETRIED), EmitEvent("RetriedElsewhere", text), drop, _KEEP), AT_ONCE)


def _give_up(seen: Snapshot, record: Retries, why: str) -> Plan:
    """It stays; what is suspended goes on as its source wants it, since the record forbids that no more."""
    worker, mirror = _name(seen), seen.mirror
    is_there = mirror is not None and mirror.metadata.uid == record.uid
    over = record.given_up(why, keeps_start=not is_there)
    status = seen.source.stored.retrying_status(None, over, seen.now)
    if status is None:
        return _refused(seen)
    if seen.request is not None and seen.part is Part.HOLDER:
        status = with_request(status, None, seen.term)  # as ``withdraw`` does: the place is for others at once
    write, _ = source_write(seen, status=status)
    if seen.request is not None:
        write = tuple(replace(one, about_request=WITHDRAWN) if isinstance(one, WriteSource) else one for one in write)
    text = f"it stays on worker {worker}: {why}"
    drop = ProvePods(worker, record.uid, ProveStep.DROP)
    actions = (*_counted(write, GIVEN_UP), EmitEvent("RetryGivenUp", text), drop)
    return Plan(text, actions, AT_ONCE, {"retry_at": seen.monotonic + AGAIN_SECONDS})


def _refused(seen: Snapshot) -> Plan:
    why = "what is stored in its status does not allow it to be tried elsewhere"
    write, later = source_write(seen, waiting=Obstruction(Reason.STATUS_REFUSED, why))
    return Plan(why, write, min(later or PLACE_LOOK_SECONDS, PLACE_LOOK_SECONDS))


def _counted(write: tuple[Action, ...], outcome: str) -> tuple[Action, ...]:
    return tuple(replace(one, retry=outcome) if isinstance(one, WriteSource) else one for one in write)


def _shown(seen: Snapshot) -> Obstruction:
    text = f"no pod of it became ready on worker {_name(seen)}; it is tried on another one if none has run"
    return Obstruction(Reason.RETRYING_ELSEWHERE, text)


def _name(seen: Snapshot) -> str:
    assert seen.worker is not None
    return seen.worker.name
