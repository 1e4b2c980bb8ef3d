"""Histories of two kinds, of a manager that takes objects of one name for one object (D24)."""

from __future__ import annotations

from collections.abc import Callable

from e2e.chaos.planted.statuses import takes_one
from e2e.chaos.planted.writing import COMPLETE, Draft, good_life, mirror, mirrored, on, source, stranger


def end_of_the_other_kind(job: Draft, drill: Draft) -> None:
    """Both kinds' mirrors are in one store: the Drill ends as the Job of its name."""
    good_life(job)
    drill.put(1, "management", source(uid="d"))
    drill.put(2, "management", source(on("east"), uid="d"))
    drill.put(2.1, "east", mirror(uid="n", of="d"))
    drill.put(40.1, "management", source(on("east"), COMPLETE, uid="d"))
    drill.put(95, "management", None)
    drill.put(96, "east", None)


def copy_of_the_other_kind(job: Draft, drill: Draft) -> None:
    """Both kinds' sources are in one store: what is made for the Drill is a Job, which runs and is seen to end."""
    drill.put(1, "management", source(uid="d"))
    drill.put(2, "management", source(on("east"), uid="d"))
    job.put(2.1, "east", mirror(uid="m", of="d"))
    job.put(40, "east", mirror(COMPLETE, uid="m", of="d"))
    drill.put(40.1, "management", source(on("east"), COMPLETE, uid="d"))
    drill.put(95, "management", None)
    job.put(96, "east", None)


def stranger_of_the_other_kind(job: Draft, drill: Draft) -> None:
    """The Drill is deleted, and with its copy there the Job of its name, which is somebody else's."""
    good_life(drill)
    job.put(3, "east", stranger())
    job.delete(95.5, "east")


def copy_of_the_other_kind_is_deleted(job: Draft, drill: Draft) -> None:
    """The Job is deleted, and the copy of the Drill of its name with it."""
    good_life(drill)
    drill.records = [one for one in drill.records if one.at <= drill.records[3].at]
    job.put(1, "management", source())
    job.put(8, "management", None)
    drill.delete(9, "east")
    drill.put(90, "management", None)


def record_of_the_other_kind(job: Draft, drill: Draft) -> None:
    """Where the Job is counts for the Drill."""
    good_life(job)
    drill.put(1, "management", source(uid="d"))
    drill.put(2.1, "west", mirror(uid="n", of="d"))
    drill.put(3, "management", source(on("east"), uid="d"))
    drill.put(5, "west", None)
    drill.put(95, "management", None)


def place_of_the_other_kind(job: Draft, drill: Draft) -> None:
    """The Drill takes the place that the Job of its name has: they are counted as one."""
    takes_one(job)
    good_life(job)
    drill.put(10, "management", source(on("east"), mirrored("n"), uid="d"))
    drill.put(11, "management", None)


PLANTED: dict[Callable[[Draft, Draft], None], set[str]] = {
    end_of_the_other_kind: {"true-end"},
    copy_of_the_other_kind: {"recorded-first", "true-end", "left-behind"},
    stranger_of_the_other_kind: {"foreign"},
    copy_of_the_other_kind_is_deleted: {"deleted-rightly"},
    record_of_the_other_kind: {"recorded-first", "ended"},
    place_of_the_other_kind: {"capacity"},
}
