"""What a scrape shows of a manager at work: the numbers that alerts are made of."""

from __future__ import annotations

import pytest
from doubles.clock import LoopClock
from doubles.drills import KINDS, definition, drill
from doubles.jobs import job
from doubles.refusals import forbidden
from doubles.transport import Fault
from doubles.world import RunningManager, World, manager_of, two_workers

from mirror.controllers.gauges import Gauges
from mirror.model import names
from mirror.model.reasons import SHOWN

pytestmark = pytest.mark.looptime

CRON_JOB = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "nightly", "uid": "c", "controller": True}


def scrape(manager: RunningManager, name: str, **labels: str) -> float | None:
    """One sample as a scraper would see it now; None where there is no such series."""
    gauges = Gauges(manager.mirroring, cluster="management", metrics=manager.metrics, clock=LoopClock())
    gauges.refresh()
    return manager.metrics.registry.get_sample_value(f"jobmirror_{name}", labels)


def states(manager: RunningManager, worker: str) -> dict[str, float | None]:
    found = {
        state: scrape(manager, "mirrored_jobs", worker=worker, state=state, kind="Job")
        for state in ("creating", "running", "suspended", "finished")
    }
    return {state: count for state, count in found.items() if count}


async def test_the_longest_wait_is_the_one_that_lasts() -> None:
    """Counted since it began to wait, whoever comes and goes meanwhile; over when it has a place."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job("pinned", annotations={names.WORKER_SELECTOR: "name=west"}))
        await manager.settle(60)
        world.create(job("later", annotations={names.WORKER_SELECTOR: "name=nowhere"}))
        world.create(job("passing"))
        await manager.settle(60)
        assert (scrape(manager, "waiting_jobs"), scrape(manager, "waiting_oldest_seconds")) == (
            2,
            pytest.approx(120, abs=1),
        )

        world.add_worker("west")
        await manager.settle(10)
        assert (scrape(manager, "waiting_jobs"), scrape(manager, "waiting_oldest_seconds")) == (
            1,
            pytest.approx(70, abs=1),
        )
        world.delete("later")
        await manager.settle(10)
        assert (scrape(manager, "waiting_jobs"), scrape(manager, "waiting_oldest_seconds")) == (0, 0)


async def test_jobs_are_counted_by_why_they_do_not_progress() -> None:
    """D22: those without a worker and those on one, each under the reason of its condition, until it is over."""
    world = World()
    world.add_worker("east", annotations={"capacity": "1"})

    def counted() -> dict[str, float]:
        found = {one: scrape(manager, "jobs_by_reason", reason=one, kind="Job") for one in SHOWN}
        return {reason.value: count for reason, count in found.items() if count}

    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        assert counted() == {}
        for name in ("mars", "venus"):
            world.create(job(f"on-{name}", annotations={names.WORKER_SELECTOR: f"name={name}"}))
        world.create(job("next"))
        await manager.settle(20)
        assert counted() == {"NoMatchingWorker": 2, "WorkersFull": 1}

        world.workers["east"].go_down()
        world.delete("on-mars")
        await manager.settle(120)
        assert counted() == {"NoMatchingWorker": 1, "WorkersUnreachable": 1, "WorkerUnreachable": 1}

        world.workers["east"].restore()
        world.delete("on-venus")
        await manager.settle(60)
        assert counted() == {"WorkersFull": 1}
        world.controller("east").complete("train")
        await manager.settle(20)
        assert (counted(), world.mirrors("next")) == ({}, ["east"])


async def test_a_cron_jobs_job_that_does_not_start_is_counted() -> None:
    """Until it has started, ended or gone; one that its user suspended is meant not to move."""
    async with two_workers() as (world, manager):
        for name in ("stuck", "moving"):
            body = job(name)
            body["metadata"]["ownerReferences"] = [CRON_JOB]
            world.create(body)
        world.create(job("nobodys"))
        suspended = job("suspended", suspend=True)
        suspended["metadata"]["ownerReferences"] = [CRON_JOB]
        world.create(suspended)
        await manager.settle()
        worker = world.placed("moving")
        assert worker is not None
        world.controller(worker).start("moving")
        await manager.settle(100)
        assert scrape(manager, "cronjob_jobs_unstarted") == 1
        assert scrape(manager, "cronjob_jobs_unstarted_oldest_seconds") == pytest.approx(102, abs=2)

        world.delete("stuck")
        await manager.settle()
        assert (
            scrape(manager, "cronjob_jobs_unstarted") == scrape(manager, "cronjob_jobs_unstarted_oldest_seconds") == 0
        )


async def test_states_of_mirrored_jobs_add_up() -> None:
    """Finished mirrors stay, and hide no Job that is only just being created."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for name in ("first", "second", "third"):
            world.create(job(name))
        await manager.settle()
        for name in ("first", "second"):
            world.controller("east").complete(name)
        await manager.settle()
        world.workers["east"].arrange("create", "jobs", Fault.HANG)
        world.create(job("fourth"))
        await manager.settle()
        assert states(manager, "east") == {"creating": 1, "running": 1, "finished": 2}


