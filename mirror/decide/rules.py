"""The rules about one source, in order; the first that has something to say decides (design §3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from mirror.adapters import job, rule_names
from mirror.adapters.job_status import (
    lost_status,
    next_status,
    placed_status,
    suspended_status,
)
from mirror.decide.identity import Identity
from mirror.decide.plan import (
    Action,
    AskForPlace,
    CreateMirror,
    DeleteMirror,
    FindMirror,
    PatchMirror,
    Plan,
    ReleaseSource,
    RestoreLabels,
    Tell,
)
from mirror.decide.seen import Look, Seen
from mirror.decide.writing import source_write
from mirror.model import names

FOREIGN_WRITES_TOLERATED = 3
FOREIGN_LOOK_SECONDS = 61.0
UNREACHABLE_SHOWN_AFTER_SECONDS = 60.0
CONFLICT_RETRY_SECONDS = 30.0
WAITING_LOOK_SECONDS = 60.0
RESENDS = 2
PATCH_AGAIN_SECONDS = 60.0
RELEASE_AGAIN_SECONDS = 60.0
MOST_FIELDS = 400
"""Characters of field names in a message."""
FIND_AGAIN_SECONDS = 1.0
NAMESAKE_LOOK_SECONDS = 5.0
RELABEL_AGAIN_SECONDS = (10.0, 600.0)
"""After the first attempt to put labels back, doubled for each further one, and at most."""
READ_UNWATCHED_SECONDS = 15.0
"""Between two reads of a mirror that has lost the label by which it is watched."""
NAMESAKE_SHOWN_AFTER_SECONDS = 10.0
SETTLED_SECONDS = 120.0
"""So long after its end a mirror counts down no more pods: workers before 1.31 may end a Job that still has some."""


def decide(seen: Seen) -> Plan:
    """What to do about one source now."""
    for rule in RULES:
        plan = rule(seen)
        if plan is not None:
            return plan
    return Plan("nothing to do")


def leave_what_goes(seen: Seen) -> Plan | None:
    """A source that is being deleted gets nothing any more; its mirror is deleted by its own key (D10)."""
    return Plan("the source is being deleted") if seen.source.is_deleting else None


def leave_what_others_write(seen: Seen) -> Plan | None:
    """A status that another manager writes is not fought over (D20)."""
    source = seen.source
    runs_here = (
        source.placed is None and seen.about_place.found_on is None and not source.is_finished and source.has_started
    )
    if not runs_here and seen.memory.foreign_status_writes < FOREIGN_WRITES_TOLERATED:
        return None
    why = "another controller writes this Job's status"
    write, later = source_write(seen, waiting=why)
    told = seen.source.found.annotations.get(names.WAITING_BECAUSE) == why
    tell = () if told else (Tell("StatusConflict", f"{why}; it is left alone"),)
    return Plan(why, (*write, *tell), min(FOREIGN_LOOK_SECONDS, later or FOREIGN_LOOK_SECONDS))


def keep_or_delete_finished(seen: Seen) -> Plan | None:
    """The final status is stored: the mirror stays for its retention (D8)."""
    source, worker = seen.source, seen.worker
    if not source.is_finished:
        return None
    write, later = source_write(seen)
    if worker is None or not worker.is_reachable or seen.mirror is None or seen.mirror_is_stale:
        return Plan("finished", write, later)
    if seen.mirror.metadata.deletion_timestamp is not None:
        return Plan("finished, its mirror is going", write, later)
    delete = DeleteMirror(worker.name, seen.mirror.metadata.uid)
    if seen.identity is Identity.REPLACED:
        return Plan("finished, and this mirror is not the one that ran", (*write, delete), later)
    retention = seen.policy.retention_seconds
    if retention is None:
        return Plan("finished, its mirror is kept as long as it", write, later)
    left = retention - _seconds_since_end(seen.source.stored.status, seen.now)
    if left > 0:
        return Plan("finished, its mirror is kept for now", write, min(left, later or left))
    return Plan("finished, the retention of its mirror is over", (*write, delete), later)


def restore_erased_record(seen: Seen) -> Plan | None:
    """A worker has this source's mirror and the record is gone: the mirror tells where it is (D2, D5)."""
    if seen.source.placed is not None or seen.about_place.found_on is None:
        return None
    status = placed_status(seen.source.stored, seen.about_place.found_on, seen.now)
    write, later = source_write(seen, status=status, records=seen.about_place.found_on)
    return Plan(f"its mirror was found on {seen.about_place.found_on}", write, later)


