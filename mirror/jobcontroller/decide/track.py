"""The second and third step of a sync (T1–T13, Y17, W1–W4): what is stored, whose finalizer goes, when the Job is done.

A pod is written down before it loses its finalizer, and added to the counters after that: whatever happens between
two requests, each pod is counted once (Q4).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

import msgspec

from mirror.batch import conditions, indexes, times, views
from mirror.batch.conditions import COMPLETE, FAILED, FAILURE_TARGET, SUSPENDED, Verdict
from mirror.jobcontroller.decide import indexed, success_policy
from mirror.jobcontroller.decide.drafts import Draft
from mirror.jobcontroller.decide.ending import by_completions, is_by_failure_policy
from mirror.jobcontroller.decide.facts import Facts
from mirror.jobcontroller.decide.failure_policy import FAIL_JOB, reason_of
from mirror.jobcontroller.decide.jobs import Job
from mirror.jobcontroller.decide.values import Assessment, Done, Ending, Event, Pod, Settled, Snapshot, Tracking
from mirror.model import names

NORMAL, WARNING = "Normal", "Warning"
# What people are told by events (4.15), as far as it follows from decisions.
SUSPENDED_EVENT = Event(NORMAL, "Suspended", "Job suspended")
RESUMED_EVENT = Event(NORMAL, "Resumed", "Job resumed")
COMPLETED = Event(NORMAL, "Completed", "Job completed")
TOO_MANY_SUCCEEDED = Event(
    WARNING, "TooManySucceededPods", "Too many succeeded pods running after completion count reached"
)


class _Pending(msgspec.Struct, frozen=True):
    """What ``settle`` needs to know of the steps before it."""

    job: Job
    ending: Ending | None
    may_finish: bool
    """The walk was not cut short (T6), and no pod is still ending (T12)."""
    completion: str


def track(snapshot: Snapshot, assessment: Assessment, done: Done) -> Tracking:
    """The status to store before any finalizer goes, and whose finalizers go then."""
    facts: Facts = assessment.facts
    sync = _Sync(snapshot, assessment, done, facts)
    sync.count_pods()
    sync.conclude()
    sync.write_gone_pods()
    removals = sync.write_ended_pods()
    sync.write_indexes()
    sync.write_interim()
    return sync.tracking(removals)


def settle(tracking: Tracking, removed: Collection[str], now: datetime) -> Settled:
    """The status once the finalizers of these pods are gone; ``now`` is the time of the final condition (N2)."""
    pending: _Pending = tracking.facts
    draft = Draft.of(tracking.status)
    moved = draft.count_gone(removed)
    ending = pending.ending
    # A pod that kept its finalizer is in no list if it is an Indexed success; it is counted by another sync (T11).
    all_removed = all(pod.uid in removed for pod in tracking.removals)
    if ending is None or not pending.may_finish or not all_removed or draft.uncounted:
        return Settled(draft.status() if moved else tracking.status, flush=moved, is_finished=False)
    verdict: Verdict = FAILED if ending.condition == FAILURE_TARGET else COMPLETE
    draft.upsert(verdict, ending.reason, ending.message, at=times.of(now))
    if verdict == COMPLETE:
        # Both may be refused otherwise: one that is before the start (V17), and a change of a stored one (V36).
        draft.completion = draft.completion or max(pending.completion, draft.start or "")
    told = _told_at_the_end(pending.job, ending, verdict, draft)
    return Settled(draft.status(), flush=True, is_finished=True, events=told, verdict=verdict, reason=ending.reason)


def _told_at_the_end(job: Job, ending: Ending, verdict: Verdict, draft: Draft) -> tuple[Event, ...]:
    if verdict == FAILED:
        return (Event(WARNING, ending.reason, ending.message),)
    if not job.is_indexed and job.completions is not None and draft.succeeded > job.completions:
        return TOO_MANY_SUCCEEDED, COMPLETED
    return (COMPLETED,)


class _Sync:
    """One call of ``track``: the draft of the status, and whether it has to be stored."""

    def __init__(self, snapshot: Snapshot, assessment: Assessment, done: Done, facts: Facts) -> None:
        self._snapshot = snapshot
        self._assessment = assessment
        self._done = done
        self._facts = facts
        self._draft = Draft.of(snapshot.status)
        self._at = times.of(snapshot.now)
        self._ending: Ending | None = None
        self._terminating = facts.terminating + done.deleted
        self._flush = False
        self._is_cut_short = False
        self._events: list[Event] = []
        self._policy_actions: list[str] = []

    def count_pods(self) -> None:
        """Y12, Y17, after what was deleted and created; a Job that is not suspended has started."""
        facts, done, draft = self._facts, self._done, self._draft
        draft.active = len(facts.active) - done.deleted + done.created
        # The API refuses more (V29), and would by that keep everything else from being stored (Q11).
        draft.ready = max(0, min(facts.ready - done.deleted_ready, draft.active))
        gates = self._snapshot.gates
        draft.terminating = self._terminating if gates.job_pod_replacement_policy else None
        stored = facts.stored
        seen, was = (draft.active, draft.ready, draft.terminating), (stored.active, stored.ready, stored.terminating)
        self._flush = seen != was
        if draft.start is None and not facts.job.is_suspended:
            draft.start = self._at

    def conclude(self) -> None:
        """Y15, Y16: a verdict holds once no pod is active, and else the Job may have been suspended or resumed."""
        ending = self._assessment.ending
        if ending is not None:
            if self._done.deleted == len(self._facts.active) and self._snapshot.expectations_met:
                self._ending = ending
            return
        self._ending = by_completions(self._snapshot, self._facts, self._draft.active)
        if self._ending is None and self._assessment.manages:
            self._show_suspension()

    def _show_suspension(self) -> None:
        """W1–W3: a Job that never was suspended has no such condition."""
        draft = self._draft
        if self._facts.job.is_suspended:
            if draft.upsert(SUSPENDED, conditions.JOB_SUSPENDED, "Job suspended", at=self._at):
                self._flush = True
                self._events.append(SUSPENDED_EVENT)
                if self._snapshot.gates.mutable_scheduling_directives_for_suspended_jobs:
                    draft.start = None
        elif conditions.find(draft.conditions, SUSPENDED) is not None and draft.upsert(
            SUSPENDED, conditions.JOB_RESUMED, "Job resumed", at=self._at, status=conditions.FALSE
        ):
            self._flush = True
            self._events.append(RESUMED_EVENT)
            draft.start = self._at

    def write_gone_pods(self) -> None:
        """Pods that were written down earlier and have lost their finalizer since are counted (T2)."""
        if self._draft.uncounted:
            held = {pod.uid for pod in self._snapshot.pods if pod.has_finalizer}
            listed = (*self._draft.uncounted_succeeded, *self._draft.uncounted_failed)
            self._flush |= self._draft.count_gone({uid for uid in listed if uid not in held})

    def write_ended_pods(self) -> list[Pod]:
        """Write down who has ended, and so may lose the finalizer (T1, T3–T6).

        When there is no more room those that are written already go on: they are what makes room.
        """
        removals: list[Pod] = []
        limit = self._snapshot.constants.max_uncounted_pods
        written = self._draft.uncounted
        for pod in self._candidates():
            if written >= limit and not self._is_written(pod):
                self._is_cut_short |= self._may_go(pod)
            elif self._may_go(pod):
                removals.append(pod)
                written += self._write_ended(pod)
        return removals

    def _is_written(self, pod: Pod) -> bool:
        stored = self._facts.stored
        return pod.uid in stored.uncounted_failed or pod.uid in stored.uncounted_succeeded

    def _candidates(self) -> Sequence[Pod]:
        facts = self._facts
        found = facts.leaving
        if self._strips_all:
            found = [pod for pod in self._snapshot.pods if pod.has_finalizer]
        return sorted(found, key=_index_first) if facts.job.is_indexed else found

    @property
    def _strips_all(self) -> bool:
        return self._snapshot.is_deleting or self._ending is not None

    def _may_go(self, pod: Pod) -> bool:
        """T3."""
        facts = self._facts
        if self._strips_all or pod.phase == "Succeeded":
            return True
        if not facts.judge.is_failed(pod):
            return False
        if facts.indexes is not None and pod.index is not None and facts.indexes.held.get(pod.index) is pod:
            return False
        dropped = self._assessment.ending
        # Gone, it could take the verdict with it that is not stored yet (F6).
        is_witness = dropped is not None and is_by_failure_policy(dropped) and facts.judge.match(pod).action == FAIL_JOB
        return not is_witness

    def _write_ended(self, pod: Pod) -> bool:
        """T4, T5; whether it takes up room in the status."""
        facts, draft = self._facts, self._draft
        if self._is_written(pod) or (facts.job.is_indexed and not facts.job.has_index(pod.index)):
            return False
        if pod.phase == "Succeeded":
            if facts.indexes is None:
                draft.uncounted_succeeded.append(pod.uid)
                self._flush = True
                return True
            # Its index is enough to know it by; that makes ``write_indexes`` store it.
            return pod.index is not None and not indexed.has(facts.indexes.before, pod.index)
        fails_all = self._ending is not None and self._ending.condition == FAILURE_TARGET
        if not (fails_all or facts.judge.is_failed(pod)):
            return False
        match = facts.judge.match(pod)
        if match.action:
            self._policy_actions.append(match.action)
        if match.is_counted:
            draft.uncounted_failed.append(pod.uid)
            self._flush = True
        return match.is_counted

    def write_indexes(self) -> None:
        """T7."""
        found, draft = self._facts.indexes, self._draft
        if found is None:
            return
        completed = indexes.write(found.completed)
        failed = None if found.failed is None else indexes.write(found.failed)
        self._flush |= completed != draft.completed_indexes or failed != draft.failed_indexes
        draft.completed_indexes, draft.failed_indexes = completed, failed
        count = indexes.count(found.completed)
        # Scaled down and then no longer elastic, the API refuses to have fewer (V35).
        draft.succeeded = count if self._facts.job.is_elastic else max(count, draft.succeeded)

    def write_interim(self) -> None:
        """The verdict is stored before any finalizer goes (T8, F6)."""
        ending, draft = self._ending, self._draft
        if ending is None:
            return
        if not ending.is_stored and self._has_interim(ending):
            self._flush |= draft.upsert(ending.condition, ending.reason, ending.message, at=self._at)
            problem = reason_of(self._snapshot, ending.message)[1] if is_by_failure_policy(ending) else ""
            if problem:
                self._events.append(Event(WARNING, "InvalidRuleNames", f"annotation {names.RULE_NAMES} {problem}"))
        if draft.start is None and not self._facts.job.ends_without_start:
            # A suspension has cleared it, and no Job may finish without (V21, Q13).
            draft.start = self._interim_time(ending)

    def _has_interim(self, ending: Ending) -> bool:
        """Versions without both gates wrote one for policies only (G1); servers that want it get it for every end."""
        by_policy = is_by_failure_policy(ending) or ending.reason == success_policy.REASON
        return by_policy or self._delays_end or self._snapshot.server_wants_interim

    @property
    def _delays_end(self) -> bool:
        gates = self._snapshot.gates
        return gates.job_pod_replacement_policy or gates.job_managed_by

    def _interim_time(self, ending: Ending) -> str:
        found = conditions.find(self._draft.conditions, ending.condition, conditions.TRUE) or {}
        return views.text(found.get("lastTransitionTime")) or self._at

    def tracking(self, removals: Sequence[Pod]) -> Tracking:
        may_finish = not self._is_cut_short and not (self._delays_end and self._terminating)
        return Tracking(
            self._draft.status(),
            flush=self._flush,
            removals=tuple(removals),
            backoff=self._facts.backoff,
            events=tuple(self._events),
            policy_actions=tuple(self._policy_actions),
            again_after_seconds=self._snapshot.constants.batch_period_seconds if self._is_cut_short else None,
            facts=_Pending(self._facts.job, self._ending, may_finish, self._at),
        )


def _index_first(pod: Pod) -> int:
    return -1 if pod.index is None else pod.index
