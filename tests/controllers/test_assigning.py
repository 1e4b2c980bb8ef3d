"""Places are given as by the simplest model, whatever happens; and what it costs when thousands wait."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

import pytest
from doubles.clock import LoopClock
from doubles.placement import Reference, obstacle
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mirror.controllers import assigning as assigning_module
from mirror.controllers.assigning import MOST_UNRECORDED, Assigner
from mirror.model.keys import SourceKey
from mirror.placement.candidates import Candidate, NamespaceRules, Obstacle, PlacementRequest
from mirror.placement.index import WorkerIndex
from mirror.placement.policy import DEFAULT, PlacementPolicy
from mirror.placement.selector import parse_selector
from mirror.placement.waiting import Waiter

DETAIL = re.compile(r" \([^)]*\)")
"""What of a worker's labels does not match."""


def waiter(name: str, *, namespace: str = "a", selector: str = "", priority: int = 0, **more: Any) -> Waiter:
    uid = more.pop("uid", "") or name
    request = PlacementRequest(namespace, parse_selector(selector), **more)
    return Waiter(name, SourceKey("Job", namespace, name), uid, request, priority)


def ask(assigner: Assigner, waiter: Waiter, *, was_told: bool = False) -> str | None:
    """As a source is looked at: take what it is assigned to, or what is available, or wait."""
    assigner.release_unusable(waiter.key, waiter.uid)
    worker = assigner.assigned_to(waiter.key, waiter.uid)
    if worker is None and (worker := assigner.available_for(waiter.request)) is not None:
        assigner.assign(waiter.key, waiter.uid, worker, spread_by=waiter.request.spread_by)
    if worker is None:
        assigner.request(waiter, is_reason_reported=was_told)
    return worker


class Watched(Assigner):
    """Notes who is woken."""

    def __init__(self, *candidates: Candidate, policy: PlacementPolicy = DEFAULT) -> None:
        self.woken: list[str] = []
        super().__init__(wake=lambda key: self.woken.append(key.name), clock=LoopClock(), policy=policy)
        for candidate in candidates:
            self.update(candidate)


async def settle() -> None:
    """Until all turns are done."""
    for _ in range(10):
        await asyncio.sleep(0)


# -- equal to the reference -------------------------------------------------------------------------------------------

NAMES = ["u", "v", "w", "x"]
WORKERS = st.builds(
    Candidate,
    name=st.sampled_from(NAMES),
    labels=st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")),
    reachable=st.sampled_from([True, True, True, False]),
    cordoned=st.sampled_from([False, False, False, True]),
    misconfigured=st.sampled_from([False, False, False, True]),
    capacity=st.sampled_from([None, 0, 1, 1, 2, 2, 3]),
    weight=st.sampled_from([0.5, 1.0, 2.0]),
    namespace_rules=st.builds(NamespaceRules, globs=st.sampled_from([(), (), ("a",), ("a", "b*")])),
)
WAITERS = st.builds(
    waiter,
    name=st.sampled_from("123456"),
    namespace=st.sampled_from(["a", "b", "c"]),
    selector=st.sampled_from(["", "", "a", "!a", "a=1", "b in (1,2)", "a notin (1)", "a!=2,b"]),
    uid=st.sampled_from(["", "", "another"]),
    priority=st.sampled_from([0, 0, 0, 5, -5]),
    order=st.sampled_from([(), (), ("w", "u"), ("gone", "[vx]"), ("x*", "*")]),
    spread_by=st.sampled_from(["", "", "a", "b"]),
    refused_by=st.sampled_from([frozenset[str](), frozenset[str](), frozenset({"u"}), frozenset({"v", "gone"})]),
)
STEPS = st.one_of(
    st.tuples(st.just("worker"), WORKERS),
    st.tuples(st.just("gone"), st.sampled_from(NAMES)),
    st.tuples(st.just("load"), st.tuples(st.sampled_from(NAMES), st.integers(0, 3))),
    st.tuples(st.just("ask"), WAITERS),
    st.tuples(st.just("ask"), WAITERS),
    st.tuples(st.just("settle"), WAITERS),
    st.tuples(st.just("look"), WAITERS),
    st.tuples(st.just("read anew"), st.none()),
)


