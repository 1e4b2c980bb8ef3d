"""Waiting for a worker: where Jobs go, in which order, and what they say while they wait."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from doubles.jobs import job
from doubles.managers import worker_secret
from doubles.refusals import Refused, forbidden
from doubles.world import HOME, WAITING, World, manager_of, two_workers

from mirror.kube.client import Client
from mirror.kube.errors import Unreachable
from mirror.model import names

pytestmark = pytest.mark.looptime


def selecting(text: str) -> dict[str, str]:
    return {names.WORKER_SELECTOR: text}


def with_selector(text: str) -> Any:
    return lambda body: body["metadata"]["annotations"].update(selecting(text))


async def test_jobs_spread_over_the_workers() -> None:
    """The least loaded worker gets the next one."""
    async with two_workers() as (world, manager):
        for number in range(10):
            world.create(job(f"train-{number}"))
        await manager.settle()
        assert [len(wire.server.all("jobs")) for wire in world.workers.values()] == [5, 5]


async def test_a_pinned_job_goes_where_it_is_pinned() -> None:
    """Every worker has the label ``name``."""
    async with two_workers() as (world, manager):
        world.create(job(annotations=selecting("name=west")))
        await manager.settle()
        assert world.mirrors() == ["west"]


async def test_a_full_worker_takes_the_next_at_once_when_one_ends() -> None:
    """D21: capacity counts what is recorded; freed capacity is given out without waiting for a timer."""
    world = World()
    world.add_worker("east", annotations={"capacity": "1"})
    async with manager_of(world) as manager:
        world.create(job("first"))
        await manager.settle(2)
        world.create(job("second"))
        await manager.settle(2)
        world.create(job("third"))
        await manager.settle(2)
        assert (world.mirrors("first"), world.mirrors("second"), world.mirrors("third")) == (["east"], [], [])
        assert world.annotation(WAITING, "second") == "east: at capacity"

        world.controller("east").complete("first")
        await manager.settle(0.1)
        assert (world.mirrors("second"), world.mirrors("third")) == (["east"], [])
        assert world.annotation(WAITING, "second") is None


async def test_namespaces_take_turns() -> None:
    """D21: a namespace with a hundred older Jobs does not keep another one's single Job waiting."""
    world = World()
    world.management.server.put("namespaces", {"metadata": {"name": "small"}})
    east = world.add_worker("east", annotations={"capacity": "1"})
    east.server.put("namespaces", {"metadata": {"name": "small"}})
    async with manager_of(world) as manager:
        for number in range(30):
            world.create(job(f"big-{number:02}"))
        await manager.settle(2)
        world.create(job("only", namespace="small"))
        await manager.settle(2)
        for name in ("big-00", "big-01"):
            if world.mirror("east", name) is not None:
                world.controller("east").complete(name)
            await manager.settle(1)
        assert world.mirrors("only", "small") == ["east"]


async def test_a_job_that_is_suspended_while_it_waits_takes_no_place() -> None:
    """Capacity is not held back for a Job that does not want to run any more."""
    world = World()
    world.add_worker("east", annotations={"capacity": "1"})
    async with manager_of(world) as manager:
        world.create(job("first"))
        await manager.settle(2)
        world.create(job("second"))
        await manager.settle(2)
        world.create(job("third"))
        await manager.settle(2)
        world.edit(lambda body: body["spec"].update(suspend=True), "second")
        await manager.settle(1)
        world.controller("east").complete("first")
        await manager.settle(1)
        assert world.placed("second") is None
        assert world.mirrors("third") == ["east"]


async def test_a_changed_selector_counts_at_once() -> None:
    """A Job that waited for one worker and now wants another goes to the other only."""
    world = World()
    world.add_worker("east", annotations={"capacity": "1"})
    world.add_worker("west", annotations={"capacity": "1"})
    async with manager_of(world) as manager:
        for name in ("east", "west"):
            world.create(job(f"on-{name}", annotations=selecting(f"name={name}")))
        await manager.settle(2)
        world.create(job(annotations=selecting("name=east")))
        await manager.settle(2)
        world.edit(with_selector("name=west"))
        await manager.settle(2)
        world.controller("east").complete("on-east")
        await manager.settle(2)
        assert world.mirrors() == []
        world.controller("west").complete("on-west")
        await manager.settle(2)
        assert world.mirrors() == ["west"]


async def test_a_bad_selector_is_told_and_its_correction_counts() -> None:
    """A malformed annotation is a reason to wait, not an error."""
    async with two_workers() as (world, manager):
        world.create(job(annotations=selecting("a==b==c")))
        await manager.settle(15)
        assert "worker-selector" in (world.annotation(WAITING) or "")
        assert world.mirrors() == []
        world.edit(with_selector("name=west"))
        await manager.settle(1)
        assert world.mirrors() == ["west"]
        assert world.annotation(WAITING) is None


