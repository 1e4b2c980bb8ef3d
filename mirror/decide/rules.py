"""The rules about one source, in order; the first that has something to say decides (``docs/rules.md``)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import msgspec

from mirror.decide.assigning import assign_worker, release_held, wait_to_record, wait_to_record_again
from mirror.decide.draining import leave_draining_worker, stay_after_drain
from mirror.decide.ending import report_failure, report_late
from mirror.decide.expired_leases import replace_expired
from mirror.decide.fencing import keep_lease, mark_lease
from mirror.decide.following import (
    SETTLED_SECONDS,
    ended_for_seconds,
    finalizers_text,
    follow,
    keep_from_beginning_anew,
)
from mirror.decide.identity import Identity
from mirror.decide.moving import (
    HELD_LOOK_SECONDS,
    is_to_be_moved,
    lost_text,
    move_from_lost_worker,
    move_text,
    take_returned_completion,
)
from mirror.decide.other_managers import leave_other_managers
from mirror.decide.plan import (
    Action,
    CreateMirror,
    DeleteMirror,
    DeleteSource,
    EmitEvent,
    FindMirror,
    JudgeMirror,
    Plan,
    StopKind,
)
from mirror.decide.recreating import limit_text, start_over
from mirror.decide.requested_moves import move_as_requested, settle_request
from mirror.decide.retrying import begin_retry, retry_elsewhere
from mirror.decide.seeding import seed_held_mirror
from mirror.decide.snapshot import Look, Snapshot
from mirror.decide.terms import touch_record
from mirror.decide.trusting import trust_record
from mirror.decide.writing import FromMirror, shown_obstruction, source_write
from mirror.kinds.asking import annotates_apart
from mirror.model import fences, moves, names
from mirror.model.loss_texts import lost_worker_text
from mirror.model.reasons import DEPENDENCIES, Obstruction, Reason
from mirror.sharding.share import Part

FOREIGN_WRITES_TOLERATED = 3
FOREIGN_LOOK_SECONDS = 61.0
UNREACHABLE_SHOWN_AFTER_SECONDS = 60.0
CONFLICT_RETRY_SECONDS = 30.0
DEPENDENCY_RETRY_SECONDS = 15.0
DELETE_AGAIN_SECONDS = 600.0
FIND_AGAIN_SECONDS = 1.0
NAMESAKE_LOOK_SECONDS = 5.0
NAMESAKE_SHOWN_AFTER_SECONDS = 10.0

Rule = Callable[[Snapshot], Plan | None]


def decide(seen: Snapshot) -> Plan:
    """What to do about one source now."""
    for rule in _rules_of(seen):
        plan = rule(seen)
        if plan is not None:
            return wait_to_record_again(seen, plan)
    return Plan("nothing to do")


def _rules_of(seen: Snapshot) -> tuple[Rule, ...]:
    has_place = seen.source.placed is not None and not seen.refused_now
    match seen.part:
        case Part.FORMER:
            return RULES_OF_FORMER
        case Part.ASSIGNER if seen.source.placed is not None:
            return RULES_OF_REQUESTED
        case Part.HOLDER if has_place:
            return _RULES_OF_HOLDER
    return _RULES_OF_PLACED if has_place else RULES


def ignore_deleting(seen: Snapshot) -> Plan | None:
    """A source that is being deleted gets nothing any more; its mirror is deleted by its own key (D10)."""
    return Plan("the source is being deleted") if seen.source.is_deleting else None


def leave_what_others_write(seen: Snapshot) -> Plan | None:
    """A status that another manager writes is not fought over (D20)."""
    source = seen.source
    runs_here = (
        source.placed is None and seen.assignment.found_on is None and not source.is_finished and source.has_started
    )
    if not runs_here and seen.memory.foreign_status_writes < FOREIGN_WRITES_TOLERATED:
        return None
    name, worker = source.kind.name, source.placed
    twice = f"; its mirror on worker {worker} may run, too: delete this {name}, or stop that controller"
    why = f"another controller writes this {name}'s status{twice if worker is not None else ''}"
    write, later = source_write(seen, waiting=Obstruction(Reason.STATUS_CONFLICT, why))
    is_reported = seen.source.found.annotations.get(names.WAITING_BECAUSE) == why
    events = () if is_reported else (EmitEvent(Reason.STATUS_CONFLICT, f"{why}; it is left alone"),)
    # A record that was erased where users can write it looks the same, and so does a status from before it named us.
    may_be_older = source.kind.records_by_annotation or source.found.metadata.generation > 1
    is_certain = source.kind.can_vanish and not (runs_here and may_be_older)
    stop = (StopKind(is_new=not runs_here),) if is_certain else ()
    _, renew, lease_again = keep_lease(seen)  # its mirror goes on (D14)
    again = min(FOREIGN_LOOK_SECONDS, later or FOREIGN_LOOK_SECONDS, lease_again or FOREIGN_LOOK_SECONDS)
    return Plan(why, (*stop, *write, *events, *renew), again)


def keep_or_delete_finished(seen: Snapshot) -> Plan | None:
    """The final status is stored: the mirror stays for its retention (D8), the source for its time to live (D25)."""
    source = seen.source
    if not source.is_finished:
        return None
    plan, seconds = _keep_or_delete_mirror(seen), source.kind.seconds_to_live(source.found)
    if seen.failure is not None:
        told, remember = report_late(seen)
        plan = msgspec.structs.replace(plan, actions=(*plan.actions, *told), remember={**plan.remember, **remember})
    if seconds is None:
        return plan
    left = max(
        seconds - source.kind.seconds_since_end(source.stored.status, seen.now),
        seen.memory.delete_refused_at + DELETE_AGAIN_SECONDS - seen.monotonic,
    )
    if left <= 0:
        return Plan("finished, its time to live is over", (DeleteSource(),), DELETE_AGAIN_SECONDS)
    again = plan.again_after_seconds
    return msgspec.structs.replace(plan, again_after_seconds=left if again is None else min(left, again))


def _keep_or_delete_mirror(seen: Snapshot) -> Plan:
    worker = seen.worker
    write, later = source_write(seen, mirror=_settling(seen))
    if worker is None or not worker.is_reachable or seen.mirror is None or seen.mirror_is_stale:
        return Plan("finished", write, later)
    if seen.mirror.metadata.deletion_timestamp is not None:
        return Plan("finished, its mirror is going", write, later)
    delete = DeleteMirror(worker.name, seen.mirror.metadata.uid)
    if seen.identity is Identity.REPLACED:
        return Plan("finished, and this mirror is not the one that ran", (*write, delete), later)
    retention = seen.policy.retention_seconds
    kept = keep_from_beginning_anew(seen)
    waits, actions = (
        [seconds for seconds in (later, kept.again_after_seconds) if seconds is not None],
        (*write, *kept.actions),
    )
    if retention is None:
        because, look_again = "finished, its mirror is kept as long as it", min(waits, default=None)
        return Plan(because, actions, look_again, kept.remember)
    left = retention - seen.source.kind.seconds_since_end(seen.source.stored.status, seen.now)
    if left > 0:
        return Plan("finished, its mirror is kept for now", actions, min((left, *waits)), kept.remember)
    return Plan("finished, the retention of its mirror is over", (*write, delete), later)


def _settling(seen: Snapshot) -> FromMirror | None:
    """What its own mirror tells after its end, of a kind whose controllers do that (D7)."""
    if seen.mirror is None or seen.mirror_is_stale or seen.identity is not Identity.OURS:
        return None
    following = seen.source.stored.next_status(seen.mirror, now=seen.now)
    return FromMirror(seen.mirror.metadata.uid, following) if following.status is not None else None


def restore_erased_record(seen: Snapshot) -> Plan | None:
    """A worker has this source's mirror and the record is gone: the mirror tells where it is (D2, D5)."""
    if seen.source.placed is not None or seen.assignment.found_on is None:
        return None
    stored, found_on = seen.source.stored, seen.assignment.found_on
    status = stored.placed_status(found_on, seen.now)
    left = stored.moves.last_left_on(found_on)
    if left is not None and seen.settles_in_seconds > 0:
        # Who held that slot before may have sent a delete of what was left there (S8).
        return Plan(f"what it left on {found_on} may be about to go", (), seen.settles_in_seconds)
    if left is not None:
        if left.uid:
            status = stored.mirrored_status(status, left.uid, seen.now)
        status = stored.returned_status(status, found_on, stored.moves.undone(found_on), seen.now)
        if left.promise == moves.FENCED:
            # The lease that it had there has ended: it can be moved again.
            status = fences.with_mark(status, fences.FENCED)
    # Of no term: what was created there was not so for this record (S6).
    write, later = source_write(seen, status=status, records=found_on)
    return Plan(f"its mirror was found on {seen.assignment.found_on}", write, later)


