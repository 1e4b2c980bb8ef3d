"""What Jobs that move have counted goes along, where their new worker lets that be written (decision 0022)."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from e2e.controlplane.client import Json
from e2e.jobs import condition, counts, index_of, indexed, is_complete, is_failed, is_over, is_suspended
from e2e.losing import until_only_on
from e2e.losses.stage import Act, Loss, Story

_FROM_EAST = {"worker-order": "east,west", "on-worker-loss": "Reschedule"}


async def indexes(loss: Loss) -> AsyncGenerator[Act, None]:
    """44: pods for the indexes that are left."""
    scene = loss.scene
    body = indexed("half", loss.manager.managed_by, completions=5, run_for="never", annotations=_FROM_EAST)
    await loss.run(body, pods=5)
    await scene.end("east", [pod for pod in await scene.pods("east", "half") if index_of(pod) in ("0", "1", "3")])
    await scene.source_until("half", counts(completedIndexes="0,1,3", ready=2))
    yield Act.MOVED
    await _moved_with_progress(loss, "half")
    await scene.source_until("half", counts(ready=2, completedIndexes="0,1,3"))
    assert sorted(map(index_of, await scene.pods("west", "half"))) == ["2", "4"]
    yield Act.BACK
    ended = await _ended(loss, "half")
    assert is_complete(ended)
    assert (ended["status"]["succeeded"], ended["status"]["completedIndexes"]) == (5, "0-4")


async def completions(loss: Loss) -> AsyncGenerator[Act, None]:
    """45: two more of five."""
    await loss.run(loss.job("three", completions=5, parallelism=3), pods=3)
    await loss.scene.end_pods("east", "three")
    await loss.scene.source_until("three", counts(succeeded=3, ready=2))
    yield Act.MOVED
    await _moved_with_progress(loss, "three")
    await loss.scene.source_until("three", counts(ready=2, succeeded=3))
    assert len(await loss.scene.pods("west", "three")) == 2
    yield Act.BACK
    ended = await _ended(loss, "three")
    assert (is_complete(ended), ended["status"]["succeeded"]) == (True, 5)


async def failures(loss: Loss) -> AsyncGenerator[Act, None]:
    """46: the next failure ends it."""
    await loss.run(loss.job("budget", exit_code=1, backoffLimit=1))
    await loss.scene.end_pods("east", "budget")
    await loss.scene.source_until("budget", counts(failed=1, ready=1))
    yield Act.MOVED
    await _moved_with_progress(loss, "budget")
    await loss.scene.source_until("budget", counts(ready=1, failed=1))
    yield Act.BACK
    ended = await _ended(loss, "budget")
    assert is_failed(ended)
    assert (condition(ended, "Failed")["reason"], ended["status"]["failed"]) == ("BackoffLimitExceeded", 2)
    assert len(await loss.scene.pods("west", "budget")) == 1


async def permission_missing(loss: Loss) -> AsyncGenerator[Act, None]:
    """43 and 48: without it the new mirror begins anew, and the Job says so once and never goes back."""
    scene, said = loss.scene, {"worker-order": "east,north", "worker-selector": "name in (east,north)"}
    body = indexed("counts", loss.manager.managed_by, run_for="never", annotations=_FROM_EAST | said)
    await loss.run(body, pods=3)
    await scene.end("east", [pod for pod in await scene.pods("east", "counts") if index_of(pod) == "0"])
    await scene.source_until("counts", counts(completedIndexes="0"))
    yield Act.MOVED
    await loss.until_moved("counts", "north")
    mirror = await scene.mirror_until("north", "counts", lambda found: _seed(found) == "refused")
    assert (mirror["spec"]["suspend"], mirror.get("status", {}).get("completedIndexes")) == (False, None)
    yield Act.FULL
    said_once = await scene.only_event("counts", "ProgressNotKept")
    assert (said_once["type"], said_once.get("count", 1)) == ("Warning", 1)
    assert counts(completedIndexes="0", succeeded=1)(await scene.source("counts"))
    assert (await scene.mirror("north", "counts") or {})["metadata"]["generation"] == mirror["metadata"]["generation"]
    yield Act.BACK
    await until_only_on(scene, "north", "counts")


def _seed(mirror: Json | None) -> str:
    return str((mirror or {}).get("metadata", {}).get("annotations", {}).get("jobmirror.io/seed", ""))


async def _moved_with_progress(loss: Loss, name: str) -> None:
    await loss.until_moved(name)
    await loss.scene.event(name, "ProgressKept")
    found = await loss.scene.source_until(name, lambda found: not is_suspended(found))
    assert condition(found, "jobmirror.io/Moved")


async def _ended(loss: Loss, name: str) -> Json:
    """How it ends on ``west``, once nothing of it is on ``east`` any more."""
    await until_only_on(loss.scene, "west", name)
    await loss.scene.end_pods("west", name)
    return await loss.scene.source_until(name, is_over)


STORIES: tuple[Story, ...] = (indexes, completions, failures, permission_missing)
