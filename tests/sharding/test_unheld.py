"""Workers whose slot nobody holds are named, by each replica's log and by one event (S13)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from doubles.clock import LoopClock
from doubles.managers import HOME
from doubles.transport import Wire, client_of, wire_to

from mirror.kube.limits import Limiter
from mirror.kube.objects import Object, decode_object
from mirror.model import names
from mirror.runtime.environment import Environment
from mirror.sharding.board import LeaseBoard
from mirror.sharding.coordinator import Coordinator, Holding, ShardingSettings
from mirror.sharding.membership import MemberSettings
from mirror.sharding.slots import slot_of_worker
from mirror.sharding.unheld import UnheldSlots
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics

pytestmark = pytest.mark.looptime

Lines = list[dict[str, Any]]
WORKERS = ("east", "north", "west")
SLOTS = 4


class Looking:
    """A replica that takes part, and looks for slots that nobody holds; ``run`` it."""

    def __init__(self, wire: Wire, name: str, slots: int = SLOTS) -> None:
        self.is_ready = True
        self.events: list[tuple[str, str, str]] = []
        clock = LoopClock()
        self.coordinator = Coordinator(
            client_of(wire, peer=name),
            ShardingSettings(MemberSettings(HOME, name, slots)),
            self._work,
            is_ready=lambda: self.is_ready,
            limiter=Limiter(0, 1, clock.monotonic),
            environment=Environment(clock, get_log("test"), Metrics()),
        )
        self.unheld = UnheldSlots(
            self.coordinator.unheld,
            lambda: WORKERS,
            is_spokesman=lambda: self.coordinator.is_spokesman,
            warn=lambda *event: self.events.append(event),
            log=get_log(name),
        )

    async def _work(self, holding: Holding) -> None:
        await asyncio.Event().wait()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as scope:
            scope.create_task(self.coordinator.run())
            scope.create_task(self.unheld.run())


class Running:
    """Replicas that run as long as this is entered."""

    def __init__(self, *replicas: Looking) -> None:
        self._replicas = replicas

    async def __aenter__(self) -> None:
        self._tasks = [asyncio.ensure_future(one.run()) for one in self._replicas]

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)


def said(lines: Lines) -> list[dict[str, Any]]:
    return [line for line in lines if line["event"] == "slots not held"]


async def test_slots_that_nobody_holds_are_named_by_all_and_told_by_who_assigns(log_lines: Lines) -> None:
    """None of them is ready, so none takes a slot; one assigns all the same."""
    wire = wire_to("c")
    replicas = [Looking(wire, name) for name in ("one", "two", "three")]
    for one in replicas:
        one.is_ready = False
    async with Running(*replicas):
        await asyncio.sleep(59)
        assert said(log_lines) == []
        await asyncio.sleep(70)
        slots = sorted({slot_of_worker(name, SLOTS) for name in WORKERS})
        lines = said(log_lines)
        assert {(line["slots"], line["workers"]) for line in lines} == {(", ".join(map(str, slots)), len(WORKERS))}
        assert len(lines) in (3, 6), "each replica's, each minute"
        (teller,) = [one for one in replicas if one.events]
        assert teller.coordinator.is_spokesman
        assert {(name, reason) for name, reason, _ in teller.events} == {(name, "SlotUnheld") for name in WORKERS}
        assert {text for name, _, text in teller.events if name == "east"} == {
            f"no manager holds slot {slot_of_worker('east', SLOTS)}, which this worker is in: "
            "Jobs on it are not followed, and none starts"
        }
        for one in replicas:
            one.is_ready = True
        await asyncio.sleep(20)
        log_lines.clear()
        await asyncio.sleep(300)
        assert said(log_lines) == []


async def test_without_one_that_assigns_the_first_of_all_tells() -> None:
    boards = {name: LeaseBoard(name, SLOTS) for name in ("one", "two", "three")}
    for board in boards.values():
        for name in boards:
            board.note(lease(MemberSettings(HOME, name, SLOTS).lease, name), 0.0)
    assert [name for name, board in boards.items() if board.is_spokesman(1.0)] == ["one"]
    for board in boards.values():
        board.note(lease(names.LEASE, "two"), 2.0)
    assert [name for name, board in boards.items() if board.is_spokesman(3.0)] == ["two"]


def lease(name: str, holder: str) -> Object:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 30}
    return decode_object(msgspec.json.encode({"metadata": {"name": name, "resourceVersion": "1"}, "spec": spec}))


async def test_slots_that_are_held_are_not_named(log_lines: Lines) -> None:
    """Nor are those of one that is killed: others take them within a minute."""
    wire = wire_to("c")
    replicas = [Looking(wire, name) for name in ("one", "two")]
    async with Running(*replicas):
        await asyncio.sleep(100)
        wire.faults.cut_off("two")
        await asyncio.sleep(100)
        assert said(log_lines) == []


async def test_who_does_not_see_its_own_leases_says_nothing_of_others(log_lines: Lines) -> None:
    """It is cut off, or its watch is silent: all seem to be nobody's."""
    wire = wire_to("c")
    only = Looking(wire, "one")
    async with Running(only):
        await asyncio.sleep(10)
        wire.mute_watches("leases")
        await asyncio.sleep(200)
        assert said(log_lines) == []


async def test_a_number_of_slots_that_is_not_in_force_yet_has_no_holders_and_needs_none(log_lines: Lines) -> None:
    wire = wire_to("c")
    before, after = Looking(wire, "before"), Looking(wire, "after", slots=8)
    async with Running(before):
        await asyncio.sleep(30)
        async with Running(after):
            await asyncio.sleep(200)
            assert said(log_lines) == []
            assert after.coordinator.held == ()
