"""The order in which those who wait are served, and what serving costs."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from mirror.model.keys import SourceKey
from mirror.placement import waiting
from mirror.placement.candidates import Candidate, PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.selector import parse_selector
from mirror.placement.waiting import Waiter, WaitingSources


def waiter(name: str, *, namespace: str = "a", since: str = "", selector: str = "", uid: str = "") -> Waiter:
    request = PlacementRequest(namespace, parse_selector(selector))
    return Waiter(since or name, SourceKey("Job", namespace, name), uid or name, request)


class Rooms:
    """A room with two workers that have room for so many."""

    def __init__(self, east: int = 0, west: int = 0) -> None:
        self.index = WorkerIndex()
        self.loads: defaultdict[str, int] = defaultdict(int)
        self.room = WaitingSources(self.index)
        self.offer(east, west)

    def offer(self, east: int = 0, west: int = 0) -> None:
        """Room for so many more."""
        for name, more in (("east", east), ("west", west)):
            capacity = self.loads[name] + more
            self.index.put(Candidate(name, labels={"name": name}, load=self.loads[name], capacity=capacity))

    def serve(self, most: int = 1_000_000) -> list[str]:
        served = []
        for one, worker in self.room.serve(most=most):
            self.loads[worker] += 1
            self.index.set_load(worker, self.loads[worker])
            served.append(f"{one.key.namespace}/{one.key.name}")
        return served


def test_the_oldest_of_a_namespace_is_served_first() -> None:
    """Creation decides, not who asked first."""
    rooms = Rooms(east=2)
    for name in ("3", "1", "2"):
        rooms.room.add(waiter(name))
    assert rooms.serve() == ["a/1", "a/2"]
    assert [key.name for key in rooms.room.sources()] == ["3"]


def test_the_same_second_goes_by_name() -> None:
    """Creation times are whole seconds; the order must not depend on chance."""
    rooms = Rooms(east=9)
    for name in ("y", "x"):
        rooms.room.add(waiter(name, since="noon"))
    assert rooms.serve() == ["a/x", "a/y"]


def test_namespaces_take_turns_over_several_rounds() -> None:
    """D21: who was served last is last in the next round, too."""
    rooms = Rooms(east=2)
    for namespace, count in (("a", 4), ("b", 1), ("c", 2)):
        for number in range(count):
            rooms.room.add(waiter(str(number), namespace=namespace))
    assert rooms.serve() == ["a/0", "b/0"]
    rooms.offer(east=2)
    assert rooms.serve() == ["c/0", "a/1"]
    rooms.offer(east=9)
    assert rooms.serve() == ["c/1", "a/2", "a/3"]


def test_no_more_are_served_than_are_asked_for() -> None:
    """The others keep their place."""
    rooms = Rooms(east=9)
    for name in ("1", "2", "3"):
        rooms.room.add(waiter(name))
    assert rooms.serve(most=1) == ["a/1"]
    assert rooms.room.may_serve
    assert rooms.serve() == ["a/2", "a/3"]
    assert not rooms.room.may_serve


def test_one_that_cannot_be_placed_keeps_nobody_waiting() -> None:
    """The oldest wants a worker that is full; others of its namespace have other requests."""
    rooms = Rooms(east=1)
    rooms.room.add(waiter("1", selector="name=west"))
    rooms.room.add(waiter("2"))
    assert rooms.serve() == ["a/2"]
    assert len(rooms.room) == 1


def test_freed_capacity_goes_to_the_one_who_wants_it() -> None:
    """The oldest that it suits is served, not the oldest of all."""
    rooms = Rooms()
    for name in ("east", "west"):
        rooms.room.add(waiter(f"on-{name}", selector=f"name={name}"))
    assert rooms.serve() == []
    rooms.offer(west=1)
    assert rooms.serve() == ["a/on-west"]


def test_a_changed_wish_replaces_the_earlier_one() -> None:
    """Whoever asks again is served once, as it requests now."""
    rooms = Rooms(east=1)
    rooms.room.add(waiter("1", selector="name=east"))
    rooms.room.add(waiter("1", selector="name=west"))
    assert rooms.serve() == []
    rooms.offer(west=9)
    assert rooms.serve() == ["a/1"]
    assert len(rooms.room) == 0


def test_who_has_left_is_not_served() -> None:
    """Another of that name is another."""
    rooms = Rooms(east=9)
    rooms.room.add(waiter("1"))
    rooms.room.leave(SourceKey("Job", "a", "1"))
    assert rooms.serve() == []
    rooms.room.add(waiter("1", uid="another"))
    assert [one.uid for one, _ in rooms.room.serve(most=9)] == ["another"]


def test_two_kinds_may_have_one_name() -> None:
    """Created in the same second in one namespace: both wait, both are served."""
    rooms = Rooms(east=9)
    for kind in ("RayJob", "Job"):
        rooms.room.add(Waiter("noon", SourceKey(kind, "a", "x"), kind, PlacementRequest("a")))
    assert [one.key.kind for one, _ in rooms.room.serve(most=9)] == ["Job", "RayJob"]


def test_a_changed_label_counts_for_those_who_wait_already() -> None:
    """What they ask for is matched anew, and a bit of a worker that has gone means its successor only then."""
    rooms = Rooms(east=9)
    rooms.room.add(waiter("1", selector="gpu"))
    assert rooms.serve() == []
    rooms.index.put(Candidate("east", labels={"gpu": "a100"}, capacity=9))
    assert rooms.room.may_serve
    assert rooms.serve() == ["a/1"]
    rooms.room.add(waiter("2", selector="name=north"))
    rooms.index.put(Candidate("north", labels={"name": "north"}, capacity=0))
    assert rooms.serve() == []
    rooms.index.remove("north")
    rooms.index.put(Candidate("south", labels={"name": "south"}))
    assert rooms.serve() == []


def test_ten_thousand_selectors_are_matched_in_turns() -> None:
    """A worker's labels changed: no turn matches more than a bounded number, and nobody is served out of order."""
    rooms = Rooms()
    for number in range(3 * waiting.MATCHES_A_TURN):
        rooms.room.add(waiter(f"{number:05}", selector=f"!x{number}"))
    rooms.index.put(Candidate("north", labels={"name": "north"}))
    matched: list[int] = []
    turns = 0
    while not (served := rooms.serve(most=1)):
        turns += 1
        matched.append(sum(one.version == rooms.index.version for one in rooms.room._requests.values()))
        assert turns < 10
    assert served == ["a/00000"]
    assert turns >= 2
    assert matched[0] <= waiting.MATCHES_A_TURN


