"""Histories of what managers delete on workers, and of strangers: for ``rules_deletions`` and ``nothing_foreign``."""

from __future__ import annotations

from collections.abc import Callable

from e2e.chaos.history import Json, Restored, Version
from e2e.chaos.planted.copies import RECREATE, RESCHEDULE, drained_to_west, made_anew_after_its_lease
from e2e.chaos.planted.writing import (
    BASE,
    COMPLETE,
    FAILED,
    LOST,
    Draft,
    deleted_after_all,
    ends_on,
    going,
    good_life,
    mirror,
    mirrored,
    move,
    moved,
    on,
    runs_on_east,
    source,
    stranger,
    true,
    wrote,
)
from mirror.model import names

ENDED_AT = "1970-01-12T13:47:20Z"
"""40 s after the beginning of a history, where ``ended_with_a_time`` ends."""


# -- good --------------------------------------------------------------------------------------------------------------


def deleted_with_its_source(draft: Draft) -> None:
    """D10: its user deletes it while it runs; whoever waits for its dependants sees its copy go first."""
    runs_on_east(draft)
    draft.put(10, "management", going(source(on("east"), mirrored("m"))))
    draft.put(10.4, "east", going(mirror(uid="m")))
    draft.delete(10.3, "east")
    draft.put(20, "management", None)


def kept_for_its_retention(draft: Draft) -> None:
    """D8: its end is stored, and ten seconds have passed since."""
    draft.settings(retention_seconds=10)
    ended_with_a_time(draft)
    draft.delete(51, "east")


def left_copy_is_deleted_after_the_return(draft: Draft) -> None:
    """D14: the source names its uid; it had failed there, which counts for nothing."""
    moved(draft, annotations=RESCHEDULE)
    draft.put(35, "east", mirror(FAILED, uid="m"))


def left_copy_of_a_finished_source(draft: Draft) -> None:
    """D14: it is Complete, too, but its source has ended before it was seen."""
    moved(draft, annotations=RESCHEDULE, removes=60)
    draft.put(45, "east", mirror(COMPLETE, uid="m"))


def left_copy_wins(draft: Draft) -> None:
    """D14: it is Complete before the one that was made since, which goes."""
    said = move("1, from east to west; left behind: east (uid m)")
    won = move("1, from east to west; left behind: west (uid n)", "Moved")
    runs_on_east(draft, annotations=RESCHEDULE)
    draft.put(20, "management", source(on("west"), said, annotations=RESCHEDULE))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.put(24, "east", mirror(COMPLETE, uid="m"))
    draft.put(40, "management", source(on("east"), mirrored("m"), won, COMPLETE, annotations=RESCHEDULE))
    draft.delete(41, "west")
    deleted_after_all(draft, "east")


def left_copy_is_behind_an_elastic_source(draft: Draft) -> None:
    """D14: it is Complete, but has not heard that its source was scaled up since."""
    moved(draft, annotations=RESCHEDULE)
    for one in draft.records:
        if isinstance(one, Version) and one.body is not None:
            one.body["spec"]["completions"] = 2 if one.cluster == "east" else 4
    draft.put(38, "east", {**mirror(COMPLETE, uid="m"), "spec": {"completions": 2}})


def replaced_copy_of_a_failed_source(draft: Draft) -> None:
    """D11: its copy had vanished, so that it failed; something with its labels is there instead, and goes."""
    runs_on_east(draft, annotations=RECREATE)
    draft.put(10, "east", mirror(uid="o", suspend=True))
    draft.put(11, "management", source(on("east"), mirrored("m"), LOST, annotations=RECREATE))
    draft.delete(15, "east")
    draft.put(95, "management", None)


def replaced_copy_before_it_starts_over(draft: Draft) -> None:
    """D11: its user wants it to start over, and what replaced the copy that ran is in the way."""
    runs_on_east(draft, annotations=RECREATE)
    draft.put(10, "east", mirror(uid="o", suspend=True))
    draft.delete(12, "east")
    draft.put(13, "management", source(on("east"), move("1, from east to east"), annotations=RECREATE))
    draft.put(14, "east", mirror(uid="n"))
    ends_on(draft, "east", "n", move("1, from east to east"), at=40, annotations=RECREATE)


def retried_elsewhere(draft: Draft) -> None:
    """D31: no pod of it ever ran on east, where it has stopped."""
    tried = true(names.RETRYING, "NothingRan", "mirror m; not started at 1970-01-12T13:46:43Z")
    runs_on_east(draft)
    draft.put(15, "east", mirror(uid="m", suspend=True))
    draft.put(16, "management", source(on("east"), mirrored("m"), tried))
    draft.delete(17, "east")
    draft.put(22, "management", source())
    draft.put(23, "management", source(on("west")))
    draft.put(24, "west", mirror(uid="n"))
    ends_on(draft, "west", "n", at=50)


