"""When Jobs of a lost worker move, and where to."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial

from e2e.jobs import condition, is_complete, is_over, is_suspended, job, placed_on, runs, until, waits_because
from e2e.losing import until_only_on, until_reached
from e2e.losses.shown import compare
from e2e.losses.stage import Act, Loss, Story
from e2e.troubles.stage import says

_HELD = "nothing is moved while most workers are unreachable"


async def moves(loss: Loss) -> AsyncGenerator[Act, None]:
    """2: it starts again elsewhere, and what was left behind goes."""
    await loss.run(loss.job("render"))
    before = await loss.scene.source("render") or {}
    yield Act.HELD
    await loss.scene.source_until("render", says("WorkerUnreachable"))
    await compare("Reschedule: its worker is unreachable", loss.scene, loss.manager, "render")
    yield Act.MOVED
    moved = await loss.until_moved("render")
    assert condition(moved, "jobmirror.io/Moved")["message"].startswith("move 1, from east to west; left behind: ")
    again = await loss.scene.source_until("render", lambda found: runs()(found) and not is_suspended(found))
    assert again["status"]["startTime"] != before["status"]["startTime"]
    yield Act.FULL
    await compare("It has moved", loss.scene, loss.manager, "render")
    yield Act.BACK
    await until_only_on(loss.scene, "west", "render")
    await loss.scene.event("render", "LeftBehindDeleted")
    await compare("The lost worker is back", loss.scene, loss.manager, "render")
    await loss.scene.end_pods("west", "render")
    assert is_complete(await loss.scene.source_until("render", is_over))


async def held(loss: Loss) -> AsyncGenerator[Act, None]:
    """21 and 22: nothing moves while all workers are lost, or two of three; then it does."""
    manager = loss.manager
    await loss.run(loss.job("simulate"))
    await loss.run(loss.job("late", "Wait"))
    yield Act.HELD
    await loss.scene.source_until("simulate", waits_because(_HELD))
    held = await manager.metrics()
    assert held.value("jobmirror_moves_held") == 1
    for name in loss.proxies:
        await until(partial(manager.worker_events, name, "MovesHeld"))
    await compare("Moves are held", loss.scene, manager, "simulate", worker="east")

    await loss.proxies["west"].resume()
    await until_reached(manager, "west")
    await loss.annotate("late", on_worker_loss="Reschedule")
    await loss.scene.source_until("late", waits_because(_HELD))
    for name in ("simulate", "late"):
        assert placed_on(await loss.scene.source(name)) == "east"

    await loss.proxies["north"].resume()
    await until_reached(manager, "north")
    yield Act.MOVED
    for name in ("simulate", "late"):
        await loss.until_moved(name)
    assert (await manager.metrics()).value("jobmirror_moves_held") == 0
    yield Act.BACK
    for name in ("simulate", "late"):
        await until_only_on(loss.scene, "west", name)


async def suspended_meanwhile(loss: Loss) -> AsyncGenerator[Act, None]:
    """50: what its user has suspended moves once it is resumed, and not before."""
    await loss.run(loss.job("paused"))
    yield Act.LOST
    await loss.scene.patch("paused", {"spec": {"suspend": True}})
    await loss.scene.source_until("paused", is_suspended)
    yield Act.MOVED
    await loss.scene.source_until(
        "paused", waits_because("the Job stays assigned to it (it is moved once it is resumed)")
    )
    await loss.scene.patch("paused", {"spec": {"suspend": False}})
    await loss.until_moved("paused")
    await loss.scene.source_until("paused", lambda found: runs()(found) and not is_suspended(found))
    yield Act.BACK
    await until_only_on(loss.scene, "west", "paused")


async def full(loss: Loss) -> AsyncGenerator[Act, None]:
    """25: no other worker has room, and the lost one is back first: the same mirror goes on."""
    before = await loss.run(loss.job("train", "Wait", annotations={"worker-selector": "name in (east,west)"}))
    yield Act.FULL
    await loss.annotate("train", on_worker_loss="Reschedule")
    await loss.scene.source_until("train", waits_because("the Job waits for another worker: "))
    await compare("No other worker takes it", loss.scene, loss.manager, "train")
    waiting = await loss.scene.source("train")
    assert placed_on(waiting) == "east"
    assert not is_suspended(waiting)
    yield Act.BACK
    back = await loss.scene.source_until("train", lambda found: not waits_because("worker")(found))
    assert (placed_on(back), condition(back, "jobmirror.io/Moved")) == ("east", {})
    found = await loss.scene.mirrors("train")
    assert {worker: one["metadata"]["uid"] for worker, one in found.items()} == {"east": before}
    await loss.scene.end_pods("east", "train")
    assert is_complete(await loss.scene.source_until("train", is_over))


async def name_taken(loss: Loss) -> AsyncGenerator[Act, None]:
    """57: a Job of somebody else has its name on the next worker: it goes to a third one, and nothing is touched."""
    foreign = await loss.scene.client_of("west").create(loss.scene.jobs("west"), job("taken", run_for="never"))
    before = await loss.run(loss.job("taken", annotations={"worker-order": "east,west,north"}))
    yield Act.MOVED
    await loss.until_moved("taken", "north")
    left = await loss.scene.mirror("east", "taken") or {}
    assert (left["metadata"]["uid"], left["spec"]["suspend"]) == (before, False)
    await until(lambda: loss.scene.mirrors("taken"), lambda found: set(found) == {"east", "north"})
    yield Act.BACK
    await until_only_on(loss.scene, "north", "taken")
    theirs = await loss.scene.mirror("west", "taken") or {}
    assert theirs["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert not is_over(theirs)


STORIES: tuple[Story, ...] = (moves, held, suspended_meanwhile, full, name_taken)
