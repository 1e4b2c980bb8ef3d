"""What one look at a Job's pods tells (Y9–Y12): counted once, used by every decision of the sync."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from mirror.batch import indexes
from mirror.batch.indexes import Intervals
from mirror.jobcontroller.decide import backoff, indexed, success_policy
from mirror.jobcontroller.decide.failure_policy import FAIL_INDEX, UNMATCHED, FailurePolicy, Match
from mirror.jobcontroller.decide.jobs import Job, Stored
from mirror.jobcontroller.decide.values import BackoffRecord, Pod, Snapshot


class Judge(msgspec.Struct, frozen=True):
    """Which pods have failed, and what the failure policy makes of them."""

    policy: FailurePolicy | None
    replaces_only_failed: bool
    spared: frozenset[str] = frozenset()
    """Pods that have not failed, whatever they look like (``assess`` says why)."""

    def is_failed(self, pod: Pod) -> bool:
        """R1, R2: with one policy a pod fails as soon as it is deleted, with the other when it has ended."""
        if pod.uid in self.spared:
            return False
        if pod.phase == "Failed":
            return True
        return pod.deleted is not None and not self.replaces_only_failed and pod.phase != "Succeeded"

    def match(self, pod: Pod) -> Match:
        return UNMATCHED if self.policy is None else self.policy.match(pod)


class IndexFacts(msgspec.Struct, frozen=True):
    """What is known of the indexes of an Indexed Job, clipped to its completions (I2)."""

    before: Intervals
    """Completed, as stored."""
    completed: Intervals
    failed: Intervals | None = None
    """None: the Job has no backoff limit per index (L2)."""
    held: dict[int, Pod] = {}
    """L5."""


class Facts(msgspec.Struct, frozen=True):
    """The working set of a sync."""

    job: Job
    stored: Stored
    judge: Judge
    active: list[Pod]
    terminating: int
    ready: int
    leaving: list[Pod]
    """With the finalizer, and ended or being deleted: the only pods whose finalizer may go while the Job runs."""
    succeeded: int
    failed: int
    """Y11."""
    backoff: BackoffRecord
    deadline_from: datetime | None
    """When the Job started as its deadline sees it; None while it is suspended (W5)."""
    indexes: IndexFacts | None = None
    met_rule: int | None = None
    """Of the success policy."""


def gather(snapshot: Snapshot, *, spared: frozenset[str] = frozenset()) -> Facts:
    """Look at every pod once."""
    job, stored = Job.of(snapshot.spec, snapshot.gates), Stored.of(snapshot.status)
    active: list[Pod] = []
    leaving: list[Pod] = []
    terminating = ready = 0
    for pod in snapshot.pods:
        if pod.phase != "Succeeded" and pod.phase != "Failed":
            if pod.deleted is None:
                active.append(pod)
                ready += pod.is_ready
                continue
            terminating += 1
        if pod.has_finalizer:
            leaving.append(pod)
    done = _completed(job, stored, leaving) if job.is_indexed else None
    has_success_policy = done is not None and snapshot.gates.job_success_policy
    met = success_policy.met_rule(snapshot.spec, done[1], job.size) if done and has_success_policy else None
    policy = FailurePolicy.of(snapshot.spec, snapshot.gates)
    judge = Judge(policy, job.replaces_only_failed, spared)
    new_succeeded, new_failed = _new(job, stored, judge, leaving)
    uncounted = len(stored.uncounted_succeeded)
    return Facts(
        job,
        stored,
        judge,
        active,
        terminating,
        ready,
        leaving,
        succeeded=indexes.count(done[1]) if done else stored.succeeded + len(new_succeeded) + uncounted,
        failed=stored.failed
        + sum(policy is None or policy.match(pod).is_counted for pod in new_failed)
        + len(stored.uncounted_failed),
        backoff=backoff.next_record(snapshot.backoff, new_succeeded, new_failed),
        deadline_from=_deadline_from(job, stored, snapshot),
        indexes=_index_facts(job, stored, judge, done, active=active, leaving=leaving) if done else None,
        met_rule=met,
    )


def _deadline_from(job: Job, stored: Stored, snapshot: Snapshot) -> datetime | None:
    """A Job that is about to be resumed starts now, whatever start time a suspension left (W3, W5).

    Versions without the gate looked at the time that was left, and failed a Job whose deadline had passed by it.
    """
    if job.is_suspended:
        return None
    if stored.is_suspended and snapshot.gates.mutable_scheduling_directives_for_suspended_jobs:
        return snapshot.now
    return stored.started_at() or snapshot.now


def _new(job: Job, stored: Stored, judge: Judge, leaving: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
    """Pods that ended and are in no uncounted list yet (Y10); one that failed before it succeeded has failed (Q16)."""
    succeeded: list[Pod] = []
    failed: list[Pod] = []
    for pod in leaving:
        if pod.uid in stored.uncounted_failed or pod.uid in stored.uncounted_succeeded:
            continue
        if job.is_indexed and not job.has_index(pod.index):
            continue
        if pod.phase == "Succeeded":
            succeeded.append(pod)
        elif judge.is_failed(pod):
            failed.append(pod)
    return succeeded, failed


def _completed(job: Job, stored: Stored, leaving: Sequence[Pod]) -> tuple[Intervals, Intervals]:
    """The indexes completed as stored, and with those of pods whose success is not stored yet (Y11)."""
    before = indexes.read(stored.completed_indexes, job.size)
    new = [pod for pod in leaving if pod.phase == "Succeeded" and job.has_index(pod.index)]
    return before, indexes.union(before, indexed.of_pods(new)) if new else before


def _index_facts(
    job: Job,
    stored: Stored,
    judge: Judge,
    done: tuple[Intervals, Intervals],
    *,
    active: Sequence[Pod],
    leaving: Sequence[Pod],
) -> IndexFacts:
    before, completed = done
    if job.backoff_limit_per_index is None:
        return IndexFacts(before, completed)
    failures = [pod for pod in leaving if job.has_index(pod.index) and judge.is_failed(pod)]
    new = [pod for pod in failures if _fails_index(pod, judge, job.backoff_limit_per_index)]
    failed = indexes.union(indexes.read(stored.failed_indexes or "", job.size), indexed.of_pods(new))
    # Completed wins: the API refuses an index in both texts (V27).
    failed = indexes.minus(failed, completed)
    held = indexed.held_back(failures, indexes.union(completed, failed), indexed.of_pods(active)) if failures else {}
    return IndexFacts(before, completed, failed, held)


def _fails_index(pod: Pod, judge: Judge, limit: int) -> bool:
    """L1."""
    match = judge.match(pod)
    return match.action == FAIL_INDEX or (match.is_counted and pod.index_failures >= limit)
