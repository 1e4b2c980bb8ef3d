"""Histories of copies that were left on a lost worker, and run on there: for ``rules_mirrors`` and ``rules_calm``."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from e2e.chaos.history import BreachTold, ClockSet, Json, Request, Version
from e2e.chaos.planted.copies import FENCE, RESCHEDULE, broken_from, suspension_that_a_restore_forgets
from e2e.chaos.planted.pods import runs
from e2e.chaos.planted.writing import (
    BASE,
    Draft,
    ends_on,
    mirror,
    mirrored,
    move,
    moved,
    on,
    registered,
    runs_on_east,
    said_between,
    source,
    specified,
    stamp,
)
from mirror.model import names

# -- good --------------------------------------------------------------------------------------------------------------


def fence_that_its_worker_could_not_keep(draft: Draft) -> None:
    """D14: a lease needs the worker's controller manager; without it, that is where a fence ends."""
    broken_from(draft, 5, 35, "freeze kube-controller-manager", "east")
    moved_by_its_lease(draft)


def loser_goes_on_while_its_worker_is_broken(draft: Draft) -> None:
    """D14: its worker is back and broken again, and nobody leads for a while."""
    for since, target in ((10, "way to east"), (40, "east"), (62, "manager-0")):
        broken_from(draft, since, since + 15, "freeze kube-apiserver", target)
    draft.add(ClockSet(BASE, "manager-0", 0.0))
    moved(draft, annotations=RESCHEDULE, removes=88)


def copy_goes_on_while_its_source_is_suspended_and_its_worker_lost(draft: Draft) -> None:
    """D3: nobody can stop it before."""
    broken_from(draft, 9, 60, "stall", "way to east")
    suspended_until(draft, 63)


def loser_whose_resume_was_held_up(draft: Draft) -> None:
    """D14: that was sent before its worker was lost, and comes when it is back."""
    broken_from(draft, 8, 34, "stall", "way to east")
    moved(draft, annotations=RESCHEDULE, removes=45)
    draft.put(5, "east", mirror(uid="m", suspend=True))
    draft.put(34.5, "east", mirror(uid="m"))


def breach_that_is_told(draft: Draft) -> None:
    """D14: an operator was wrong, and knows it now."""
    breached(draft)
    draft.add(BreachTold(BASE + 39, "manager-0", "east", "m"))


def left_copy_that_had_not_started(draft: Draft) -> None:
    """D14: nothing of it ran."""
    breached(draft)
    for one in draft.records:
        if isinstance(one, Version) and one.cluster == "east" and one.body is not None:
            one.body["status"].pop("startTime", None)


# -- planted -----------------------------------------------------------------------------------------------------------


def overlap_under_a_fence(draft: Draft) -> None:
    """The lease was over, and nothing kept the worker from ending the copy."""
    moved_by_its_lease(draft)


def overlap_under_a_fence_with_a_fault_elsewhere(draft: Draft) -> None:
    """What was broken was another worker's."""
    broken_from(draft, 5, 35, "freeze kube-controller-manager", "west")
    moved_by_its_lease(draft)


def overlap_under_a_fence_without_a_scheduler(draft: Draft) -> None:
    """No lease needs a scheduler."""
    broken_from(draft, 5, 35, "kill kube-scheduler", "east")
    moved_by_its_lease(draft)


def overlap_under_a_fence_that_nothing_kept(draft: Draft) -> None:
    """What would have ended the copy was broken, and whole again long before its lease was over."""
    broken_from(draft, -100, -50, "freeze kube-controller-manager", "east")
    moved_by_its_lease(draft)


def overlap_that_was_promised_not_to_be(draft: Draft) -> None:
    """D14: it was moved by its lease; that its Namespace had said something else just before is no excuse."""
    moved(draft, promise=", fenced")
    for at, policy in ((0.5, "Reschedule"), (12, "Fence")):
        says(draft, at, policy)


def loser_is_resumed(draft: Draft) -> None:
    """D14: it was suspended when its worker was back, and runs again beside the one that counts."""
    moved(draft, annotations=RESCHEDULE, removes=45)
    draft.put(30, "east", mirror(uid="m", suspend=True))
    draft.put(35, "east", mirror(uid="m"))


def revived_once_more(draft: Draft) -> None:
    """What a restore had forgotten was put right; that it is resumed then is no matter of the restore."""
    suspension_that_a_restore_forgets(draft)
    draft.records = [one for one in draft.records if one.at < BASE + 37]
    draft.put(29, "east", mirror(uid="m", suspend=True))
    draft.put(40, "east", mirror(uid="m"))
    draft.delete(48, "east")
    said = move("1, from east to west; left behind: east (uid m)")
    ends_on(draft, "west", "n", said, at=50)


def loser_runs_on_for_long(draft: Draft) -> None:
    """D14: its worker is back at 22, and it is deleted more than a minute later."""
    broken_from(draft, 10, 22, "refuse", "way to east")
    moved(draft, annotations=RESCHEDULE, removes=88)


