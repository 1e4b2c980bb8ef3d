"""Workers that turn out to be others, change their locks, withdraw rights, drop connections or hang (D12, D13, D19)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from operator import le, lt
from pathlib import Path

from e2e import access
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import (
    SOON_SECONDS,
    Scene,
    annotation,
    is_complete,
    is_over,
    is_placed_or_waits,
    job,
    placed_on,
    runs,
    uid,
    until,
)
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy
from e2e.recorder import Recorder
from e2e.waves import assert_ran_once, mirrored_events, mirrors_on, secret_events, until_over, until_sources

ON_EAST = {"worker-selector": "name=east"}
ON_WEST = {"worker-selector": "name=west"}
REQUESTS = "jobmirror_api_requests_total"
FILES_MORE = 3
MOST_CUTS = 10


async def test_a_secret_that_leads_to_another_cluster_is_a_lost_worker(
    manager: ManagerProcess, scene: Scene, east: ControlPlane, west: ControlPlane
) -> None:
    """A wrong kubeconfig moves and deletes nothing; once it is right again the Job goes on where it was."""
    await scene.create(job("stays", manager.managed_by, run_for="never", completions=5, annotations=ON_EAST))
    source = await scene.source_until("stays", runs())
    mirror = await scene.mirror("east", "stays") or {}

    await manager.register("east", west)
    told = await until(lambda: secret_events(manager, "east"), lambda found: "IdentityRejected" in found)
    await scene.create(job("waits", manager.managed_by, annotations=ON_EAST))
    await scene.source_until("waits", lambda found: annotation(found, "waiting-because"))
    assert "another cluster" in told["IdentityRejected"]
    assert not await mirrors_on(scene, "west")
    assert uid(await scene.mirror("east", "stays") or {}) == uid(mirror)
    assert (await scene.source("stays") or {})["status"] == source["status"]

    await manager.register("east", east)
    await scene.patch("stays", {"spec": {"parallelism": 3}})
    await scene.source_until("stays", runs(3))
    assert is_complete(await scene.source_until("waits", is_over))
    assert uid(await scene.mirror("east", "stays") or {}) == uid(mirror)


async def test_a_cluster_is_registered_only_once(manager: ManagerProcess, scene: Scene, east: ControlPlane) -> None:
    """A second Secret for the same cluster is refused by name and gets no Jobs; the first one works on."""
    await manager.register("east-again", east)

    told = await until(lambda: secret_events(manager, "east-again"), lambda found: "IdentityRejected" in found)
    again = {"worker-selector": "name=east-again"}
    await scene.create(
        job("first", manager.managed_by, annotations=ON_EAST), job("second", manager.managed_by, annotations=again)
    )

    assert "as worker east" in told["IdentityRejected"]
    assert is_complete(await scene.source_until("first", is_over))
    assert "east-again" in annotation(
        await scene.source_until("second", lambda found: annotation(found, "waiting-because")), "waiting-because"
    )
    assert placed_on(await scene.source("second")) == ""


async def test_credentials_are_rotated_without_losing_the_worker(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """A new token, then a certificate, while a Job runs; the old account is gone, and the status keeps coming."""
    old, new = await access.account(east, "old"), await access.account(east, "new")
    certificate = east.kubeconfig_for("rotated", groups=["system:masters"])
    async with ManagerProcess.start(management) as manager:
        await manager.register("east", kubeconfig=old.read_bytes())
        await scene.create(job("rotated", manager.managed_by, run_for="never", completions=5))
        await scene.source_until("rotated", runs())

        for pods, kubeconfig in ((2, new), (3, certificate)):
            before = await watches(manager)
            await manager.register("east", kubeconfig=kubeconfig.read_bytes())
            await until(lambda: watches(manager), partial(lt, before))
            await access.revoke(east, "old" if kubeconfig is new else "new")
            await scene.patch("rotated", {"spec": {"parallelism": pods}})
            await scene.source_until("rotated", runs(pods))

        assert not [line for line in manager.log_lines() if "state=Lost" in line]


async def test_rights_that_are_withdrawn_and_given_back_are_a_short_loss(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """403 is a loss like any other: the Job stays, and is seen again within seconds of the rights' return."""
    limited = await access.account(east, "limited")
    async with Proxy.before(east) as proxy, ManagerProcess.start(management) as manager:
        await manager.register("east", kubeconfig=proxy.kubeconfig(limited).read_bytes())
        await scene.create(job("stays", manager.managed_by, run_for="never", completions=5))
        source = await scene.source_until("stays", runs())

        await access.forbid(east, "limited")
        proxy.cut()  # else the watch, which was allowed when it began, goes on
        # The connection that was cut may be told first, and then a refusal is the same loss in other words.
        await until(lambda: secret_events(manager, "east"), lambda found: "WorkerLost" in found)
        await until(manager.metrics, lambda found: found.value(REQUESTS, cluster="east", code="403") > 0)
        assert (await scene.source("stays") or {})["status"] == source["status"]

        await scene.patch("stays", {"spec": {"parallelism": 2}})
        await access.allow(east, "limited")
        began = time.monotonic()
        await scene.source_until("stays", runs(2))
        took = time.monotonic() - began
        print(f"rights back to change carried and status stored: {took:.2f} s")
        assert took < SOON_SECONDS
        assert placed_on(await scene.source("stays")) == "east"


