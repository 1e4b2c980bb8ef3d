"""What the manager says of settings that do not fit the definitions of a worker, in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pytest
from doubles.clock import LoopClock

from mirror.controllers.kind_schemas import kinds_by_path
from mirror.controllers.worker_schemas import (
    AGAIN_SECONDS,
    AT_ONCE,
    INTERVAL_SECONDS,
    RETRY_SECONDS,
    ROUND_SECONDS,
    SOON_SECONDS,
    WorkerSchemas,
)
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.errors import Unreachable
from mirror.kube.requests import Request
from mirror.kube.resources import Resource
from mirror.runtime.environment import Environment
from mirror.settings.load import parse
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.workers.worker import Worker

pytestmark = pytest.mark.looptime

SETTINGS = b"""
kinds:
- kind: Simulation
  resource: simulations.v1.example.com
  suspend: {path: spec.paused}
  done: {succeeded: [phase=Done], failed: [phase=Lost]}
  carry: {always: [spec.size]}
  lost: {set: {phase: Lost}}
"""
SIMULATIONS = Resource("example.com", "v1", "simulations", "Simulation")
PROBLEM = "kinds[0].carry.always[0]: spec.size is no field of Simulation"


@dataclass
class Cluster:
    """A worker, and its API server."""

    name: str
    fields: tuple[str, ...] = ("managedBy", "paused")
    is_reachable: bool = True
    is_answering: bool = True
    unserved_kinds: frozenset[str] = frozenset()
    address: str = ""
    """What it says to be the address of its document, if not the usual one."""
    takes_seconds: float = 0.0
    """Until it answers."""
    is_published: bool = True
    is_in_index: bool = True
    requests: list[str] = field(default_factory=list)
    incomplete_kinds: dict[str, str] = field(default_factory=dict)
    """As of a ``Worker``."""
    listed: int = 1
    """How often its Simulations were."""

    @property
    def client(self) -> Cluster:
        return self

    @property
    def watches(self) -> Cluster:
        return self

    def lists(self) -> Mapping[Resource, int]:
        return {SIMULATIONS: self.listed}

    def note_incomplete(self, kind: str, fields: str) -> None:
        self.incomplete_kinds[kind] = fields

    async def send(self, request: Request) -> bytes:
        self.requests.append(request.path)
        if not self.is_answering:
            raise Unreachable("connection refused")
        await asyncio.sleep(self.takes_seconds)
        spec = {"properties": {name: {"type": "string"} for name in self.fields}}
        status = {"properties": {"phase": {"type": "string"}, "conditions": {"type": "array"}}}
        schema = {"properties": {"spec": spec, "status": status}}
        document = json.dumps(
            {"components": {"schemas": {"com.example.v1.Simulation": schema} if self.is_published else {}}}
        )
        if request.path != "/openapi/v3":
            return document.encode()
        address = self.address or f"/openapi/v3/apis/example.com/v1?hash={hash(document)}"
        name = "apis/example.com/v1" if self.is_in_index else "apis/batch/v1"
        return json.dumps({"paths": {name: {"serverRelativeURL": address}}}).encode()

    def reads(self) -> int:
        return len([path for path in self.requests if "example.com" in path])


class Scene:
    """Some workers, and what is said of them."""

    def __init__(self, *workers: Cluster) -> None:
        self.workers = list(workers)
        self.is_working = True
        self.events: list[tuple[str, str]] = []
        self.metrics = Metrics()
        settings = parse(SETTINGS, "mirror.yaml")
        schemas = WorkerSchemas(
            lambda: cast(list[Worker], self.workers),
            kinds_by_path(kinds_of(settings.kinds), settings.kinds),
            warn=self._warn,
            is_working=lambda: self.is_working,
            environment=Environment(clock=LoopClock(), log=get_log("mirror"), metrics=self.metrics),
        )
        self.task = asyncio.create_task(schemas.run())

    def _warn(self, worker: Worker, reason: str, text: str) -> None:
        assert reason == "InvalidKindEntry"
        self.events.append((worker.name, text))

    def counted(self, worker: str) -> float | None:
        labels = {"cluster": worker, "kind": "Simulation"}
        return self.metrics.registry.get_sample_value("jobmirror_kind_unknown_fields", labels)


async def test_each_worker_is_asked_and_read() -> None:
    """What is wrong is an event about each of them, and counted; it is said once."""
    north, east, west = Cluster("north"), Cluster("east"), Cluster("west", ("managedBy", "paused", "size"))
    scene = Scene(north, east, west)
    await asyncio.sleep(3 * INTERVAL_SECONDS + 1)
    assert [(name, PROBLEM in text) for name, text in scene.events] == [("north", True), ("east", True)]
    assert [scene.counted(one.name) for one in (north, east, west)] == [1, 1, 0]
    assert [one.reads() for one in (north, east, west)] == [1, 1, 1]
    assert {len(one.requests) - one.reads() for one in (north, east, west)} == {1}

    north.fields = west.fields
    await asyncio.sleep(AGAIN_SECONDS)
    assert scene.counted("north") == 0
    assert len(scene.events) == 2
    assert [one.reads() for one in (north, east, west)] == [2, 1, 1]
    scene.task.cancel()


async def test_one_that_does_not_answer_or_serve_it_is_asked_when_it_does() -> None:
    """It keeps no other from being asked; who only stands by asks nobody."""
    lost, fails = Cluster("lost", is_reachable=False), Cluster("fails", is_answering=False)
    lacks, well = Cluster("lacks", unserved_kinds=frozenset({"Simulation"})), Cluster("well")
    scene = Scene(lost, fails, lacks, well)
    scene.is_working = False
    await asyncio.sleep(INTERVAL_SECONDS + 1)
    assert not [one.requests for one in scene.workers if one.requests]

    scene.is_working = True
    await asyncio.sleep(INTERVAL_SECONDS)
    assert [name for name, _ in scene.events] == ["well"]
    assert (lost.requests, lacks.requests) == ([], [])

    lost.is_reachable, fails.is_answering, lacks.unserved_kinds = True, True, frozenset()
    await asyncio.sleep(INTERVAL_SECONDS)
    assert {name for name, _ in scene.events} == {"well", "lost", "lacks"}
    await asyncio.sleep(RETRY_SECONDS)
    assert {name for name, _ in scene.events} == {"well", "lost", "fails", "lacks"}
    scene.workers.remove(well)
    await asyncio.sleep(INTERVAL_SECONDS)
    scene.workers.append(well)
    await asyncio.sleep(INTERVAL_SECONDS)
    assert [name for name, _ in scene.events].count("well") == 2
    scene.task.cancel()


async def test_what_one_worker_says_of_an_address_is_told_of_it_alone() -> None:
    """D12: by the address of another one's document, a hostile worker would have its lie told of all."""
    address = "/openapi/v3/apis/example.com/v1?hash=A1"
    liar, honest = Cluster("liar", address=address), Cluster("honest", ("managedBy", "paused", "size"), address=address)
    scene = Scene(liar, honest)
    await asyncio.sleep(INTERVAL_SECONDS + 1)
    assert [name for name, _ in scene.events] == ["liar"]
    assert [scene.counted(one.name) for one in (liar, honest)] == [1, 0]
    scene.task.cancel()


