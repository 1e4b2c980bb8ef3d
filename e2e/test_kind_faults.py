"""JobSets and MPIJobs, run by their real controllers, while something fails: each runs once (D2, D10, D23).

``MIRROR_E2E_KILLS`` says how often the manager is killed in the mixed wave; more than a few take minutes.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from e2e import operators
from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import WORKER
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, condition, is_complete, is_over, job, uid, until
from e2e.lives import JOB_SET, KINDS, MPI_JOB, Kind, Lives
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy
from e2e.recorder import Recorder
from e2e.waves import sources
from mirror.kube.resources import JOBS

SETTINGS: Json = {"kinds": ["JobSet", "MPIJob"]}
ALONE: Json = {**SETTINGS, "leaderElection": {"enabled": False}}
KILLS = int(os.environ.get("MIRROR_E2E_KILLS", "4"))
STAYS_SECONDS = 8.0
"""Long enough for whatever would follow from what has gone."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[None]:
    """Both kinds are served and run everywhere."""
    async with operators.running(management, east, west):
        yield


@pytest.fixture(params=KINDS, ids=str)
def kind(request: pytest.FixtureRequest, served: None) -> Kind:
    """Each kind."""
    found: Kind = request.param
    return found


async def test_sources_deleted_while_the_manager_is_down_go_at_its_start(
    kind: Kind, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """D10: with their pods; one that was made anew meanwhile has a mirror of its own, one that was kept goes on."""
    async with ManagerProcess.start(management, {"east": east, "west": west}, settings=SETTINGS) as manager:
        lives = Lives(scene, kind, manager.managed_by)
        every = ("kept", "gone", "renewed")
        for name in every:
            await lives.create(name, run_for="never")
        before = {name: await lives.until_running(name) for name in every}

        await manager.stop()
        await lives.delete("gone")
        await lives.delete("renewed")
        await until(partial(lives.create, "renewed"))
        manager.launch()
        await manager.wait_until_ready()

        await lives.until_over("renewed")
        await lives.until_no_mirror("gone")
        await lives.until_no_pods(before["gone"][0], "gone")
        worker, kept = await lives.until_running("kept")
        assert (worker, uid(kept)) == (before["kept"][0], uid(before["kept"][1]))


async def test_a_source_deleted_while_its_worker_is_unreachable_goes_there_on_reconnect(
    kind: Kind, management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """D10: what runs there ends meanwhile is told as well, and nothing has failed for the outage."""
    async with (
        Proxy.before(east) as proxy,
        ManagerProcess.start(management, settings=SETTINGS) as manager,
    ):
        await manager.register("east", kubeconfig=await behind(proxy, manager, east))
        lives = Lives(scene, kind, manager.managed_by)
        await lives.create("gone", run_for="never")
        await lives.create("ends", run_for="never")
        for name in ("gone", "ends"):
            await lives.until_running(name)

        proxy.refuse()
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 0)
        await lives.delete("gone")
        await end_pods(lives, "east", "ends")
        await scene.client_of("east").wait_until(lives.path("ends"), lives.is_over)
        assert not lives.is_over(await lives.source("ends"))
        assert "east" in await lives.mirrors("gone")
        await proxy.resume()

        await lives.until_over("ends")
        await lives.until_no_mirror("gone")
        await lives.until_no_pods("east", "gone")


async def behind(proxy: Proxy, manager: ManagerProcess, plane: ControlPlane) -> bytes:
    """A kubeconfig with shipped rights that leads through the proxy."""
    path = plane.directory / f"{manager.namespace}-behind.kubeconfig"
    path.write_bytes(await manager.kubeconfig_of(plane))
    return proxy.kubeconfig(path).read_bytes()


async def end_pods(lives: Lives, worker: str, name: str) -> None:
    """Let its pods end now, however long they would have run; those of an MPIJob's workers are its operator's."""
    path = f"/api/v1/namespaces/{lives.scene.namespace}/pods"
    for pod in await lives.pods(worker, name):
        if "-worker-" not in pod["metadata"]["name"]:
            body = {"metadata": {"annotations": {"e2e.jobmirror.io/run-for": "0s"}}}
            await lives.scene.client_of(worker).merge(f"{path}/{pod['metadata']['name']}", body)


@pytest_asyncio.fixture(loop_scope="session")
async def breakable(served: None, management: ControlPlane, fresh_namespace: str) -> AsyncIterator[Scene]:
    """The worker ``north`` with both kinds, of one test alone, which may break it."""
    async with Cluster.start("north", WORKER) as north, operators.running(north):
        one = Scene(management, {"north": north}, fresh_namespace)
        await one.make_namespace("north")
        yield one
        await one.close()


async def test_a_workers_api_server_that_is_killed_fails_nothing(breakable: Scene) -> None:
    """What was there goes on and ends well, what came meanwhile runs afterwards, each with one mirror."""
    north = breakable.planes["north"]
    kinds = [kind.resource for kind in KINDS]
    async with (
        ManagerProcess.start(breakable.management, {"north": north}, settings=SETTINGS) as manager,
        Recorder.watching([north], breakable.namespace, kinds=kinds) as recorder,
    ):
        views = [Lives(breakable, kind, manager.managed_by) for kind in KINDS]
        for lives in views:
            await lives.create(f"runs-{lives.kind}".lower(), run_for="never")
        for lives in views:
            await lives.until_running(f"runs-{lives.kind}".lower())
            await lives.create(f"ends-{lives.kind}".lower(), run_for="1s")
            await lives.create(f"held-{lives.kind}".lower(), run_for="1s", suspend=True)
        await north.kill_apiserver()
        try:
            for lives in views:
                await lives.set_policy({"suspend": False}, f"held-{lives.kind}".lower())
                await lives.create(f"late-{lives.kind}".lower())
            await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="north") == 0)
        finally:
            await north.restart_apiserver()
        for lives in views:
            for name in ("ends", "held", "late"):
                await lives.until_over(f"{name}-{lives.kind}".lower())
            await end_pods(lives, "north", f"runs-{lives.kind}".lower())
            await lives.until_over(f"runs-{lives.kind}".lower())
        assert {source: mirrors for source, mirrors in recorder.by_source().items() if len(mirrors) != 1} == {}
        assert len(recorder.mirrors) == 4 * len(views)
        assert set(recorder.most_at_once.values()) == {1}


