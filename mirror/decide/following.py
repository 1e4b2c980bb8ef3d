"""The normal case: a mirror's status comes back, the source's changes go there, and its labels are kept (D6, D7, D9).

The last of the ``rules``; they use ``ended_for_seconds`` and ``keep_from_beginning_anew``, too.
"""

from __future__ import annotations

from mirror.batch import times
from mirror.decide.ending import report_failure
from mirror.decide.fencing import keep_lease, lease_of_resume, must_stop_first
from mirror.decide.identity import Identity
from mirror.decide.plan import Action, EmitEvent, FindMirror, PatchMirror, Plan, RestoreLabels, TouchMirror
from mirror.decide.snapshot import MemoryChange, Snapshot
from mirror.decide.writing import FromMirror, shown_obstruction, source_write
from mirror.kinds.base import Changes
from mirror.kinds.queueing import queue_of
from mirror.kube.objects import Object
from mirror.model.reasons import Obstruction, Reason
from mirror.model.text import clean

RESENDS = 2
PATCH_AGAIN_SECONDS = 60.0
MOST_FIELDS = 400
"""Characters of field names in a message."""
_NOTES = "metadata.annotations"
"""Written with every change: among them is the note on it."""
RELABEL_AGAIN_SECONDS = (10.0, 600.0)
"""After the first attempt to put labels back, doubled for each further one, and at most."""
READ_UNWATCHED_SECONDS = 15.0
"""Between two reads of a mirror that has lost the label by which it is watched."""
UNREADY_SHOWN_AFTER_SECONDS = 60.0
"""Pulling an image or finding a node may take a while."""
STEADY_AFTER_SECONDS = 60.0
"""A pod that fails again and again mostly does so sooner."""
DELETING_SHOWN_AFTER_SECONDS = 10.0
"""A mirror that nothing keeps is gone in less."""
MOST_FINALIZERS, LONGEST_FINALIZER = 3, 80
UNSTARTED_SHOWN_AFTER_SECONDS = 300.0
"""A controller with thousands of Jobs before it takes its time."""
TOUCH_AFTER_SECONDS = 310.0
"""kube-controller-manager waits five minutes for pods that it believes to have created, and then for any change of the
Job: where none comes, for 12 hours and more."""
TOUCH_AGAIN_SECONDS = 3600.0
SETTLED_SECONDS = 120.0
"""So long after its end a mirror counts down no more pods: workers before 1.31 may end a Job that still has some."""


def follow(seen: Snapshot) -> Plan | None:
    """The normal case: its status comes back, its changes go there (D6, D7, D9)."""
    worker, mirror, kind = seen.worker, seen.mirror, seen.source.kind
    if worker is None or mirror is None:
        return None
    ended_for = ended_for_seconds(seen, mirror)
    mirror_suspended, lacks_pods = kind.is_suspended(mirror), kind.lacks_pods(mirror)
    following = seen.source.stored.next_status(
        mirror,
        now=seen.now,
        mirror_suspended=mirror_suspended,
        clock_offset_seconds=worker.clock_offset_seconds,
        settled=ended_for >= SETTLED_SECONDS,
    )
    unlabeled, labels, labels_again = _keep_labels(seen)
    problem, patch = problem_and_patch(seen)
    cover, renew, lease_again = keep_lease(seen)
    unready, remember, unready_again = _unready(seen, mirror_suspended=mirror_suspended, lacks_pods=lacks_pods)
    touch, touch_again = _touch(seen, remember, lacks_pods=lacks_pods)
    deleting, deleting_again = _deleting(seen, mirror)
    pods, steady_again = _of_pods(seen, mirror, unready, remember)
    problem = deleting or problem or unlabeled or pods
    # A patch on its way may yet be refused for the reason that is shown: it goes away once the mirror is as it should.
    waiting = problem or (shown_obstruction(seen) if patch else None)
    events: tuple[Action, ...] = ()
    if seen.memory.create_unanswered:
        events = (EmitEvent("Mirrored", f"Mirrored to worker {worker.name}", is_warning=False),)
    brought = FromMirror(mirror.metadata.uid, following, is_recorded_at_once=seen.identity is not Identity.OURS)
    write, later = source_write(seen, waiting=waiting, mirror=brought)
    if events:
        remember["create_unanswered"] = False
    if pods is not None and any(isinstance(one, EmitEvent) and one.reason == pods.reason for one in write):
        remember["pods_told"] = pods.reason
    failed, told = report_failure(seen, mirror, following.status)
    remember |= told
    overridden = seen.changes.overridden if seen.changes is not None else ()
    if overridden and overridden != seen.memory.overridden:
        fields = ", ".join(overridden)[:MOST_FIELDS]
        text = f"the mirror on worker {worker.name} differs from the Job in {fields}; that is left as it is"
        events = (*events, EmitEvent("MirrorChanged", text))
        remember["overridden"] = overridden
    if seen.identity is Identity.REPLACED:
        remember["mirror_uid"] = mirror.metadata.uid  # nothing had run: this one is its mirror now
    waits = [
        later,
        labels_again,
        unready_again,
        touch_again,
        lease_again,
        deleting_again,
        steady_again,
        PATCH_AGAIN_SECONDS if problem else None,
    ]
    if following.waits_for_pods:
        waits.append(max(1.0, SETTLED_SECONDS - ended_for))
    again = min((seconds for seconds in waits if seconds is not None), default=None)
    return Plan(
        "follows its mirror", (*cover, *events, *write, *failed, *labels, *patch, *renew, *touch), again, remember
    )