async def test_the_reason_to_wait_is_written_at_most_once_in_ten_seconds() -> None:
    """D21: a flapping reason does not become a flood of writes."""
    world = World()
    world.add_worker("east", annotations={"capacity": "0"})
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(2)
        writes: list[float] = []
        for number in range(25):
            world.annotate_worker("east", cordoned="true" if number % 2 else "false")
            await manager.settle(1)
        writes = [sent.at for sent in world.management.writes() if sent.path.endswith("/jobs/train/status")]
        assert len(writes) >= 2
        assert all(later - earlier >= 10 for earlier, later in pairwise(writes))
        await manager.settle(11)
        assert world.annotation(WAITING) == "east: at capacity"


async def test_waiting_says_no_counts_and_settles() -> None:
    """D21: an unchanged set of reasons is written once, however many Jobs come and go."""
    async with two_workers() as (world, manager):
        for name in ("east", "west"):
            world.annotate_worker(name, cordoned="true")
        await manager.settle()
        for number in range(20):
            world.create(job(f"train-{number}"))
        await manager.settle(15)
        before = len(world.management.writes())
        await manager.settle(200)
        assert len(world.management.writes()) == before
        assert world.annotation(WAITING, "train-3") == "east: cordoned; west: cordoned"
        world.annotate_worker("west", cordoned=None)
        await manager.settle(1)
        assert len(world.workers["west"].server.all("jobs")) == 20
        assert world.workers["east"].server.all("jobs") == []


async def test_without_workers_a_job_says_so_and_the_first_one_takes_it() -> None:
    """A Secret that registers a worker is enough."""
    world = World()
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(15)
        assert world.annotation(WAITING) == "no worker is registered"
        world.add_worker("east")
        await manager.settle(2)
        assert world.mirrors() == ["east"]


