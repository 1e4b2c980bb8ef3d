"""Histories of the pods of copies: for what the judge says in ``rules_pods``."""

from __future__ import annotations

from collections.abc import Callable

from e2e.chaos.history import Json, Restored
from e2e.chaos.lives import COPY_UID, PODS
from e2e.chaos.planted.copies import (
    RESCHEDULE,
    drained_to_west,
    recreated_as_its_user_wants,
    suspension_that_a_restore_forgets,
)
from e2e.chaos.planted.writing import BASE, Draft, moved

# -- good --------------------------------------------------------------------------------------------------------------


def pods_of_both_under_reschedule(draft: Draft) -> None:
    """D14: the source counts the copy that may still run."""
    moved(draft, annotations=RESCHEDULE)
    runs(draft, "east", "m", 5, 40.2)
    runs(draft, "west", "n", 21, 50)


def pods_that_have_ended_before_the_next_copy(draft: Draft) -> None:
    """D15: the last one was seen to end; that they are there on is nothing."""
    drained_to_west(draft)
    runs(draft, "east", "m", 5, 16)
    runs(draft, "east", "m", 6, 16.5, name="second", goes_at=30)
    runs(draft, "west", "n", 22, 50)


def pod_that_never_had_a_node(draft: Draft) -> None:
    """Nothing runs it, however long it is there."""
    drained_to_west(draft)
    draft.put(5, "east", pod("m", node=""), key="chaos/train-m", resource=PODS)
    draft.put(80, "east", None, key="chaos/train-m", resource=PODS)
    runs(draft, "west", "n", 22, 50)


def pods_of_a_restored_worker(draft: Draft) -> None:
    """One runs again that had ended, until a manager sees its copy."""
    suspension_that_a_restore_forgets(draft)
    runs(draft, "east", "m", 5, 16)
    draft.put(26, "east", pod("m"), key="chaos/train-m", resource=PODS)
    draft.put(38.5, "east", None, key="chaos/train-m", resource=PODS)
    runs(draft, "west", "n", 22, 50)


def pod_whose_end_a_restore_forgets(draft: Draft) -> None:
    """Its copy was gone before and after."""
    drained_to_west(draft)
    draft.add(Restored(BASE + 24, "east", BASE + 14))
    runs(draft, "east", "m", 5, 16, goes_at=18)
    draft.put(26, "east", pod("m"), key="chaos/train-m", resource=PODS)
    draft.put(38.5, "east", None, key="chaos/train-m", resource=PODS)
    runs(draft, "west", "n", 22, 50)


# -- planted -----------------------------------------------------------------------------------------------------------


def drained_before_its_pods_had_ended(draft: Draft) -> None:
    """D15: the copy says that it has stopped, and a pod is still being deleted."""
    drained_to_west(draft)
    runs(draft, "east", "m", 5, 30)
    runs(draft, "west", "n", 22, 50)


def orphans_of_a_copy_that_starts_over(draft: Draft) -> None:
    """D11: whoever deleted the copy has left its pods."""
    recreated_as_its_user_wants(draft)
    runs(draft, "east", "m", 4, 8.8)
    runs(draft, "east", "n", 6.2, 8.9)


def pods_of_a_restored_worker_long_after(draft: Draft) -> None:
    """A restore is no excuse for what had run on before it."""
    drained_to_west(draft)
    draft.add(Restored(BASE + 45, "east", BASE + 40))
    runs(draft, "east", "m", 5, 60)
    runs(draft, "west", "n", 22, 50)


# -- parts -------------------------------------------------------------------------------------------------------------


def pod(of: str, *, node: str = "node", phase: str = "Running") -> Json:
    """Of the copy with this uid."""
    metadata = {"name": f"train-{of}", "namespace": "chaos", "uid": f"pod-{of}", "labels": {COPY_UID: of}}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}


def runs(
    draft: Draft, cluster: str, of: str, since: float, until: float, *, name: str = "", goes_at: float = 85
) -> None:
    """It has a node at one time, has succeeded at another, and is there on."""
    key = f"chaos/train-{name or of}"
    draft.put(since - 0.1, cluster, pod(of, node="", phase="Pending"), key=key, resource=PODS)
    draft.put(since, cluster, pod(of, phase="Pending"), key=key, resource=PODS)
    draft.put(since + 0.1, cluster, pod(of), key=key, resource=PODS)
    draft.put(until, cluster, pod(of, phase="Succeeded"), key=key, resource=PODS)
    draft.put(goes_at, cluster, None, key=key, resource=PODS)


GOOD_OF_JOBS: tuple[Callable[[Draft], None], ...] = (
    pods_of_both_under_reschedule,
    pods_that_have_ended_before_the_next_copy,
    pod_that_never_had_a_node,
    pods_of_a_restored_worker,
    pod_whose_end_a_restore_forgets,
)
PLANTED_OF_JOBS: dict[Callable[[Draft], None], set[str]] = {
    drained_before_its_pods_had_ended: {"pods"},
    orphans_of_a_copy_that_starts_over: {"pods"},
    pods_of_a_restored_worker_long_after: {"pods", "runs-on"},
}