async def test_a_mixed_wave_in_which_the_manager_is_killed_runs_each_once(
    served: None, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """SIGKILL at any moment, Jobs beside JobSets of the same names and MPIJobs: one mirror each, and its own end."""
    chance = random.Random(14)
    workers = {"east": east, "west": west}
    kinds = [JOBS, *(kind.resource for kind in KINDS)]
    async with (
        ManagerProcess.start(management, workers, settings=ALONE) as manager,
        Recorder.watching(workers.values(), scene.namespace, kinds=kinds) as recorder,
    ):
        exit_codes = {f"wave-{number}": int(chance.random() < 0.2) for number in range(4 * KILLS)}
        # An MPIJob and a JobSet of one name would both want the Service of that name.
        named = {JOB_SET: "{}".format, MPI_JOB: "mpi-{}".format}
        views = {kind: Lives(scene, kind, manager.managed_by) for kind in named}

        async def come_in() -> None:
            for name, code in exit_codes.items():
                run_for = f"{chance.randrange(100, 1500)}ms"
                await scene.create(job(name, manager.managed_by, run_for=run_for, exit_code=code))
                for kind, lives in views.items():
                    await lives.create(named[kind](name), run_for=run_for, exit_code=code)

        async with asyncio.TaskGroup() as scope:
            scope.create_task(come_in(), name="wave")
            for _ in range(KILLS):
                await asyncio.sleep(chance.uniform(0.0, 1.5))  # the moment
                await manager.kill()
                manager.launch()
                await manager.wait_until_ready()

        for kind, lives in views.items():
            for name, code in exit_codes.items():
                await lives.until_over(named[kind](name), succeeded=not code, seconds=300)
        jobs = await until(lambda: sources(scene), lambda found: all(map(is_over, found.values())), seconds=300)
        assert {name: int(not is_complete(found)) for name, found in jobs.items()} == exit_codes
        of_sources = {source: mirrors for source, mirrors in recorder.by_source().items() if source}
        assert len(of_sources) == len(kinds) * len(exit_codes)
        assert not {source: mirrors for source, mirrors in of_sources.items() if len(mirrors) != 1}
        await manager.stop()


async def test_a_definition_that_goes_in_the_middle_and_comes_back_costs_no_other_kind(
    kind: Kind, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """D23: on the management cluster its sources go with it, and their mirrors once it is served again; no sooner."""
    (other,) = (one for one in KINDS if one is not kind)
    async with ManagerProcess.start(management, {"east": east, "west": west}, settings=SETTINGS) as manager:
        lives, others = (Lives(scene, one, manager.managed_by) for one in (kind, other))
        await lives.create(run_for="never")
        worker, mirror = await lives.until_running()
        try:
            await operators.undefine(scene.client, kind.resource)
            await others.create("meanwhile")
            await others.until_over("meanwhile")
            await asyncio.sleep(STAYS_SECONDS)
            assert {at: uid(one) for at, one in (await lives.mirrors()).items()} == {worker: uid(mirror)}
        finally:
            await operators.define(scene.client, kind.resource)
        await lives.until_no_mirror()
        await lives.until_no_pods(worker)
        await until(partial(lives.create, "afterwards"))
        await lives.until_over("afterwards")


async def test_a_workers_definition_that_goes_and_comes_back_fails_what_was_there_only_then(
    kind: Kind, management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """D23: its mirrors went with it, which is known when it is served again; new ones run there then."""
    async with ManagerProcess.start(management, {"east": east}, settings=SETTINGS) as manager:
        lives = Lives(scene, kind, manager.managed_by)
        await lives.create(run_for="never")
        await lives.until_running()
        client = scene.client_of("east")
        try:
            await operators.undefine(client, kind.resource)
            await lives.create("later")
            await asyncio.sleep(STAYS_SECONDS)
            assert not lives.is_over(await lives.source())
            assert not lives.is_over(await lives.source("later"))
        finally:
            await operators.define(client, kind.resource)
        source = await lives.until_over(succeeded=False)
        assert condition(source, "Failed")["reason"] == "MirrorLost"
        await lives.until_over("later")
