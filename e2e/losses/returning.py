"""What is done about the copies on a worker that was lost, once it is back."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from e2e.jobs import is_complete, is_failed, is_over, placed_on, runs, uid, until
from e2e.losing import until_only_on
from e2e.losses.shown import compare
from e2e.losses.stage import Act, Loss, Story


async def old_completed(loss: Loss) -> AsyncGenerator[Act, None]:
    """32: it counts, and the new copy goes."""
    before = await loss.run(loss.job("build"))
    yield Act.MOVED
    await loss.until_moved("build")
    await loss.scene.source_until("build", runs())
    yield Act.FULL
    await loss.scene.end_pods("east", "build")
    assert is_complete(await loss.scene.mirror_until("east", "build", is_over))
    yield Act.BACK
    ended = await loss.scene.source_until("build", is_over)
    assert (is_complete(ended), placed_on(ended)) == (True, "east")
    await until_only_on(loss.scene, "east", "build")
    assert uid(await loss.scene.mirror("east", "build") or {}) == before
    await loss.scene.event("build", "EarlierCopyCompleted")
    await compare("The earlier copy had completed", loss.scene, loss.manager, "build")


async def both_completed(loss: Loss) -> AsyncGenerator[Act, None]:
    """33: what was stored first stays."""
    await loss.run(loss.job("both"))
    yield Act.MOVED
    await loss.until_moved("both")
    await loss.scene.source_until("both", runs())
    await loss.scene.end_pods("west", "both")
    ended = await loss.scene.source_until("both", is_over)
    yield Act.FULL
    await loss.scene.end_pods("east", "both")
    assert is_complete(await loss.scene.mirror_until("east", "both", is_over))
    yield Act.BACK
    await until_only_on(loss.scene, "west", "both")
    found = await loss.scene.source("both") or {}
    assert (is_complete(ended), placed_on(found)) == (True, "west")
    assert found["status"]["completionTime"] == ended["status"]["completionTime"]


async def old_failed(loss: Loss) -> AsyncGenerator[Act, None]:
    """34: it is no verdict; the new copy goes on."""
    await loss.run(loss.job("flaky"))
    yield Act.MOVED
    await loss.until_moved("flaky")
    await loss.scene.source_until("flaky", runs())
    yield Act.FULL
    await loss.scene.end("east", await loss.scene.pods("east", "flaky"), exit_code="1")
    assert is_failed(await loss.scene.mirror_until("east", "flaky", is_over))
    yield Act.BACK
    await until_only_on(loss.scene, "west", "flaky")
    assert runs()(await loss.scene.source("flaky"))
    await loss.scene.end_pods("west", "flaky")
    assert is_complete(await loss.scene.source_until("flaky", is_over))


async def deleted(loss: Loss) -> AsyncGenerator[Act, None]:
    """51: the mirror of a source that was deleted goes, and its pods."""
    await loss.run(loss.job("deleted", "Wait"))
    yield Act.LOST
    await loss.scene.delete("deleted")
    yield Act.BACK
    await loss.scene.until_no_mirror("deleted")
    await loss.scene.until_no_pods("east", "deleted")


async def namesake(loss: Loss) -> AsyncGenerator[Act, None]:
    """52: another source of its name waits until the old mirror has gone, and runs there then."""
    before = await loss.run(loss.job("again", "Wait"))
    yield Act.LOST
    await loss.scene.delete("again")
    [source] = await loss.scene.create(loss.job("again", annotations={"worker-selector": "name=east"}))
    yield Act.FULL
    old = await loss.scene.mirror("east", "again") or {}
    assert (uid(old), is_over(old)) == (before, False)
    yield Act.BACK
    await loss.scene.source_until("again", runs())
    found = await loss.scene.mirrors("again")
    assert {worker: one["metadata"]["labels"]["jobmirror.io/source-uid"] for worker, one in found.items()} == {
        "east": uid(source)
    }
    await until(lambda: loss.scene.pods("east", "again"), lambda pods: len(pods) == 1)


STORIES: tuple[Story, ...] = (old_completed, both_completed, old_failed, deleted, namesake)
