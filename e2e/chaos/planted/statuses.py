"""Histories of what statuses, records and logs say: for the judge's rules ``never-back``, ``capacity`` and ``log``."""

from __future__ import annotations

from collections.abc import Callable

from e2e.chaos.history import Complaint
from e2e.chaos.planted.copies import RESCHEDULE
from e2e.chaos.planted.writing import BASE, COMPLETE, Draft, good_life, mirror, mirrored, moved, on, registered, source
from mirror.model import names


def capacity_that_is_enough(draft: Draft) -> None:
    """D21: its worker takes one, and the next one comes when this one has ended."""
    good_life(draft)
    takes_one(draft)
    draft.put(41, "management", source(on("east"), uid="t"), key="team-a/second")
    draft.put(42, "management", None, key="team-a/second")


def capacity_that_is_enough_again(draft: Draft) -> None:
    """D21: what was left there is gone when the next one comes."""
    left_on_east(draft, removes=26)


def end_is_taken_back(draft: Draft) -> None:
    """It had been Complete."""
    good_life(draft)
    draft.put(60, "management", source(on("east"), succeeded=1, completionTime="t"))
    draft.put(70, "management", source(on("east"), COMPLETE, succeeded=1, completionTime="t"))


def counter_goes_back(draft: Draft) -> None:
    """One pod had succeeded."""
    good_life(draft)
    draft.put(60, "management", source(on("east"), mirrored("m"), COMPLETE, completionTime="t"))


def index_is_lost(draft: Draft) -> None:
    """The third of four had succeeded."""
    good_life(draft)
    draft.put(9, "east", mirror(uid="m", completedIndexes="0-2,5"))
    draft.put(9.1, "management", source(on("east"), mirrored("m"), completedIndexes="0-2,5"))
    draft.put(9.2, "management", source(on("east"), mirrored("m"), completedIndexes="0-1,5"))


def too_many(draft: Draft) -> None:
    """Its worker takes one, and has two."""
    good_life(draft)
    takes_one(draft)
    draft.put(10, "management", source(on("east"), uid="t"), key="team-a/second")
    draft.put(11, "management", None, key="team-a/second")


def too_many_with_what_was_left(draft: Draft) -> None:
    """D21: what was left there still runs, and takes the only place."""
    left_on_east(draft, removes=40)


def traceback(draft: Draft) -> None:
    """A manager ends by an error that it has no answer to."""
    good_life(draft)
    draft.add(Complaint(BASE + 9, "manager-0", "Traceback (most recent call last):"))


def left_on_east(draft: Draft, *, removes: float) -> None:
    """A source has left a copy on east, which takes one, and another source comes there."""
    takes_one(draft)
    moved(draft, annotations=RESCHEDULE, removes=removes)
    draft.put(30, "management", source(on("east"), uid="t"), key="team-a/second")
    draft.put(45, "management", None, key="team-a/second")


def takes_one(draft: Draft) -> None:
    """The capacity of east."""
    draft.put(0.5, "management", registered(**{names.CAPACITY: "1"}), key="jobmirror-x/east", resource="secrets")


GOOD: tuple[Callable[[Draft], None], ...] = (capacity_that_is_enough, capacity_that_is_enough_again)
PLANTED: dict[Callable[[Draft], None], set[str]] = {
    end_is_taken_back: {"never-back"},
    counter_goes_back: {"never-back"},
    index_is_lost: {"never-back"},
    too_many: {"capacity"},
    too_many_with_what_was_left: {"capacity"},
    traceback: {"log"},
}