async def test_a_worker_that_is_found_lost_at_its_first_look_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is being connected nothing is blamed on it; the verdict wakes who waits."""

    async def connect_slowly(name: str, kubeconfig: bytes) -> Client:
        await asyncio.sleep(1.0)
        raise Unreachable("no such host")

    world = World()
    monkeypatch.setattr(world, "connect", connect_slowly)
    async with manager_of(world) as manager:
        world.register("east")
        world.create(job())
        await manager.settle(3)
        assert world.annotation(WAITING) == "east: unreachable (no such host)"


async def test_another_cause_of_the_same_loss_is_told_once_it_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """D21, D22: to those who wait and those who are on it; a Job that waits for another worker is not written."""
    world, cause = World(), ""
    connect = world.connect

    async def connect_or_not(name: str, kubeconfig: bytes) -> Client:
        if name == "east" and cause:
            raise Unreachable(cause)
        return await connect(name, kubeconfig)

    monkeypatch.setattr(world, "connect", connect_or_not)
    world.add_worker("east")
    world.add_worker("west", annotations={"capacity": "0"})
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        assert world.mirrors() == ["east"]
        cause = "connection refused"
        leads_elsewhere = worker_secret("east", "elsewhere", {})["data"]
        world.management.server.edit("secrets", "east", lambda body: body.update(data=leads_elsewhere), HOME)
        await manager.settle(1)
        world.create(job("waits", annotations=selecting("name=east")))
        world.create(job("other", annotations=selecting("name=west")))
        await manager.settle(90)
        assert world.annotation(WAITING) == "worker east is unreachable (connection refused)"
        assert (world.annotation(WAITING, "waits") or "").startswith("east: unreachable (connection refused)")
        version = world.source("other")["metadata"]["resourceVersion"]
        cause = "certificate has expired"
        await manager.settle(30)
        assert world.annotation(WAITING) == "worker east is unreachable (certificate has expired)"
        assert (world.annotation(WAITING, "waits") or "").startswith("east: unreachable (certificate has expired)")
        assert world.source("other")["metadata"]["resourceVersion"] == version


async def test_a_worker_takes_only_the_namespaces_it_accepts() -> None:
    """D18: the annotation ``namespaces`` bounds it; by default system namespaces are closed."""
    world = World()
    world.add_worker("east", annotations={"namespaces": "ml-*"})
    world.add_worker("west")
    async with manager_of(world) as manager:
        world.create(job())
        world.create(job("system", namespace="kube-system"))
        await manager.settle(12)
        assert world.mirrors() == ["west"]
        assert world.annotation(WAITING, "system", "kube-system") == (
            "east: does not accept the namespace; west: does not accept the namespace"
        )


@pytest.mark.slow
async def test_who_waits_and_was_told_why_is_not_looked_at_again() -> None:
    """D21: with a selector of its own each, for hours, nothing is done for any of them until something happens."""
    world = World()
    world.add_worker("east", annotations={"capacity": "0"})
    async with manager_of(world) as manager:
        for number in range(30):
            world.create(job(f"train-{number}", annotations=selecting(f"!x{number}")))
        await manager.settle(70)
        looks, writes = manager.mirroring.queue.delayed_adds, world.writes()
        await manager.settle(3600)
        assert (manager.mirroring.queue.delayed_adds, world.writes()) == (looks, writes)
        world.annotate_worker("east", capacity="30")
        await manager.settle(1)
        assert len(world.workers["east"].server.all("jobs")) == 30


@pytest.mark.slow
async def test_many_workers_are_counted_by_reason() -> None:
    """An annotation of 512 bytes at most, however many workers there are."""
    world = World()
    for number in range(100):
        world.register(f"worker-{number:03}", annotations={"cordoned": "true"})
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle(15)
        text = world.annotation(WAITING) or ""
        assert text.startswith("worker-000: cordoned; worker-001: cordoned; ")
        assert text.endswith(" cordoned")
        assert "…and " in text
        assert len(text.encode()) <= 512
        world.annotate_worker("worker-099", cordoned=None)
        await manager.settle(15)
        assert "1 unreachable" in (world.annotation(WAITING) or "")


async def test_capacity_that_comes_back_reaches_whoever_waits_longest() -> None:
    """A Job that was finished, one that was deleted, one whose record was cleared: each frees a place at once."""
    world = World()
    world.add_worker("east", annotations={"capacity": "3"})
    async with manager_of(world) as manager:
        for number in range(6):
            world.create(job(f"train-{number}"))
            await manager.settle(1)
        world.controller("east").complete("train-0")
        await manager.settle(0.1)
        assert world.mirrors("train-3") == ["east"]
        world.delete("train-1")
        await manager.settle(0.1)
        assert world.mirrors("train-4") == ["east"]
        world.annotate_worker("east", capacity="4")
        await manager.settle(0.1)
        assert world.mirrors("train-5") == ["east"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(Refused(422, "Invalid"), id="422: its admission is stricter"),
        pytest.param(forbidden(), id="403: a policy forbids it"),
        pytest.param(Refused(413, "RequestEntityTooLarge"), id="413: it is too large"),
        pytest.param(Refused(400, "BadRequest"), id="400: an admission webhook"),
    ],
)
async def test_a_job_that_cannot_be_recorded_holds_no_place(refusal: Refused) -> None:
    """D5, D21: its place is given back and it is reported; it is tried again, at most once in a minute."""
    world = World()
    world.add_worker("east", annotations={"capacity": "1"})
    async with manager_of(world) as manager:
        world.management.arrange("patch", "jobs", refusal, times=9999, name="odd")
        world.create(job("odd"))
        await manager.settle(5)
        world.create(job("plain"))
        await manager.settle(70)
        assert world.mirrors("plain") == ["east"]
        assert world.placed("odd") is None
        assert world.texts("RecordRefused")
        before = len(world.management.writes())
        await manager.settle(600)
        assert len(world.management.writes()) - before < 200

        world.management.restore()
        world.controller("east").complete("plain")
        await manager.settle(130)
        assert world.mirrors("odd") == ["east"]
        assert world.annotation(WAITING, "odd") is None


async def test_a_job_that_cannot_be_recorded_says_so_where_it_can() -> None:
    """Only the status is refused: the annotation names what stands in the way, and goes with the record."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        world.management.arrange("patch", "jobs", Refused(422, "Invalid"), times=1)
        world.create(job())
        await manager.settle(3)
        assert "rejects the record of a worker: 422 Invalid" in (world.annotation(WAITING) or "")
        await manager.settle(10)
        assert world.mirrors() == ["east"]
        assert world.annotation(WAITING) is None


async def test_a_job_full_of_annotations_keeps_nobody_waiting() -> None:
    """256 KiB of annotations leave no room for ours, nor for its mirror's: a condition says why it has no worker."""
    world = World()
    world.add_worker("east", annotations={"capacity": "1"})
    async with manager_of(world) as manager:
        world.create(job("odd", annotations={"big": "x" * (256 * 1024 - 10)}))
        await manager.settle(5)
        world.create(job("plain"))
        await manager.settle(60)
        assert world.mirrors("plain") == ["east"]
        (told,) = [one for one in world.source("odd")["status"]["conditions"] if one["type"] == names.PLACED]
        assert told["status"] == "False"
        assert told["reason"] in ("WorkersFull", "RefusedByWorkers")


async def test_annotations_that_fill_up_later_do_not_hide_the_end() -> None:
    """D7: no annotation of ours fits any more, and the status follows all the same."""
    world = World()
    world.add_worker("east")
    async with manager_of(world) as manager:
        world.create(job())
        await manager.settle()
        annotations = world.source()["metadata"]["annotations"]
        room = 256 * 1024 - sum(len(key) + len(value) for key, value in annotations.items()) - 10
        world.edit(lambda body: body["metadata"]["annotations"].update(big="x" * room))
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()