def test_labels_that_keep_changing_stop_nobody() -> None:
    """Each turn they have changed again: those that were matched meanwhile are served as the workers are then."""
    rooms = Rooms()
    for number in range(2 * waiting.MATCHES_A_TURN):
        rooms.room.add(waiter(f"{number:05}", selector=f"!x{number}"))
    served: list[str] = []
    for number in range(20):
        rooms.index.put(Candidate("east", labels={"n": str(number)}, capacity=5, load=rooms.loads["east"]))
        served += rooms.serve()
    assert served == [f"a/{number:05}" for number in range(5)]


def test_serving_one_of_ten_thousand_looks_at_a_handful_of_groups() -> None:
    """They are grouped by which workers suit them, whatever their selectors say."""
    rooms = Rooms(east=1)
    for number in range(10_000):
        rooms.room.add(waiter(f"{number:05}", namespace=f"n{number % 10}", selector=f"!x{number}"))
    _, looks = rooms.room._next()
    assert looks <= 10
    assert rooms.serve() == ["n0/00000"]
    assert len(rooms.room) == 9_999


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "leave", "serve"]), st.integers(0, 5), st.sampled_from("ab"), st.booleans())
    )
)
def test_everybody_is_served_exactly_once(steps: list[tuple[str, int, str, bool]]) -> None:
    """Whatever happens in between: nobody who left is served, nobody who waits is lost."""
    rooms, waiting_now = Rooms(), set[SourceKey]()
    room = rooms.room
    for what, number, namespace, wants_east in steps:
        one = waiter(str(number), namespace=namespace, selector="name=east" if wants_east else "")
        if what == "add":
            room.add(one)
            waiting_now.add(one.key)
        elif what == "leave":
            room.leave(one.key)
            waiting_now.discard(one.key)
        else:
            rooms.offer(east=1)
            for found, _ in room.serve(most=1):
                waiting_now.remove(found.key)
    rooms.offer(east=99)
    assert {one.key for one, _ in room.serve(most=99)} == waiting_now
    assert len(room) == 0
    assert not room._requests
    assert not room._namespaces
