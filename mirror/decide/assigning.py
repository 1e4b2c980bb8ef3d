"""How a source gets its worker: one is requested, recorded, and a held source released (D5, D16, D21). Pure.

Which worker that is, ``placement`` says; what becomes of a source that has one is in ``rules`` and the other modules.
"""

from __future__ import annotations

import msgspec

from mirror.decide.fencing import marked
from mirror.decide.loss_policies import policy_of
from mirror.decide.plan import AwaitMove, EmitEvent, Plan, ReleaseSource, RequestAssignment, WriteSource
from mirror.decide.snapshot import Snapshot
from mirror.decide.terms import in_term
from mirror.decide.writing import shown_obstruction, source_write
from mirror.kinds import own_annotations
from mirror.model import names
from mirror.model.losses import OnLoss, OnMirrorLoss
from mirror.model.reasons import OF_NO_WORKER, STOPPED_KINDS, Obstruction, Reason

WAITING_LOOK_SECONDS = 60.0
RELEASE_AGAIN_SECONDS = 60.0


def wait_to_record(seen: Snapshot) -> Plan | None:
    """The API server refused to record a worker on it: its assignment is given up, and requested later (D5, D21)."""
    memory = seen.memory
    left = memory.record_refused_until - seen.monotonic
    if seen.source.placed is not None or left <= 0:
        return None
    write, later = source_write(seen, waiting=Obstruction(Reason.RECORD_REFUSED, memory.record_refused))
    return Plan(memory.record_refused, write, min(left, later or left))


def wait_to_record_again(seen: Snapshot, plan: Plan) -> Plan:
    """The same of one that has a worker, or a mirror on one: whatever else it does goes on."""
    left = seen.memory.record_refused_until - seen.monotonic
    if left <= 0 or not plan.needs_assignment:
        return plan
    kept = tuple(one for one in plan.actions if not isinstance(one, RequestAssignment | AwaitMove))
    if kept and not any(isinstance(one, WriteSource) and one.records is not None for one in kept):
        return msgspec.structs.replace(
            plan, actions=kept, again_after_seconds=min(left, plan.again_after_seconds or left)
        )
    write, later = source_write(seen, waiting=Obstruction(Reason.RECORD_REFUSED, seen.memory.record_refused))
    return Plan(seen.memory.record_refused, write, min(left, later or left))


def assign_worker(seen: Snapshot) -> Plan | None:
    """A source that may run, or is held until it may, is recorded on the worker that it is assigned to (D5, D21)."""
    source, assignment = seen.source, seen.assignment
    if source.placed is not None and not seen.refused_now:
        return None
    if assignment.assigned is not None:
        return _record_assignment(seen, assignment.assigned)
    if source.placed is not None:
        return _clear_refused_record(seen)
    if assignment.available is not None:
        plan = _record_assignment(seen, assignment.available)
        request = RequestAssignment(assignment.available)
        return msgspec.structs.replace(plan, actions=(request, *plan.actions)) if plan.needs_assignment else plan
    return _wait_for_assignment(seen)


def _record_assignment(seen: Snapshot, worker: str) -> Plan:
    status = seen.source.stored.placed_status(worker, seen.now)
    if status is None:
        why = "what is stored in its status allows no write"
        write, later = source_write(seen, waiting=Obstruction(Reason.STATUS_REFUSED, why))
        return Plan(why, write, later)
    # What it waited for is taken away by the write that records a worker (D21); where that worker has refused it
    # before, only once it has a mirror: most likely it goes on waiting for the same.
    waiting = shown_obstruction(seen) if worker in seen.memory.refusal_texts else None
    write, _ = source_write(seen, status=in_term(seen, marked(seen, status)), waiting=waiting, records=worker)
    return Plan(f"placed on {worker}", (*write, *_point_out_mistakes(seen)), remember={"first_create": True})


def _clear_refused_record(seen: Snapshot) -> Plan:
    """Its worker has refused it: the record goes first, then another worker is requested (D5)."""
    status = seen.source.stored.placed_status(None, seen.now)
    why = seen.assignment.obstruction
    write, later = source_write(seen, status=status, waiting=why or shown_obstruction(seen), clears=True)
    return Plan(why.text if why else f"worker {seen.source.placed} has refused it", write, later)


def _wait_for_assignment(seen: Snapshot) -> Plan:
    source, assignment = seen.source, seen.assignment
    why = assignment.obstruction
    is_invalid = why is not None and why.reason in OF_NO_WORKER
    status = None
    if why and source.is_held:
        status = source.stored.suspended_status(seen.now)  # only where it has to wait: kubectl would show it as running
    write, later = source_write(seen, status=status, waiting=why or shown_obstruction(seen))
    # Although it may wait already: its request may be another one by now. Before the write, which takes a while.
    request = RequestAssignment(is_reason_reported=why is not None)
    again = [later] if later is not None else []
    if not why or why.reason in STOPPED_KINDS or seen.avoided:
        again.append(WAITING_LOOK_SECONDS)  # else it is woken once it has a worker, or another reason to wait
    requests = () if is_invalid else (request,)
    mistakes = _point_out_mistakes(seen) if write else ()
    return Plan(why.text if why else "waits for a worker", (*requests, *write, *mistakes), min(again, default=None))


def _point_out_mistakes(seen: Snapshot) -> tuple[EmitEvent, ...]:
    """An annotation that looks like ours and is none, or has no effect: the user expects something of it (D22)."""
    source = seen.source
    found = [*own_annotations.mistakes(source.found, source.kind.own_annotations)]
    if source.found.annotations.get(names.ON_WORKER_LOSS) in tuple(OnLoss):
        why = policy_of(source, seen.policy, seen.namespace_on_loss).mistake
        found += [f"annotation {names.ON_WORKER_LOSS}: {why}; {OnLoss.WAIT} holds"] if why else []
    if source.found.annotations.get(names.ON_MIRROR_LOSS) == OnMirrorLoss.RECREATE and not source.kind.can_move:
        found += [f"annotation {names.ON_MIRROR_LOSS}: a {source.kind.name} does not start over"]
    return (EmitEvent(Reason.UNKNOWN_ANNOTATION, "; ".join(found)),) if found else ()


def release_held(seen: Snapshot) -> Plan | None:
    """A source that our webhook holds is unsuspended once its worker is recorded (D16)."""
    source, memory = seen.source, seen.memory
    if not source.is_held or source.placed is None:
        return None
    left = memory.release_refused_at + RELEASE_AGAIN_SECONDS - seen.monotonic
    if not memory.release_refused or left <= 0:
        return Plan(f"held, and placed on {source.placed}", (ReleaseSource(),))
    write, later = source_write(seen, waiting=Obstruction(Reason.RELEASE_REFUSED, memory.release_refused))
    return Plan(memory.release_refused, write, min(left, later or left))