def hold_suspended(seen: Snapshot) -> Plan | None:
    """A suspended source that was never placed is shown as suspended (D3)."""
    if seen.source.placed is not None or not seen.source.is_suspended or seen.source.is_held:
        return None
    return _show_suspended(seen, "suspended, not placed yet")


def store_seen_end(seen: Snapshot) -> Plan | None:
    """The mirror was seen to end and cannot be looked at any more: its end is stored all the same (D7, D8)."""
    ended, worker, memory = seen.memory.ended, seen.worker, seen.memory
    if ended is None or worker is None:
        return None
    is_replaced = seen.identity is Identity.REPLACED or seen.mirror_is_stale
    if worker.is_reachable and seen.mirror is not None and not is_replaced:
        return None
    is_gone = is_replaced or (memory.look is Look.GONE and memory.looked_for == seen.recorded_uid)
    ended_for = ended_for_seconds(seen, ended)
    following = seen.source.stored.next_status(
        ended,
        now=seen.now,
        clock_offset_seconds=worker.clock_offset_seconds,
        settled=is_gone or ended_for >= SETTLED_SECONDS,
    )
    if following.status is not None:
        write, later = source_write(seen, mirror=FromMirror(ended.metadata.uid, following))
        failed, remember = report_failure(seen, ended, following.status)
        return Plan("its mirror was seen to end", (*write, *failed), later, remember)
    if worker.is_reachable or not following.waits_for_pods:
        return None
    plan = wait_for_worker(seen) or Plan("its mirror was seen to end")
    left = max(1.0, SETTLED_SECONDS - ended_for)
    return msgspec.structs.replace(plan, again_after_seconds=min(left, plan.again_after_seconds or left))


