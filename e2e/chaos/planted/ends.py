"""Histories of how sources end: for the judge's rules ``true-end``, ``lease`` and ``ended``."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from e2e.chaos.history import Json, Restored, Version
from e2e.chaos.planted.copies import RECREATE, RESCHEDULE
from e2e.chaos.planted.writing import (
    BASE,
    COMPLETE,
    FAILED,
    LATE,
    LOST,
    Draft,
    deleted_after_all,
    good_life,
    mirror,
    mirrored,
    move,
    on,
    phase,
    runs_on_east,
    source,
    specified,
    true,
)
from mirror.model import names

LEFT_ON_EAST = move("1, from east to west; left behind: east (uid m)")


# -- good --------------------------------------------------------------------------------------------------------------


def lost_by_a_restore(draft: Draft) -> None:
    """D11: its copy was made since the snapshot, and is gone with it."""
    draft.add(Restored(BASE + 8, "east", BASE + 1.5))
    runs_on_east(draft)
    draft.put(9, "east", None)
    draft.put(11, "management", source(on("east"), mirrored("m"), LOST))
    draft.put(95, "management", None)


def ended_as_its_controller_had_decided(draft: Draft) -> None:
    """D11: its copy vanished before it had ended, when it was known how it would."""
    runs_on_east(draft)
    draft.put(10, "east", mirror(true("FailureTarget", "BackoffLimitExceeded"), uid="m"))
    draft.put(12, "east", None)
    draft.put(13, "management", source(on("east"), mirrored("m"), FAILED))
    draft.put(95, "management", None)


def deadline_of_its_own(draft: Draft) -> None:
    """D14: its user gave it a deadline, which it did not meet."""
    ended_by_a_deadline(draft, of=38)


def deadline_in_place_of_a_lease(draft: Draft) -> None:
    """D14: its copy has a lease, which is no longer than its user's deadline."""
    deadline_of_its_own(draft)
    for number, one in enumerate(draft.records):
        if isinstance(one, Version) and one.cluster == "east" and one.body is not None:
            body = specified(one.body, activeDeadlineSeconds=38)
            body["metadata"]["annotations"] |= {names.FENCE: "true"}
            draft.records[number] = replace(one, body=body)


# -- planted -----------------------------------------------------------------------------------------------------------


def end_that_no_copy_had(draft: Draft) -> None:
    """Its copy still runs."""
    good_life(draft)
    draft.records = [one for one in draft.records if one.at != BASE + 40]
    draft.put(40, "east", mirror(uid="m", succeeded=1))


def end_for_another_reason(draft: Draft) -> None:
    """Its copy has failed, too, but not for this."""
    runs_on_east(draft)
    draft.put(40, "east", mirror(FAILED, uid="m"))
    draft.put(40.1, "management", source(on("east"), mirrored("m"), true("Failed", "PodFailurePolicy")))
    deleted_after_all(draft, "east")


def failed_as_the_copy_left_behind(draft: Draft) -> None:
    """D14: that has failed on the lost worker, and counts for nothing: another one runs."""
    moved_and_running(draft)
    draft.put(30, "east", mirror(FAILED, uid="m"))
    draft.put(30.1, "management", source(on("west"), LEFT_ON_EAST, FAILED, annotations=RESCHEDULE))
    draft.delete(40, "east")
    deleted_after_all(draft, "west")


def failed_as_an_earlier_copy_on_the_same_worker(draft: Draft) -> None:
    """D14: the name of the worker is not enough, where the source has come back to it."""
    back = move("2, from west to east; left behind: east (uid m), west (uid n)")
    moved_and_running(draft)
    draft.put(26, "management", source(on("east"), back, annotations=RESCHEDULE))
    draft.put(28, "east", mirror(FAILED, uid="m"))
    draft.put(28.1, "management", source(on("east"), back, FAILED, annotations=RESCHEDULE))
    draft.delete(30, "west")
    deleted_after_all(draft, "east")


def complete_as_a_copy_that_nobody_names(draft: Draft) -> None:
    """D14: only one that the source says it has left behind may win."""
    said = move("1, from east to west")
    moved_and_running(draft)
    draft.put(28, "management", source(on("west"), said, annotations=RESCHEDULE))
    draft.put(30, "east", mirror(COMPLETE, uid="m"))
    draft.put(30.1, "management", source(on("west"), said, COMPLETE, annotations=RESCHEDULE))
    draft.delete(40, "east")
    deleted_after_all(draft, "west")