class Both:
    """The real one and the reference, told the same."""

    def __init__(self) -> None:
        self.model = Reference()
        self.woken: list[SourceKey] = []
        self.uids: dict[SourceKey, str] = {}
        self.real = Assigner(wake=self.woken.append, clock=LoopClock())

    async def take(self, what: str, about: Any) -> None:
        model, real = self.model, self.real
        match what:
            case "worker":
                known = model.workers.get(about.name)
                model.workers[about.name] = about = replace(about, load=known.load if known else 0)
                real.update(about)
            case "gone":
                model.workers.pop(about, None)
                real.remove(about)
            case "load":
                name, load = about
                if name in model.workers:
                    model.workers[name] = replace(model.workers[name], load=load)
                real.set_load(name, load)
            case "ask":
                await self._ask(about)
            case "settle":
                model.waiting.pop(about.key, None)
                model.given.pop(about.key, None)
                real.finish(about.key)
            case "look":
                uid = self.uids.get(about.key, "")
                real.release_unusable(about.key, uid)
                assert real.assigned_to(about.key, uid) == model.given_to(about.key)
            case _:
                assert set(real.workers) == model.workers.keys()
                for candidate in model.workers.values():
                    real.update(candidate)
        model.serve()
        await settle()

    async def _ask(self, about: Waiter) -> None:
        model, real = self.model, self.real
        if model.given_to(about.key) is not None:
            if self.uids[about.key] == about.uid:
                assert ask(real, about) == model.given[about.key]
                return
            del model.given[about.key]  # served in the next turn, when it waits itself
        self.uids[about.key] = about.uid
        model.waiting[about.key] = about
        model.serve()
        found = ask(real, about)
        await settle()
        assert model.given.get(about.key) == (found or real.assigned_to(about.key, about.uid))

    def compare(self) -> None:
        model, real = self.model, self.real
        assert {key: given.worker for key, given in real._assigned.items()} == model.given
        assert set(real._waiting.sources()) == set(model.waiting)
        assert real.waiting == len(model.waiting)
        for one in model.waiting.values():
            against = {name: obstacle(one.request, worker) for name, worker in self.workers().items()}
            told = {name: DETAIL.sub("", why) for name, why in real.obstacles(one.request, {}).items()}
            of_all = told.pop("", "")  # of a label that no worker has, say
            assert told == {name: str(why) for name, why in against.items() if why}
            found = real.why(one.request, {})
            assert found is None if None in against.values() else found is not None
            if found is not None:
                expected = [of_all] * bool(of_all and against) + [listed(against)]
                assert DETAIL.sub("", found.text) == "; ".join(expected)

    def workers(self) -> dict[str, Candidate]:
        return {one.name: one for one in self.model.loaded()}


def listed(against: dict[str, Obstacle | None]) -> str:
    """What speaks against each; those with other labels are only counted where some have the right ones."""
    mismatching = [name for name, why in against.items() if why is Obstacle.LABELS_DO_NOT_MATCH]
    if len(mismatching) == len(against):
        mismatching = []
    told = [f"{name}: {why}" for name, why in sorted(against.items()) if why and name not in mismatching]
    counted = [f"…and {len(mismatching)} more: {Obstacle.LABELS_DO_NOT_MATCH}"] if mismatching else []
    return "; ".join(told + counted) or "no worker is registered"


@given(st.lists(STEPS, max_size=40))
def test_places_are_given_as_by_the_simplest_model(steps: list[tuple[str, Any]]) -> None:
    """D21: whoever comes, goes, changes or fills up, in any order, the same Jobs get the same workers."""

    async def play() -> None:
        both = Both()
        for what, about in steps:
            await both.take(what, about)
            both.compare()

    asyncio.run(play())


# -- cost -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def matches(monkeypatch: pytest.MonkeyPatch) -> list[PlacementRequest]:
    """Which requests were matched with the workers."""
    matched: list[PlacementRequest] = []
    plain = WorkerIndex.fitting

    def fitting(index: WorkerIndex, request: PlacementRequest) -> int:
        matched.append(request)
        return plain(index, request)

    monkeypatch.setattr(WorkerIndex, "fitting", fitting)
    return matched


async def test_only_the_one_who_asks_is_judged(matches: list[PlacementRequest]) -> None:
    """However many wait for other reasons or with other selectors."""
    assigner = Watched(*(Candidate(f"w{n}", capacity=1, load=1) for n in range(100)))
    for number in range(1000):
        ask(assigner, waiter(f"{number}", namespace=f"n{number % 50}", selector=f"!x{number}"))
    assert len(matches) == 1000
    ask(assigner, waiter("one", selector="!one"))
    assigner.set_load("w7", 0)
    await settle()
    assert len(matches) == 1001
    assert assigner.woken == ["one"]


