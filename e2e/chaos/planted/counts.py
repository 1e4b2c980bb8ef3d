"""Histories of what sources show that was counted: for what the judge says in ``rules_counts``. Of Jobs alone."""

from __future__ import annotations

from collections.abc import Callable

from e2e.chaos.history import Json, Restored
from e2e.chaos.planted.copies import RESCHEDULE, broken_from
from e2e.chaos.planted.writing import (
    BASE,
    COMPLETE,
    Draft,
    deleted_after_all,
    mirror,
    mirrored,
    move,
    on,
    runs_on_east,
    source,
)

_SAID = move("1, from east to west; left behind: east (uid m)")
_ALL: Json = {"completedIndexes": "0-3", "succeeded": 4, "failed": 1}

# -- good --------------------------------------------------------------------------------------------------------------


def counts_as_its_copy(draft: Draft) -> None:
    """D7: at once, and at the end."""
    counts(draft, copy={"succeeded": 1, "failed": 1}, shown={"succeeded": 1, "failed": 1})


def counts_what_two_copies_had(draft: Draft) -> None:
    """D14: it shows the union of their indexes, and the failures of the one that had more."""
    runs_on_east(draft, annotations=RESCHEDULE)
    first: Json = {"completedIndexes": "0,1", "succeeded": 2, "failed": 3}
    draft.put(9.9, "east", mirror(uid="m", **first))
    draft.put(10, "management", source(on("east"), mirrored("m"), annotations=RESCHEDULE, **first))
    draft.put(20, "management", source(on("west"), _SAID, annotations=RESCHEDULE, **first))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.delete(30, "east")
    draft.put(40, "west", mirror(COMPLETE, uid="n", **_ALL))
    shown = {**_ALL, "failed": 3}
    draft.put(40.1, "management", source(on("west"), mirrored("n"), _SAID, COMPLETE, annotations=RESCHEDULE, **shown))
    deleted_after_all(draft, "west")


def counts_what_a_frozen_etcd_tells_late(draft: Draft) -> None:
    """The history has it four seconds after its source."""
    broken_from(draft, 9, 14, "freeze etcd", "east")
    runs_on_east(draft)
    draft.put(10, "management", source(on("east"), mirrored("m"), failed=1))
    draft.put(14.5, "east", mirror(uid="m", failed=1))
    draft.put(40, "east", mirror(COMPLETE, uid="m", succeeded=1, failed=1))
    draft.put(40.1, "management", source(on("east"), mirrored("m"), COMPLETE, succeeded=1, failed=1))
    deleted_after_all(draft, "east")


def counts_what_a_restore_forgets(draft: Draft) -> None:
    """A manager had seen it just before; no watch has told of it, and its copy counts anew."""
    draft.add(Restored(BASE + 10.4, "east", BASE + 5))
    counts(draft, copy={"succeeded": 1}, shown={"failed": 1}, ended={"succeeded": 1, "failed": 1})


# -- planted -----------------------------------------------------------------------------------------------------------


def shows_indexes_that_no_copy_had(draft: Draft) -> None:
    """Three of four."""
    counts(draft, copy={"completedIndexes": "0", "succeeded": 1}, shown={"completedIndexes": "0-3", "succeeded": 1})


def shows_failed_indexes_that_no_copy_had(draft: Draft) -> None:
    """Its copy has failed, in another one."""
    counts(draft, copy={"failedIndexes": "1", "failed": 1}, shown={"failedIndexes": "2", "failed": 1})


def shows_successes_that_no_copy_had(draft: Draft) -> None:
    """Twice as many."""
    counts(draft, copy={"succeeded": 2}, shown={"succeeded": 4})


def shows_failures_that_no_copy_had(draft: Draft) -> None:
    """It had none."""
    counts(draft, copy={"succeeded": 1}, shown={"failed": 1}, ended={"succeeded": 1, "failed": 1})


def shows_what_a_restore_did_not_forget(draft: Draft) -> None:
    """That was a quarter of a minute before."""
    draft.add(Restored(BASE - 5, "east", BASE - 15))
    shows_failures_that_no_copy_had(draft)


def ends_without_its_successes(draft: Draft) -> None:
    """It is Complete, and will never say of what."""
    counts(draft, copy=_ALL, shown={}, ended={})


def ends_without_its_last_index(draft: Draft) -> None:
    """What it had shown before is not enough."""
    less: Json = {"completedIndexes": "0-2", "succeeded": 3, "failed": 1}
    counts(draft, copy=_ALL, shown=less, ended=less)


# -- parts -------------------------------------------------------------------------------------------------------------


def counts(draft: Draft, *, copy: Json, shown: Json, ended: Json | None = None) -> None:
    """It runs on east, where its copy has counted this; its source shows that, and the same or this at its end."""
    runs_on_east(draft)
    draft.put(9.9, "east", mirror(uid="m", **copy))
    draft.put(10, "management", source(on("east"), mirrored("m"), **shown))
    draft.put(40, "east", mirror(COMPLETE, uid="m", **copy))
    last = shown if ended is None else ended
    draft.put(40.1, "management", source(on("east"), mirrored("m"), COMPLETE, **last))
    deleted_after_all(draft, "east")


GOOD_OF_JOBS: tuple[Callable[[Draft], None], ...] = (
    counts_as_its_copy,
    counts_what_two_copies_had,
    counts_what_a_frozen_etcd_tells_late,
    counts_what_a_restore_forgets,
)
PLANTED_OF_JOBS: dict[Callable[[Draft], None], set[str]] = {
    shows_indexes_that_no_copy_had: {"counted"},
    shows_failed_indexes_that_no_copy_had: {"counted"},
    shows_successes_that_no_copy_had: {"counted"},
    shows_failures_that_no_copy_had: {"counted"},
    shows_what_a_restore_did_not_forget: {"counted"},
    ends_without_its_successes: {"counted"},
    ends_without_its_last_index: {"counted"},
}