def lost_though_it_is_there(draft: Draft) -> None:
    """Its copy runs."""
    runs_on_east(draft)
    draft.put(4, "management", source(on("east"), mirrored("m"), LOST))
    deleted_after_all(draft, "east")


def lost_since_a_loser_went(draft: Draft) -> None:
    """D11: what has vanished is not the copy that counts, which runs."""
    moved_and_running(draft)
    draft.put(40, "east", None)
    draft.put(41, "management", source(on("west"), LEFT_ON_EAST, LOST, annotations=RESCHEDULE))
    deleted_after_all(draft, "west")


def lost_on_a_worker_that_was_restored(draft: Draft) -> None:
    """D11: the restore had kept its copy, which was older than the snapshot."""
    draft.add(Restored(BASE + 20, "east", BASE + 15))
    runs_on_east(draft)
    draft.put(22, "management", source(on("east"), mirrored("m"), LOST))
    deleted_after_all(draft, "east")


def lost_after_a_rightful_deletion(draft: Draft) -> None:
    """D11: what a manager has deleted has not vanished, even where that was right."""
    runs_on_east(draft, annotations=RECREATE)
    draft.put(5, "management", source(on("east"), mirrored("x"), annotations=RECREATE))
    draft.delete(10, "east")
    draft.put(12, "management", source(on("east"), mirrored("x"), LOST, annotations=RECREATE))
    draft.put(95, "management", None)


def lease_as_verdict(draft: Draft) -> None:
    """Its copy has ended by a deadline that is not its user's."""
    runs_on_east(draft)
    draft.put(9, "east", mirror(LATE, uid="m"))
    draft.put(9.1, "management", source(on("east"), mirrored("m"), LATE))
    deleted_after_all(draft, "east")


def lease_as_a_later_deadline(draft: Draft) -> None:
    """Its user's deadline would have come ten seconds later."""
    ended_by_a_deadline(draft, of=48)


def never_ends(draft: Draft) -> None:
    """All is healed, and it goes on."""
    runs_on_east(draft)
    deleted_after_all(draft, "east")


def broken_off(draft: Draft) -> None:
    """A campaign that did not come to its end has shown nothing."""
    runs_on_east(draft)
    draft.add(phase(80, "healed"))


# -- parts -------------------------------------------------------------------------------------------------------------


def moved_and_running(draft: Draft) -> None:
    """It was moved from east to west as its user wants it, and runs on both."""
    runs_on_east(draft, annotations=RESCHEDULE)
    draft.put(20, "management", source(on("west"), LEFT_ON_EAST, annotations=RESCHEDULE))
    draft.put(20.1, "west", mirror(uid="n"))


def ended_by_a_deadline(draft: Draft, *, of: int) -> None:
    """Its copy has run for 38 s when a deadline ends it; its user wants this one."""
    late: Json = {**LATE, "lastTransitionTime": "1970-01-12T13:47:20Z"}
    runs_on_east(draft)
    draft.put(40, "east", mirror(late, uid="m", startTime="1970-01-12T13:46:42Z"))
    draft.put(40.1, "management", specified(source(on("east"), mirrored("m"), late), activeDeadlineSeconds=of))
    deleted_after_all(draft, "east")


GOOD: tuple[Callable[[Draft], None], ...] = (lost_by_a_restore,)
GOOD_OF_JOBS: tuple[Callable[[Draft], None], ...] = (
    ended_as_its_controller_had_decided,
    deadline_of_its_own,
    deadline_in_place_of_a_lease,
)
PLANTED: dict[Callable[[Draft], None], set[str]] = {
    end_that_no_copy_had: {"true-end"},
    end_for_another_reason: {"true-end"},
    failed_as_the_copy_left_behind: {"true-end"},
    failed_as_an_earlier_copy_on_the_same_worker: {"true-end"},
    complete_as_a_copy_that_nobody_names: {"true-end"},
    lost_though_it_is_there: {"true-end"},
    lost_since_a_loser_went: {"true-end"},
    lost_on_a_worker_that_was_restored: {"true-end"},
    lost_after_a_rightful_deletion: {"true-end"},
    lease_as_verdict: {"lease"},
    never_ends: {"ended"},
    broken_off: {"ended"},
}
PLANTED_OF_JOBS: dict[Callable[[Draft], None], set[str]] = {lease_as_a_later_deadline: {"lease"}}
