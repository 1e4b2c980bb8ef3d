"""Jobs that leave a lost worker go on from what they have counted, by the worker's own Job controller (D14)."""

from __future__ import annotations

from collections.abc import Callable

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import RUN_FOR_KEY, Scene, condition, indexed, is_complete, is_failed, is_over, job, placed_on
from e2e.losing import MOVED_SECONDS, losing_east, until_only_on
from e2e.manager import ManagerProcess

LEAVING = {"worker-order": "east", "on-worker-loss": "Reschedule"}
INDEX = "batch.kubernetes.io/job-completion-index"


def counts(**fields: object) -> Callable[[Json | None], object]:
    """A question: does its status have these?"""
    return lambda found: found and all(found["status"].get(name, 0) == value for name, value in fields.items())


async def test_only_what_is_left_runs_on_the_next_worker(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Scenarios 44, 45 and 46: pods for the indexes and completions that are left; failures count on."""
    async with losing_east(management, east, west, seedProgress=True) as (manager, proxy):
        mine = manager.managed_by
        await scene.create(
            indexed("half", mine, completions=5, run_for="never", annotations=LEAVING),
            job("three", mine, run_for="never", annotations=LEAVING, completions=5, parallelism=3),
            job("budget", mine, run_for="never", exit_code=1, annotations=LEAVING, backoffLimit=1),
        )
        await scene.source_until("half", counts(ready=5))
        for pod in await scene.pods("east", "half"):
            if _index(pod) in ("0", "1", "3"):
                path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}"
                await scene.client_of("east").merge(path, {"metadata": {"annotations": {RUN_FOR_KEY: "0s"}}})
        await scene.source_until("half", counts(completedIndexes="0,1,3"))
        for name, ready in (("three", 3), ("budget", 1)):
            await scene.source_until(name, counts(ready=ready))
            await scene.end_pods("east", name)
        await scene.source_until("three", counts(succeeded=3, ready=2))
        await scene.source_until("budget", counts(failed=1, ready=1))

        proxy.refuse()
        for name in ("half", "three", "budget"):
            await scene.source_until(name, lambda found: placed_on(found) == "west", seconds=MOVED_SECONDS)
            assert await scene.event(name, "ProgressKept")
            found = await scene.source_until(name, lambda found: not condition(found, "Suspended"))
            assert condition(found, "jobmirror.io/Moved")

        await scene.source_until("half", counts(ready=2, completedIndexes="0,1,3"))
        assert sorted(map(_index, await scene.pods("west", "half"))) == ["2", "4"]
        await scene.source_until("three", counts(ready=2, succeeded=3))
        assert len(await scene.pods("west", "three")) == 2
        await scene.source_until("budget", counts(ready=1, failed=1))
        for name in ("half", "three", "budget"):
            await scene.end_pods("west", name)

        ended = await scene.source_until("half", is_over)
        assert is_complete(ended)
        assert (ended["status"]["succeeded"], ended["status"]["completedIndexes"]) == (5, "0-4")
        ended = await scene.source_until("three", is_over)
        assert is_complete(ended)
        assert ended["status"]["succeeded"] == 5
        ended = await scene.source_until("budget", is_over)
        assert is_failed(ended)
        assert (condition(ended, "Failed")["reason"], ended["status"]["failed"]) == ("BackoffLimitExceeded", 2)
        assert len(await scene.pods("west", "budget")) == 1

        await proxy.resume()
        for name in ("half", "three", "budget"):
            await until_only_on(scene, "west", name)


def _index(pod: Json) -> str:
    return str(pod["metadata"]["annotations"][INDEX])


async def test_a_worker_is_drained_by_moving(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Scenario 54: what is suspended goes at once, what runs with consent; never twice, and progress goes along."""
    settings = {"workers": {"seedProgress": True}}
    async with ManagerProcess.start(management, {"east": east, "west": west}, settings=settings) as manager:
        mine, on_east = manager.managed_by, {"worker-order": "east"}
        await scene.create(
            indexed("half", mine, completions=4, run_for="never", annotations=on_east),
            job("paused", mine, run_for="never", annotations=on_east, completions=3, parallelism=2),
        )
        await scene.source_until("half", counts(ready=4))
        await scene.source_until("paused", counts(ready=2))
        for name, indexes in (("half", ("1",)), ("paused", ())):
            for pod in (await scene.pods("east", name))[: None if indexes else 1]:
                if not indexes or _index(pod) in indexes:
                    path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}"
                    await scene.client_of("east").merge(path, {"metadata": {"annotations": {RUN_FOR_KEY: "0s"}}})
        await scene.source_until("half", counts(completedIndexes="1"))
        await scene.source_until("paused", counts(succeeded=1, ready=2))
        await scene.patch("paused", {"spec": {"suspend": True}})
        await scene.source_until("paused", lambda found: condition(found, "Suspended") and counts(ready=0)(found))

        secret = f"/api/v1/namespaces/{manager.namespace}/secrets/east"
        await scene.client.merge(secret, {"metadata": {"annotations": {"jobmirror.io/drain": "move"}}})
        await scene.source_until("paused", lambda found: placed_on(found) == "west")
        assert await scene.mirror("east", "paused") is None
        assert placed_on(await scene.source("half")) == "east"
        await scene.patch("paused", {"spec": {"suspend": False}})
        await scene.source_until("paused", counts(ready=2, succeeded=1))
        assert len(await scene.pods("west", "paused")) == 2

        await scene.client.merge(secret, {"metadata": {"annotations": {"jobmirror.io/drain": "move-started"}}})
        moved = await scene.source_until("half", lambda found: placed_on(found) == "west")
        assert condition(moved, "jobmirror.io/Moved")["message"] == "move 1, from east to west"
        assert await scene.mirror("east", "half") is None
        await scene.until_no_pods("east", "half")
        await scene.source_until("half", counts(ready=3, completedIndexes="1"))
        assert sorted(map(_index, await scene.pods("west", "half"))) == ["0", "2", "3"]
        for name in ("half", "paused"):
            await scene.end_pods("west", name)
            assert is_complete(await scene.source_until(name, is_over))
            assert not await scene.events(name, "MirrorLost")
        told = await manager.metrics()
        assert told.value("jobmirror_secondary_mirrors_total") == 0