def hold_suspended(seen: Seen) -> Plan | None:
    """A suspended source that was never placed is shown as suspended (D3)."""
    if seen.source.placed is not None or not seen.source.is_suspended or seen.source.is_held:
        return None
    return _show_suspended(seen, "suspended, not placed yet")


def give_a_place(seen: Seen) -> Plan | None:
    """A source that may run, or is held until it may, asks for a place and is recorded where it is given one (D5)."""
    source = seen.source
    if source.placed is not None and not seen.refused_now:
        return None
    if seen.about_place.given is not None:
        status = placed_status(source.stored, seen.about_place.given, seen.now)
        if status is None:
            why = "what is stored in its status allows no write"
            write, later = source_write(seen, waiting=why)
            return Plan(why, write, later)
        write, _ = source_write(seen, status=status, records=seen.about_place.given)
        return Plan(f"placed on {seen.about_place.given}", write, remember=(("first_create", True),))
    clears = source.placed is not None
    status = placed_status(source.stored, None, seen.now) if clears else None
    why = seen.about_place.bad_annotation or seen.about_place.waiting_because
    if why and source.is_held and not clears:
        status = suspended_status(
            source.stored, seen.now
        )  # only where it has to wait: kubectl would show it as running
    # What it waited for is taken away by the write that records a worker (D21), not by one more before that.
    waiting = why or seen.source.found.annotations.get(names.WAITING_BECAUSE)
    write, later = source_write(seen, status=status, waiting=waiting, clears=clears)
    # It asks again although it waits already: its wish may be another one by now.
    ask = () if seen.about_place.bad_annotation else (AskForPlace(),)
    expiries = [refusal.until - seen.monotonic for _, refusal in seen.memory.refusals if refusal.until > seen.monotonic]
    return Plan(why or "asks for a place", (*write, *ask), min((*expiries, later or WAITING_LOOK_SECONDS)))


def release_held(seen: Seen) -> Plan | None:
    """A source that our webhook holds is unsuspended once its worker is recorded (D16)."""
    source, memory = seen.source, seen.memory
    if not source.is_held or source.placed is None:
        return None
    left = memory.release_refused_at + RELEASE_AGAIN_SECONDS - seen.monotonic
    if not memory.release_refused or left <= 0:
        return Plan(f"held, and placed on {source.placed}", (ReleaseSource(),))
    write, later = source_write(seen, waiting=memory.release_refused)
    return Plan(memory.release_refused, write, min(left, later or left))


def store_seen_end(seen: Seen) -> Plan | None:
    """The mirror was seen to end and cannot be looked at any more: its end is stored all the same (D7, D8)."""
    ended, worker, memory = seen.memory.ended, seen.worker, seen.memory
    if ended is None or worker is None:
        return None
    is_replaced = seen.identity is Identity.REPLACED or seen.mirror_is_stale
    if worker.is_reachable and seen.mirror is not None and not is_replaced:
        return None
    is_gone = is_replaced or (memory.look is Look.GONE and memory.looked_for == seen.recorded_uid)
    status = rule_names.named(ended, ended.status_dict())
    ended_for = _ended_for_seconds(seen, status)
    following = next_status(
        seen.source.stored,
        status,
        now=seen.now,
        clock_offset_seconds=worker.clock_offset_seconds,
        settled=is_gone or ended_for >= SETTLED_SECONDS,
    )
    if following.status is not None:
        uid = ended.metadata.uid
        write, later = source_write(seen, status=following.status, mirror_uid=uid, more=following.more)
        return Plan("its mirror was seen to end", write, later)
    if worker.is_reachable or not following.waits_for_pods:
        return None
    plan = wait_for_worker(seen) or Plan("its mirror was seen to end")
    left = max(1.0, SETTLED_SECONDS - ended_for)
    return msgspec.structs.replace(plan, again_after_seconds=min(left, plan.again_after_seconds or left))


