"""What must be true of pods: those of two copies of one source do not run at the same time. Pure.

A copy that is suspended, has ended or is gone may have some that run on, which no status tells of. Not here: what
copies say of themselves (``rules_mirrors``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from e2e.chaos.breaches import Breach, Verdicts
from e2e.chaos.lives import Life, PodLife
from e2e.chaos.rules_mirrors import may_both_run
from e2e.chaos.story import LATE_SECONDS, Story


def pods_of_one_copy(story: Story) -> Verdicts:
    """D2, D11, D14, D15: no pod of a copy runs beside one of another copy, but where both copies may run."""
    for owner, mirrors in story.mirrors.items():
        source = story.sources.get(owner)
        # An object that a restored cluster has again has several lives, and its pods once.
        copies = {(one.cluster, one.uid): one for one in mirrors if (one.cluster, one.uid) in story.pods}
        for first, second in combinations(copies.values(), 2):
            yield _overlap(story, source, first, second)


def _overlap(story: Story, source: Life | None, first: Life, second: Life) -> Breach | None:
    for pod, a, b in _runs(story, first):
        for other, c, d in _runs(story, second):
            until = min(story.stored_since(pod.cluster, b), story.stored_since(other.cluster, d))
            is_long = until - max(a, c) > LATE_SECONDS
            if not is_long or _came_back(story, first, pod, a) or _came_back(story, second, other, c):
                continue
            if source is None or not may_both_run(story, source, (first, a), (second, c)):
                where = f"{pod.key} on {pod.cluster} and {other.key} on {other.cluster}"
                return Breach("pods", max(a, c), f"{second}: pods {where} both run for {until - max(a, c):.1f} s")
    return None


def _runs(story: Story, copy: Life) -> Iterator[tuple[PodLife, float, float]]:
    return ((pod, *run) for pod in story.pods[copy.cluster, copy.uid] for run in pod.runs())


def _came_back(story: Story, copy: Life, pod: PodLife, at: float) -> bool:
    """Whether a pod runs from this time on because a restored cluster has forgotten that it had stopped."""
    same = (one for one in story.pods[copy.cluster, copy.uid] if one.uid == pod.uid)
    return any(story.was_undone(copy.cluster, ended, at) for one in same for _, ended in one.runs() if ended <= at)
