"""What of a source is done by whom, and which sources have to be known for that (S1, S2)."""

from __future__ import annotations

import pytest

from mirror.sharding.share import EVERYTHING, Part, Share
from mirror.sharding.slots import slot_of_worker

EAST, NORTH = Share(slot_of_worker("east", 2)), Share(slot_of_worker("north", 2))
ASSIGNER = Share(slots=2)


@pytest.mark.parametrize(
    ("share", "placed", "is_found", "is_requested", "part"),
    [
        (EVERYTHING, None, False, False, Part.ALL),
        (EVERYTHING, "east", False, True, Part.ALL),
        (ASSIGNER, None, False, False, Part.ASSIGNER),
        (ASSIGNER, "east", False, False, Part.NONE),
        (ASSIGNER, "east", False, True, Part.ASSIGNER),
        (EAST, "east", False, False, Part.HOLDER),
        (EAST, "east", False, True, Part.HOLDER),
        (EAST, None, True, False, Part.HOLDER),
        (EAST, None, False, False, Part.NONE),
        (NORTH, "east", False, False, Part.FORMER),
        (NORTH, "east", False, True, Part.FORMER),
    ],
)
def test_each_source_is_written_by_one(
    share: Share, placed: str | None, *, is_found: bool, is_requested: bool, part: Part
) -> None:
    """S2: but for one with a request, by who assigns and by its holder, each upon the version that it has seen."""
    assert share.part_of(placed, is_found=is_found, is_requested=is_requested) is part


def test_a_slot_keeps_what_was_left_on_its_workers() -> None:
    """S1: a copy that comes back is judged by its source (D14)."""
    assert EAST.keeps("east")
    assert not EAST.keeps("north")
    assert EAST.keeps("north", ["up", "east"])
    assert not EAST.keeps("north", ["north"])
    assert not EAST.keeps(None, ["east"])
    assert ASSIGNER.keeps(None)
    assert ASSIGNER.keeps("east")


def test_what_is_elsewhere_is_so_for_a_slot_alone() -> None:
    assert EAST.is_elsewhere("north")
    assert not EAST.is_elsewhere("east")
    assert not EAST.is_elsewhere(None)
    assert not ASSIGNER.is_elsewhere("north")
    assert not EVERYTHING.is_elsewhere("north")
