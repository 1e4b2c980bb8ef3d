"""Several informers together: whether all of them know what there is (``Informers.is_synced``)."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from doubles.counting import Count, as_the_managers
from doubles.jobs import job
from doubles.refusals import Refused
from doubles.transport import Wire, client_of, wire_to

from mirror.kube.client import Client
from mirror.kube.resources import JOBS
from mirror.runtime.informer import Informer, InformerHooks, Scope
from mirror.runtime.informers import Informers
from mirror.runtime.store import Store
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

NOT_SERVED = Refused(404, "NotFound")


def ignore(*_: object) -> None:
    """Nothing follows from it."""


class Watched:
    """Informers of optional resources, each on a cluster of its own; ``seen``: what all have said at each change."""

    def __init__(self, count: int) -> None:
        self.wires = [wire_to(f"c{number}") for number in range(count)]
        self.seen: list[bool] = []
        informers = {f"c{number}": self._informer(wire) for number, wire in enumerate(self.wires)}
        self.informers = Informers(informers, log=get_log("mirror"))

    def _informer(self, wire: Wire) -> Informer:
        client: Client = client_of(wire)
        hooks = InformerHooks(ignore, on_healthy=self.check, on_absent=lambda _: self.check())
        return Informer(Scope(JOBS), Store(), client=lambda: client, hooks=hooks)

    def check(self) -> None:
        """What is counted is what going through all of them shows."""
        said = self.informers.is_synced
        assert said == all(informer.is_synced for informer in self.informers)
        self.seen.append(said)


async def test_it_is_what_each_of_them_says() -> None:
    """Listed, not served, listed anew for another leader: in any order, at each change and between them."""
    watched, chance = Watched(3), random.Random(1)
    watched.check()
    assert watched.seen == [False]
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(watched.informers.run(), name="informers")
        for number in range(150):
            wire = chance.choice(watched.wires)
            match chance.randrange(5):
                case 0:
                    wire.arrange("watch", "jobs", NOT_SERVED, times=chance.choice([1, 2, math.inf]))
                case 1:
                    wire.restore()
                case 2:
                    wire.end_watches()
                case 3:
                    watched.informers.list_anew()
                case _:
                    wire.server.put("jobs", job(f"job-{number}"))
            await asyncio.sleep(chance.choice([0.0, 0.001, 0.1, 2.0, 20.0]))
            watched.check()
        for wire in watched.wires:
            wire.restore()
        await asyncio.sleep(60)
        assert watched.informers.is_synced
        task.cancel()
    assert {True, False} <= set(watched.seen)


async def listed(count: int) -> Informers:
    """Some that have run for a while."""
    watched = Watched(count)
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(watched.informers.run(), name="informers")
        await asyncio.sleep(1)
        task.cancel()
    return watched.informers


async def test_what_they_know_already_counts() -> None:
    """Some may have run before they are put together."""
    (informer,) = await listed(1)
    informers = Informers({"one": informer}, log=get_log("mirror"))
    assert informers.is_synced
    informer.expire()
    assert not informers.is_synced
    assert Informers({}, log=get_log("mirror")).is_synced


async def cost_of_asking(count: int) -> int:
    """In bytecodes."""
    informers, counted = await listed(count), Count()
    with as_the_managers():
        counted.start()
        assert informers.is_synced
        counted.stop()
    return counted.bytecodes.total()


async def test_asking_costs_the_same_however_many_there_are() -> None:
    """It is asked with each look at a Job, and there is an informer of each kind, those that no cluster serves, too."""
    assert await cost_of_asking(1) == await cost_of_asking(14)