def wait_for_worker(seen: Seen) -> Plan | None:
    """Its worker is out of reach: it stays where it is, and says so (D13, D14 ``Wait``)."""
    worker = seen.worker
    if worker is None or worker.is_reachable:
        return None
    shown_from = min(UNREACHABLE_SHOWN_AFTER_SECONDS, seen.policy.lost_after_seconds)
    left = [at - worker.lost_for_seconds for at in (shown_from, seen.policy.lost_after_seconds)]
    stored = waiting = seen.source.found.annotations.get(names.WAITING_BECAUSE)
    tell: tuple[Action, ...] = ()
    if left[1] <= 0:
        waiting = f"worker {worker.name} is lost; the Job stays assigned to it"
        if stored != waiting:  # what is stored remembers, over restarts too, that it was told
            tell = (Tell("WorkerLost", f"{waiting} ({worker.because})"),)
    elif left[0] <= 0:
        waiting = f"worker {worker.name} is out of reach"
    again = min((seconds for seconds in left if seconds > 0), default=None)
    why = f"worker {worker.name} is out of reach"
    if seen.source.is_suspended and (plan := _show_suspended(seen, why, waiting=waiting)).actions:
        return Plan(plan.because, (*plan.actions, *tell), again)
    write, later = source_write(seen, waiting=waiting)
    if not write:
        tell = ()  # it goes with the write, which may have to wait
    again = min((s for s in (again, later) if s is not None), default=None)
    return Plan(why, (*write, *tell), again)


def make_room_for_mirror(seen: Seen) -> Plan | None:
    """The name is still taken by the mirror of an earlier namesake, which is being deleted (D1)."""
    if not seen.mirror_is_stale:
        return None
    why = "the mirror of an earlier namesake has to go first"
    waiting = why if _age_seconds(seen) > NAMESAKE_SHOWN_AFTER_SECONDS else None
    write, later = source_write(seen, waiting=waiting)
    return Plan(why, write, min(NAMESAKE_LOOK_SECONDS, later or NAMESAKE_LOOK_SECONDS))


def care_for_missing_mirror(seen: Seen) -> Plan | None:
    """There is no mirror in the cache: never created, or vanished (D11)."""
    source, worker, memory = seen.source, seen.worker, seen.memory
    if seen.mirror is not None or worker is None:
        return None
    expected = seen.recorded_uid
    if expected or source.has_started:
        find = FindMirror(worker.name, expected)
        if memory.look is None or memory.looked_for != expected:
            return Plan("its mirror is not in the cache", (find,), FIND_AGAIN_SECONDS)
        if memory.look is Look.ELSEWHERE or (source.has_started and memory.look is Look.FOREIGN and not expected):
            return _wait_for_unknown_mirror(seen, find)
        if source.has_started:
            return _give_up_lost(seen)
    if source.is_suspended:
        return _show_suspended(seen, "suspended, not created yet")
    if memory.in_the_way:
        write, later = source_write(seen, waiting=memory.in_the_way)
        retry = CreateMirror(worker.name)
        return Plan(memory.in_the_way, (*write, retry), min(CONFLICT_RETRY_SECONDS, later or CONFLICT_RETRY_SECONDS))
    return Plan("recorded, to be created", (CreateMirror(worker.name),))


def give_up_replaced_mirror(seen: Seen) -> Plan | None:
    """The mirror that ran is gone and another object carries its labels (D1, D11)."""
    if seen.mirror is None or seen.identity is not Identity.REPLACED or not seen.source.has_started:
        return None
    return _give_up_lost(seen)