def wait_for_worker(seen: Snapshot) -> Plan | None:
    """Its worker is unreachable: it stays where it is, and says so (D13, D14)."""
    worker = seen.worker
    if worker is None or worker.is_reachable:
        return None
    shown_from = min(UNREACHABLE_SHOWN_AFTER_SECONDS, seen.policy.lost_after_seconds)
    left = [at - worker.lost_for_seconds for at in (shown_from, seen.policy.lost_after_seconds)]
    why = f"worker {worker.name} is unreachable"
    cause = f" ({worker.because})" if worker.because else ""
    waiting = shown_obstruction(seen)
    if left[1] <= 0 or worker.is_gone:
        text = lost_worker_text(worker.name, worker.because, is_declared_dead=worker.is_gone)
        waiting = Obstruction(Reason.WORKER_LOST, f"{text}; the Job stays assigned to it{lost_text(seen)}")
    elif left[0] <= 0:
        waiting = Obstruction(Reason.WORKER_UNREACHABLE, why + cause + move_text(seen))
    again = min((seconds for seconds in left if seconds > 0), default=None)
    if again is None and is_to_be_moved(seen.source, worker, seen.policy, seen.namespace_on_loss, seen.fence):
        again = HELD_LOOK_SECONDS  # what holds moves is not reported to each source
    if seen.fence is not None and seen.fence.safe_in_seconds > 0:
        again = min(again or seen.fence.safe_in_seconds, seen.fence.safe_in_seconds)
    if seen.source.is_suspended and (plan := _show_suspended(seen, why, waiting=waiting)).actions:
        return Plan(plan.because, plan.actions, again)
    write, later = source_write(seen, waiting=waiting)
    again = min((s for s in (again, later) if s is not None), default=None)
    return Plan(why, write, again)


