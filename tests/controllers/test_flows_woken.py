"""A leader that stood still past its lease wakes up, and writes nothing any more (D28).

Its clock jumps while the loop's time stands still: what was under way goes on in the next moment, as after SIGCONT.
"""

from __future__ import annotations

import asyncio
import json
from datetime import datetime

import pytest
from doubles.candidates import candidate_for
from doubles.clock import LoopClock
from doubles.jobs import job
from doubles.pods import Node
from doubles.transport import Sent, client_of, wire_to
from doubles.world import HOME, World

from mirror.decide.snapshot import Policy
from mirror.embedded.apiserver.messages import Answer, Request
from mirror.embedded.faults.targets import Target, Which
from mirror.jobcontroller.metrics import JobMetrics
from mirror.jobcontroller.process import JobControllerComponent, JobControllerSettings, permit_of
from mirror.model.fences import FENCED, mark_of
from mirror.model.losses import OnLoss
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


TTL, THIRD = 1800, 600
FENCE = Policy(on_loss=OnLoss.FENCE, fence_ttl_seconds=TTL)
COVER, RENEW = Which("patch", "configmaps"), Which("patch", "jobs", subresource="")
IN_HAND = {"its bound is sent": (COVER, False), "its bound is stored": (COVER, True), "it is sent": (RENEW, False)}
"""How far a leader has come with the lease that it renews when it stands still."""


def at_renewal(world: World, in_hand: str) -> asyncio.Event:
    """Happens when the next lease on east is so far."""
    which, is_answered = IN_HAND[in_hand]
    wire = world.workers["east"] if which is RENEW else world.management
    reached, faults = asyncio.Event(), wire.faults
    asked = faults.on_request

    def on_request(request: Request, target: Target) -> None:
        if asked is not None:
            asked(request, target)
        if not is_answered and which.suits(request, target):
            reached.set()

    def on_answer(request: Request, target: Target, answer: Answer) -> None:
        if is_answered and which.suits(request, target):
            reached.set()

    faults.on_request, faults.on_answer = on_request, on_answer
    return reached


async def fenced_on(world: World) -> None:
    """A fenced Job that runs on east, whose lease is due to be renewed in a moment."""
    world.create(job())
    await asyncio.sleep(2)
    world.controller("east").start("train")
    await asyncio.sleep(THIRD - 30)
    assert mark_of(world.source()["status"]) == FENCED


def lease_ends(world: World) -> float:
    """When east ends the mirror."""
    mirror = world.mirror("east")
    assert mirror is not None
    started = datetime.fromisoformat(mirror["status"]["startTime"]).timestamp()
    return float(started + mirror["spec"]["activeDeadlineSeconds"])


def covered_until(world: World) -> float:
    """How late leases on east may end, as it is stored."""
    return datetime.fromisoformat(json.loads(world.record()["east"])["fencedUntil"]).timestamp()


@pytest.mark.slow
@pytest.mark.parametrize("in_hand", IN_HAND)
async def test_a_leader_that_wakes_up_with_a_lease_to_renew_sends_nothing(in_hand: str) -> None:
    """20: nobody took its Lease; what it had sent is all that arrives, and no lease ends later than is stored."""
    world = World()
    world.add_worker("east")
    async with candidate_for(world, "sleeper", elected=True, policy=FENCE) as sleeper:
        ended = sleeper.run()
        await fenced_on(world)
        reached = at_renewal(world, in_hand)
        async with asyncio.timeout(60):
            await reached.wait()
        sleeper.clock.slept_seconds += 20.0
        asleep_at = asyncio.get_running_loop().time()
        await asyncio.sleep(2 * TTL)
        assert [sent.path for sent in written(world, "sleeper", since=asleep_at)] == []
        assert isinstance(ended.result(), LeadershipLost)
        assert lease_ends(world) <= covered_until(world)


@pytest.mark.slow
@pytest.mark.parametrize("in_hand", IN_HAND)
async def test_who_took_over_renews_the_leases_of_a_leader_that_was_frozen(in_hand: str) -> None:
    """20: the frozen one sends nothing once its Lease has ended; the other keeps the Job's lease, and covers it."""
    world = World()
    world.add_worker("east")
    async with (
        candidate_for(world, "sleeper", elected=True, policy=FENCE) as sleeper,
        candidate_for(world, "other", elected=True, policy=FENCE) as other,
    ):
        ended = sleeper.run()
        await asyncio.sleep(1)
        other.run()
        await fenced_on(world)
        mirror = world.mirror("east")
        reached = at_renewal(world, in_hand)
        async with asyncio.timeout(60):
            await reached.wait()
        asleep_at = asyncio.get_running_loop().time()
        for candidate in (sleeper, other):
            candidate.clock.slept_seconds += 20.0
        for minute in range(25):
            await asyncio.sleep(60)
            assert TTL * 2 / 3 - 30 <= lease_ends(world) - sleeper.clock.wall() <= TTL + 2, minute
            assert lease_ends(world) <= covered_until(world), minute
        assert [sent.path for sent in written(world, "sleeper", since=asleep_at)] == []
        assert isinstance(ended.result(), LeadershipLost)
        assert len([sent for sent in world.workers["east"].writes() if sent.peer == "other"]) in (2, 3)
        assert (world.mirrors(), world.mirror("east")["metadata"]["uid"]) == (["east"], mirror["metadata"]["uid"])
        assert world.management.server.get("leases", "lease", HOME)["spec"]["holderIdentity"] == "other"


async def test_a_lease_that_a_frozen_leader_had_sent_arrives_after_the_next_one() -> None:
    """20: half a minute late, when another one has renewed it: it was seen in another version, and changes nothing."""
    world = World()
    world.add_worker("east")
    async with (
        candidate_for(world, "sleeper", elected=True, policy=FENCE) as sleeper,
        candidate_for(world, "other", elected=True, policy=FENCE) as other,
    ):
        ended = sleeper.run()
        await asyncio.sleep(1)
        other.run()
        await fenced_on(world)
        east = world.workers["east"]
        east.late["sleeper"] = 60.0
        async with asyncio.timeout(60):
            while not east.coming:
                await sleeper.manager.settle(0.1)
        for candidate in (sleeper, other):
            candidate.clock.slept_seconds += 20.0
        await asyncio.sleep(50)
        assert isinstance(ended.result(), LeadershipLost)
        assert east.coming
        renewed = world.mirror("east")
        assert lease_ends(world) > other.clock.wall() + TTL - 60
        await asyncio.sleep(30)
        assert not east.coming
        assert world.mirror("east") == renewed


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
