"""Histories of how sources end: for the judge's rules ``true-end``, ``lease`` and ``ended``."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from e2e.chaos.history import Json, Restored, Version
from e2e.chaos.planted.copies import RECREATE, RESCHEDULE, broken_from
from e2e.chaos.planted.writing import (
    BASE,
    COMPLETE,
    DRAINED,
    FAILED,
    LATE,
    LOST,
    Draft,
    deleted_after_all,
    going,
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
    wrote,
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


def lost_by_a_restore_with_the_one_before_deleted(draft: Draft) -> None:
    """D10, D11: a copy of an earlier source of its name is deleted by others; its own is gone by the restore."""
    old = runs_before(draft)
    draft.put(10, "management", source(uid="t"))
    draft.put(10.5, "management", source(on("east"), uid="t"))
    draft.put(12, "east", going(old))
    draft.add(wrote(12.5, "delete", "east"))
    draft.put(12.55, "east", None)
    draft.put(12.65, "east", mirror(uid="n", of="t"))
    draft.put(13, "management", source(on("east"), mirrored("n"), uid="t", startTime="t"))
    broken_from(draft, 8, 22, "etcd loses data", "east")
    draft.add(Restored(BASE + 16, "east", BASE + 8))
    draft.put(17, "east", old)
    draft.put(24, "management", source(on("east"), mirrored("n"), LOST, uid="t", startTime="t"))
    draft.delete(25, "east")
    draft.put(95, "management", None)


def end_that_a_restore_forgets(draft: Draft) -> None:
    """A manager had seen and stored it just before; no watch has told of it."""
    runs_on_east(draft)
    draft.add(Restored(BASE + 40.4, "east", BASE + 30))
    draft.put(40.2, "management", source(on("east"), mirrored("m"), COMPLETE))
    deleted_after_all(draft, "east")


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


def lost_though_its_successor_runs(draft: Draft) -> None:
    """D11: what has vanished is the one before the one that is recorded."""
    draft.put(1, "management", source())
    draft.put(2, "management", source(on("east")))
    draft.put(2.1, "east", mirror(uid="m"))
    draft.put(2.5, "east", None)
    draft.put(3, "east", mirror(uid="n"))
    draft.put(4, "management", source(on("east"), mirrored("n"), startTime="t"))
    draft.put(20, "management", source(on("east"), mirrored("n"), LOST, startTime="t"))
    deleted_after_all(draft, "east")


def end_that_a_restore_did_not_forget(draft: Draft) -> None:
    """That was half a minute before."""
    end_that_a_restore_forgets(draft)
    draft.records = [one for one in draft.records if not isinstance(one, Restored)]
    draft.add(Restored(BASE + 10.4, "east", BASE + 9))


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


def lost_since_its_drain_is_cancelled(draft: Draft) -> None:
    """D15: its copy had stopped, was said to go and deleted by a manager: it is made again. Seen in a campaign."""
    runs_on_east(draft)
    draft.put(15, "east", mirror(uid="m", suspend=True, succeeded=1))
    draft.put(16, "management", source(on("east"), mirrored("m"), DRAINED, succeeded=1))
    draft.delete(17, "east")
    draft.put(18, "management", source(on("east"), mirrored("m"), DRAINED, LOST, succeeded=1))
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


def runs_before(draft: Draft) -> Json:
    """Another source of this name runs on east, as copy ``m``, and is deleted."""
    runs_on_east(draft)
    draft.put(9.5, "management", None)
    return mirror(uid="m")


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


GOOD: tuple[Callable[[Draft], None], ...] = (
    lost_by_a_restore,
    lost_by_a_restore_with_the_one_before_deleted,
    end_that_a_restore_forgets,
)
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
    complete_as_a_copy_that_nobody_names: {"true-end", "named"},
    lost_though_it_is_there: {"true-end"},
    lost_since_a_loser_went: {"true-end"},
    lost_though_its_successor_runs: {"true-end"},
    end_that_a_restore_did_not_forget: {"true-end"},
    lost_on_a_worker_that_was_restored: {"true-end"},
    lost_after_a_rightful_deletion: {"true-end"},
    lost_since_its_drain_is_cancelled: {"true-end"},
    lease_as_verdict: {"lease"},
    never_ends: {"ended"},
    broken_off: {"ended"},
}
PLANTED_OF_JOBS: dict[Callable[[Draft], None], set[str]] = {lease_as_a_later_deadline: {"lease"}}