def make_room_for_mirror(seen: Snapshot) -> Plan | None:
    """The name is still taken by the mirror of an earlier namesake, which is being deleted (D1)."""
    if not seen.mirror_is_stale:
        return None
    why = f"the mirror of an earlier namesake has to go first{_why_it_is_there(seen)}"
    is_shown = _age_seconds(seen) > NAMESAKE_SHOWN_AFTER_SECONDS
    waiting = Obstruction(Reason.PREVIOUS_MIRROR_EXISTS, why) if is_shown else None
    write, later = source_write(seen, waiting=waiting)
    judge: tuple[Action, ...] = ()
    if seen.worker is not None and seen.identity is Identity.NAMESAKE:
        judge = (JudgeMirror(seen.worker.name),)  # a sweep that halted leaves it where it is
    return Plan(why, (*write, *judge), min(NAMESAKE_LOOK_SECONDS, later or NAMESAKE_LOOK_SECONDS))


def _why_it_is_there(seen: Snapshot) -> str:
    if seen.mirror is None or seen.mirror.metadata.deletion_timestamp is not None:
        return finalizers_text(seen.mirror) if seen.mirror is not None else ""
    return "; the worker has not let it be deleted yet: events of the worker's Secret, and mirror worker check, say why"


def care_for_missing_mirror(seen: Snapshot) -> Plan | None:
    """There is no mirror in the cache: never created, or vanished (D11)."""
    source, worker, memory = seen.source, seen.worker, seen.memory
    if seen.mirror is not None or worker is None:
        return None
    expected = seen.recorded_uid
    if expected or source.has_started:
        find = FindMirror(worker.name, expected)
        if memory.look is None or memory.looked_for != expected:
            why, write = "its mirror is not in the cache", tuple[Action, ...]()
            if memory.look_refused:
                why = f"worker {worker.name} does not show the mirror any more, and rejects questions about it: "
                why += memory.look_refused
                write, _ = source_write(seen, waiting=Obstruction(Reason.MIRROR_NOT_FOUND, why))
            return Plan(why, (*write, find), FIND_AGAIN_SECONDS)
        if memory.look is Look.ELSEWHERE or (source.has_started and memory.look is Look.FOREIGN and not expected):
            return _wait_for_unknown_mirror(seen, find)
        if source.has_started:
            return _give_up_lost(seen)
    if source.is_suspended:
        return _show_suspended(seen, "suspended, not created yet")
    if (touch := touch_record(seen)) is not None:
        return touch
    if memory.in_the_way is not None:
        write, later = source_write(seen, waiting=memory.in_the_way)
        is_dependency = memory.in_the_way.reason in DEPENDENCIES
        again = DEPENDENCY_RETRY_SECONDS if is_dependency else CONFLICT_RETRY_SECONDS
        return Plan(memory.in_the_way.text, (*write, CreateMirror(worker.name)), min(again, later or again))
    # What of its annotations is not written yet goes first, but for the first time: then they follow the mirror.
    write = source_write(seen)[0] if annotates_apart(source.kind) and not memory.first_create else ()
    return Plan("recorded, to be created", (*write, CreateMirror(worker.name)))


