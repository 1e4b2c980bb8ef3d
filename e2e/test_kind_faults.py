"""JobSets and MPIJobs, run by their real controllers, while something fails: each runs once (D2, D10, D23).

``MIRROR_E2E_KILLS`` says how often the manager is killed in the mixed wave; more than a few take minutes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from e2e import kind_choice, kind_wave, operators
from e2e.controlplane.client import Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import WORKER
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, annotation, uid, until
from e2e.lives import KINDS, Kind, Lives, end
from e2e.manager import ManagerProcess
from e2e.operator_table import TEKTON
from e2e.operators import Controllers
from e2e.proxy import Proxy
from e2e.recorder import Recorder

SETTINGS: Json = {"kinds": kind_choice.settings()}
KILLS = int(os.environ.get("MIRROR_E2E_KILLS", "4"))
STAYS_SECONDS = 8.0
"""Long enough for whatever would follow from what has gone."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[Controllers]:
    """Both kinds are served and run everywhere."""
    async with operators.running(management, east, west, operators=kind_choice.operators()) as controllers:
        yield controllers


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def nothing_stays(management: ControlPlane, fresh_namespace: str) -> AsyncIterator[None]:
    """Kinds that admit one ``managedBy`` are of every test's manager: the next would find another's sources."""
    yield
    async with management.client(user_agent="e2e-kind-faults") as client:
        for kind in kind_choice.CHOSEN:
            path = kind.resource.path(fresh_namespace)
            await client.delete(path)
            await until(partial(client.list, path), lambda found: not found)


@kind_choice.each()
async def test_sources_deleted_while_the_manager_is_down_go_at_its_start(
    kind: Kind, served: Controllers, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
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

        await lives.until_well("renewed")
        await lives.until_no_mirror("gone")
        await lives.until_no_pods(before["gone"][0], "gone")
        worker, kept = await lives.until_running("kept")
        assert (worker, uid(kept)) == (before["kept"][0], uid(before["kept"][1]))


@kind_choice.each()
async def test_a_source_deleted_while_its_worker_is_unreachable_goes_there_on_reconnect(
    kind: Kind, served: Controllers, management: ControlPlane, east: ControlPlane, scene: Scene
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
        if kind.ends:
            await lives.end_pods("east", "ends")
            await scene.client_of("east").wait_until(lives.path("ends"), lives.is_over)
        assert not lives.is_over(await lives.source("ends"))
        assert "east" in await lives.mirrors("gone")
        await proxy.resume()

        await lives.until_well("ends")
        await lives.until_no_mirror("gone")
        await lives.until_no_pods("east", "gone")


async def behind(proxy: Proxy, manager: ManagerProcess, plane: ControlPlane) -> bytes:
    """A kubeconfig with shipped rights that leads through the proxy."""
    path = plane.directory / f"{manager.namespace}-behind.kubeconfig"
    path.write_bytes(await manager.kubeconfig_of(plane))
    return proxy.kubeconfig(path).read_bytes()


@pytest_asyncio.fixture(loop_scope="session")
async def breakable(served: Controllers, management: ControlPlane, fresh_namespace: str) -> AsyncIterator[Scene]:
    """The worker ``north`` with both kinds, of one test alone, which may break it."""
    async with (
        Cluster.start("north", WORKER) as north,
        operators.running(north, operators=kind_choice.operators(), planes_end=True),
    ):
        one = Scene(management, {"north": north}, fresh_namespace)
        await one.make_namespace("north")
        yield one
        await one.close()


async def test_a_workers_api_server_that_is_killed_fails_nothing(breakable: Scene) -> None:
    """What was there goes on and ends well, what came meanwhile runs afterwards, each with one mirror."""
    north = breakable.planes["north"]
    kinds = [kind.resource for kind in kind_choice.CHOSEN]
    async with (
        ManagerProcess.start(breakable.management, {"north": north}, settings=SETTINGS) as manager,
        Recorder.watching([north], breakable.namespace, kinds=kinds) as recorder,
    ):
        views = [Lives(breakable, kind, manager.managed_by) for kind in kind_choice.CHOSEN]
        for lives in views:
            await lives.create(f"runs-{lives.kind}".lower(), run_for="never")
        for lives in views:
            await lives.until_running(f"runs-{lives.kind}".lower())
            await lives.create(f"ends-{lives.kind}".lower(), run_for="1s")
            await lives.create(f"held-{lives.kind}".lower(), run_for="1s", **(lives.kind.held or {}))
        await north.kill_apiserver()
        try:
            for lives in views:
                await lives.set_policy(lives.kind.released, f"held-{lives.kind}".lower())
                await lives.create(f"late-{lives.kind}".lower())
            await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="north") == 0)
        finally:
            await north.restart_apiserver()
        for lives in views:
            for name in ("ends", "held", "late"):
                await lives.until_well(f"{name}-{lives.kind}".lower())
            if lives.kind.ends:
                await lives.end_pods("north", f"runs-{lives.kind}".lower())
            await lives.until_well(f"runs-{lives.kind}".lower())
        of_sources = {source: mirrors for source, mirrors in recorder.by_source().items() if source}
        assert {source: mirrors for source, mirrors in of_sources.items() if len(mirrors) != 1} == {}
        assert len(of_sources) == 4 * len(views)
        assert {recorder.most_at_once[source] for source in of_sources} == {1}