def _deleting(seen: Snapshot, mirror: Object) -> tuple[Obstruction | None, float | None]:
    """Somebody deletes the mirror on its worker, and finalizers keep it: no controller runs it any more (D11).

    Returns what to say, and after how many seconds to look again.
    """
    worker, metadata = seen.worker, mirror.metadata
    if worker is None or metadata.deletion_timestamp is None or seen.source.kind.summary(mirror).is_finished:
        return None, None
    try:
        since = seen.now.timestamp() + (worker.clock_offset_seconds or 0.0) - times.seconds(metadata.deletion_timestamp)
    except times.BadTime:
        since = DELETING_SHOWN_AFTER_SECONDS
    if since < DELETING_SHOWN_AFTER_SECONDS:
        return None, min(DELETING_SHOWN_AFTER_SECONDS, DELETING_SHOWN_AFTER_SECONDS - since)
    text = f"the mirror on worker {worker.name} is being deleted there{finalizers_text(mirror)}"
    return Obstruction(Reason.MIRROR_TERMINATING, text), None


def finalizers_text(mirror: Object) -> str:
    """What keeps a mirror that is being deleted, where something does."""
    finalizers = mirror.metadata.finalizers or ()
    kept = ", ".join(clean(one, longest=LONGEST_FINALIZER) for one in finalizers[:MOST_FINALIZERS])
    return f"; finalizers keep it: {kept}" if kept else ""


def _of_pods(
    seen: Snapshot, mirror: Object, unready: Obstruction | None, remember: MemoryChange
) -> tuple[Obstruction | None, float | None]:
    """What is known of its pods; why one is not ready yet is told only once that has lasted.

    Pods that have failed are of the past once those that took their place have been ready for a while. Returns what to
    say, and after how many seconds to look again; adds to what is to be remembered.
    """
    if seen.failures_before != seen.memory.failures_before:
        remember["failures_before"] = seen.failures_before
    pods, since = seen.pods, seen.memory.steady_since
    if pods is None or not pods.is_of_ended_pods or unready is not None or not _runs_well(seen, mirror):
        if since is not None:
            remember["steady_since"] = None
        if pods is None or pods.reason != Reason.PODS_NOT_READY:
            return pods or unready, None
        return (pods if unready is not None and unready.reason == Reason.PODS_NOT_READY else unready), None
    if since is None:
        remember["steady_since"] = seen.monotonic
        return pods, STEADY_AFTER_SECONDS
    left = since + STEADY_AFTER_SECONDS - seen.monotonic
    return (pods, left) if left > 0 else (None, None)


def _runs_well(seen: Snapshot, mirror: Object) -> bool:
    kind = seen.source.kind
    return bool(kind.progress(mirror).active) and not kind.has_unready_pods(mirror)