def give_up_replaced_mirror(seen: Snapshot) -> Plan | None:
    """The mirror that ran is gone and another object carries its labels (D1, D11)."""
    if seen.mirror is None or seen.identity is not Identity.REPLACED or not seen.source.has_started:
        return None
    return _give_up_lost(seen)


def _wait_for_unknown_mirror(seen: Snapshot, find: FindMirror) -> Plan:
    """Something is there that may be its mirror, so it is not known to be lost (D11)."""
    assert seen.worker is not None
    why = f"worker {seen.worker.name} has a Job of this name without our labels, which may be the mirror"
    if seen.memory.look is Look.ELSEWHERE:
        why = f"the mirror on worker {seen.worker.name} is not in the expected namespace"
    write, later = source_write(seen, waiting=Obstruction(Reason.MIRROR_NOT_FOUND, why))
    left = seen.memory.read_at + CONFLICT_RETRY_SECONDS - seen.monotonic
    if left > 0:
        return Plan(why, write, min(left, later or left))
    return Plan(why, (*write, find), later)


def _give_up_lost(seen: Snapshot) -> Plan:
    """A started mirror is gone for good: the source is failed, in one write that is always accepted (D11).

    One of a kind that never ends is as if it had not run, and is created again there.
    """
    assert seen.worker is not None
    if (plan := start_over(seen)) is not None:
        return plan
    anew = "; it is created again" if seen.source.kind.never_ends else ""
    message = f"the mirror on worker {seen.worker.name} has vanished after it had started{anew}{limit_text(seen)}"
    status = seen.source.stored.lost_status(seen.now, reason="MirrorLost", message=message)
    write, later = source_write(seen, status=status)
    again = FIND_AGAIN_SECONDS if seen.source.kind.never_ends else later
    return Plan(message, (*write, EmitEvent("MirrorLost", message)), again)


def _show_suspended(seen: Snapshot, why: str, *, waiting: Obstruction | None = None) -> Plan:
    status = seen.source.stored.suspended_status(seen.now)
    write, later = source_write(seen, status=status, waiting=waiting)
    events = (EmitEvent("Suspended", "Job suspended", is_warning=False),) if status is not None else ()
    return Plan(why, (*write, *events), later)


def _age_seconds(seen: Snapshot) -> float:
    created = seen.source.found.metadata.creation_timestamp
    return (seen.now - datetime.fromisoformat(created)).total_seconds() if created else 0.0


RULES: tuple[Rule, ...] = (
    ignore_deleting,
    leave_other_managers,
    trust_record,
    leave_what_others_write,
    take_returned_completion,
    keep_or_delete_finished,
    restore_erased_record,
    hold_suspended,
    wait_to_record,
    assign_worker,
    settle_request,
    release_held,
    replace_expired,
    store_seen_end,
    move_from_lost_worker,
    wait_for_worker,
    retry_elsewhere,
    leave_draining_worker,
    stay_after_drain,
    make_room_for_mirror,
    care_for_missing_mirror,
    give_up_replaced_mirror,
    seed_held_mirror,
    mark_lease,
    begin_retry,
    follow,
)
RULES_OF_UNPLACED: tuple[Rule, ...] = (restore_erased_record, hold_suspended, wait_to_record, assign_worker)
"""Those that have nothing to say about a source that is recorded on a worker which has not refused it."""
RULES_OF_REQUESTED: tuple[Rule, ...] = (ignore_deleting, move_as_requested)
"""Of who assigns workers, about a source whose holder requests another one."""
RULES_OF_FORMER: tuple[Rule, ...] = (ignore_deleting, take_returned_completion)
"""Of who holds the slot of a worker on which a source left something that has another one by now."""
_RULES_OF_HOLDER = tuple(rule for rule in RULES if rule not in RULES_OF_UNPLACED)
_RULES_OF_PLACED = tuple(rule for rule in _RULES_OF_HOLDER if rule is not settle_request)