def loser_is_named_no_more(draft: Draft) -> None:
    """D14: it is there, and whoever reads the source knows nothing of it."""
    moved(draft, annotations=RESCHEDULE)
    draft.put(25, "management", source(on("west"), mirrored("n"), move("1, from east to west"), annotations=RESCHEDULE))
    for body in said_between(draft, 50, 90):
        body["status"]["conditions"][2] = move("1, from east to west")


def breach_that_nobody_tells(draft: Draft) -> None:
    """D14: it is deleted as if it had not run."""
    breached(draft)


def breach_that_is_told_of_another_copy(draft: Draft) -> None:
    """D14: on another worker."""
    breached(draft)
    draft.add(BreachTold(BASE + 39, "manager-0", "west", "m"))


def breach_that_nobody_tells_where_losers_stay(draft: Draft) -> None:
    """D14: it is suspended."""
    breached(draft)
    draft.settings(suspends_losers=True)
    draft.records = [one for one in draft.records if not (isinstance(one, Request) and one.at < BASE + 60)]
    draft.records = [one for one in draft.records if one.at != BASE + 40.1]
    draft.put(40.1, "east", mirror(uid="m", suspend=True))
    draft.delete(97, "east")


def suspended_source_runs_on(draft: Draft) -> None:
    """D3: nobody stops its copy."""
    suspended_until(draft, 55)


def pods_outlive_what_was_deleted(draft: Draft) -> None:
    """D10: whoever deletes a copy has its pods deleted with it."""
    runs_on_east(draft)
    runs(draft, "east", "m", 5, 80)
    draft.put(40, "management", None)
    draft.delete(40.2, "east")


# -- parts -------------------------------------------------------------------------------------------------------------


def breached(draft: Draft) -> None:
    """East is declared dead, and the copy there runs on until a manager deletes it."""
    dead = registered(**{names.GONE: "true"})
    draft.put(18, "management", dead, key="jobmirror-x/east", resource="secrets")
    moved(draft, promise=", gone")
    draft.settings(tells_breaches=True)
    for one in draft.records:
        if isinstance(one, Version) and one.cluster == "east" and one.body is not None:
            one.body["status"]["startTime"] = "t"


def suspended_until(draft: Draft, at: float) -> None:
    """Its user suspends it after ten seconds, its copy stops at this time, and it is resumed and ends."""
    runs_on_east(draft)
    draft.put(10, "management", specified(source(on("east"), mirrored("m")), suspend=True))
    draft.put(at, "east", mirror(uid="m", suspend=True))
    draft.put(70, "management", source(on("east"), mirrored("m")))
    draft.put(71, "east", mirror(uid="m"))
    ends_on(draft, "east", "m", at=80)


def says(draft: Draft, at: float, policy: str) -> None:
    """The Namespace of the source has a policy."""
    namespace = {"metadata": {"uid": "n", "annotations": {names.ON_WORKER_LOSS: policy}}}
    draft.put(at, "management", namespace, key="namespaces/team-a", resource="namespaces")


def moved_by_its_lease(draft: Draft, *, started: float | None = -290, ended: Json | None = None) -> None:
    """It has left east as fenced, where its copy has a lease of 300 s, and has ended so after five, or runs on."""
    moved(draft, annotations=FENCE, promise=", fenced")
    since: Json = {} if started is None else {"startTime": stamp(started)}
    for number, one in enumerate(draft.records):
        if isinstance(one, Version) and one.cluster == "east" and one.body is not None:
            body = mirror(uid="m", annotations={names.FENCE: "300"}, **since)
            draft.records[number] = replace(one, body=specified(body, activeDeadlineSeconds=300))
    if ended is not None:
        draft.put(5, "east", mirror(ended, uid="m", **since))


GOOD: tuple[Callable[[Draft], None], ...] = (
    loser_goes_on_while_its_worker_is_broken,
    copy_goes_on_while_its_source_is_suspended_and_its_worker_lost,
    loser_whose_resume_was_held_up,
    breach_that_is_told,
    left_copy_that_had_not_started,
)
GOOD_OF_JOBS: tuple[Callable[[Draft], None], ...] = (fence_that_its_worker_could_not_keep,)
PLANTED_OF_JOBS: dict[Callable[[Draft], None], set[str]] = {pods_outlive_what_was_deleted: {"runs-on"}}
PLANTED: dict[Callable[[Draft], None], set[str]] = {
    overlap_under_a_fence: {"one-copy"},
    overlap_under_a_fence_with_a_fault_elsewhere: {"one-copy"},
    overlap_under_a_fence_without_a_scheduler: {"one-copy"},
    overlap_under_a_fence_that_nothing_kept: {"one-copy"},
    overlap_that_was_promised_not_to_be: {"one-copy"},
    loser_is_resumed: {"one-copy"},
    revived_once_more: {"one-copy"},
    loser_runs_on_for_long: {"runs-on"},
    loser_is_named_no_more: {"named"},
    breach_that_nobody_tells: {"breach-told"},
    breach_that_is_told_of_another_copy: {"breach-told"},
    breach_that_nobody_tells_where_losers_stay: {"breach-told"},
    suspended_source_runs_on: {"runs-on"},
}
