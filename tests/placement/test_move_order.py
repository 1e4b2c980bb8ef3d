"""Whose turn it is to be moved."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.model.keys import SourceKey
from mirror.placement.move_order import MoveOrder, Mover


def mover(namespace: str, name: str, *, since: str = "2026-03-01T12:00:00Z", priority: int = 0) -> Mover:
    return Mover(since, SourceKey("Job", namespace, name), f"{namespace}-{name}", priority)


def order(*movers: Mover) -> list[str]:
    """The uids of all of them, as they are taken."""
    waiting = MoveOrder()
    for one in movers:
        waiting.add(one)
    return [waiting.take().uid for _ in range(len(waiting))]


def test_namespaces_take_turns() -> None:
    """However many one of them has."""
    many = [mover("a", f"{number}") for number in range(4)]
    assert order(*many, mover("c", "0"), mover("b", "0"), mover("b", "1")) == [
        "a-0", "b-0", "c-0", "a-1", "b-1", "a-2", "a-3",
    ]  # fmt: skip


def test_within_one_priority_counts_and_then_age() -> None:
    early, late = "2026-03-01T11:00:00Z", "2026-03-01T13:00:00Z"
    movers = mover("a", "x", since=late), mover("a", "y", since=early), mover("a", "z", since=late, priority=5)
    assert order(*movers) == ["a-z", "a-y", "a-x"]


def test_who_waits_already_waits_once() -> None:
    """As it is now: a namesake with another uid, another priority."""
    waiting = MoveOrder()
    for one in (mover("a", "x"), mover("a", "y"), mover("a", "y"), mover("a", "y", priority=1)):
        waiting.add(one)
    assert (len(waiting), [waiting.take().uid for _ in range(2)]) == (2, ["a-y", "a-x"])
    with pytest.raises(LookupError):
        waiting.take()


def test_one_that_comes_later_has_its_turn_after_who_was_served() -> None:
    waiting = MoveOrder()
    for name in ("0", "1"):
        waiting.add(mover("b", name))
    assert waiting.take().uid == "b-0"
    waiting.add(mover("a", "0"))
    assert [waiting.take().uid for _ in range(2)] == ["a-0", "b-1"]


def test_nobody_waits_after_the_end() -> None:
    waiting = MoveOrder()
    waiting.add(mover("a", "x"))
    waiting.clear()
    assert len(waiting) == 0
    waiting.add(mover("a", "x"))
    assert waiting.take().uid == "a-x"


NAMESPACES = st.sampled_from("abcd")


@given(st.lists(st.tuples(NAMESPACES, st.integers(0, 20)), max_size=40), st.integers(0, 40))
def test_no_namespace_is_served_twice_while_another_waits(keys: list[tuple[str, int]], taken: int) -> None:
    waiting = MoveOrder()
    for namespace, number in keys:
        waiting.add(mover(namespace, str(number)))
    left = {namespace: {number for one, number in keys if one == namespace} for namespace in "abcd"}
    served = dict.fromkeys("abcd", 0)
    for one in islice(iter(waiting.take, None), min(taken, len(waiting))):
        served[one.key.namespace] += 1
        left[one.key.namespace].remove(int(one.key.name))
        waits = [served[name] for name, numbers in left.items() if numbers]
        assert served[one.key.namespace] <= min(waits, default=10_000) + 1
