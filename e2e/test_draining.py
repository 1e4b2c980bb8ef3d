"""A worker is emptied by moving its Jobs, as an operator types it; they go on from what they had counted (D15)."""

from __future__ import annotations

from e2e.commands import administrator_says, administrator_types, interrupted, said_by
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import (
    Scene,
    condition,
    counts,
    index_of,
    indexed,
    is_complete,
    is_over,
    is_suspended,
    job,
    placed_on,
    runs,
    uid,
    until,
)
from e2e.manager import ManagerProcess

DRAIN = ("worker", "drain", "east", "--move")
ON_THIS_MACHINE = ("--allow", "loopback")
JOBS = ("half", "paused", "slow")
INTERRUPTED = 130


async def test_a_worker_is_drained_by_moving(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Scenarios 54 and 56: what is suspended goes at once, what runs with consent; what has not gone can be kept.

    Never twice, and progress goes along. The command may be interrupted, and typed again: the manager drains.
    """
    settings = {"workers": {"seedProgress": True}}
    async with ManagerProcess.start(management, {"east": east, "west": west}, settings=settings) as manager:
        await begin(scene, manager.managed_by)
        async with administrator_types(manager, *DRAIN, *ON_THIS_MACHINE) as draining:
            await scene.source_until("paused", lambda found: placed_on(found) == "west")
            said = await interrupted(draining)
        assert said.code == INTERRUPTED, said
        assert await scene.mirror("east", "paused") is None
        for name in ("half", "slow"):
            assert placed_on(await scene.source(name)) == "east"
        await scene.patch("paused", {"spec": {"suspend": False}})
        await scene.source_until("paused", counts(ready=2, succeeded=1))
        assert len(await scene.pods("west", "paused")) == 2

        await cancel_half_way(scene, manager)
        async with administrator_types(manager, *DRAIN, "--started", *ON_THIS_MACHINE) as draining:
            await scene.mirror_until("east", "slow", lambda found: found and found["spec"]["suspend"])
            await stop_pods(scene)
            said = await said_by(draining)
        assert said.code == 0, said
        assert "worker east is empty: mirror worker remove east" in said.output
        for name in JOBS:
            assert set(await scene.mirrors(name)) == {"west"}
            await scene.source_until(name, lambda found: not is_suspended(found))
            await scene.end_pods("west", name)
            assert is_complete(await scene.source_until(name, is_over))
            assert not await scene.events(name, "MirrorLost")
        told = await manager.metrics()
        assert told.value("jobmirror_secondary_mirrors_total") == 0


async def begin(scene: Scene, mine: str) -> None:
    """Of four indexes one is completed; of three completions one, and the Job is suspended; the third stops slowly."""
    on_east = {"worker-order": "east"}
    await scene.create(
        indexed("half", mine, completions=4, run_for="never", annotations=on_east),
        job("paused", mine, run_for="never", annotations=on_east, completions=3, parallelism=2),
        job("slow", mine, run_for="never", annotations=on_east, pods={"stop-after": "3000s"}),
    )
    for name, ready in (("half", 4), ("paused", 2), ("slow", 1)):
        await scene.source_until(name, counts(ready=ready))
    await scene.end("east", [pod for pod in await scene.pods("east", "half") if index_of(pod) == "1"])
    await scene.end("east", (await scene.pods("east", "paused"))[:1])
    await scene.source_until("half", counts(completedIndexes="1"))
    await scene.source_until("paused", counts(succeeded=1, ready=2))
    await scene.patch("paused", {"spec": {"suspend": True}})
    await scene.source_until("paused", lambda found: is_suspended(found) and counts(ready=0)(found))


async def cancel_half_way(scene: Scene, manager: ManagerProcess) -> None:
    """One Job has gone; another one, of which a pod still stops, resumes where it is."""
    before = uid(await scene.mirror("east", "slow") or {})
    async with administrator_types(manager, *DRAIN, "--started", *ON_THIS_MACHINE) as draining:
        await scene.mirror_until("east", "slow", lambda found: found and found["spec"]["suspend"])
        moved = await scene.source_until("half", lambda found: placed_on(found) == "west")
        assert condition(moved, "jobmirror.io/Moved")["message"] == "move 1, from east to west"
        assert await scene.mirror("east", "half") is None
        await scene.until_no_pods("east", "half")
        await scene.source_until("half", counts(ready=3, completedIndexes="1"))
        assert sorted(map(index_of, await scene.pods("west", "half"))) == ["0", "2", "3"]
        said = await administrator_says(manager, "worker", "uncordon", "east")
        assert "worker east is schedulable" in said.output, said
        await interrupted(draining)
    await scene.mirror_until("east", "slow", lambda found: found and not found["spec"]["suspend"])
    await stop_pods(scene)
    back = await scene.source_until("slow", lambda found: runs()(found) and not is_suspended(found))
    assert (placed_on(back), uid(await scene.mirror("east", "slow") or {})) == ("east", before)


async def stop_pods(scene: Scene) -> None:
    """Those that are to stop on east do so, as a kubelet says it."""
    pods = await until(lambda: scene.pods("east", "slow"), lambda found: any(map(_is_to_stop, found)))
    for pod in filter(_is_to_stop, pods):
        path = f"/api/v1/namespaces/{scene.namespace}/pods/{pod['metadata']['name']}"
        await scene.client_of("east").merge(f"{path}/status", {"status": {"phase": "Failed"}})
    await until(lambda: scene.pods("east", "slow"), lambda found: not any(map(_is_to_stop, found)))


def _is_to_stop(pod: Json) -> bool:
    return "deletionTimestamp" in pod["metadata"]
