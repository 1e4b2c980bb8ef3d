"""Jobs that leave a lost worker go on from what they have counted, by the worker's own Job controller (D14)."""

from __future__ import annotations

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import RUN_FOR_KEY, Scene, condition, indexed, is_complete, is_failed, is_over, job, placed_on, until
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy

LEAVING = {"worker-order": "east", "on-worker-loss": "Reschedule"}
SETTINGS = {"workers": {"lostAfter": "5s", "seedProgress": True}}
MOVED_SECONDS = 120.0
"""A new leader moves nothing in its first minute."""
INDEX = "batch.kubernetes.io/job-completion-index"


def counts(**fields: object) -> object:
    """A question: does its status have these?"""
    return lambda found: found and all(found["status"].get(name) == value for name, value in fields.items())


async def test_only_what_is_left_runs_on_the_next_worker(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Scenarios 44, 45 and 46: pods for the indexes and completions that are left; failures count on."""
    async with (
        Proxy.before(east) as proxy,
        ManagerProcess.start(management, {"west": west}, settings=SETTINGS) as manager,
    ):
        await manager.register("east", kubeconfig=proxy.kubeconfig(east.kubeconfig).read_bytes())
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 1)
        mine = manager.managed_by
        await scene.create(
            indexed("half", mine, completions=5, run_for="never", annotations=LEAVING),
            job("three", mine, run_for="never", annotations=LEAVING, completions=5, parallelism=3),
            job("budget", mine, run_for="never", exit_code=1, annotations=LEAVING, backoffLimit=1),
        )
        await scene.source_until("half", counts(ready=5))  # type: ignore[arg-type]
        for pod in await scene.pods("east", "half"):
            if _index(pod) in ("0", "1", "3"):
                path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}"
                await scene.client_of("east").merge(path, {"metadata": {"annotations": {RUN_FOR_KEY: "0s"}}})
        await scene.source_until("half", counts(completedIndexes="0,1,3"))  # type: ignore[arg-type]
        for name, ready in (("three", 3), ("budget", 1)):
            await scene.source_until(name, counts(ready=ready))  # type: ignore[arg-type]
            await scene.end_pods("east", name)
        await scene.source_until("three", counts(succeeded=3, ready=2))  # type: ignore[arg-type]
        await scene.source_until("budget", counts(failed=1, ready=1))  # type: ignore[arg-type]

        proxy.refuse()
        for name in ("half", "three", "budget"):
            await scene.source_until(name, lambda found: placed_on(found) == "west", seconds=MOVED_SECONDS)
            assert await scene.event(name, "ProgressKept")
            found = await scene.source_until(name, lambda found: not condition(found, "Suspended"))
            assert condition(found, "jobmirror.io/Moved")

        await scene.source_until("half", counts(ready=2, completedIndexes="0,1,3"))  # type: ignore[arg-type]
        assert sorted(map(_index, await scene.pods("west", "half"))) == ["2", "4"]
        await scene.source_until("three", counts(ready=2, succeeded=3))  # type: ignore[arg-type]
        assert len(await scene.pods("west", "three")) == 2
        await scene.source_until("budget", counts(ready=1, failed=1))  # type: ignore[arg-type]
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
            await until(lambda name=name: scene.mirrors(name), lambda found: set(found) == {"west"})  # type: ignore[misc]


def _index(pod: Json) -> str:
    return str(pod["metadata"]["annotations"][INDEX])
