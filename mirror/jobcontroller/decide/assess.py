"""The first step of a sync (Y7–Y16): whether the Job ends, which pods go, which are to be made.

Called by the shell, which performs the answer and hands what became of it to ``track``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mirror.batch import indexes
from mirror.jobcontroller.decide import backoff, deletion_order, indexed
from mirror.jobcontroller.decide.ending import (
    comes_after_deadline,
    decide_ending,
    is_by_completions,
    seconds_to_deadline,
)
from mirror.jobcontroller.decide.facts import Facts, gather
from mirror.jobcontroller.decide.values import Action, Assessment, Enacted, Ending, Pod, PodCreate, Snapshot


def assess(snapshot: Snapshot) -> Assessment:
    """What to do with pods now."""
    facts, ending = _look(snapshot)
    again = seconds_to_deadline(snapshot, facts)
    if ending is not None:
        # Pods that are not seen yet would keep their finalizers for ever, so ``track`` may yet drop this (Y15, Q3).
        return Assessment(
            ending,
            deletes=tuple(facts.active),
            again_after_seconds=again if comes_after_deadline(ending) else None,
            enacted=_enacted(ending, facts),
            facts=facts,
        )
    if not snapshot.expectations_met or snapshot.is_deleting:
        return Assessment(None, again_after_seconds=again, facts=facts)
    if facts.job.is_suspended:
        return _suspend(facts, again)
    return _keep_number(snapshot, facts, again)


def _look(snapshot: Snapshot) -> tuple[Facts, Ending | None]:
    """What is seen, and whether the Job ends, first without what our own deletions did, then with it.

    A verdict deletes the active pods before it is stored. If that is interrupted, they must not be taken for failures:
    they would turn the verdict into another one, or fail their indexes. Completions that were reached deleted nobody.
    """
    spared = _maybe_ours(snapshot.pods) if snapshot.enacted is None else snapshot.enacted.uids
    if spared:
        facts = gather(snapshot, spared=spared)
        ending = decide_ending(snapshot, facts)
        if ending is not None and not is_by_completions(ending):
            return facts, ending
    facts = gather(snapshot)
    return facts, decide_ending(snapshot, facts)


def _maybe_ours(pods: Sequence[Pod]) -> frozenset[str]:
    """Pods that whoever ran before us may have deleted for a verdict; drains, preemptions and the like can be told.

    What a person has deleted cannot. Nor do times tell who had failed before: a kubelet that is done with a pod, like
    whoever deletes one that has ended, sets the time to now.
    """
    return frozenset(pod.uid for pod in pods if pod.deleted is not None and not _is_disrupted(pod))


def _is_disrupted(pod: Pod) -> bool:
    return any(one.type == "DisruptionTarget" and one.status == "True" for one in pod.conditions)


def _enacted(ending: Ending, facts: Facts) -> Enacted:
    """What is to be remembered of a verdict: that it stands, once it has cost pods, and which."""
    uids = facts.judge.spared.union(pod.uid for pod in facts.active)
    if not uids or is_by_completions(ending):
        return Enacted()
    return Enacted(None if ending.is_stored else ending, uids)


def _suspend(facts: Facts, again: float | None) -> Assessment:
    """Every active pod goes, without being counted (A1)."""
    return Assessment(
        None,
        deletes=tuple(facts.active),
        strips_first=True,
        again_after_seconds=again,
        action=Action.PODS_DELETED,
        manages=True,
        facts=facts,
    )


def _keep_number(snapshot: Snapshot, facts: Facts, again: float | None) -> Assessment:
    """One sync either deletes or creates; deleting goes first (A3, Q20)."""
    limit = snapshot.constants.max_pod_create_delete_per_sync
    wanted = _wanted(facts)
    surplus = _surplus(facts, wanted)
    if surplus:
        return Assessment(
            None,
            deletes=tuple(surplus[:limit]),
            strips_first=True,
            again_after_seconds=again,
            action=Action.PODS_DELETED,
            manages=True,
            facts=facts,
        )
    missing = wanted - len(facts.active) - (facts.terminating if facts.job.replaces_only_failed else 0)
    if missing <= 0:
        return Assessment(None, again_after_seconds=again, action=Action.TRACKING, manages=True, facts=facts)
    births = _births(snapshot, facts, min(missing, limit))
    if births.wait_seconds:
        wait = max(births.wait_seconds, snapshot.constants.batch_period_seconds)
        again = wait if again is None else min(wait, again)
    return Assessment(
        None,
        births=births.now,
        creation_reason=_creation_reason(snapshot, facts),
        again_after_seconds=again,
        action=Action.PODS_CREATED,
        manages=True,
        facts=facts,
    )


def _wanted(facts: Facts) -> int:
    """How many pods are to be active (A2): a work queue starts no more once one has succeeded."""
    job = facts.job
    if job.completions is None:
        return len(facts.active) if facts.succeeded else job.parallelism
    return max(0, min(job.parallelism, job.completions - facts.succeeded))


def _surplus(facts: Facts, wanted: int) -> list[Pod]:
    """Pods that are too many, and of an Indexed Job those that should not be there at all (A3)."""
    active = facts.active
    at_least = max(0, len(active) - wanted)
    gone, left = indexed.superfluous(active, facts.job.size) if facts.job.is_indexed else ([], active)
    if len(gone) < at_least:
        gone = [*gone, *deletion_order.in_order(left)[: at_least - len(gone)]]
    return gone


class _Births(NamedTuple):
    now: tuple[PodCreate, ...] = ()
    wait_seconds: float = 0.0
    """While nothing may be created."""


def _births(snapshot: Snapshot, facts: Facts, count: int) -> _Births:
    if facts.indexes is not None and facts.indexes.failed is not None:
        return _births_by_index(snapshot, facts, count)
    wait = backoff.remaining_seconds(facts.backoff, snapshot.now, snapshot.constants)
    if wait > 0:
        return _Births(wait_seconds=wait)
    if facts.indexes is None:
        return _Births((PodCreate(),) * count)
    return _Births(tuple(map(PodCreate, _pending(snapshot, facts, count))))


def _births_by_index(snapshot: Snapshot, facts: Facts, count: int) -> _Births:
    """Of the lowest pending indexes those that are due; the others are looked at again when none is (L6)."""
    assert facts.indexes is not None
    held = facts.indexes.held
    now: list[PodCreate] = []
    waits: list[float] = []
    for index in _pending(snapshot, facts, count):
        replaced = held.get(index)
        wait = backoff.index_remaining_seconds(replaced, snapshot.now, snapshot.constants)
        if wait > 0:
            waits.append(wait)
            continue
        is_counted = replaced is not None and facts.judge.match(replaced).is_counted
        now.append(indexed.birth(index, replaced, is_counted=is_counted))
    return _Births(tuple(now), 0.0 if now else min(waits, default=0.0))


def _pending(snapshot: Snapshot, facts: Facts, count: int) -> list[int]:
    """The lowest indexes that have neither ended nor a pod that stands for them (A7)."""
    assert facts.indexes is not None
    taken = indexes.union(facts.indexes.completed, facts.indexes.failed or ())
    taken = indexes.union(taken, indexed.of_pods(facts.active))
    if facts.job.replaces_only_failed and facts.terminating:
        taken = indexes.union(taken, indexed.of_pods(pod for pod in snapshot.pods if pod.is_terminating))
    return indexed.lowest_missing(taken, facts.job.size, count)


def _creation_reason(snapshot: Snapshot, facts: Facts) -> str:
    """PM2."""
    if not snapshot.gates.job_pod_replacement_policy:
        return "new"
    if facts.job.replacement_policy == "Failed" and facts.failed:
        return "recreate_failed"
    return "recreate_terminating_or_failed" if facts.failed or facts.terminating else "new"
