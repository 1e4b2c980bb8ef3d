"""What is left out of a status that is too large (D29), and that a hostile one costs no more than its size (D12)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from doubles.jobs import as_object

from mirror.kinds.declared.status_bounds import (
    BRIEF_CHARACTERS,
    ENOUGH,
    LEAST_VALUES,
    MOST_VALUES,
    Room,
    bounded,
    managed_bytes,
    room_beside,
)
from mirror.kube.amounts import amount
from mirror.kube.objects import Object

Json = Any
MANY = 45_000
"""A little less than an object may have to be read whole."""


def test_what_fits_stays_whole() -> None:
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    assert bounded(status, 1_000, ENOUGH) == (status, 0)
    assert bounded(status, 1_000, Room(10_000)) == (status, 0)


@pytest.mark.parametrize("room", [None, 100_000])
def test_many_fields_are_gone_through_once(room: int | None) -> None:
    """It took eleven seconds of 17,000 fields when each one that was left out had all others looked at again."""
    kept, dropped = bounded({f"k{number}": 1 for number in range(MANY)}, 2**20, Room(room))
    assert len(kept) + dropped == MANY
    assert 0 < amount(kept) <= MOST_VALUES
    assert room is None or len(msgspec.json.encode(kept)) + managed_bytes(kept) <= room


def test_the_largest_goes_first_and_conditions_last() -> None:
    status: dict[str, Json] = {"large": "x" * 900, "small": "x" * 90, "conditions": [{"type": "y" * 950}]}
    assert bounded(status, 1_100, ENOUGH) == ({name: status[name] for name in ("small", "conditions")}, 1)
    assert bounded(status, 1_000, ENOUGH) == ({"conditions": status["conditions"]}, 2)
    assert bounded(status, 100, ENOUGH) == ({}, 3)


def test_what_tells_of_the_end_outlives_conditions() -> None:
    """An AppWrapper's phase does, whose conditions may have 64 messages of 4 KiB."""
    listed = [{"type": f"T{number}", "status": "True", "message": "m" * 2_000} for number in range(64)]
    status: dict[str, Json] = {"conditions": listed, "phase": "Succeeded", "other": 1}
    assert bounded(status, 1_000, ENOUGH, telling={"phase"}) == ({"phase": "Succeeded"}, 2)
    assert bounded(status, 1_000, ENOUGH, telling={"conditions"})[0] == {}


def test_messages_of_conditions_are_shortened_before_conditions_are_left_out() -> None:
    listed = [{"type": "Failed", "status": "True", "reason": "BackoffLimit", "message": "m" * 2_000}]
    kept, dropped = bounded({"conditions": listed, "restarts": 1}, 1_000, ENOUGH, telling={"conditions"})
    assert kept == {"conditions": [{**listed[0], "message": "m" * BRIEF_CHARACTERS}], "restarts": 1}
    assert dropped == 0


def test_values_count_whatever_they_are_called() -> None:
    status = {"items": list(range(MOST_VALUES + 1)), "phase": "Running"}
    assert bounded(status, 2**20, ENOUGH) == ({"phase": "Running"}, 1)


def source(spec: Json, **metadata: Json) -> Object:
    return as_object({"metadata": {"name": "train", **metadata}, "spec": spec})


@pytest.mark.parametrize(("values", "left"), [(1_000, 14_333), (5_000, 7_666), (40_000, LEAST_VALUES)])
def test_what_the_spec_has_is_no_room_for_the_status(values: int, left: int) -> None:
    """Both are in one object, and of one with too many values only the metadata is read, by us, too."""
    room = room_beside(source({f"k{number}": 1 for number in range(values - 1)}), 2**18)
    assert room.values == left
    assert bounded({"many": list(range(left)), "phase": "Running"}, 2**20, room) == ({"phase": "Running"}, 1)


def test_annotations_and_texts_are_counted_as_what_they_are() -> None:
    """A script has as many commas as a list, and is one value."""
    many = {f"a{number}": "" for number in range(999)}
    assert room_beside(source({}, annotations=many), 2**18).values == 14_333
    assert room_beside(source({"script": "[{," * 10_000}), 2**17).values == 15_996


def test_beside_a_usual_spec_a_small_status_has_room_at_sight() -> None:
    """No spec is decoded for that with each status."""
    unreadable = msgspec.structs.replace(source({}), spec=msgspec.Raw(b'{"list": [1, 2, {'))
    assert room_beside(unreadable, 4_000).values > 4_000
