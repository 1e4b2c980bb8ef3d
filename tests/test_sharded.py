"""What an instance of mirroring for one share runs beside its work (S1), in virtual time."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.managers import HOME, settings_of
from doubles.transport import client_of
from doubles.world import World

from mirror.connecting import Connections
from mirror.controllers.tracing import Traces
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.client import Client
from mirror.kube.limits import Limiter
from mirror.kube.permits import WritePermit
from mirror.model import names
from mirror.model.terms import Terms
from mirror.planes.api import Api
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import LeaseSettings
from mirror.settings.load import parse
from mirror.sharded import Sharded, _Instance
from mirror.sharding.coordinator import Holding
from mirror.sharding.share import Share
from mirror.sharding.slots import slot_of_worker
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.telemetry.spans import Span

pytestmark = pytest.mark.looptime

SETTINGS = parse(f"namespace: {HOME}\nkinds: [JobSet]\nsharding: {{slots: 2}}\n".encode(), "mirror.yaml")
SLOT = slot_of_worker("east", 2)
CHECK = "check kinds of workers"


class ToWorld:
    """``connecting.Connections``."""

    settings = SETTINGS

    def __init__(self, world: World) -> None:
        self._world = world
        self.limiter = Limiter(0, 1, LoopClock().monotonic)

    async def management(self, permit: WritePermit | None) -> Client:
        return client_of(self._world.management, permit=permit)

    async def worker(self, name: str, kubeconfig: bytes, permit: WritePermit | None) -> Client:
        return await self._world.connect(name, kubeconfig, permit=permit)


@asynccontextmanager
async def instance_for(world: World, share: Share, *, traces: Traces | None = None) -> AsyncIterator[_Instance]:
    """As whoever holds it makes it."""
    clock = LoopClock()
    environment = Environment(clock, get_log("mirror"), Metrics())
    permit = WritePermit(clock.boottime)
    permit.extend(until=math.inf, ends=math.inf)
    sharded = Sharded(
        client_of(world.management),
        settings_of(world.origin, kinds=kinds_of(SETTINGS.kinds)),
        LeaseSettings(HOME, names.LEASE, "one"),
        connect=cast(Connections, ToWorld(world)),
        environment=environment,
        is_ready=lambda: True,
        traces=traces,
    )
    holding = Holding(share.slot, permit, lambda: "t1")
    async with sharded._build(share, Terms(lambda worker: "t1"), holding) as instance:
        yield instance


def job_sets() -> dict[str, Any]:
    """A definition of a release that can not be suspended."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": {"type": "object"}, "status": anything}}
    served = {"name": "v1alpha2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "jobset.x-k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "jobsets", "kind": "JobSet"},
        "versions": [{**served, "subresources": {"status": {}}}],
    }
    return {"metadata": {"name": "jobsets.jobset.x-k8s.io"}, "spec": spec}


async def test_who_holds_a_slot_reads_the_definitions_of_its_workers() -> None:
    """And tells their operators: nobody else is connected to them."""
    world = World()
    east = world.add_worker("east")
    await Api(east.server.inner).create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", job_sets())
    async with instance_for(world, Share(SLOT)) as instance, asyncio.TaskGroup() as scope:
        tasks = [scope.create_task(work(), name=name) for name, work in instance.background]
        tasks.append(scope.create_task(instance.lead(), name="lead"))
        await asyncio.sleep(60)
        assert instance.mirroring.registry.workers["east"].incomplete_kinds == {"JobSet": "spec.suspend"}
        assert world.events() == ["InvalidKindEntry"]
        for task in tasks:
            task.cancel()


async def test_who_holds_a_slot_sends_traces_of_its_jobs() -> None:
    """One collector for all that run in a process."""
    world, sent = World(), list[tuple[Span, ...]]()
    world.add_worker("east")
    placed = {"type": names.PLACED, "status": "True", "reason": "Placed:t1", "message": "east"}
    world.create(job())
    world.edit(lambda body: body.update(status={"conditions": [placed]}))
    traces = Traces(sent.append, LoopClock())
    async with instance_for(world, Share(SLOT), traces=traces) as instance, asyncio.TaskGroup() as scope:
        tasks = [scope.create_task(work(), name=name) for name, work in instance.background]
        tasks.append(scope.create_task(instance.lead(), name="lead"))
        await asyncio.sleep(10)
        world.controller("east").start("train")
        await asyncio.sleep(10)
        world.controller("east").complete("train")
        await asyncio.sleep(10)
        (spans,) = sent
        assert "Job" in [span.name for span in spans]
        for task in tasks:
            task.cancel()


async def test_who_assigns_reads_none() -> None:
    async with instance_for(World(), Share(slots=2)) as instance:
        assert CHECK not in dict(instance.background)
    async with instance_for(World(), Share(SLOT)) as instance:
        assert CHECK in dict(instance.background)