def _wait_for_unknown_mirror(seen: Seen, find: FindMirror) -> Plan:
    """Something is there that may be its mirror, so it is not known to be lost (D11)."""
    assert seen.worker is not None
    why = f"worker {seen.worker.name} has a Job of this name without our labels, which may be the mirror"
    if seen.memory.look is Look.ELSEWHERE:
        why = f"the mirror on worker {seen.worker.name} is not in the expected namespace"
    write, later = source_write(seen, waiting=why)
    left = seen.memory.read_at + CONFLICT_RETRY_SECONDS - seen.monotonic
    if left > 0:
        return Plan(why, write, min(left, later or left))
    return Plan(why, (*write, find), later)


def follow(seen: Seen) -> Plan | None:
    """The normal case: its status comes back, its changes go there (D6, D7, D9)."""
    worker, mirror = seen.worker, seen.mirror
    if worker is None or mirror is None:
        return None
    mirror_status = rule_names.named(mirror, mirror.status_dict())
    ended_for = _ended_for_seconds(seen, mirror_status)
    following = next_status(
        seen.source.stored,
        mirror_status,
        now=seen.now,
        mirror_suspended=_mirror_is_suspended(seen),
        clock_offset_seconds=worker.clock_offset_seconds,
        settled=ended_for >= SETTLED_SECONDS,
    )
    unlabeled, labels, labels_again = _keep_labels(seen)
    problem, patch = _problem_and_patch(seen)
    problem = problem or unlabeled
    # A patch on its way may yet be refused for the reason that is shown: it goes away once the mirror is as it should.
    waiting = problem or (seen.source.found.annotations.get(names.WAITING_BECAUSE) if patch else None)
    tell: tuple[Action, ...] = ()
    if seen.memory.create_unanswered:
        tell = (Tell("Mirrored", f"Mirrored to worker {worker.name}", is_warning=False),)
    write, later = source_write(
        seen,
        status=following.status,
        waiting=waiting,
        mirror_uid=mirror.metadata.uid,
        records_mirror=seen.identity is not Identity.OURS,
        more=following.more,
        cut=following.cut,
    )
    remember: tuple[tuple[str, Any], ...] = (("create_unanswered", False),) if tell else ()
    overridden = seen.changes.overridden if seen.changes is not None else ()
    if overridden and overridden != seen.memory.overridden:
        fields = ", ".join(overridden)[:MOST_FIELDS]
        text = f"the mirror on worker {worker.name} differs from the Job in {fields}; that is left as it is"
        tell = (*tell, Tell("MirrorChanged", text))
        remember = (*remember, ("overridden", overridden))
    if seen.identity is Identity.REPLACED:
        remember = (*remember, ("mirror_uid", mirror.metadata.uid))  # nothing had run: this one is its mirror now
    waits = [later, labels_again, PATCH_AGAIN_SECONDS if problem else None]
    if following.waits_for_pods:
        waits.append(max(1.0, SETTLED_SECONDS - ended_for))
    again = min((seconds for seconds in waits if seconds is not None), default=None)
    return Plan("follows its mirror", (*tell, *write, *labels, *patch), again, remember)


def _keep_labels(seen: Seen) -> tuple[str, tuple[Action, ...], float | None]:
    """Labels that the recorded mirror has lost are put back; until they stay, it is read from time to time (D1, D11).

    Returns what to say while they do not stay, what to do, and after how many seconds to look again.
    """
    memory, worker = seen.memory, seen.worker
    if seen.identity is not Identity.UNLABELED or worker is None or seen.mirror is None:
        return "", (), None
    uid, times = seen.mirror.metadata.uid, memory.relabeled_times
    first, most = RELABEL_AGAIN_SECONDS
    wait = min(most, first * 2 ** (min(times, 10) - 1)) if times else 0.0
    left = memory.relabeled_at + wait - seen.monotonic
    actions: list[Action] = []
    if left <= 0:
        actions.append(RestoreLabels(worker.name, uid))
    elif not seen.is_watched:
        left = min(left, memory.read_at + READ_UNWATCHED_SECONDS - seen.monotonic)
        if left <= 0:
            actions.append(FindMirror(worker.name, uid))
    text = f"worker {worker.name} removes the labels of the mirror" if times >= RESENDS else ""
    return text, tuple(actions), left if left > 0 else READ_UNWATCHED_SECONDS


