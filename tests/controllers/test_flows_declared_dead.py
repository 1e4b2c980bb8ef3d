"""Workers that somebody has declared dead: how long that holds, and for whom (D14); numbers are of its scenarios."""

from __future__ import annotations

import pytest
from doubles.jobs import job
from doubles.managers import HOME
from doubles.world import WAITING, RunningManager, World, manager_of, two_workers
from test_flows_loss_scenarios import running_on_east, uid_on

from mirror.decide.snapshot import Policy
from mirror.model import names
from mirror.model.losses import OnLoss

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

MINUTE = 60.0
JOBS = ("first", "second", "third")


def set_suspended(world: World, name: str, *, is_so: bool) -> None:
    world.edit(lambda body: body["spec"].update(suspend=is_so), name)


def remove_secret(world: World) -> None:
    """As ``mirror worker remove east --force`` does."""
    world.management.server.remove("secrets", "east", HOME)


async def held_on_dead_east(world: World, manager: RunningManager) -> str:
    """A Job that its user has suspended, so that it stays, on a worker that was declared dead and removed."""
    uid = await running_on_east(world, manager)
    world.workers["east"].go_down()
    await manager.settle(5)
    set_suspended(world, "train", is_so=True)
    await manager.settle(5)
    world.annotate_worker("east", gone="true")
    remove_secret(world)
    await manager.settle(10)
    assert world.placed() == "east"
    return uid


async def test_it_holds_without_its_secret() -> None:
    """28: the Secret goes at once; who waits for a turn, a place or its user follows all the same."""
    async with two_workers(move_rate=0.1) as (world, manager):
        for name in (*JOBS, "held"):
            await running_on_east(world, manager, name)
        await running_on_east(world, manager, "pinned", annotations={names.WORKER_SELECTOR: "name=east"})
        world.workers["east"].go_down()
        await manager.settle(5)
        set_suspended(world, "held", is_so=True)
        await manager.settle(5)
        world.annotate_worker("east", gone="true")
        remove_secret(world)
        await manager.settle(8)
        assert sum(world.placed(name) == "west" for name in JOBS) < len(JOBS)
        await manager.settle(MINUTE)
        assert [world.placed(name) for name in JOBS] == ["west", "west", "west"]
        await manager.settle(30 * MINUTE)
        assert [world.placed(name) for name in ("held", "pinned")] == ["east", "east"]
        for name, text in (
            ("held", "; the Job stays assigned to it (it is moved once it is resumed)"),
            ("pinned", "; the Job waits for another worker: "),
        ):
            told = world.annotation(WAITING, name) or ""
            assert told.startswith("worker east is declared dead")
            assert text in told
        set_suspended(world, "held", is_so=False)
        world.edit(lambda body: body["metadata"]["annotations"].pop(names.WORKER_SELECTOR), "pinned")
        await manager.settle(MINUTE)
        assert [world.placed(name) for name in ("held", "pinned")] == ["west", "west"]
        assert (
            sorted(world.texts("Moved")) == ["moved from east to west (move 1); the copy on east is declared dead"] * 5
        )
        await manager.settle(3 * MINUTE)
        assert "east" not in world.record()


async def test_it_holds_over_a_restart() -> None:
    """28: what is written down of the worker says it."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world) as manager:
        await held_on_dead_east(world, manager)
    async with manager_of(world) as manager:
        await manager.settle(2 * MINUTE)
        set_suspended(world, "train", is_so=False)
        await manager.settle(30)
        assert world.placed() == "west"


async def test_it_ends_when_the_worker_answers() -> None:
    """Another Secret leads to the cluster that it was: what was not moved goes on there, and waits at the next loss."""
    async with two_workers() as (world, manager):
        uid = await held_on_dead_east(world, manager)
        world.workers["east"].restore()
        world.register("east")
        await manager.settle(20)
        set_suspended(world, "train", is_so=False)
        await manager.settle(20)
        assert (world.placed(), uid_on(world, "east"), world.mirrors()) == ("east", uid, ["east"])
        assert "goneBy" not in world.record()["east"]
        world.workers["east"].go_down()
        await manager.settle(30 * MINUTE)
        assert world.placed() == "east"


@pytest.mark.parametrize(
    ("leads_to", "word", "placed"),
    [
        pytest.param("east", None, "west", id="a tool puts the old one back: it does not answer"),
        pytest.param("restored", None, "west", id="it leads to another cluster, which is refused"),
        pytest.param("east", "true", "west", id="it says so, too"),
        pytest.param("east", "false", "east", id="it takes that back"),
    ],
)
async def test_another_secret_of_its_name(leads_to: str, word: str | None, placed: str) -> None:
    """28: it holds until somebody takes it back, or the worker answers as the cluster that it was."""
    async with two_workers() as (world, manager):
        await held_on_dead_east(world, manager)
        if leads_to not in world.workers:
            world.add_cluster(leads_to)
        world.register("east", annotations={} if word is None else {"gone": word}, leads_to=leads_to)
        await manager.settle(20)
        set_suspended(world, "train", is_so=False)
        await manager.settle(MINUTE)
        assert world.placed() == placed


@pytest.mark.parametrize("word", [None, "false"])
async def test_it_is_taken_back(word: str | None) -> None:
    """The annotation goes, or says so: Jobs that are still there wait, as their policy says, over a restart, too."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world) as manager:
        await running_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(5)
        set_suspended(world, "train", is_so=True)
        world.annotate_worker("east", gone="true")
        await manager.settle(10)
        assert "declared dead" in (world.annotation(WAITING) or "")
        world.annotate_worker("east", gone=word)
        await manager.settle(2 * MINUTE)
        assert "declared dead" not in (world.annotation(WAITING) or "")
    async with manager_of(world) as manager:
        set_suspended(world, "train", is_so=False)
        await manager.settle(30 * MINUTE)
        assert world.placed() == "east"
        assert "worker east is lost (" in (world.annotation(WAITING) or "")


async def test_of_a_worker_that_answers_nothing_is_remembered() -> None:
    """A mistake: its Secret goes afterwards, and with it the word."""
    async with two_workers() as (world, manager):
        await running_on_east(world, manager)
        world.annotate_worker("east", gone="true")
        await manager.settle(10)
        remove_secret(world)
        await manager.settle(30 * MINUTE)
        assert world.placed() == "east"
        assert "worker east is lost (its Secret was deleted); the Job stays assigned" in (
            world.annotation(WAITING) or ""
        )


async def test_a_dead_worker_is_none_of_the_lost_ones() -> None:
    """22: of three one is dead and one lost: nothing holds the Jobs of the second."""
    async with two_workers(policy=Policy(on_loss=OnLoss.RESCHEDULE)) as (world, manager):
        world.add_worker("north")
        await manager.settle(5)
        await running_on_east(world, manager)
        for name in ("east", "north"):
            world.workers[name].go_down()
        world.annotate_worker("north", gone="true")
        await manager.settle(16 * MINUTE)
        assert world.placed() == "west"
        assert "MovesHeld" not in world.events()


async def test_a_dead_worker_gets_nothing_new() -> None:
    """Nor does one whose Secret a tool has put back."""
    async with two_workers() as (world, manager):
        await held_on_dead_east(world, manager)
        world.register("east")
        await manager.settle(5)
        known = {one.name: one for one in manager.mirroring.known().workers()}
        assert (known["east"].dead, known["west"].dead) == (True, False)
        world.create(job("new"))
        await manager.settle(5)
        assert world.placed("new") == "west"
