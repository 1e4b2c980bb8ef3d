"""Indexed Jobs by interval arithmetic (A3, A7, L1, L5, L7): the cost follows pods and intervals, never completions."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime

from mirror.batch import indexes
from mirror.batch.indexes import Intervals
from mirror.jobcontroller.decide import backoff, deletion_order
from mirror.jobcontroller.decide.values import Pod, PodCreate


def has(intervals: Intervals, index: int) -> bool:
    """Whether the index is in one of the intervals."""
    at = bisect_right(intervals, (index, sys.maxsize))
    return at > 0 and intervals[at - 1][1] >= index


def of(found: Iterable[int]) -> Intervals:
    """These indexes as intervals."""
    return indexes.union((), tuple((index, index) for index in found))


def of_pods(pods: Iterable[Pod]) -> Intervals:
    """The indexes that pods have."""
    return of(pod.index for pod in pods if pod.index is not None)


def lowest_missing(taken: Intervals, completions: int, count: int) -> list[int]:
    """The lowest indexes that are not taken, at most ``count`` of them (A7)."""
    found: list[int] = []
    candidate = 0
    for first, last in taken:
        if len(found) >= count:
            break
        found.extend(range(candidate, min(first, completions, candidate + count - len(found))))
        candidate = last + 1
    found.extend(range(candidate, min(completions, candidate + count - len(found))))
    return found


def superfluous(active: Sequence[Pod], completions: int) -> tuple[list[Pod], list[Pod]]:
    """Pods without an index of the Job and all but the best of each index; and those that are left (A3)."""
    gone: list[Pod] = []
    by_index: dict[int, list[Pod]] = {}
    for pod in active:
        if pod.index is None or not 0 <= pod.index < completions:
            gone.append(pod)
        else:
            by_index.setdefault(pod.index, []).append(pod)
    left: list[Pod] = []
    for same in by_index.values():
        *worse, best = deletion_order.in_order(same) if len(same) > 1 else same
        gone.extend(worse)
        left.append(best)
    return gone, left


def held_back(failed: Iterable[Pod], done: Intervals, active: Intervals) -> dict[int, Pod]:
    """By index that is to run again: the failed pod that carries its counters until the replacement is there (L5)."""
    held: dict[int, Pod] = {}
    for pod in failed:
        index = pod.index
        if index is None or has(done, index) or has(active, index):
            continue
        other = held.get(index)
        if other is None or _carried(pod) >= _carried(other):
            held[index] = pod
    return held


def birth(index: int, replaced: Pod | None, *, is_counted: bool) -> PodCreate:
    """A pod of an index that has its own backoff limit; it carries on the counters of the one that it replaces (L7)."""
    if replaced is None:
        return PodCreate(index, 0)
    failures = replaced.index_failures + (1 if is_counted else 0)
    ignored = replaced.index_ignored_failures + (0 if is_counted else 1)
    return PodCreate(index, failures, ignored or None)


def _carried(pod: Pod) -> tuple[int, datetime]:
    return pod.index_failures + pod.index_ignored_failures, backoff.finish_time(pod)
