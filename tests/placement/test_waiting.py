"""The order in which those who wait are served, and what serving costs."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from mirror.model.keys import SourceKey
from mirror.placement.candidates import Wish
from mirror.placement.selector import parse_selector
from mirror.placement.waiting import Waiter, WaitingRoom


def waiter(name: str, *, namespace: str = "a", since: str = "", selector: str = "", uid: str = "") -> Waiter:
    wish = Wish(namespace, parse_selector(selector))
    return Waiter(since or name, SourceKey("Job", namespace, name), uid or name, wish)


def places(count: int) -> Callable[[Wish], str | None]:
    """A worker with room for so many."""
    left = [count]

    def choose(wish: Wish) -> str | None:
        left[0] -= 1
        return "east" if left[0] >= 0 else None

    return choose


def served(room: WaitingRoom, choose: Callable[[Wish], str | None]) -> list[str]:
    return [f"{one.key.namespace}/{one.key.name}" for one, _ in room.serve(choose)]


def test_the_oldest_of_a_namespace_is_served_first() -> None:
    """Creation decides, not who asked first."""
    room = WaitingRoom()
    for name in ("3", "1", "2"):
        room.add(waiter(name))
    assert served(room, places(2)) == ["a/1", "a/2"]
    assert [key.name for key in room.sources()] == ["3"]


def test_the_same_second_goes_by_name() -> None:
    """Creation times are whole seconds; the order must not depend on chance."""
    room = WaitingRoom()
    for name in ("y", "x"):
        room.add(waiter(name, since="noon"))
    assert served(room, places(9)) == ["a/x", "a/y"]


def test_namespaces_take_turns_over_several_rounds() -> None:
    """D21: who was served last is last in the next round, too."""
    room = WaitingRoom()
    for namespace, count in (("a", 4), ("b", 1), ("c", 2)):
        for number in range(count):
            room.add(waiter(str(number), namespace=namespace))
    assert served(room, places(2)) == ["a/0", "b/0"]
    assert served(room, places(2)) == ["c/0", "a/1"]
    assert served(room, places(9)) == ["c/1", "a/2", "a/3"]


def test_one_that_cannot_be_placed_keeps_nobody_waiting() -> None:
    """The oldest wants a worker that is full; others of its namespace have other wishes."""
    room = WaitingRoom()
    room.add(waiter("1", selector="name=full"))
    room.add(waiter("2"))

    def choose(wish: Wish) -> str | None:
        return None if wish.selector.requirements else "east"

    assert served(room, choose) == ["a/2"]
    assert len(room) == 1


def test_freed_capacity_goes_to_the_one_who_wants_it() -> None:
    """The room is asked with the wish of each, and the right one is served."""
    room = WaitingRoom()
    for name in ("east", "west"):
        room.add(waiter(f"on-{name}", selector=f"name={name}"))
    is_free = {"east": False, "west": True}

    def choose(wish: Wish) -> str | None:
        return next((name for name, free in is_free.items() if free and wish.selector.matches({"name": name})), None)

    assert served(room, choose) == ["a/on-west"]


def test_a_changed_wish_replaces_the_earlier_one() -> None:
    """Whoever asks again is served once, as it wishes now."""
    room = WaitingRoom()
    room.add(waiter("1", selector="name=east"))
    room.add(waiter("1", selector="name=west"))
    found = room.serve(lambda wish: "it" if wish.selector.matches({"name": "east"}) else None)
    assert found == []
    assert served(room, places(9)) == ["a/1"]
    assert len(room) == 0


def test_who_has_left_is_not_served() -> None:
    """Also not by an entry that is left over."""
    room = WaitingRoom()
    room.add(waiter("1"))
    room.leave(SourceKey("Job", "a", "1"))
    assert served(room, places(9)) == []
    room.add(waiter("1", uid="another"))
    assert [one.uid for one, _ in room.serve(places(9))] == ["another"]


def test_serving_one_of_ten_thousand_costs_a_handful_of_questions() -> None:
    """They are grouped by what they wish; the stuck ones are not asked one by one."""
    room = WaitingRoom()
    for number in range(10_000):
        room.add(waiter(f"{number:05}", namespace=f"n{number % 10}"))
    asked = 0
    choose = places(1)

    def counted(wish: Wish) -> str | None:
        nonlocal asked
        asked += 1
        return choose(wish)

    assert len(room.serve(counted)) == 1
    assert asked <= 1 + 10
    assert len(room) == 9_999


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "leave", "serve"]), st.integers(0, 5), st.sampled_from("ab"), st.booleans())
    )
)
def test_everybody_is_served_exactly_once(steps: list[tuple[str, int, str, bool]]) -> None:
    """Whatever happens in between: nobody who left is served, nobody who waits is lost."""
    room, waiting = WaitingRoom(), set[SourceKey]()
    for what, number, namespace, wants_east in steps:
        one = waiter(str(number), namespace=namespace, selector="name=east" if wants_east else "")
        if what == "add":
            room.add(one)
            waiting.add(one.key)
        elif what == "leave":
            room.leave(one.key)
            waiting.discard(one.key)
        else:
            for found, _ in room.serve(places(1)):
                waiting.remove(found.key)
    assert {one.key for one, _ in room.serve(places(99))} == waiting
    assert len(room) == 0
