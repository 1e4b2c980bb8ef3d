"""Flows of the whole system: manager, Job controllers and simulated nodes on embedded clusters, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from doubles.managers import conditions, placed
from flow_invariants import Invariants
from flow_settled import settle
from flow_world import LOST_AFTER_SECONDS, MANAGER, FlowWorld, flow_world, has_ended

from mirror.embedded import virtual
from mirror.embedded.faults.kinds import Loss
from mirror.embedded.faults.targets import Which
from mirror.model import names

Flow = Callable[[FlowWorld, Invariants], Awaitable[None]]


def in_a_world(*workers: str, ends_settled: bool = True, **settings: Any) -> Callable[[Flow], Callable[[], None]]:
    """A flow in a world of its own; its rules hold at every write, and in the end everything agrees."""

    def decorate(flow: Flow) -> Callable[[], None]:
        async def main() -> None:
            async with flow_world(*(workers or ("east", "west")), **settings) as world:
                laws = Invariants(world)
                await flow(world, laws)
                laws.check()
                if ends_settled:
                    await settle(world, laws)

        def run() -> None:
            virtual.run(main())

        run.__name__, run.__doc__ = flow.__name__, flow.__doc__
        return run

    return decorate


async def waiting(world: FlowWorld) -> str:
    """What the source says it waits for."""
    source = await world.source()
    annotations: dict[str, str] = (source or {})["metadata"].get("annotations", {})
    return annotations.get(names.WAITING_BECAUSE, "")


async def has_finished(world: FlowWorld, name: str = "train") -> bool:
    return has_ended(await world.source(name))


@in_a_world()
async def test_a_job_runs_on_a_worker_and_its_end_is_told(world: FlowWorld, laws: Invariants) -> None:
    """The main flow: recorded, mirrored, run by the worker's own Job controller, and its status copied back."""
    await world.create(completions=5, parallelism=2, completionMode="Indexed", run_for="2s")
    await world.until(lambda: has_finished(world))
    source = await world.source()
    assert source is not None
    worker = placed(source)
    assert worker is not None
    mirror = await world.mirror(worker)
    assert mirror is not None
    assert source["status"]["completedIndexes"] == mirror["status"]["completedIndexes"] == "0-4"
    assert conditions(source)["Complete"] == "CompletionsReached"
    assert await world.mirrors() == [worker]
    assert asyncio.get_running_loop().time() < 15


@pytest.mark.slow
@in_a_world(ends_settled=False)
async def test_an_hour_goes_by(world: FlowWorld, laws: Invariants) -> None:
    """Three clusters and a manager; Jobs of half an hour; a worker that is away for a while. Takes under a second."""
    for number in range(4):
        await world.create(f"train-{number}", run_for="30m")
    await asyncio.sleep(600)
    world.workers["east"].faults.go_down(MANAGER)
    await asyncio.sleep(600)
    world.workers["east"].faults.restore()
    await asyncio.sleep(2400)
    assert all(has_ended(source) for source in await world.sources())


@pytest.mark.slow
@in_a_world()
async def test_a_job_waits_for_its_lost_worker_by_default(world: FlowWorld, laws: Invariants) -> None:
    """D13, D14: it stays, however long it takes, and says so; its end is told when the worker is back."""
    await world.create(run_for="10s")
    await asyncio.sleep(5)
    first = placed(await world.source())
    assert first is not None
    world.workers[first].faults.go_down(MANAGER)
    await asyncio.sleep(LOST_AFTER_SECONDS - 20)
    assert "stays assigned" not in await waiting(world)
    await asyncio.sleep(20 * LOST_AFTER_SECONDS)
    assert "stays assigned" in await waiting(world)
    assert not await has_finished(world)
    assert placed(await world.source()) == first
    world.workers[first].faults.restore()
    await asyncio.sleep(20)
    assert await has_finished(world)


@in_a_world("east", ends_settled=False)
async def test_a_worker_that_lost_its_data_is_another_cluster(world: FlowWorld, laws: Invariants) -> None:
    """D19: its kube-system has another uid; it is refused and counts as lost."""
    await world.create(run_for="never")
    await asyncio.sleep(5)
    await world.workers["east"].restart(keeps_data=False)
    await asyncio.sleep(30)
    assert "IdentityRejected" in await world.events()
    assert not await has_finished(world)
    assert await world.mirrors() == []


@pytest.mark.parametrize(
    "loss",
    [
        Loss.LOSE_ANSWER,
        *(
            pytest.param(loss, marks=pytest.mark.slow)
            for loss in (Loss.LOSE_REQUEST, Loss.HANG_AFTER, Loss.HANG, Loss.NO_CONNECTION)
        ),
    ],
)
@pytest.mark.parametrize("step", ["create", "record", "status"])
def test_no_answer_to_a_write_makes_no_second_mirror(loss: Loss, step: str) -> None:
    """D1, D2, D5: whether it was carried out or not, whatever the write was."""

    @in_a_world()
    async def flow(world: FlowWorld, laws: Invariants) -> None:
        if step == "create":
            for worker in world.workers.values():
                worker.faults.arrange(loss, Which("create", "jobs", peer=MANAGER))
        else:
            which = Which("patch", "jobs", subresource="status", peer=MANAGER)
            world.management.faults.arrange(loss, which, times=1 if step == "record" else 3)
        await world.create(run_for="5s")
        await world.until(lambda: has_finished(world), seconds=300)
        assert await world.mirrors() == [placed(await world.source())]

    flow()


