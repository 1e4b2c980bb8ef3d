"""Jobs that stay with a lost worker, or with one that is not lost although their copies there have vanished."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from e2e.controlplane.client import Json
from e2e.jobs import (
    annotation,
    condition,
    counts,
    index_of,
    indexed,
    is_complete,
    is_over,
    is_suspended,
    placed_on,
    uid,
    waits_because,
)
from e2e.losses.shown import compare
from e2e.losses.stage import LOST_AFTER_SECONDS, Act, Loss, Story
from e2e.troubles.stage import says


async def waits(loss: Loss) -> AsyncGenerator[Act, None]:
    """3: it says so, and goes on where it is."""
    before = await loss.run(loss.job("migrate", "Wait"))
    yield Act.MOVED
    await loss.scene.source_until("migrate", says("WorkerLost"))
    await compare("Wait: its worker is lost", loss.scene, loss.manager, "migrate")
    yield Act.BACK
    await loss.scene.source_until("migrate", lambda found: not annotation(found, "waiting-because"))
    found = await loss.scene.mirrors("migrate")
    assert {worker: uid(one) for worker, one in found.items()} == {"east": before}
    await loss.scene.end_pods("east", "migrate")
    assert is_complete(await loss.scene.source_until("migrate", is_over))


async def fenced(loss: Loss) -> AsyncGenerator[Act, None]:
    """5: its worker is back before its lease has ended."""
    before = await loss.run(loss.job("etl", "Fence"))
    yield Act.HELD
    await loss.scene.source_until("etl", says("WorkerUnreachable", "its lease ends at "))
    await compare("Fence: its worker is unreachable", loss.scene, loss.manager, "etl")
    yield Act.MOVED
    await loss.scene.source_until(
        "etl", says("WorkerLost", "the Job stays assigned to it until ", "its lease ends at ")
    )
    yield Act.BACK
    back = await loss.scene.source_until("etl", lambda found: not annotation(found, "waiting-because"))
    mirror = await loss.scene.mirror("east", "etl") or {}
    assert (placed_on(back), uid(mirror)) == ("east", before)
    assert mirror["spec"]["activeDeadlineSeconds"] > LOST_AFTER_SECONDS
    await loss.scene.end_pods("east", "etl")
    assert is_complete(await loss.scene.source_until("etl", is_over))


async def vanished(loss: Loss) -> AsyncGenerator[Act, None]:
    """Somebody deletes its copy and leaves the pods: it starts over once these have ended, with what it had counted."""
    scene, said = loss.scene, {"worker-order": "west", "on-mirror-loss": "Recreate"}
    body = indexed("sweep", loss.manager.managed_by, run_for="never", annotations=said)
    before = await loss.run(body, worker="west", pods=3)
    await scene.end("west", [pod for pod in await scene.pods("west", "sweep") if index_of(pod) == "1"])
    two_more = counts(completedIndexes="1", ready=2)
    await scene.source_until("sweep", two_more)
    yield Act.LOST
    await scene.client_of("west").delete(f"{scene.jobs('west')}/sweep", propagation="Orphan")
    await scene.source_until("sweep", waits_because("the Job starts over once its pods there have ended"))
    left = await _running(loss)
    assert len(left) == 2
    assert await scene.mirror("west", "sweep") is None
    await scene.end("west", left)
    begun = await scene.source_until("sweep", lambda found: condition(found, "jobmirror.io/Moved"), seconds=60)
    assert condition(begun, "jobmirror.io/Moved")["message"] == "move 1, from west to west"
    await scene.source_until("sweep", lambda found: not is_suspended(found) and two_more(found))
    assert sorted(map(index_of, await _running(loss))) == ["0", "2"]
    assert uid((await scene.mirrors("sweep"))["west"]) != before
    await scene.event("sweep", "MirrorRecreated")
    await compare("Its copy has vanished, and it starts over", scene, loss.manager, "sweep")
    yield Act.BACK
    await scene.end("west", await _running(loss))
    ended = await scene.source_until("sweep", is_over)
    assert (is_complete(ended), ended["status"]["completedIndexes"]) == (True, "0-2")
    told = await loss.manager.metrics()
    assert told.value("jobmirror_secondary_mirrors_total", why="Recreated") == 1


async def _running(loss: Loss) -> list[Json]:
    """The pods of this name that run: those that have ended stay, without an owner."""
    return [pod for pod in await loss.scene.pods("west", "sweep") if pod["status"]["phase"] == "Running"]


STORIES: tuple[Story, ...] = (waits, fenced, vanished)