async def test_connections_that_break_every_second_cost_nothing_but_time(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Watches and calls of both workers are cut while a wave of Jobs runs: each still runs exactly once."""
    names = [f"cut-{number}" for number in range(60)]
    planes = {"east": east, "west": west}
    async with (
        Proxy.before(east) as before_east,
        Proxy.before(west) as before_west,
        ManagerProcess.start(management) as manager,
        Recorder.watching(planes.values(), scene.namespace) as recorder,
    ):
        for name, proxy in (("east", before_east), ("west", before_west)):
            await manager.register(name, kubeconfig=proxy.kubeconfig(planes[name].kubeconfig).read_bytes())
        async with cutting(before_east, before_west) as cuts:
            await scene.create(*(job(name, manager.managed_by, run_for="4s") for name in names))
            ended = await until_over(scene, names)

        print(f"{len(cuts)} cuts")
        await assert_ran_once(scene, ended, recorder)
        told = await until(lambda: mirrored_events(scene), lambda found: found.keys() == set(names))
        assert set(told.values()) == {1}


async def test_a_worker_that_never_answers_slows_down_nobody_else(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Connections are accepted and nothing comes back: the other worker keeps its pace, and this one's Jobs resume."""
    async with Proxy.before(east) as proxy, ManagerProcess.start(management, {"west": west}) as manager:
        await manager.register("east", kubeconfig=proxy.kubeconfig(east.kubeconfig).read_bytes())
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 1)
        normal = await median_seconds(manager, scene, "normal")

        proxy.stall()
        stuck = [f"stuck-{number}" for number in range(80)]  # more than may be in work for one worker
        await scene.create(*(job(name, manager.managed_by, annotations=ON_EAST) for name in stuck))
        await until_sources(scene, stuck, is_placed_or_waits)
        meanwhile = await median_seconds(manager, scene, "meanwhile")
        await proxy.resume()
        ended = await until_over(scene, stuck)

        print(f"median normally {normal * 1000:.0f} ms, beside a worker that hangs {meanwhile * 1000:.0f} ms")
        assert meanwhile < 10 * normal + 2.0  # who waited for the other would wait for a request's whole time
        assert all(map(is_complete, ended.values()))


