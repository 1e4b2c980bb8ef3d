"""One cluster that is management cluster and worker at once, and the built-in controller beside us (D19, D20)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import WORKER
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, annotation, condition, is_complete, job, placed_on, runs, uid, until, waits_because
from e2e.manager import ManagerProcess

PREFIX = "mirrors-of-"
BUILT_IN = "kubernetes.io/job-controller"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def home(binaries: None) -> AsyncIterator[Cluster]:
    """A cluster that runs pods and is somebody's management cluster too."""
    async with Cluster.start("home", WORKER) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def scene(home: Cluster, east: ControlPlane, fresh_namespace: str) -> AsyncIterator[Scene]:
    """Sources at home; mirrors at home under the prefix, or in the east."""
    one = Scene(home, {"local": home, "east": east}, fresh_namespace, prefixes={"local": PREFIX})
    await one.make_namespace()
    await one.make_namespace("local")
    yield one
    await one.remove_namespaces()
    await one.close()


async def test_unmanaged_mirrored_and_mirror_jobs_live_side_by_side(
    home: Cluster, east: ControlPlane, scene: Scene
) -> None:
    """Each kind ends by the built-in controller, none becomes another: there is no loop (D19)."""
    async with ManagerProcess.start(home, {"east": east}) as manager:
        await manager.register("local", home, annotations={"namespace-prefix": PREFIX})
        mirrored = {"here": "local", "there": "east"}
        plain = {"plain": None, "named": BUILT_IN}
        made = await scene.create(
            *(
                job(name, manager.managed_by, annotations={"worker-selector": f"name={worker}"})
                for name, worker in mirrored.items()
            ),
            *(job(name, controller) for name, controller in plain.items()),
        )
        bystander = await scene.client_of("local").create(scene.jobs("local"), job("bystander"))
        ended = await scene.sources_until([*mirrored, *plain], is_complete)
        await scene.mirror_until("local", "bystander", is_complete)

        assert [uid(found) for found in made] == [uid(found) for found in ended]
        for name, worker in mirrored.items():
            source = await scene.source(name)
            assert placed_on(source) == worker
            assert list(await scene.mirrors(name)) == [worker]
            await scene.only_event(name, "Mirrored")
        for name in plain:
            source = await scene.source(name)
            assert source is not None
            assert not ours(source)
            assert placed_on(source) == ""
            assert await scene.mirrors(name) == {}
        assert {"here", "bystander"} == await job_names(scene, scene.jobs("local"))
        assert {*mirrored, *plain} == await job_names(scene, scene.jobs())
        assert not ours(await scene.mirror("local", "bystander") or {})
        samples = await manager.metrics()
        assert samples.value("jobmirror_placements_total") == 2

        await scene.delete("here")
        await scene.mirror_until("local", "here", lambda found: found is None)
        now = await scene.mirror("local", "bystander")
        assert now is not None
        assert uid(bystander) == uid(now)


async def test_suspending_and_deleting_work_under_a_prefix(home: Cluster, scene: Scene) -> None:
    """What holds for a worker elsewhere holds for the cluster itself (D3, D10)."""
    async with ManagerProcess.start(home) as manager:
        await manager.register("local", home, annotations={"namespace-prefix": PREFIX})
        await scene.create(job("long", manager.managed_by, run_for="never"))
        await scene.source_until("long", runs())

        await scene.patch("long", {"spec": {"suspend": True}})
        await scene.source_until("long", lambda found: condition(found, "Suspended") and not runs()(found))
        await scene.until_no_pods("local", "long")
        await scene.patch("long", {"spec": {"suspend": False}})
        await scene.source_until("long", runs())
        await scene.delete("long")

        await scene.mirror_until("local", "long", lambda found: found is None)
        await scene.until_no_pods("local", "long")


async def test_the_management_cluster_is_refused_without_a_prefix_and_taken_with_one(
    home: Cluster, scene: Scene
) -> None:
    """It would mirror Jobs onto themselves; the Secret's event says what is missing, and giving it is enough (D19)."""
    async with ManagerProcess.start(home) as manager:
        await manager.register("local", home)
        await scene.create(job("waiting", manager.managed_by))

        [event] = await until(lambda: manager.worker_events("local", "IdentityRejected"))
        assert "namespace-prefix" in event["message"]
        waiting = await scene.source_until("waiting", waits_because("misconfigured"))
        needs = "this is the management cluster itself: it needs the annotation namespace-prefix"
        assert annotation(waiting, "waiting-because") == f"local: misconfigured ({needs})"
        assert {"waiting"} == await job_names(scene, scene.jobs())

        await manager.annotate_worker("local", {"namespace-prefix": PREFIX})
        ended = await scene.source_until("waiting", is_complete)
        assert placed_on(ended) == "local"
        assert list(await scene.mirrors("waiting")) == ["local"]


async def job_names(scene: Scene, path: str) -> set[str]:
    """The names of all Jobs of a namespace at home."""
    return {found["metadata"]["name"] for found in await scene.client.list(path)}


def ours(found: Json) -> list[str]:
    """Labels and annotations that we have put on an object."""
    metadata = found["metadata"]
    keys = [*metadata.get("labels", {}), *metadata.get("annotations", {})]
    return [key for key in keys if key.startswith("jobmirror.io/")]