async def test_kinds_are_counted_apart_once_there_is_something_of_them() -> None:
    """A kind that is enabled and unused costs no series."""
    world = World()
    world.add_worker("east")
    for cluster in (world.management, world.workers["east"]):
        cluster.server.put("customresourcedefinitions", definition())
    async with manager_of(world, kinds=KINDS) as manager:
        world.create(job())
        await manager.settle()
        running = {"worker": "east", "state": "running"}
        assert scrape(manager, "mirrored_jobs", **running, kind="Job") == 1
        assert scrape(manager, "mirrored_jobs", **running, kind="Drill") is None
        assert scrape(manager, "jobs_by_reason", reason="WorkersFull", kind="Drill") is None

        await manager.settle()
        world.management.server.put("drills", drill())
        await manager.settle()
        assert scrape(manager, "placements_total", worker="east", kind="Drill") == 1
        assert scrape(manager, "mirrored_jobs", **running, kind="Drill") == 1
        assert scrape(manager, "placements_total", worker="east", kind="Job") == 1


async def test_a_sweep_that_halts_shows_for_how_many_until_it_is_right_again() -> None:
    """An event is told once; the number stays as long as the mirrors do."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        for number in range(30):
            world.create(job(f"train-{number}"))
        await manager.settle()
        assert scrape(manager, "sweep_held_back", worker="east") == 0
    for number in range(25):
        world.delete(f"train-{number}")
    async with manager_of(world) as manager:
        await manager.settle(200)
        assert scrape(manager, "sweep_held_back", worker="east") == 25

        for number in range(25):
            world.workers["east"].server.remove("jobs", f"train-{number}", "default")
        await manager.settle(100)
        assert scrape(manager, "sweep_held_back", worker="east") == 0


async def test_what_workers_refuse_is_counted_apart_from_names_that_are_taken() -> None:
    """The one asks for a right, the other for a look at what is there."""
    async with two_workers() as (world, manager):
        world.workers["east"].server.put("jobs", job(managed_by=None))
        world.workers["west"].arrange("create", "jobs", forbidden(), times=1)
        world.create(job())
        await manager.settle()
        assert scrape(manager, "name_conflicts_total", worker="east", kind="Job") == 1
        assert scrape(manager, "refused_mirrors_total", worker="west", kind="Job") == 1
        assert scrape(manager, "refused_mirrors_total", worker="east", kind="Job") == 0


async def test_statuses_that_others_write_are_counted() -> None:
    """D20, and none of ours are."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        assert scrape(manager, "foreign_status_writes_total", kind="Job") == 0
        for number in range(2):
            world.edit(lambda body, n=number: body["status"].update(active=20 + n))
            await manager.settle(0.5)
        assert scrape(manager, "foreign_status_writes_total", kind="Job") == 2


async def test_watches_tell_how_long_they_are_silent_and_how_often_they_began_anew() -> None:
    """Of the management cluster and of each worker."""
    async with two_workers() as (world, manager):
        await manager.settle(20)
        before = scrape(manager, "watch_restarts_total", cluster="east", kind="jobs")
        assert before is not None
        world.workers["east"].go_down()
        await manager.settle(100)
        silent = scrape(manager, "watch_staleness_seconds", cluster="east", kind="jobs")
        assert silent is not None
        assert silent >= 95
        after = scrape(manager, "watch_restarts_total", cluster="east", kind="jobs")
        assert after is not None
        assert after > before
        assert scrape(manager, "watch_staleness_seconds", cluster="management", kind="jobs") is not None