def _unready(
    seen: Snapshot, *, mirror_suspended: bool, lacks_pods: bool
) -> tuple[Obstruction | None, MemoryChange, float | None]:
    """Pods that stay unready, or a mirror that stays suspended: with no permission but that to see it (D22).

    Returns what to say, what to remember, and after how many seconds to look again.
    """
    worker, mirror, since = seen.worker, seen.mirror, seen.memory.unready_since
    kind, reason = seen.source.kind, ""
    if worker is None or mirror is None:
        return None, {} if since is None else {"unready_since": None}, None
    if mirror_suspended:
        # Its source may run, and nothing is to be sent: the worker's own queueing, or somebody there, holds it (D26).
        is_as_sent = seen.changes is None or not (seen.changes.operations or seen.changes.must_wait_for_pods)
        if not seen.source.is_suspended and (is_as_sent or must_stop_first(seen)):
            reason = Reason.SUSPENDED_ON_WORKER
    elif lacks_pods:
        if kind.is_unstarted(mirror):
            return _unstarted(seen, worker.name)
        reason = Reason.PODS_NOT_READY
    elif kind.has_unready_pods(mirror):
        reason = Reason.PODS_NOT_READY
    if not reason:
        return None, {} if since is None else {"unready_since": None}, None
    if seen.source.stored.obstruction_reason != reason:  # else it was told before this process began
        left = UNREADY_SHOWN_AFTER_SECONDS - (seen.monotonic - since if since is not None else 0.0)
        if left > 0:
            return None, {"unready_since": seen.monotonic} if since is None else {}, left
    return Obstruction(reason, _unready_text(seen, mirror, worker.name, lacks_pods=lacks_pods)), {}, None


def _unready_text(seen: Snapshot, mirror: Object, worker: str, *, lacks_pods: bool) -> str:
    if seen.source.kind.is_suspended(mirror):
        return _holder(worker, queue_of(mirror), seen.held_because)
    if lacks_pods:
        return f"worker {worker} has no pods of it"
    kind = seen.source.kind
    is_ending = kind.counts_pods and not kind.progress(mirror).active
    return f"pods on worker {worker} are {'being deleted and have not ended' if is_ending else 'not ready'}"


def _unstarted(seen: Snapshot, worker: str) -> tuple[Obstruction | None, MemoryChange, float | None]:
    """The worker's controller has not written a word about it: it has very much to do, or it is not there."""
    kind, since = seen.source.kind, seen.memory.podless_since
    text = f"worker {worker} has not started it: its {kind.name} controller has not written a status"
    why = Obstruction(Reason.PODS_NOT_READY, text)
    forget: MemoryChange = {} if seen.memory.unready_since is None else {"unready_since": None}
    if seen.source.stored.obstruction_reason == why.reason:
        return why, forget, None
    left = UNSTARTED_SHOWN_AFTER_SECONDS - (seen.monotonic - since if since is not None else 0.0)
    return (why, forget, None) if left <= 0 else (None, forget, left)


def _holder(worker: str, queue: str, because: str) -> str:
    text = f"queue {queue} of worker {worker} has not admitted it" if queue else f"worker {worker} keeps it suspended"
    return f"{text}: {because}" if because else text


def _touch(seen: Snapshot, remember: MemoryChange, *, lacks_pods: bool) -> tuple[tuple[Action, ...], float | None]:
    """A mirror whose controller has forgotten it is written to, which makes that look at it (D30).

    Returns what to do, and after how many seconds to look again; adds to what is to be remembered.
    """
    worker, mirror, since, touched_at = seen.worker, seen.mirror, seen.memory.podless_since, seen.memory.touched_at
    if worker is None or mirror is None or not lacks_pods:
        if since is not None:
            remember |= {"podless_since": None, "touched_at": None}
        return (), None
    if since is None:
        remember["podless_since"] = seen.monotonic
        return (), TOUCH_AFTER_SECONDS
    kind = seen.source.kind
    if kind.is_unstarted(mirror) or not kind.counts_pods:
        return (), None  # nobody there has looked at it even once, or its controller does not wait so
    due = since + TOUCH_AFTER_SECONDS if touched_at is None else touched_at + TOUCH_AGAIN_SECONDS
    if due > seen.monotonic:
        return (), due - seen.monotonic
    remember["touched_at"] = seen.monotonic
    return (TouchMirror(worker.name, mirror.metadata.uid),), TOUCH_AGAIN_SECONDS