async def test_a_mixed_wave_in_which_the_manager_is_killed_runs_each_once(
    served: Controllers, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """SIGKILL at any moment, Jobs beside JobSets of the same names and others: one mirror each, and its own end."""
    workers = {"east": east, "west": west}
    await kind_wave.play(management, workers, scene, kinds=kind_choice.CHOSEN, kills=KILLS, seed=14)


@kind_choice.each()
async def test_a_definition_that_goes_in_the_middle_and_comes_back_costs_no_other_kind(
    kind: Kind, served: Controllers, management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """D23: on the management cluster its sources go with it, and their mirrors once it is served again; no sooner."""
    other = next(one for one in KINDS if one is not kind)
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
        await lives.until_well("afterwards")


@kind_choice.each()
async def test_a_workers_definition_that_goes_and_comes_back_fails_what_was_there_only_then(
    kind: Kind, served: Controllers, management: ControlPlane, east: ControlPlane, scene: Scene
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
        await scene.event("train", "MirrorLost")
        if kind.ends:
            source = await lives.until_over(succeeded=False)
            assert end(source, kind.failed).get("reason") == "MirrorLost"
        else:
            await until(lives.mirrors, describe=lives.describe)
            await lives.until_running()
        await lives.until_well("later")


def has_webhook(kind: Kind) -> bool:
    """Whether its own controller is asked for what is written of it."""
    return any(one.webhooks for one in kind.operators if kind.resource in one.kinds)


@kind_choice.each(has_webhook)
async def test_a_webhook_that_is_down_on_the_management_cluster_keeps_nothing_but_annotations_waiting(
    kind: Kind, served: Controllers, management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """D25: it is asked for objects, not for statuses; what is for people follows. Tekton's is asked for both.

    One is placed, runs and ends meanwhile, as do those of another kind; users' own changes are refused.
    """
    other = next(one for one in KINDS if one is not kind)
    async with ManagerProcess.start(management, {"east": east}, settings=SETTINGS) as manager:
        lives, others = (Lives(scene, one, manager.managed_by) for one in (kind, other))
        await manager.annotate_worker("east", {"cordoned": "true"})
        await lives.create(run_for="never")
        await lives.until(lambda found: annotation(found, "waiting-because"))
        async with served.away(management, kind.resource):
            await manager.annotate_worker("east", {"cordoned": None})
            await others.create("meanwhile")
            with pytest.raises(StatusError, match="failed calling webhook"):
                await scene.client.merge(lives.path(), {"metadata": {"labels": {"team": "a"}}})
            if TEKTON not in kind.operators:
                await lives.until_running()
                await lives.end_pods("east")
                assert not annotation(await lives.until_over(), "assigned-worker")
            await others.until_well("meanwhile")
            assert bool(await lives.mirrors()) is (TEKTON not in kind.operators)
        source = await lives.until(lambda found: annotation(found, "assigned-worker") == "east")
        assert not annotation(source, "waiting-because")
        if TEKTON in kind.operators:
            await lives.until_running()


@kind_choice.each(has_webhook)
async def test_a_webhook_that_is_down_on_a_worker_is_told_and_waited_for(
    kind: Kind, served: Controllers, management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """No mirror can be made or changed meanwhile, which the source says; each has one in all, once it answers.

    Objects of another kind go on.
    """
    other = next(one for one in KINDS if one is not kind)
    async with (
        ManagerProcess.start(management, {"east": east}, settings=SETTINGS) as manager,
        Recorder.watching([east], scene.namespace, kinds=[kind.resource]) as recorder,
    ):
        lives, others = (Lives(scene, one, manager.managed_by) for one in (kind, other))
        await lives.create("before", run_for="never")
        _, before = await lives.until_running("before")
        async with served.away(east, kind.resource):
            await lives.create(run_for="1s")
            await scene.client.merge(lives.path("before"), {"metadata": {"labels": {"team": "a"}}})
            await others.create("meanwhile")
            source = await lives.until(says_that_its_webhook_fails)
            assert annotation(source, "assigned-worker") == "east"
            assert not lives.is_over(source)
            assert not await lives.mirrors()
            await others.until_well("meanwhile")
        assert not annotation(await lives.until_well(), "waiting-because")
        mirror = await scene.client_of("east").wait_until(
            lives.path("before"), lambda found: found and found["metadata"]["labels"].get("team") == "a"
        )
        assert uid(mirror) == uid(before)
        of_sources = {source: mirrors for source, mirrors in recorder.by_source().items() if source}
        assert [len(mirrors) for mirrors in of_sources.values()] == [1, 1]


def says_that_its_webhook_fails(found: Json | None) -> bool:
    """With the worker and what became of the call, and without the webhook's address."""
    text = annotation(found, "waiting-because") or ""
    return text.startswith("worker east: its admission webhook ") and "fails: connection refused" in text