def handed_over(draft: Draft) -> None:
    """D20: somebody else is to run it from now on."""
    runs_on_east(draft)
    draft.put(10, "management", {**source(on("east"), mirrored("m")), "spec": {"managedBy": "example.com/other"}})
    draft.delete(11, "east")
    draft.put(80, "management", None)


def deleted_once_more_after_a_restore(draft: Draft) -> None:
    """D10: the worker has lost the deletion, so that its copy is back; its source is gone for long."""
    runs_on_east(draft)
    draft.put(10, "management", None)
    draft.delete(10.1, "east")
    draft.add(Restored(BASE + 20, "east", BASE + 5))
    draft.put(21, "east", mirror(uid="m"))
    draft.delete(30, "east")


# -- planted -----------------------------------------------------------------------------------------------------------


def deleted_while_it_runs(draft: Draft) -> None:
    """Its source wants it; what follows is as after a copy that has vanished."""
    runs_on_east(draft)
    draft.delete(10, "east")
    draft.put(90, "management", None)


def deletion_without_an_answer(draft: Draft) -> None:
    """The same, when the API server has run into a timeout and has done it all the same."""
    runs_on_east(draft)
    draft.delete(10, "east", code=504)
    draft.put(90, "management", None)


def deleted_by_its_manager_and_failed(draft: Draft) -> None:
    """It is no copy that has vanished by itself."""
    runs_on_east(draft)
    draft.delete(10, "east")
    draft.put(12, "management", source(on("east"), mirrored("m"), LOST))
    draft.put(95, "management", None)


def deleted_and_recreated(draft: Draft) -> None:
    """``Recreate`` is no reason to delete it."""
    runs_on_east(draft, annotations=RECREATE)
    draft.delete(10, "east")
    draft.put(12, "east", mirror(uid="n"))
    ends_on(draft, "east", "n", at=40, annotations=RECREATE)


def deleted_and_made_anew_after_a_restore(draft: Draft) -> None:
    """Its creation came after the snapshot was begun, and was not lost: a manager deleted it."""
    draft.add(Restored(BASE + 8, "east", BASE + 1.5))
    runs_on_east(draft)
    draft.delete(15, "east")
    draft.put(16, "east", mirror(uid="n"))
    ends_on(draft, "east", "n", at=40)


def deleted_although_it_is_kept(draft: Draft) -> None:
    """D8: by these settings a copy is kept as long as its source."""
    ended_with_a_time(draft)
    draft.delete(51, "east")


def deleted_before_its_retention_is_over(draft: Draft) -> None:
    """D8: five seconds too early."""
    draft.settings(retention_seconds=16)
    ended_with_a_time(draft)
    draft.delete(51, "east")


def complete_copy_deleted_on_its_return(draft: Draft) -> None:
    """D14: it has won over the one that was made since, and is deleted as one that has lost."""
    moved(draft, annotations=RESCHEDULE)
    draft.put(38, "east", mirror(COMPLETE, uid="m"))


def deleted_before_it_was_moved(draft: Draft) -> None:
    """D14: what it leaves there is recorded before it is touched."""
    moved(draft, annotations=RESCHEDULE, removes=15)


def deleted_just_before_its_end_is_stored(draft: Draft) -> None:
    """D8: nothing is kept, and whoever is killed in between knows nothing of how it has ended."""
    draft.settings(retention_seconds=0)
    runs_on_east(draft)
    complete: Json = {**COMPLETE, "lastTransitionTime": ENDED_AT}
    draft.put(40, "east", mirror(complete, uid="m"))
    draft.delete(40.2, "east")
    draft.put(40.9, "management", source(on("east"), mirrored("m"), complete))
    draft.put(95, "management", None)


def deleted_just_before_its_move_is_recorded(draft: Draft) -> None:
    """D14: the same, of a move."""
    moved(draft, annotations=RESCHEDULE, removes=19.3)


def replacement_deleted_before_its_source_failed(draft: Draft) -> None:
    """D11: something else is where its copy was; without ``Recreate`` its source has to fail first."""
    runs_on_east(draft)
    draft.put(5, "management", source(on("east"), mirrored("m"), startTime="t"))
    draft.put(10, "east", mirror(uid="o", suspend=True))
    draft.delete(15, "east")
    draft.put(90, "management", None)


def drained_while_it_runs(draft: Draft) -> None:
    """D15: the source says that it has stopped, which is not so."""
    drained_to_west(draft)
    draft.records = [one for one in draft.records if one.at != BASE + 15]


