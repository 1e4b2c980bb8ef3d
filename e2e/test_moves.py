"""A worker is lost for longer than ``workers.lostAfter`` while Jobs run there: some stay, some start again (D14)."""

from __future__ import annotations

from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, condition, indexed, is_complete, is_over, job, placed_on, runs, uid, until
from e2e.losing import MOVED_SECONDS, losing_east, until_only_on

RESCHEDULE = {"worker-order": "east", "on-worker-loss": "Reschedule"}


async def test_jobs_of_a_lost_worker_start_again_elsewhere_where_that_is_asked_for(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Scenarios 2, 3, 32 and 43 on real API servers: each status is taken, and each loser goes."""
    async with losing_east(management, east, west) as (manager, proxy):
        mine = manager.managed_by
        await scene.create(
            job("stays", mine, run_for="never", annotations={"worker-order": "east"}),
            job("moves", mine, run_for="never", annotations=RESCHEDULE),
            job("wins", mine, run_for="never", annotations=RESCHEDULE),
            indexed("counts", mine, run_for="never", annotations=RESCHEDULE, pods={"run-for-index-0": "10ms"}),
        )
        for name in ("stays", "moves", "wins", "counts"):
            await scene.source_until(name, lambda found: (found or {}).get("status", {}).get("startTime"))
        before = await scene.source_until("moves", runs())
        old = {name: uid(await scene.mirror("east", name) or {}) for name in ("moves", "wins")}

        proxy.refuse()
        for name in ("moves", "wins", "counts"):
            moved = await scene.source_until(name, lambda found: placed_on(found) == "west", seconds=MOVED_SECONDS)
            assert condition(moved, "jobmirror.io/Moved")["message"].startswith(
                "move 1, from east to west; left behind: "
            )
        again = await scene.source_until("moves", runs())
        assert again["status"]["startTime"] != before["status"]["startTime"]
        assert not condition(again, "Suspended")
        assert placed_on(await scene.source("stays")) == "east"
        assert await scene.event("moves", "Moved")

        await scene.end_pods("east", "wins")
        await until(lambda: scene.mirror("east", "wins"), is_over)
        await proxy.resume()
        ended = await scene.source_until("wins", is_over)
        assert is_complete(ended)
        assert placed_on(ended) == "east"
        for name, worker in (("moves", "west"), ("wins", "east"), ("stays", "east"), ("counts", "west")):
            await until_only_on(scene, worker, name)
        assert uid(await scene.mirror("east", "wins") or {}) == old["wins"]

        for name in ("moves", "counts"):
            await scene.end_pods("west", name)
            assert is_complete(await scene.source_until(name, is_over))
        await scene.end_pods("east", "stays")
        assert is_complete(await scene.source_until("stays", is_over))
        told = await manager.metrics()
        assert told.value("jobmirror_secondary_mirrors_total", why="WorkerLost") == 3
        assert told.value("jobmirror_left_behind_deleted_total") == 3