async def test_equal_requests_are_matched_once(matches: list[PlacementRequest]) -> None:
    """Ten thousand Jobs that ask for the same are one question, also once a worker's labels change."""
    assigner = Watched(Candidate("w", capacity=0))
    for number in range(10_000):
        ask(assigner, waiter(f"{number:05}", selector="gpu"))
    assigner.update(Candidate("w", labels={"gpu": ""}, capacity=1))
    await settle()
    assert len(matches) == 2
    assert assigner.assigned_to(SourceKey("Job", "a", "00000"), "00000") == "w"


def cpu_of_a_wave(jobs: int) -> float:
    """Seconds of CPU to place so many Jobs over 1,000 workers that have room for half of them."""

    async def play() -> None:
        assigner = Watched(*(Candidate(f"w{n:04}", capacity=jobs // 2000) for n in range(1000)))
        recorded = dict.fromkeys((f"w{n:04}" for n in range(1000)), 0)
        for number in range(jobs):
            one = waiter(f"{number:06}", namespace=f"n{number % 200}", selector=f"!x{number % 50}")
            worker = ask(assigner, one)
            assigner.why(one.request, {})
            if worker is not None:
                recorded[worker] += 1
                assigner.set_load(worker, recorded[worker])
                assigner.finish(one.key)
        await settle()
        assert assigner.waiting == jobs // 2

    began = time.process_time()
    asyncio.run(play())
    return time.process_time() - began


@pytest.mark.slow
def test_a_wave_costs_by_its_jobs() -> None:
    """Four times the Jobs are about four times the work, not sixteen times."""
    small, large = cpu_of_a_wave(2000), cpu_of_a_wave(8000)
    assert large < 8 * small


async def test_a_thousand_waiting_jobs_are_not_woken_by_what_does_not_concern_them() -> None:
    """Whoever was told why it waits is woken for another reason only: another worker's, another kind."""
    assigner = Watched(Candidate("east", {"name": "east"}, capacity=0), Candidate("west", {"name": "west"}, capacity=0))
    for number in range(100):
        ask(assigner, waiter(f"{number}", selector=f"name={'east' if number % 2 else 'west'}"), was_told=True)
    assigner.update(Candidate("west", {"name": "west"}, capacity=0, reachable=False))
    await settle()
    assert sorted(assigner.woken, key=int) == [str(number) for number in range(0, 100, 2)]
    assigner.woken.clear()
    assigner.set_load("east", 3)
    assigner.update(Candidate("east", {"name": "east"}, capacity=0, load=3))
    await settle()
    assert assigner.woken == []


async def test_whom_a_worker_refused_is_woken_when_that_changes() -> None:
    """What it refused it may accept now (D1)."""
    assigner = Watched(Candidate("east"), Candidate("west", capacity=0))
    ask(assigner, waiter("refused", refused_by=frozenset({"east"})), was_told=True)
    ask(assigner, waiter("pinned", selector="name=north"), was_told=True)
    assigner.wake_for("east")
    await settle()
    assert assigner.woken == ["refused"]


@pytest.mark.looptime
async def test_thousands_are_woken_in_turns() -> None:
    """A worker goes away: all have another reason, but a Job that comes now must not stand behind all of them."""
    assigner = Watched(Candidate("east", capacity=0))
    for number in range(2_000):
        ask(assigner, waiter(f"{number}"), was_told=True)
    assigner.update(Candidate("east", capacity=0, reachable=False))
    await asyncio.sleep(0.01)
    assert 0 < len(assigner.woken) <= assigning_module.WAKES_A_TURN
    await asyncio.sleep(10)
    assert sorted(assigner.woken, key=int) == [str(number) for number in range(2_000)]


# -- what was given ---------------------------------------------------------------------------------------------------


async def test_so_many_places_are_given_before_they_are_recorded() -> None:
    """The rest is served as those are, with the workers as they are by then."""
    assigner = Watched(Candidate("east"))
    for number in range(MOST_UNRECORDED + 10):
        ask(assigner, waiter(f"{number:04}"))
    assert assigner.waiting == 10
    assigner.finish(SourceKey("Job", "a", "0000"))
    await settle()
    assert assigner.waiting == 9
    assert assigner.woken == [f"{MOST_UNRECORDED:04}"]


async def test_records_that_fail_keep_nobody_from_getting_a_place() -> None:
    """They keep their places, since they may be stored; but they are not waited for."""
    assigner = Watched(Candidate("east", capacity=MOST_UNRECORDED + 5))
    for number in range(MOST_UNRECORDED):
        ask(assigner, waiter(f"{number:04}"))
        assigner.note_record_failed(SourceKey("Job", "a", f"{number:04}"))
    given = [ask(assigner, waiter(f"next-{number}")) for number in range(10)]
    assert given == ["east"] * 5 + [None] * 5
    for number in range(MOST_UNRECORDED):
        assigner.finish(SourceKey("Job", "a", f"{number:04}"))
    await settle()
    assert assigner.waiting == 0


async def test_a_namesake_does_not_get_what_was_given_to_another() -> None:
    """Deleted and created again: the place goes back and is given anew, and is counted once."""
    assigner = Watched(Candidate("east", capacity=1))
    assert ask(assigner, waiter("x", uid="first")) == "east"
    assert ask(assigner, waiter("x", uid="second")) == "east"
    assert ask(assigner, waiter("y")) is None
    assigner.finish(SourceKey("Job", "a", "x"))
    await settle()
    assert assigner.assigned_to(SourceKey("Job", "a", "y"), "y") == "east"


# -- what a Job prefers -----------------------------------------------------------------------------------------------


async def test_an_order_of_workers_is_followed_as_far_as_they_have_room() -> None:
    """The first that is eligible is chosen however full it is; those that are not named come last."""
    assigner = Watched(Candidate("east", capacity=2), Candidate("eu-1", capacity=1), Candidate("other"))
    given = [ask(assigner, waiter(f"{number}", order=("east", "eu-*"))) for number in range(5)]
    assert given == ["east", "east", "eu-1", "other", "other"]


async def test_jobs_are_spread_over_the_values_of_a_label() -> None:
    """Two zones, one of which has two workers: each zone gets as many, whatever else is on them."""
    zones = {"a1": "a", "b1": "b", "b2": "b"}
    assigner = Watched(*(Candidate(name, {"zone": zone}) for name, zone in zones.items()), Candidate("c1"))
    assigner.set_load("a1", 100)
    given = [ask(assigner, waiter(f"{number}", spread_by="zone")) for number in range(4)]
    assert given == ["b1", "a1", "b2", "a1"]
    assert ask(assigner, waiter("plain")) == "c1"


async def test_what_is_recorded_counts_for_a_spread() -> None:
    """As sources report it; an assignment that is recorded is counted once."""
    assigner = Watched(Candidate("east", {"zone": "a"}), Candidate("west", {"zone": "b"}))
    assigner.set_spread("east", "a", "zone", 2)
    given = []
    for number in range(3):
        one = waiter(f"{number}", spread_by="zone")
        given.append(ask(assigner, one))
        assigner.set_spread("west", "a", "zone", number + 1)
        assigner.finish(one.key)
    assert given == ["west", "west", "east"]
    assert ask(assigner, waiter("another", namespace="b", spread_by="zone")) == "east"


async def test_priority_orders_who_waits_in_a_namespace() -> None:
    """The highest first, then by age; another namespace takes its turn all the same (D21)."""
    assigner = Watched(Candidate("east", capacity=0))
    for name, priority in (("1", 0), ("2", 7), ("3", 7), ("4", -1)):
        ask(assigner, waiter(name, priority=priority))
    ask(assigner, waiter("other", namespace="b", priority=-100))
    assigner.update(Candidate("east"))
    await settle()
    assert assigner.woken == ["2", "other", "3", "1", "4"]


async def test_nothing_is_left_of_a_spread_that_is_over() -> None:
    """Neither of what was assigned nor of what was recorded."""
    assigner = Watched(Candidate("east", {"zone": "a"}))
    ask(assigner, waiter("1", spread_by="zone"))
    assigner.set_spread("east", "a", "zone", 1)
    assigner.finish(SourceKey("Job", "a", "1"))
    assigner.set_spread("east", "a", "zone", 0)
    assert len(assigner._index.spread) == 0


async def test_who_had_a_worker_before_comes_first_as_far_as_there_is_room() -> None:
    """Also before it is known who waits; and nobody gets what is not there."""
    assigner = Watched(Candidate("east", {}, reachable=True, capacity=1))
    assigner.hold()
    ask(assigner, waiter("waits"))
    kept = waiter("kept").request
    assert (assigner.available_for(kept), assigner.available_for(kept, comes_first=True)) == (None, "east")
    assigner.assign(waiter("kept").key, "kept", "east")
    assert assigner.available_for(waiter("next").request, comes_first=True) is None
    assigner.release()
    await settle()
    assert assigner.assigned_to(waiter("waits").key, "waits") is None