def drained_while_its_pods_end(draft: Draft) -> None:
    """D15: it is suspended, and a pod is still there."""
    drained_to_west(draft)
    draft.put(15.5, "east", mirror(uid="m", suspend=True, terminating=1))


def drained_without_a_word(draft: Draft) -> None:
    """D15: it has stopped, and the source does not say that it goes: an absence would be a loss."""
    drained_to_west(draft)
    draft.records = [one for one in draft.records if one.at != BASE + 16]


def lease_of_another_copy(draft: Draft) -> None:
    """D14: what its lease has ended goes; the copy that was made after it stays."""
    made_anew_after_its_lease(draft)
    draft.records = [one for one in draft.records if one.at < BASE + 9]
    draft.delete(8, "east")
    draft.put(90, "management", None)


def deleted_where_it_came_back(draft: Draft) -> None:
    """That its worker had lost data is no reason to delete the copy that counts."""
    draft.add(Restored(BASE + 20, "east", BASE + 5))
    runs_on_east(draft)
    draft.put(15, "east", mirror(uid="m", suspend=True))
    draft.put(21, "east", mirror(uid="m"))
    draft.delete(30, "east")
    draft.put(90, "management", None)


def stranger_deleted(draft: Draft) -> None:
    """D1: it has the name of a source, and nothing else."""
    draft.put(1, "east", stranger())
    draft.delete(5, "east")


def made_without_saying_whose_it_is(draft: Draft) -> None:
    """D1: a copy without our labels, which nobody will ever find."""
    good_life(draft)
    draft.add(wrote(4.9, "create", "west"))
    draft.put(5, "west", stranger())


def all_deleted_at_once(draft: Draft) -> None:
    """D1: whatever is in a namespace, strangers as well."""
    good_life(draft)
    draft.add(wrote(10, "deletecollection", "west", key="team-a/"))


def unmanaged_written(draft: Draft) -> None:
    """D1: it does not name us."""
    draft.put(1, "management", stranger())
    draft.add(wrote(5, "update", "management"))


def source_deleted(draft: Draft) -> None:
    """D10: only its user deletes it."""
    good_life(draft)
    draft.add(wrote(94.9, "delete", "management"))


# -- parts -------------------------------------------------------------------------------------------------------------


def ended_with_a_time(draft: Draft) -> None:
    """It is Complete on east since ``ENDED_AT``."""
    complete: Json = {**COMPLETE, "lastTransitionTime": ENDED_AT}
    runs_on_east(draft)
    draft.put(40, "east", mirror(complete, uid="m"))
    draft.put(40.1, "management", source(on("east"), mirrored("m"), complete))
    draft.put(95, "management", None)


GOOD: tuple[Callable[[Draft], None], ...] = (
    deleted_with_its_source,
    kept_for_its_retention,
    left_copy_is_deleted_after_the_return,
    left_copy_of_a_finished_source,
    left_copy_wins,
    replaced_copy_of_a_failed_source,
    replaced_copy_before_it_starts_over,
    retried_elsewhere,
    handed_over,
    deleted_once_more_after_a_restore,
)
GOOD_OF_JOBS: tuple[Callable[[Draft], None], ...] = (left_copy_is_behind_an_elastic_source,)
PLANTED: dict[Callable[[Draft], None], set[str]] = {
    deleted_while_it_runs: {"deleted-rightly"},
    deletion_without_an_answer: {"deleted-rightly"},
    deleted_by_its_manager_and_failed: {"deleted-rightly", "true-end"},
    deleted_and_recreated: {"deleted-rightly", "second-copy"},
    deleted_and_made_anew_after_a_restore: {"deleted-rightly", "second-copy"},
    deleted_although_it_is_kept: {"deleted-rightly"},
    deleted_before_its_retention_is_over: {"deleted-rightly"},
    complete_copy_deleted_on_its_return: {"deleted-rightly"},
    deleted_before_it_was_moved: {"deleted-rightly"},
    deleted_just_before_its_end_is_stored: {"deleted-rightly"},
    deleted_just_before_its_move_is_recorded: {"deleted-rightly"},
    replacement_deleted_before_its_source_failed: {"deleted-rightly", "second-copy"},
    drained_while_it_runs: {"deleted-rightly"},
    drained_while_its_pods_end: {"deleted-rightly"},
    drained_without_a_word: {"deleted-rightly"},
    lease_of_another_copy: {"deleted-rightly"},
    deleted_where_it_came_back: {"deleted-rightly"},
    stranger_deleted: {"foreign"},
    unmanaged_written: {"foreign"},
    made_without_saying_whose_it_is: {"foreign"},
    all_deleted_at_once: {"foreign"},
    source_deleted: {"foreign"},
}
