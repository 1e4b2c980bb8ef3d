"""A leader that stood still past its lease wakes up, and writes nothing any more (D28).

Its clock jumps while the loop's time stands still: what was under way goes on in the next moment, as after SIGCONT.
"""

from __future__ import annotations

import asyncio

import pytest
from doubles.candidates import candidate_for
from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.pods import Node
from doubles.transport import Sent, client_of, wire_to
from doubles.world import HOME, World

from mirror.jobcontroller.metrics import JobMetrics
from mirror.jobcontroller.process import JobControllerComponent, JobControllerSettings, permit_of
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import LeadershipLost
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics

pytestmark = pytest.mark.looptime

UNDER_WAY_SECONDS = 0.0011
"""What was sent before has arrived by then."""


def written(world: World, name: str, *, since: float) -> list[Sent]:
    """What this manager sent after a moment, leases included."""
    wires = (world.management, *world.workers.values())
    return [sent for wire in wires for sent in wire.sent if sent.writes and sent.peer == name and sent.at > since]


@pytest.mark.slow
@pytest.mark.parametrize("step", range(24))
async def test_a_leader_that_wakes_up_alone_writes_nothing(step: int) -> None:
    """At whatever moment of placing, creating, following and deleting it stood still; nobody took its lease."""
    world = World()
    world.add_worker("east")
    async with candidate_for(world, "sleeper", elected=True) as sleeper:
        ended = sleeper.run()
        await asyncio.sleep(1)
        for name in ("ends", "goes"):
            world.create(job(name))
        await asyncio.sleep(1)
        world.controller("east").start("ends")
        await asyncio.sleep(1)
        world.controller("east").complete("ends")
        world.delete("goes")
        for number in range(5):
            world.create(job(f"new-{number}"))
        await asyncio.sleep(0.0004 * step)
        asleep_at = asyncio.get_running_loop().time()
        sleeper.clock.slept_seconds += 20.0
        world.create(job("later"))
        await asyncio.sleep(30)
        assert [sent.path for sent in written(world, "sleeper", since=asleep_at + UNDER_WAY_SECONDS)] == []
        assert isinstance(ended.result(), LeadershipLost)


async def test_a_leader_that_slept_for_less_than_its_lease_goes_on() -> None:
    """A machine that is suspended for a moment loses nothing."""
    world = World()
    world.add_worker("east")
    async with candidate_for(world, "sleeper", elected=True) as sleeper:
        ended = sleeper.run()
        await asyncio.sleep(1)
        for number in range(5):
            sleeper.clock.slept_seconds += 5.0
            world.create(job(f"j{number}"))
            await asyncio.sleep(5)
            assert world.mirrors(f"j{number}") == ["east"]
        assert not ended.done()


async def test_the_one_that_took_over_is_not_disturbed() -> None:
    """Whoever stands by counts the same time, takes the lease, and is the only one that writes."""
    world = World()
    world.add_worker("east")
    async with (
        candidate_for(world, "sleeper", elected=True) as sleeper,
        candidate_for(world, "other", elected=True) as other,
    ):
        ended = sleeper.run()
        await asyncio.sleep(1)
        other.run()
        await asyncio.sleep(20)
        asleep_at = asyncio.get_running_loop().time()
        for candidate in (sleeper, other):
            candidate.clock.slept_seconds += 20.0
        for number in range(5):
            world.create(job(f"j{number}"))
        await asyncio.sleep(20)
        assert {name for number in range(5) for name in world.mirrors(f"j{number}")} == {"east"}
        assert [sent.path for sent in written(world, "sleeper", since=asleep_at + UNDER_WAY_SECONDS)] == []
        assert isinstance(ended.result(), LeadershipLost)
        assert world.management.server.get("leases", "lease", HOME)["spec"]["holderIdentity"] == "other"


async def test_a_standby_writes_nothing_even_if_it_is_made_to() -> None:
    """Its clients hold back what only a leader may send: there is one place that decides it."""
    world = World()
    world.add_worker("east")
    async with candidate_for(world, "standby", elected=True) as standby:
        await asyncio.sleep(1)
        world.create(job())
        standby.lead()
        await asyncio.sleep(60)
        assert written(world, "standby", since=0.0) == []


@pytest.mark.parametrize("step", range(8))
async def test_a_job_controller_that_wakes_up_writes_nothing(step: int) -> None:
    """Pods, statuses and events: the same Lease, the same guard."""
    wire, clock, process = wire_to("home"), LoopClock(), Metrics()
    settings = JobControllerSettings()
    permit = permit_of(settings, clock)
    client = client_of(wire, permit=permit)
    environment = Environment(clock, get_log("test"), process)
    part = JobControllerComponent(client, settings, environment=environment, metrics=JobMetrics(process), permit=permit)
    running = asyncio.create_task(part.run(asyncio.Event()))
    await asyncio.sleep(1)
    wire.server.put("jobs", job("runs", managed_by=None, parallelism=3, completions=3))
    await asyncio.sleep(2)
    for pod in wire.server.all("pods"):
        Node(wire).succeed(pod["metadata"]["name"])
    wire.server.put("jobs", job("new", managed_by=None, parallelism=3, completions=3))
    await asyncio.sleep(0.0005 * step)
    asleep_at = asyncio.get_running_loop().time()
    clock.slept_seconds += 20.0
    with pytest.RaisesGroup(LeadershipLost):
        await running
    late = [sent for sent in wire.sent if sent.writes and sent.at > asleep_at + UNDER_WAY_SECONDS]
    assert [sent.path for sent in late] == []
    await client.close()
