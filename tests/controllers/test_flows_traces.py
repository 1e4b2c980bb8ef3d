"""Traces of Jobs, by a whole manager: one for each that ends, whatever happens around its last write."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from doubles.clock import LoopClock
from doubles.jobs import condition, job
from doubles.slots import assigner_of, holder_of, index_of, world_of
from doubles.transport import Fault
from doubles.world import World, manager_of, two_workers
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from mirror.controllers.tracing import RECENT_SECONDS, Traces
from mirror.model import names
from mirror.telemetry.otlp import Collector

pytestmark = pytest.mark.looptime

ALL = ["Job", "running", "starting", "status", "waiting"]


class Tracing:
    """Traces, and what was sent of them."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.traces = Traces(Collector(SimpleSpanProcessor(self._exporter)).send, LoopClock())

    @property
    def sent(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return sorted(span.name for span in self.sent)

    def root(self) -> ReadableSpan:
        (found,) = (span for span in self.sent if span.parent is None)
        return found


async def run_to_the_end(world: World, manager: Any) -> None:
    world.create(job())
    await manager.settle(3)
    world.controller("east").start("train")
    await manager.settle(10)
    world.controller("east").complete("train")
    await manager.settle(3)


async def test_a_job_that_completes_is_traced_once() -> None:
    """From its creation to the moment its final status was stored, with its uid as the trace's id."""
    tracing = Tracing()
    async with two_workers(traces=tracing.traces) as (world, manager):
        world.create(job())
        await manager.settle(3)
        world.controller("east").start("train")
        await manager.settle(10)
        assert tracing.sent == ()
        world.controller("east").complete("train")
        await manager.settle(60)
        world.edit(lambda body: body["metadata"].setdefault("labels", {}).update(touched="yes"))
        await manager.settle()
        uid = world.source()["metadata"]["uid"]
        world.delete()
        await manager.settle()

        assert tracing.names == ALL
        root = tracing.root()
        assert {f"{span.context.trace_id:032x}" for span in tracing.sent} == {uid.replace("-", "")}
        assert root.status.status_code is StatusCode.UNSET
        assert root.attributes["jobmirror.worker"] == "east"
        assert root.attributes["k8s.job.name"] == "train"
        running = next(span for span in tracing.sent if span.name == "running")
        assert (running.end_time - running.start_time) / 1e9 == pytest.approx(10, abs=1)


async def test_a_job_that_fails_is_an_error() -> None:
    """The trace's root says why."""
    tracing = Tracing()
    async with two_workers(traces=tracing.traces) as (world, manager):
        world.create(job())
        await manager.settle(3)
        at = world.workers["east"].clock.text()
        ends = [condition(kind, at, reason="BackoffLimitExceeded") for kind in ("FailureTarget", "Failed")]
        none = {"ready": 0, "terminating": 0, "uncountedTerminatedPods": {}}
        world.controller("east").set("train", none | {"failed": 1, "startTime": at, "conditions": ends})
        await manager.settle(3)

        assert "Failed" in world.conditions()
        assert tracing.names == ALL
        assert tracing.root().status.status_code is StatusCode.ERROR
        assert tracing.root().status.description == "BackoffLimitExceeded"


async def test_a_write_whose_answer_is_lost_is_traced_all_the_same() -> None:
    """The watch shows that it went well; nobody knows when."""
    tracing = Tracing()
    async with two_workers(traces=tracing.traces) as (world, manager):
        world.create(job())
        await manager.settle(3)
        world.controller("east").start("train")
        await manager.settle(3)
        world.management.arrange("patch", "jobs", Fault.LOSE_ANSWER, times=1)
        world.controller("east").complete("train")
        await manager.settle(10)

        assert "Complete" in world.conditions()
        assert tracing.names == [name for name in ALL if name != "status"]


async def test_a_manager_that_takes_over_repeats_what_may_be_lost_with_the_same_ids() -> None:
    """The one before may have ended before it sent the newest: a repeat is the same span, older ones are let be."""
    before, after, late = Tracing(), Tracing(), Tracing()
    async with two_workers(traces=before.traces) as (world, manager):
        await run_to_the_end(world, manager)
    async with manager_of(world, traces=after.traces) as manager:
        await manager.settle(3)
    await asyncio.sleep(RECENT_SECONDS)
    async with manager_of(world, traces=late.traces) as manager:
        await manager.settle(3)

    def ids(tracing: Tracing) -> Counter[tuple[int, int]]:
        return Counter((span.context.trace_id, span.context.span_id) for span in tracing.sent)

    assert set(ids(before).values()) == set(ids(after).values()) == {1}
    assert ids(after).keys() < ids(before).keys()
    assert after.names == [name for name in ALL if name != "status"]
    assert late.sent == ()


async def test_with_slots_who_follows_a_job_sends_its_trace_and_nobody_else() -> None:
    """Who assigns sees its end, too, and leaves it to the holder (S2)."""
    assigner, holders, world = Tracing(), {name: Tracing() for name in ("east", "north")}, world_of()
    async with (
        holder_of(world, index_of("east"), traces=holders["east"].traces),
        holder_of(world, index_of("north"), traces=holders["north"].traces),
        assigner_of(world, traces=assigner.traces) as manager,
    ):
        world.create(job())
        await manager.settle(3)
        placed = world.placed()
        assert placed is not None
        world.controller(placed).start("train")
        await manager.settle(10)
        world.controller(placed).complete("train")
        await manager.settle(60)

        assert "Complete" in world.conditions()
        following = holders.pop(placed)
        (other,) = holders.values()
        assert following.names == ALL
        assert (assigner.sent, other.sent) == ((), ())


async def test_with_slots_the_end_of_a_moved_job_is_traced_by_who_has_it_now() -> None:
    """The holder of the worker that it left keeps it in view for its copy there, and sends nothing of it (D14)."""
    former, world = Tracing(), world_of()
    at = world.workers["north"].clock.text()
    moved = {"type": names.MOVED, "status": "True", "reason": "WorkerLost"}
    moved["message"] = "move 1, from east to north; left behind: east (uid 4f5a)"
    placed = {"type": names.PLACED, "status": "True", "reason": "Placed:t1", "message": "north"}
    ends = [condition(kind, at, reason="CompletionsReached") for kind in ("SuccessCriteriaMet", "Complete")]
    world.create(job())
    status = {"startTime": at, "completionTime": at, "succeeded": 1, "conditions": [placed, moved, *ends]}
    world.edit(lambda body: body.update(status=status))
    async with holder_of(world, index_of("east"), traces=former.traces) as manager:
        await manager.settle(60)
        assert [key.name for key in manager.mirroring.sources.all_keys()] == ["train"]
        assert former.sent == ()
