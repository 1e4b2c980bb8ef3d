"""Slots: names that cannot be mistaken, and the same worker in the same slot everywhere."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.sharding.slots import Slot, fnv1a, score, slot_of_lease, slot_of_worker


def test_the_number_of_slots_is_in_the_name() -> None:
    """S3: replicas with other settings share no Lease."""
    assert Slot(3, 16).lease == "jobmirror-slot-03-of-16"
    assert Slot(3, 8).lease == "jobmirror-slot-03-of-08"
    assert Slot(7, 200).lease == "jobmirror-slot-007-of-200"


@given(st.integers(2, 1024), st.data())
def test_a_name_says_which_slot_it_is(of: int, data: st.DataObject) -> None:
    slot = Slot(data.draw(st.integers(0, of - 1)), of)
    assert slot_of_lease(slot.lease) == slot


@pytest.mark.parametrize(
    "name",
    ["jobmirror-manager", "jobmirror-slot-3-of-16", "jobmirror-slot-16-of-16", "jobmirror-slot-003-of-016", "x"],
)
def test_another_lease_is_of_no_slot(name: str) -> None:
    assert slot_of_lease(name) is None


def test_the_hash_is_fnv_1a() -> None:
    """As published: http://www.isthe.com/chongo/tech/comp/fnv/ (64 bits)."""
    assert fnv1a("") == 0xCBF29CE484222325
    assert fnv1a("a") == 0xAF63DC4C8601EC8C
    assert fnv1a("foobar") == 0x85944171F73967E8


@pytest.mark.slow
@pytest.mark.parametrize("slots", [2, 4, 16, 100])
@pytest.mark.parametrize("name", ["worker-{}", "{}", "eu-{}-gpu", "cluster-{0}{0}"])
def test_workers_are_spread_over_slots(name: str, slots: int) -> None:
    found = Counter(slot_of_worker(name.format(number), slots).index for number in range(100 * slots))
    assert len(found) == slots
    assert max(found.values()) < 2 * 100


def test_each_member_is_the_favourite_of_about_its_share() -> None:
    members = [f"manager-{number}_{number * 7919:08x}" for number in range(4)]
    found = Counter(max(members, key=lambda one, slot=slot: score(one, Slot(slot, 256))) for slot in range(256))
    assert set(found) == set(members)
    assert max(found.values()) <= 2 * min(found.values())
