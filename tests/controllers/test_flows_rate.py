"""No Job makes requests at network speed, however fast the worlds around it change or undo what we write (D29)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest
from doubles.jobs import job
from doubles.world import RunningManager, World, two_workers

from mirror.model import names
from mirror.runtime.keyrate import BURST, REQUESTS_PER_SECOND

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

Body = dict[str, Any]
Change = Callable[..., None]
SECONDS = 20
EVERY_SECONDS = 0.005


def take_labels(body: Body, number: int) -> None:
    body["metadata"]["labels"].pop(names.SOURCE_UID, None)


def suspend(body: Body, number: int) -> None:
    body["spec"]["suspend"] = True


def report_progress(body: Body, number: int) -> None:
    body["status"]["ready"] = number % 2


def suspend_and_resume(body: Body, number: int) -> None:
    body["spec"]["suspend"] = bool(number % 2)


def requests_about(world: World, name: str) -> int:
    wires = (world.management, *world.workers.values())
    return sum(
        sent.path.split("/")[-1] == name or f"/jobs/{name}/" in sent.path for wire in wires for sent in wire.sent
    )


async def play(world: World, manager: RunningManager, where: str, change: Change) -> int:
    """Somebody changes a Job all the time; how many requests are sent about it meanwhile."""
    server = world.management.server if where == "management" else world.workers[where].server
    before = requests_about(world, "train")
    loop = asyncio.get_running_loop()
    ends_at, numbers = loop.time() + SECONDS, count()
    while loop.time() < ends_at:
        server.edit("jobs", "train", partial(change, number=next(numbers)))
        await manager.settle(EVERY_SECONDS)
    return requests_about(world, "train") - before


@pytest.mark.parametrize(
    ("where", "change", "is_followed"),
    [
        pytest.param("east", take_labels, False, id="our labels are taken from the mirror"),
        pytest.param("east", suspend, False, id="the mirror is suspended"),
        pytest.param("east", report_progress, True, id="the worker reports progress"),
        pytest.param("management", suspend_and_resume, True, id="the source is suspended and resumed"),
    ],
)
async def test_who_changes_a_job_all_the_time_costs_a_bounded_number_of_requests(
    where: str, change: Change, is_followed: bool
) -> None:
    """What is to be followed waits for its turn, and the newest of it is followed in the end; the rest is given up."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()

        sent = await play(world, manager, where, change)

        assert sent <= BURST + REQUESTS_PER_SECOND * SECONDS
        waited = manager.metrics.registry.get_sample_value("jobmirror_throttled_keys_total")
        assert bool(waited) == is_followed
        await manager.settle(5)
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()
