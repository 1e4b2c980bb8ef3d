"""Deletions that nobody saw: while the manager was down, or while a worker was unreachable (D10)."""

from __future__ import annotations

import asyncio

from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, is_complete, job, runs, uid, until
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy
from e2e.waves import mirrors_on, secret_events, sources, until_sources

MOST_AT_ONCE = 20


async def test_mirrors_of_sources_deleted_while_the_manager_was_down_go_at_its_start(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """The sweep of the start asks for each source; a namesake made meanwhile gets a mirror of its own."""
    names = ["kept", "gone-1", "gone-2", "renewed"]
    async with ManagerProcess.start(management, {"east": east, "west": west}) as manager:
        await scene.create(*(job(name, manager.managed_by, run_for="never") for name in names))
        before = await until_sources(scene, names, runs())
        kept = await scene.mirrors("kept")

        await manager.stop()
        await asyncio.gather(*(scene.delete(name) for name in names[1:]))
        await until(lambda: sources(scene), lambda found: found.keys() == {"kept"})
        await scene.create(job("renewed", manager.managed_by, run_for="100ms"))
        manager.launch()
        await manager.wait_until_ready()

        renewed = await scene.source_until("renewed", is_complete)
        for worker in scene.workers:
            for name in ("gone-1", "gone-2"):
                await scene.mirror_until(worker, name, lambda found: found is None)
                await scene.until_no_pods(worker, name)
        assert uid(renewed) != uid(before["renewed"])
        assert {worker: uid(mirror) for worker, mirror in kept.items()} == {
            worker: uid(mirror) for worker, mirror in (await scene.mirrors("kept")).items()
        }


async def test_a_source_deleted_while_its_worker_is_out_of_reach_loses_its_mirror_on_reconnect(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Scenario 51: the user's delete does not wait for the worker, which is cleaned up when it is back."""
    async with Proxy.before(east) as proxy, ManagerProcess.start(management) as manager:
        await manager.register("east", kubeconfig=proxy.kubeconfig(east.kubeconfig).read_bytes())
        await scene.create(*(job(name, manager.managed_by, run_for="never") for name in ("gone", "kept")))
        await until_sources(scene, ["gone", "kept"], runs())
        mirror = await scene.mirror("east", "kept")

        proxy.refuse()
        await scene.delete("gone")
        await scene.source_until("gone", lambda found: found is None)
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 0)
        assert await scene.mirror("east", "gone")
        await proxy.resume()

        await scene.mirror_until("east", "gone", lambda found: found is None)
        await scene.until_no_pods("east", "gone")
        assert mirror
        assert uid(await scene.mirror("east", "kept") or {}) == uid(mirror)


async def test_a_sweep_that_would_delete_too_much_halts_and_says_so(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """More than twenty mirrors without sources at once are rather a wrong cluster than a wish: none is deleted."""
    names = [f"gone-{number}" for number in range(MOST_AT_ONCE + 5)]
    async with ManagerProcess.start(management, {"east": east}) as manager:
        manager.expect_complaints("sweep halted")
        await scene.create(*(job(name, manager.managed_by, run_for="never") for name in names))
        await until_sources(scene, names, runs())

        await manager.stop()
        await asyncio.gather(*(scene.delete(name) for name in names))
        await until(lambda: sources(scene), lambda found: not found)
        manager.launch()
        await manager.wait_until_ready()

        await until(manager.metrics, lambda found: found.value("jobmirror_sweep_halted_total", worker="east") >= 1)
        told = await until(lambda: secret_events(manager, "east"), lambda found: "SweepHalted" in found)
        assert f"{len(names)} of {len(names)} mirrors" in told["SweepHalted"]
        assert len(await mirrors_on(scene, "east")) == len(names)