@in_a_world()
async def test_a_storm_of_conflicts_passes(world: FlowWorld, laws: Invariants) -> None:
    """D7: nothing is overwritten, and nothing is lost."""
    world.management.faults.refuse_writes("jobs", times=8, peer=MANAGER)
    await world.create(run_for="3s")
    await world.until(lambda: has_finished(world), seconds=600)


@pytest.mark.parametrize("ahead_seconds", [-7200.0, -15.0, 15.0, 7200.0])
def test_workers_may_have_wrong_clocks(ahead_seconds: float) -> None:
    """D7: times are such that the management cluster takes them, and its TTL runs by its own clock."""

    @in_a_world("east")
    async def flow(world: FlowWorld, laws: Invariants) -> None:
        world.workers["east"].clock.ahead_seconds = ahead_seconds
        await world.create(run_for="5s", ttlSecondsAfterFinished=60)
        await world.until(lambda: has_finished(world), seconds=120)
        await asyncio.sleep(40)
        assert await world.source() is not None
        await asyncio.sleep(40)
        assert await world.source() is None
        await asyncio.sleep(60)
        assert await world.mirrors() == []

    flow()


@in_a_world()
async def test_a_slow_management_cluster_makes_statuses_late_and_nothing_wrong(
    world: FlowWorld, laws: Invariants
) -> None:
    """D6, D13: each request takes three seconds; no worker is lost for it, no Job says that anything is in its way."""
    world.management.faults.latency_seconds = 3.0
    await world.create(run_for="20s")
    await asyncio.sleep(20)
    running = await world.source()
    assert placed(running)
    assert names.WAITING_BECAUSE not in running["metadata"]["annotations"]
    assert running["status"]["active"] == 1
    await world.until(lambda: has_finished(world), seconds=60)
    assert await world.mirrors() == [placed(await world.source())]
    world.management.faults.latency_seconds = 0.0


@pytest.mark.slow
@in_a_world()
async def test_what_ends_while_the_management_cluster_is_away_is_told_later(world: FlowWorld, laws: Invariants) -> None:
    """D8: the mirror is kept until its end is stored."""
    await world.create(run_for="10s")
    await asyncio.sleep(5)
    world.management.faults.go_down()
    await asyncio.sleep(300)
    world.management.faults.restore()
    await asyncio.sleep(30)
    assert conditions(await world.source())["Complete"] == "CompletionsReached"


@pytest.mark.slow
@in_a_world()
async def test_a_manager_that_is_killed_is_followed_by_another(world: FlowWorld, laws: Invariants) -> None:
    """Whatever was under way is finished by the next one, once."""
    for number in range(20):
        await world.create(f"train-{number}", run_for="3s")
        await asyncio.sleep(0.0013 * number)
        if number % 4 == 3:
            await world.kill_manager()
            world.start_manager()
    await asyncio.sleep(60)
    assert all(has_ended(source) for source in await world.sources())


@pytest.mark.slow
@in_a_world("east")
async def test_finished_indexes_survive_a_suspension(world: FlowWorld, laws: Invariants) -> None:
    """D3, KEP-2232: the mirror is suspended, too, and goes on where it was."""
    await world.create(completions=4, parallelism=1, completionMode="Indexed", run_for="5s")
    await asyncio.sleep(13)
    await world.change("train", {"spec": {"suspend": True}})
    await asyncio.sleep(30)
    source = await world.source()
    assert source is not None
    assert "Suspended" in conditions(source)
    done = source["status"]["completedIndexes"]
    assert source["status"].get("active", 0) == 0
    await world.change("train", {"spec": {"suspend": False}})
    await world.until(lambda: has_finished(world), seconds=120)
    after = await world.source()
    assert after is not None
    assert after["status"]["completedIndexes"] == "0-3"
    assert done.startswith("0")


@in_a_world()
async def test_a_job_without_managed_by_stays_here(world: FlowWorld, laws: Invariants) -> None:
    """The management cluster's own Job controller runs it, and no worker sees it."""
    await world.create(managed_by=None, run_for="2s")
    await world.until(lambda: has_finished(world))
    assert await world.mirrors() == []
    assert laws.written_by[MANAGER] == 0


@in_a_world()
async def test_deleting_in_the_foreground_takes_everything_along(world: FlowWorld, laws: Invariants) -> None:
    """D10: the mirror goes at once, with its pods, whatever holds the source."""
    await world.create(run_for="never", parallelism=3, completions=3)
    await asyncio.sleep(5)
    worker = placed(await world.source())
    assert worker is not None
    await world.delete(propagation="Foreground")
    await asyncio.sleep(5)
    assert await world.source() is None
    assert await world.mirrors() == []
    await asyncio.sleep(60)
    assert await world.workers[worker].api.list("/api/v1/pods") == []