async def test_by_an_address_that_no_server_has_nothing_is_remembered() -> None:
    """D29: it would be kept; the document is read each time."""
    usual, long = Cluster("usual", address="/" + "a" * 299), Cluster("long", address="/" + "a" * 300)
    scene = Scene(usual, long)
    await asyncio.sleep(AGAIN_SECONDS + 2 * INTERVAL_SECONDS + 1)
    assert (usual.reads(), long.reads()) == (1, 2)
    scene.task.cancel()


async def test_one_that_does_not_say_is_asked_again_after_a_while() -> None:
    """Not each minute: a document that lacks the kind has megabytes, too."""
    lacks, fails = Cluster("lacks", is_published=False), Cluster("fails", is_answering=False)
    scene = Scene(lacks, fails)
    await asyncio.sleep(RETRY_SECONDS + INTERVAL_SECONDS - 1)
    assert (lacks.reads(), len(fails.requests)) == (1, 1)
    lacks.is_published = fails.is_answering = True
    await asyncio.sleep(INTERVAL_SECONDS)
    assert (lacks.reads(), len(fails.requests)) == (2, 3)
    assert {name for name, _ in scene.events} == {"lacks", "fails"}
    scene.task.cancel()


async def test_slow_ones_hold_up_no_other() -> None:
    """D12: each has half a minute, and a few are asked at a time."""
    slow = [Cluster(f"slow{number}", takes_seconds=ROUND_SECONDS - 1) for number in range(AT_ONCE - 1)]
    hangs, well = Cluster("hangs", takes_seconds=10 * INTERVAL_SECONDS), Cluster("well")
    scene = Scene(*slow[:-1], hangs, well)
    await asyncio.sleep(INTERVAL_SECONDS + 1)
    assert [name for name, _ in scene.events] == ["well"]

    scene.workers += [slow[-1], late := Cluster("late")]
    await asyncio.sleep(ROUND_SECONDS + INTERVAL_SECONDS)
    assert [name for name, _ in scene.events] == ["well", "late"]
    assert (len(hangs.requests), late.reads()) == (1, 1)
    scene.task.cancel()