async def test_a_manager_is_stopped_in_time_while_a_worker_hangs(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Requests that get no answer are given up at once: exit code 0 within seconds, and the next start finds them."""
    names = [f"stuck-{number}" for number in range(10)]
    async with Proxy.before(east) as proxy, ManagerProcess.start(management) as manager:
        await manager.register("east", kubeconfig=proxy.kubeconfig(east.kubeconfig).read_bytes())
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 1)
        proxy.stall()
        await scene.create(*(job(name, manager.managed_by) for name in names))
        await until_sources(scene, names, is_placed_or_waits)

        began = time.monotonic()
        await manager.stop()  # looks at the exit code and at the log
        took = time.monotonic() - began
        await proxy.resume()
        manager.launch()
        ended = await until_over(scene, names)

        print(f"stopped in {took:.2f} s")
        assert took < SOON_SECONDS
        assert all(map(is_complete, ended.values()))


async def test_workers_that_come_go_and_rotate_leave_no_file_open(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Twenty times a new kubeconfig, twenty times a new worker: connections and watches of before are closed."""
    async with (
        Proxy.before(west) as proxy,
        ManagerProcess.start(management, {"east": east}, settings={"sweep": {"interval": "200ms"}}) as manager,
    ):
        kubeconfig = proxy.kubeconfig(west.kubeconfig).read_bytes()
        await add_and_remove(manager, kubeconfig)
        usual = open_files(manager)

        for _ in range(20):
            await add_and_remove(manager, kubeconfig)
        await until(lambda: files(manager), lambda found: found <= usual + FILES_MORE)

        await manager.register("west", kubeconfig=kubeconfig)
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="west") == 1)
        usual = open_files(manager)
        for number in range(20):
            accepted = proxy.accepted
            await manager.register("west", kubeconfig=kubeconfig + f"# {number}\n".encode())
            await until(lambda: accepted_by(proxy), partial(le, accepted + 2))
        await until(lambda: files(manager), lambda found: found <= usual + FILES_MORE)
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="west") == 1)
        print(f"{usual} files were open, {open_files(manager)} are")


@asynccontextmanager
async def cutting(*proxies: Proxy) -> AsyncIterator[list[float]]:
    """Cuts all connections every second, ten times or until the block is left; gives the times.

    Not for ever: a machine that needs a second to connect would get no further.
    """
    cuts: list[float] = []

    async def cut() -> None:
        while len(cuts) < MOST_CUTS:
            await asyncio.sleep(1.0)  # the rhythm of the fault itself
            cuts.append(time.monotonic())
            for proxy in proxies:
                proxy.cut()

    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(cut(), name="cut")
        try:
            yield cuts
        finally:
            task.cancel()


async def median_seconds(manager: ManagerProcess, scene: Scene, name: str) -> float:
    """The median time from creating a Job for west to seeing its mirror's first status, one Job after the other."""
    times = []
    for number in range(9):
        began = time.monotonic()
        await scene.create(job(f"{name}-{number}", manager.managed_by, run_for="never", annotations=ON_WEST))
        await scene.source_until(f"{name}-{number}", lambda found: (found or {}).get("status", {}).get("startTime"))
        times.append(time.monotonic() - began)
    return sorted(times)[len(times) // 2]


async def add_and_remove(manager: ManagerProcess, kubeconfig: bytes) -> None:
    """Register a worker until it is ready, and remove it until it is forgotten."""
    await manager.register("guest", kubeconfig=kubeconfig)
    await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="guest") == 1)
    forgotten = sum("worker forgotten" in line for line in manager.log_lines())
    await manager.unregister("guest")
    await until(lambda: forgotten_workers(manager), lambda found: found > forgotten)


async def forgotten_workers(manager: ManagerProcess) -> int:
    """How many workers it has forgotten."""
    return sum("worker forgotten" in line for line in manager.log_lines())


async def watches(manager: ManagerProcess) -> float:
    """How many watches of east have begun."""
    return (await manager.metrics()).value(REQUESTS, cluster="east", verb="watch")


async def accepted_by(proxy: Proxy) -> int:
    """How many connections there have been."""
    return proxy.accepted


async def files(manager: ManagerProcess) -> int:
    """How many files the process has open."""
    return open_files(manager)


def open_files(manager: ManagerProcess) -> int:
    """The same."""
    return len(list(Path(f"/proc/{manager.pid}/fd").iterdir()))
