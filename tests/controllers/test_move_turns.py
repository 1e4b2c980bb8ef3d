"""What holds moves is looked at without effects; that it is so is reported once, and so is its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import pytest
from doubles.clock import LoopClock

from mirror.controllers.move_turns import (
    AFTER_TAKING_OVER_SECONDS,
    EVERYWHERE,
    JUST_TOOK_OVER,
    MOST_ARE_LOST,
    MOST_OF_HOLDER_ARE_LOST,
    MoveScope,
    MoveTurns,
)
from mirror.model.keys import SourceKey
from mirror.model.terms import Terms
from mirror.placement.move_order import Mover
from mirror.runtime.clock import Clock, SystemClock
from mirror.runtime.environment import Environment
from mirror.sharding.share import Share
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.workers.known_workers import Workers


@dataclass
class _Worker:
    """As far as it is looked at here."""

    name: str
    is_reachable: bool = True
    is_gone: bool = False
    has_settled: bool = True
    spec: None = None
    kinds_run_here: tuple[()] = ()


class _Clock(SystemClock):
    """One that moves when it is moved."""

    at = 0.0

    def monotonic(self) -> float:
        return self.at


def mover(namespace: str, number: int) -> Mover:
    return Mover("2026-03-01T12:00:00Z", SourceKey("Job", namespace, str(number)), f"{namespace}-{number}")


class _Turns:
    """Some workers, and what is reported of them."""

    def __init__(
        self, *names: str, scope: MoveScope = EVERYWHERE, rate: float = 0.0, clock: Clock | None = None
    ) -> None:
        self.workers = {name: _Worker(name) for name in names or ("east", "north", "west")}
        self.known = Workers()
        for worker in self.workers.values():
            self.known.add(cast(Any, worker))
        self.clock, self.metrics, self.warned = _Clock(), Metrics(), list[tuple[str, str, str]]()
        self.turns = MoveTurns(
            self.known,
            rate=rate,
            environment=Environment(clock or self.clock, get_log("test"), self.metrics),
            warn=lambda *of: self.warned.append(of),
            scope=scope,
        )
        self.given = list[tuple[float, str]]()
        self.turns.on_turn = lambda mover, at: self.given.append((at, mover.uid))
        self.turns.begin_leading()
        self.clock.at += AFTER_TAKING_OVER_SECONDS

    def set_reachable(self, *names: str) -> None:
        for name, worker in self.workers.items():
            worker.is_reachable = name in names
            self.known.note(cast(Any, worker))

    @property
    def metric(self) -> float | None:
        return self.metrics.registry.get_sample_value("jobmirror_moves_held")


def test_a_look_reports_nothing() -> None:
    """Observing has no effects: who looks may decide otherwise, or not at all."""
    of = _Turns()
    of.set_reachable("west")
    assert of.turns.held("east", "Job") == MOST_ARE_LOST
    assert (of.metric, of.warned) == (0, [])


def test_it_is_reported_once_of_each_lost_worker() -> None:
    of = _Turns()
    of.set_reachable("west")
    of.turns.report()
    of.turns.report()
    assert [(name, reason) for name, reason, _ in of.warned] == [("east", "MovesHeld"), ("north", "MovesHeld")]
    assert of.metric == 1


def test_the_end_is_reported_with_the_next_turn() -> None:
    """Else the metric would stay until the next comparison of workers."""
    of = _Turns()
    of.set_reachable("west")
    of.turns.report()
    of.set_reachable("west", "north")
    assert of.turns.held("east", "Job") == ""
    of.turns.request(mover("a", 0))
    assert of.metric == 0


def test_who_is_declared_dead_is_none_of_the_lost() -> None:
    """That it does not answer says nothing of whether we are cut off; of those that could tell, one half is no most."""
    of = _Turns("dead", "east", "west")
    of.workers["dead"].is_gone = True
    of.set_reachable("west")
    assert of.turns.held("east", "Job") == ""
    of.turns.report()
    assert (of.metric, of.warned) == (0, [])


def test_most_are_most_of_those_that_are_not_declared_dead() -> None:
    """Of five, two are dead: of the other three, two are most."""
    of = _Turns("dead", "gone", "east", "north", "west")
    for name in ("dead", "gone"):
        of.workers[name].is_gone = True
    of.set_reachable("west")
    assert of.turns.held("east", "Job") == MOST_ARE_LOST
    of.turns.report()
    assert [name for name, _, _ in of.warned] == ["east", "north"]


def test_one_that_answers_counts_whatever_is_said_of_it() -> None:
    """It is declared dead by mistake."""
    of = _Turns("dead", "east", "north", "west")
    of.workers["dead"].is_gone = True
    of.set_reachable("west", "dead")
    assert of.turns.held("east", "Job") == ""


def test_what_nobody_asks_about_any_more_ends_too() -> None:
    of = _Turns()
    of.set_reachable("west")
    of.turns.report_end()
    assert of.metric == 0, "no move was held yet"
    of.turns.report()
    of.set_reachable("west", "east", "north")
    of.turns.report_end()
    assert of.metric == 0


def test_a_new_leader_waits_whoever_is_lost() -> None:
    of = _Turns()
    of.turns.begin_leading()
    of.set_reachable("west", "north")
    assert of.turns.held("east", "Job") == JUST_TOOK_OVER
    of.turns.report()
    assert of.metric == 0, "most are there"


def test_what_was_reported_ends_with_the_work() -> None:
    """Of several managers one that assigns no more goes on, and nobody would take it back."""
    of = _Turns()
    of.set_reachable("west")
    of.turns.report()
    of.turns.end_leading()
    assert of.metric == 0


HOLDERS = {"east": "one", "down": "one", "north": "two", "up": "two", "near": "two"}
ASSIGNING = MoveScope(Share(slots=2), Terms(holder=lambda worker: HOLDERS.get(worker, "")))


def test_most_workers_of_one_manager_are_reported_too() -> None:
    """Of each that is lost there: nothing else says why its Jobs stay."""
    of = _Turns(*HOLDERS, scope=ASSIGNING)
    of.set_reachable("north", "up", "near")
    assert (of.turns.held("east", "Job"), of.turns.held("north", "Job")) == (MOST_OF_HOLDER_ARE_LOST, "")
    of.turns.report()
    assert of.metric == 1
    assert [(name, MOST_OF_HOLDER_ARE_LOST in text) for name, _, text in of.warned] == [("down", True), ("east", True)]
    of.set_reachable("north", "up", "near", "down")
    of.turns.report_end()
    assert (of.metric, of.turns.held("east", "Job")) == (0, "")


def test_who_holds_slots_is_asked_only_where_it_matters() -> None:
    """Each look at a source that is to be moved asks what holds it: with one lost worker nothing can."""
    asked: list[str] = []

    def holder(worker: str) -> str:
        asked.append(worker)
        return "one"

    of = _Turns(
        "east", *(f"worker-{number}" for number in range(99)), scope=MoveScope(Share(slots=2), Terms(holder=holder))
    )
    of.set_reachable(*(name for name in of.workers if name != "east"))
    assert of.turns.held("east", "Job") == ""
    assert asked == []


def test_without_a_rate_each_has_its_turn_at_once() -> None:
    of = _Turns()
    for number in range(3):
        of.turns.request(mover("a", number))
    assert [uid for _, uid in of.given] == ["a-0", "a-1", "a-2"]


@pytest.mark.looptime
async def test_turns_come_at_their_rate_and_go_round_the_namespaces() -> None:
    """The first one at once, also after a pause; nobody who waits is asked again."""
    of = _Turns(rate=2.0, clock=LoopClock())
    for number in range(4):
        of.turns.request(mover("a", number))
    of.turns.request(mover("b", 0))
    of.turns.request(mover("b", 0))
    await asyncio.sleep(10)
    of.turns.request(mover("a", 9))
    assert [uid for _, uid in of.given] == ["a-0", "b-0", "a-1", "a-2", "a-3", "a-9"]
    assert [at for at, _ in of.given] == pytest.approx([0, 0.5, 1, 1.5, 2, 10], abs=0.01)


@pytest.mark.looptime
async def test_who_waits_is_forgotten_with_the_work() -> None:
    """Whoever leads next finds them anew."""
    of = _Turns(rate=2.0, clock=LoopClock())
    for number in range(3):
        of.turns.request(mover("a", number))
    of.turns.end_leading()
    await asyncio.sleep(10)
    assert [uid for _, uid in of.given] == ["a-0"]
    of.turns.request(mover("a", 1))
    assert [uid for _, uid in of.given] == ["a-0", "a-1"]