def _problem_and_patch(seen: Seen) -> tuple[str, tuple[Action, ...]]:
    """What keeps the mirror from being as the source wants it, and what to do about it (D3, D9)."""
    changes, memory, worker = seen.changes, seen.memory, seen.worker
    if changes is None or worker is None or (seen.mirror and seen.mirror.metadata.deletion_timestamp):
        return "", ()
    is_repeat = memory.sent_digest == changes.digest
    if is_repeat and memory.patch_refused and seen.monotonic - memory.patch_refused_at < PATCH_AGAIN_SECONDS:
        return memory.patch_refused, ()
    if is_repeat and memory.sent_times >= RESENDS:
        if changes.only_note:
            return "", ()
        if changes.reverted or seen.monotonic - memory.sent_at < PATCH_AGAIN_SECONDS:
            return f"worker {worker.name} reverts changes to the mirror", ()
    if not changes.operations:
        return "", ()  # its pods have to go first; its next status wakes us
    return "", (PatchMirror(worker.name, changes),)


def _give_up_lost(seen: Seen) -> Plan:
    """A started mirror is gone for good: the source is failed, in one write that is always accepted (D11)."""
    assert seen.worker is not None
    message = f"the mirror on worker {seen.worker.name} has vanished after it had started"
    status = lost_status(seen.source.stored, seen.now, reason="MirrorLost", message=message)
    write, later = source_write(seen, status=status)
    return Plan(message, (*write, Tell("MirrorLost", message)), later)


def _show_suspended(seen: Seen, why: str, *, waiting: str | None = None) -> Plan:
    status = suspended_status(seen.source.stored, seen.now)
    write, later = source_write(seen, status=status, waiting=waiting)
    tell = (Tell("Suspended", "Job suspended", is_warning=False),) if status is not None else ()
    return Plan(why, (*write, *tell), later)


def _age_seconds(seen: Seen) -> float:
    created = seen.source.found.metadata.creation_timestamp
    return (seen.now - datetime.fromisoformat(created)).total_seconds() if created else 0.0


def _mirror_is_suspended(seen: Seen) -> bool:
    return seen.mirror is not None and job.is_suspended(seen.mirror)


def _ended_for_seconds(seen: Seen, status: Mapping[str, object]) -> float:
    """Since the mirror ended, by the worker's clock as far as its offset is known, or since the end was first seen."""
    offset = seen.worker.clock_offset_seconds if seen.worker is not None else None
    observed = seen.monotonic - seen.memory.ended_seen_at if seen.memory.ended is not None else 0.0
    return max(_seconds_since_end(status, seen.now) + (offset or 0.0), observed)


def _seconds_since_end(status: Mapping[str, object], now: datetime) -> float:
    """Since the terminal condition of a status; 0 without one, or without a time that makes sense."""
    conditions = status.get("conditions")
    for condition in conditions if isinstance(conditions, list) else ():
        end = condition.get("lastTransitionTime") if isinstance(condition, dict) else None
        if isinstance(end, str) and condition.get("type") in ("Complete", "Failed"):
            try:
                return (now - datetime.fromisoformat(end)).total_seconds()
            except (ValueError, TypeError):
                return 0.0
    return 0.0


RULES: tuple[Callable[[Seen], Plan | None], ...] = (
    leave_what_goes,
    leave_what_others_write,
    keep_or_delete_finished,
    restore_erased_record,
    hold_suspended,
    give_a_place,
    release_held,
    store_seen_end,
    wait_for_worker,
    make_room_for_mirror,
    care_for_missing_mirror,
    give_up_replaced_mirror,
    follow,
)