async def test_of_a_worker_that_is_forgotten_meanwhile_nothing_is_counted() -> None:
    """A series of it would stay for ever. Another one of the same name is asked for itself."""
    north = Cluster("north", takes_seconds=5)
    scene = Scene(north)
    await asyncio.sleep(INTERVAL_SECONDS + 1)
    scene.workers[:] = [Cluster("north")]
    await asyncio.sleep(2 * north.takes_seconds + INTERVAL_SECONDS / 2)
    assert north.reads() == 1
    assert scene.events == []
    assert scene.counted("north") is None
    await asyncio.sleep(INTERVAL_SECONDS)
    assert [name for name, _ in scene.events] == ["north"]
    scene.task.cancel()


async def test_one_that_lacks_what_no_mirror_works_without_gets_none() -> None:
    """Until its definition has it: then its index says so within a minute, and the definition is read again."""
    lacks, well = Cluster("lacks", ("managedBy", "size")), Cluster("well", ("paused", "size"))
    scene = Scene(lacks, well)
    await asyncio.sleep(INTERVAL_SECONDS + 1)
    assert lacks.incomplete_kinds == {"Simulation": "spec.paused"}
    assert well.incomplete_kinds == {"Simulation": ""}  # who runs it is said on sources alone
    assert [text.partition("; ")[2] for name, text in scene.events if name == "lacks"] == [
        "this worker gets no Simulation until it has these fields"
    ]
    await asyncio.sleep(5 * SOON_SECONDS)
    assert (lacks.reads(), well.reads()) == (1, 1)
    assert len(well.requests) == 2
    lacks.fields = ("paused", "size")
    await asyncio.sleep(SOON_SECONDS + INTERVAL_SECONDS)
    assert lacks.incomplete_kinds == {"Simulation": ""}
    assert lacks.reads() == 2
    scene.task.cancel()


async def test_one_whose_definition_was_replaced_is_asked_at_once() -> None:
    """However fast: what was watched has ended, so that all there is was listed anew."""
    north, south = Cluster("north", ("paused", "size")), Cluster("south", ("paused", "size"))
    scene = Scene(north, south)
    await asyncio.sleep(INTERVAL_SECONDS + 1)
    north.fields = south.fields = ("size",)
    north.listed += 1
    await asyncio.sleep(INTERVAL_SECONDS)
    assert [one.incomplete_kinds for one in (north, south)] == [{"Simulation": "spec.paused"}, {"Simulation": ""}]
    south.listed += 1
    south.is_reachable = False
    await asyncio.sleep(INTERVAL_SECONDS)
    south.is_reachable = True
    await asyncio.sleep(INTERVAL_SECONDS)
    assert south.incomplete_kinds == {"Simulation": "spec.paused"}
    north.fields = south.fields = ("paused", "size")
    await asyncio.sleep(600 + INTERVAL_SECONDS)
    assert [one.incomplete_kinds for one in (north, south)] == [{"Simulation": ""}] * 2
    requests = [len(one.requests) for one in (north, south)]
    await asyncio.sleep(2 * INTERVAL_SECONDS)
    assert [len(one.requests) for one in (north, south)] == requests
    scene.task.cancel()


async def test_what_another_process_has_found_is_looked_at_again() -> None:
    """It led for a while, and has gone since; this one has read a definition that was as it should be."""
    north = Cluster("north", ("paused", "size"))
    scene = Scene(north)
    await asyncio.sleep(INTERVAL_SECONDS + 1)
    north.incomplete_kinds = {"Simulation": "spec.paused"}
    await asyncio.sleep(INTERVAL_SECONDS)
    assert north.incomplete_kinds == {"Simulation": ""}
    scene.task.cancel()


async def test_one_that_has_begun_to_serve_it_is_asked_at_once() -> None:
    """Whatever was known before is of another definition; one that is not in the index yet is in a moment."""
    north = Cluster("north", ("paused", "size"))
    scene = Scene(north)
    await asyncio.sleep(INTERVAL_SECONDS + 1)
    assert north.incomplete_kinds == {"Simulation": ""}
    north.unserved_kinds = frozenset({"Simulation"})
    await asyncio.sleep(2 * INTERVAL_SECONDS)
    north.unserved_kinds, north.fields, north.is_in_index = frozenset(), ("size",), False
    await asyncio.sleep(INTERVAL_SECONDS)
    assert (north.reads(), north.incomplete_kinds) == (1, {"Simulation": ""})
    north.is_in_index = True
    await asyncio.sleep(SOON_SECONDS)
    assert (north.reads(), north.incomplete_kinds) == (2, {"Simulation": "spec.paused"})
    scene.task.cancel()
