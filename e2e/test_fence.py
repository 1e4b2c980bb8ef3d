"""Jobs that are fenced: a lease which the lost worker's own Job controller enforces, and what Namespaces say (D14)."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta

import pytest

from e2e.commands import administrator_says
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import (
    Scene,
    condition,
    is_complete,
    is_failed,
    is_over,
    is_suspended,
    job,
    placed_on,
    runs,
    uid,
    until,
    waits_because,
)
from e2e.losing import losing, until_only_on
from e2e.losses.shown import compare
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy

TTL = 300
"""Seconds, the shortest that the setting takes."""

LONG_AGO = timedelta(minutes=15)
"""More than the margin after the end of a lease."""
MOVED_SECONDS = 240.0
"""A new leader moves nothing in its first minute."""
ENDS, RUNS_ON = FENCED = ("train", "simulate")
STAYS, PAUSED = ("migrate", "report")
JOBS = (*FENCED, STAYS, PAUSED)
OWN = 5000
"""Seconds, a user's own deadline."""
SHORT = 18
"""Seconds; with less than 60 left a lease is not renewed."""


def is_fenced(found: Json | None) -> bool:
    return condition(found or {}, "jobmirror.io/Placed").get("reason") == "PlacedWithFence"


async def test_what_a_namespace_says_holds_for_its_jobs(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Its Jobs are fenced; another value takes the lease off again, and one that means nothing is told in it."""
    settings = {"workers": {"onLossOfNamespaces": True, "fenceTTL": f"{TTL}s"}}
    async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
        team = scene.namespace
        await management.kubectl("annotate", "namespace", team, "jobmirror.io/on-worker-loss=Fence")
        await scene.create(job("train", manager.managed_by, run_for="never"))
        await scene.source_until("train", lambda found: runs()(found) and is_fenced(found))
        mirror = await scene.mirror("east", "train") or {}
        assert mirror["spec"]["activeDeadlineSeconds"] == TTL

        await management.kubectl("annotate", "namespace", team, "jobmirror.io/on-worker-loss=fence", "--overwrite")
        await scene.source_until("train", lambda found: found and not is_fenced(found))
        await until(
            lambda: scene.mirror("east", "train"), lambda found: found and "activeDeadlineSeconds" not in found["spec"]
        )
        told = await until(
            lambda: management.kubectl("get", "events", "-n", team), lambda text: "UnknownAnnotation" in text
        )
        assert f"namespace/{team}" in told
        assert "annotation jobmirror.io/on-worker-loss: the namespace's policy 'fence' is unknown; Wait holds" in told
        await scene.end_pods("east", "train")
        assert is_complete(await scene.source_until("train", is_over))


async def test_a_lease_follows_its_annotation_and_is_not_renewed_when_it_is_about_to_end(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Scenarios 6, 18 and 19: put on and taken off while its worker is reachable, and once it is; back too late."""
    async with losing(management, {"east": east}, lostAfter="5s", fenceTTL=f"{TTL}s") as (manager, proxies):
        mine = manager.managed_by
        await scene.create(
            job("late", mine, run_for="never", annotations={"on-worker-loss": "Fence"}),
            job("own", mine, run_for="never", activeDeadlineSeconds=OWN),
        )
        assert is_fenced(await scene.source_until("late", runs()))
        await scene.source_until("own", runs())
        await say(scene, "own", "Fence")
        await scene.source_until("own", is_fenced)
        await scene.mirror_until("east", "own", lambda found: deadline_of(found) <= 2 * TTL)
        await say(scene, "own", "Wait")
        await scene.mirror_until("east", "own", lambda found: deadline_of(found) == OWN)
        assert not is_fenced(await scene.source("own"))

        proxies["east"].refuse()
        before = await scene.mirror("east", "late") or {}
        ends = await set_deadline(scene, "late", SHORT)
        await say(scene, "own", "Fence")
        await scene.source_until("own", waits_because("it is not fenced: it had no lease"))
        assert deadline_of(await scene.mirror("east", "own")) == OWN
        await proxies["east"].resume()

        await scene.mirror_until("east", "own", lambda found: deadline_of(found) <= 2 * TTL)
        await scene.source_until("own", is_fenced)
        ended = await scene.mirror_until("east", "late", lambda found: condition(found, "FailureTarget"))
        assert (uid(ended), deadline_of(ended)) == (uid(before), ends)
        await scene.mirror_until("east", "late", lambda found: found and uid(found) != uid(before))
        again = await scene.source_until("late", lambda found: runs()(found) and not is_suspended(found))
        assert condition(again, "jobmirror.io/Moved")["message"].startswith("move 1, from east to east")
        for name in ("late", "own"):
            await scene.end_pods("east", name)
            assert is_complete(await scene.source_until(name, is_over))


async def say(scene: Scene, name: str, policy: str) -> None:
    """Its user chooses another policy."""
    await scene.patch(name, {"metadata": {"annotations": {"jobmirror.io/on-worker-loss": policy}}})


def deadline_of(mirror: Json | None) -> int:
    return int((mirror or {}).get("spec", {}).get("activeDeadlineSeconds", sys.maxsize))


async def set_deadline(scene: Scene, name: str, left: int) -> int:
    """Somebody on east lets a Job there end in so many seconds; the deadline."""
    mirror = await scene.mirror("east", name) or {}
    deadline = times_of(mirror) + left
    path = f"{scene.jobs('east')}/{name}"
    await scene.client_of("east").merge(path, {"spec": {"activeDeadlineSeconds": deadline}})
    return deadline


def times_of(mirror: Json) -> int:
    """For how many seconds it has run, by the clock that its Job controller has."""
    return int((datetime.now(UTC) - datetime.fromisoformat(mirror["status"]["startTime"])).total_seconds())


@pytest.mark.timeout(900)
async def test_what_a_lost_worker_was_to_end_starts_again_elsewhere_and_what_it_did_not_end_is_a_breach(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Scenarios 4, 8, 15, 28 and 35: a lease that has ended, one that nobody enforced, a worker that was declared dead.

    The last is removed at once, as the document says, while a Job there is suspended. Nobody waits for a lease of five
    minutes: somebody on the worker makes it shorter while nobody looks, and its own Job controller ends it; what the
    manager has noted of leases is made older while it is away.
    """
    settings = {"workers": {"lostAfter": "5s", "fenceTTL": f"{TTL}s"}}
    async with (
        Proxy.before(east) as proxy,
        ManagerProcess.start(management, {"west": west}, settings=settings) as manager,
    ):
        manager.expect_complaints("breach", "unreachable")
        await manager.register("east", kubeconfig=proxy.kubeconfig(east.kubeconfig).read_bytes())
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 1)
        fenced = {"worker-order": "east", "on-worker-loss": "Fence"}
        east_first = {"worker-order": "east"}
        for name in JOBS:
            annotations = fenced if name in FENCED else east_first
            await scene.create(job(name, manager.managed_by, run_for="never", annotations=annotations))
        for name in JOBS:
            assert is_fenced(await scene.source_until(name, runs())) == (name in FENCED)

        proxy.refuse()
        await _set_suspended(scene, PAUSED, is_so=True)
        await scene.event(PAUSED, "Suspended")  # the document shows it, and events are sent a moment later
        await manager.kill()
        await set_deadline(scene, ENDS, 2)
        ended = await scene.mirror_until("east", ENDS, is_failed)
        assert condition(ended, "Failed")["reason"] == "DeadlineExceeded"
        await _forget_leases(scene, manager)
        manager.launch()
        await manager.wait_until_ready()
        for name in FENCED:
            moved = await scene.source_until(name, lambda found: placed_on(found) == "west", seconds=MOVED_SECONDS)
            assert ", fenced)" in condition(moved, "jobmirror.io/Moved")["message"]
        assert placed_on(await scene.source(STAYS)) == "east"

        said = await administrator_says(manager, "worker", "forget", "east", "--all-dead")
        assert said.code == 0, said
        assert "worker east is declared dead: 2 Jobs recorded there will start again elsewhere" in said.output
        removed = await administrator_says(manager, "worker", "remove", "east", "--force", "--allow", "loopback")
        assert removed.code == 0, removed
        assert "worker east is unregistered" in removed.output
        moved = await scene.source_until(STAYS, lambda found: placed_on(found) == "west", seconds=MOVED_SECONDS)
        assert ", gone)" in condition(moved, "jobmirror.io/Moved")["message"]
        waiting = await scene.source_until(PAUSED, waits_because("declared dead"))
        await compare("Its worker is declared dead", scene, manager, PAUSED)
        assert placed_on(waiting) == "east"
        listed = await administrator_says(manager, "worker", "list")
        assert "no (declared dead)" in listed.output
        await _set_suspended(scene, PAUSED, is_so=False)
        moved = await scene.source_until(PAUSED, lambda found: placed_on(found) == "west", seconds=MOVED_SECONDS)
        assert ", gone)" in condition(moved, "jobmirror.io/Moved")["message"]
        for name in JOBS:
            await scene.source_until(name, lambda found: runs()(found) and not is_suspended(found))
        await compare("It has moved after its lease", scene, manager, ENDS)

        await manager.register("east", kubeconfig=proxy.kubeconfig(east.kubeconfig).read_bytes())
        await proxy.resume()
        for name in JOBS:
            await until_only_on(scene, "west", name)
        for name in JOBS[1:]:
            await scene.event(name, "FenceBreached")
        await compare("What its lease did not end", scene, manager, RUNS_ON)
        assert not await scene.events(ENDS, "FenceBreached")
        told = await manager.metrics()
        assert told.value("jobmirror_fence_breaches_total", worker="east") == 3
        assert [told.value("jobmirror_secondary_mirrors_total", why=why) for why in ("Fenced", "Gone")] == [2, 2]
        for name in JOBS:
            assert "Failed" not in [one["type"] for one in (await scene.source(name) or {})["status"]["conditions"]]
            await scene.end_pods("west", name)
            assert is_complete(await scene.source_until(name, is_over))


async def _set_suspended(scene: Scene, name: str, *, is_so: bool) -> None:
    """As its user does."""
    await scene.client.merge(f"{scene.jobs()}/{name}", {"spec": {"suspend": is_so}})


async def _forget_leases(scene: Scene, manager: ManagerProcess) -> None:
    """As if the last lease there had ended long ago, and it had been lost for longer."""
    path = f"/api/v1/namespaces/{manager.namespace}/configmaps/jobmirror-workers"
    record = json.loads((await scene.client.get(path))["data"]["east"])
    ended = datetime.now(UTC) - LONG_AGO
    record["fencedUntil"] = f"{ended:%Y-%m-%dT%H:%M:%SZ}"
    record["lostSince"] = f"{ended - timedelta(seconds=TTL):%Y-%m-%dT%H:%M:%SZ}"
    await scene.client.merge(path, {"data": {"east": json.dumps(record)}})
