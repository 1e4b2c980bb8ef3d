"""Histories of copies that lose and are kept, suspended: for what the judge says of deletions and of what is left."""

from __future__ import annotations

from collections.abc import Callable

from e2e.chaos.planted.copies import RESCHEDULE
from e2e.chaos.planted.writing import Draft, ends_on, mirror, mirrored, move, moved, on, runs_on_east, source

# -- good --------------------------------------------------------------------------------------------------------------


def loser_is_kept(draft: Draft) -> None:
    """D14: it is suspended when its worker is back, and goes with its source."""
    kept(draft)
    draft.put(38, "east", mirror(uid="m", suspend=True))


def loser_makes_room(draft: Draft) -> None:
    """D14: its source is to run there again, and needs its name."""
    draft.settings(suspends_losers=True)
    runs_on_east(draft, annotations=RESCHEDULE)
    said = move("1, from east to west; left behind: east (uid m)")
    draft.put(20, "management", source(on("west"), mirrored("n"), said, annotations=RESCHEDULE))
    draft.put(20.1, "west", mirror(uid="n"))
    draft.put(24, "east", mirror(uid="m", suspend=True))
    back = move("2, from west to east; left behind: east (uid m), west (uid n)")
    draft.put(30, "management", source(on("east"), back, annotations=RESCHEDULE))
    draft.delete(31, "east")
    draft.put(32, "east", mirror(uid="o"))
    draft.put(36, "west", mirror(uid="n", suspend=True))
    ends_on(draft, "east", "o", move("2, from west to east; left behind: west (uid n)"), at=50, annotations=RESCHEDULE)
    draft.delete(96, "west")


# -- planted -----------------------------------------------------------------------------------------------------------


def loser_is_deleted_all_the_same(draft: Draft) -> None:
    """Nobody needs its name there."""
    moved(draft, annotations=RESCHEDULE)
    draft.settings(suspends_losers=True)


def loser_runs_on(draft: Draft) -> None:
    """Its worker is back, and nobody suspends it."""
    kept(draft)


def loser_is_kept_unasked(draft: Draft) -> None:
    """Settings have losers deleted."""
    loser_is_kept(draft)
    draft.settings(suspends_losers=False)


# -- parts -------------------------------------------------------------------------------------------------------------


def kept(draft: Draft) -> None:
    """It was moved from east to west, and the copy there is deleted after its source."""
    moved(draft, annotations=RESCHEDULE, removes=95.8)
    draft.settings(suspends_losers=True)


GOOD: tuple[Callable[[Draft], None], ...] = (loser_is_kept, loser_makes_room)
PLANTED: dict[Callable[[Draft], None], set[str]] = {
    loser_is_deleted_all_the_same: {"deleted-rightly"},
    loser_runs_on: {"left-behind", "runs-on"},
    loser_is_kept_unasked: {"left-behind"},
}