def _keep_labels(seen: Snapshot) -> tuple[Obstruction | None, tuple[Action, ...], float | None]:
    """Labels that the recorded mirror has lost are put back; until they stay, it is read from time to time (D1, D11).

    Returns what to say while they do not stay, what to do, and after how many seconds to look again.
    """
    memory, worker = seen.memory, seen.worker
    if seen.identity is not Identity.UNLABELED or worker is None or seen.mirror is None:
        return None, (), None
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
    why = None
    if times >= RESENDS:
        why = Obstruction(Reason.LABELS_REMOVED, f"worker {worker.name} removes the labels of the mirror")
    return why, tuple(actions), left if left > 0 else READ_UNWATCHED_SECONDS


def problem_and_patch(seen: Snapshot) -> tuple[Obstruction | None, tuple[Action, ...]]:
    """What keeps the mirror from being as the source wants it, and what to do about it (D3, D9)."""
    changes, memory, worker = seen.changes, seen.memory, seen.worker
    if changes is None or worker is None or (seen.mirror and seen.mirror.metadata.deletion_timestamp):
        return None, ()
    is_repeat = memory.sent_digest == changes.digest
    if is_repeat and memory.patch_refused and seen.monotonic - memory.patch_refused_at < PATCH_AGAIN_SECONDS:
        return Obstruction(Reason.CHANGE_REFUSED, memory.patch_refused), ()
    if is_repeat and memory.sent_times >= RESENDS:
        if changes.only_note:
            return None, ()
        if changes.reverted or seen.monotonic - memory.sent_at < PATCH_AGAIN_SECONDS:
            text = f"worker {worker.name} reverts changes to the mirror{_which(changes)}"
            return Obstruction(Reason.CHANGE_REVERTED, text), ()
    if changes.is_run_by_queue:
        text = f"the queue of worker {worker.name} keeps the mirror running although it was suspended"
        return Obstruction(Reason.CHANGE_REVERTED, text), ()
    if not changes.operations or must_stop_first(seen):
        return None, ()  # its pods, or its start, have to go first; its next status wakes us
    return None, (PatchMirror(worker.name, changes, lease_of_resume(seen)),)


def keep_from_beginning_anew(seen: Snapshot) -> Plan:
    """Of what is over: a mirror that runs, or may, after an end that its worker's controller withdraws is suspended.

    Usually it was before that end was stored; an earlier release stored it at once. What is stored does not go back
    (D7), so nothing of it may run. What keeps us from that is reported once.
    """
    problem, patch = problem_and_patch(seen)
    reason, text, again = "MirrorChanged", "", None
    if problem is not None:
        reason, text, again = problem.reason, problem.message, PATCH_AGAIN_SECONDS
    elif patch and seen.mirror is not None and not seen.source.kind.summary(seen.mirror).is_finished:
        worker = seen.source.placed
        text = f"the mirror on worker {worker} runs again after the end that is stored; it is being suspended"
    if text == seen.memory.anew_told:
        return Plan("finished", patch, again)
    told = (EmitEvent(reason, text),) if text else ()
    return Plan("finished", (*patch, *told), again, {"anew_told": text})


def _which(changes: Changes) -> str:
    """The fields, where more than the note on the mirror is written again and again."""
    paths = (str(one.get("path", "")).strip("/").replace("/", ".") for one in changes.operations)
    fields = changes.reverted or tuple(path for path in paths if path != _NOTES)
    return f": {', '.join(fields)[:MOST_FIELDS]}" if fields else ""


def ended_for_seconds(seen: Snapshot, mirror: Object) -> float:
    """Since the mirror ended, by the worker's clock as far as its offset is known, or since the end was first seen."""
    offset = seen.worker.clock_offset_seconds if seen.worker is not None else None
    observed = seen.monotonic - seen.memory.ended_seen_at if seen.memory.ended is not None else 0.0
    kind = seen.source.kind
    ended_for = 0.0
    if kind.summary(mirror).is_finished:
        ended_for = kind.seconds_since_end(mirror.status_dict(), seen.now)
    return max(ended_for + (offset or 0.0), observed)
