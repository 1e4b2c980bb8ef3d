"""API servers that are killed and that hang, and come back: what is waiting is done at once (D6, D12, D13).

These control planes belong to this file, since it breaks them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest
import pytest_asyncio

from e2e.controlplane.client import Json
from e2e.controlplane.components import BARE
from e2e.controlplane.plane import ControlPlane
from e2e.controlplane.provider import Binaries, start_all
from e2e.jobs import SOON_SECONDS, Scene, is_complete, is_placed_or_waits, job, placed_on, uid, until
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder
from e2e.waves import assert_ran_once, sources, until_over, until_sources

NAMESPACE = "default"
PATIENT = {"leaderElection": {"leaseDuration": "200s", "renewDeadline": "170s", "retryPeriod": "500ms"}}
"""It outlasts an API server that comes back on a busy machine; else it would end, which is for a kubelet to mend."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def planes(binaries: None) -> AsyncIterator[dict[str, ControlPlane]]:
    """A management cluster, a worker without controllers (``idle``), and one that runs Jobs (``busy``)."""
    async with AsyncExitStack() as stack:
        started = await start_all(Binaries(management=BARE, worker=BARE), ["management", "idle"], stack)
        yield {**started, **await start_all(Binaries(), ["busy"], stack)}


@pytest_asyncio.fixture(loop_scope="session")
async def broken(planes: dict[str, ControlPlane]) -> AsyncIterator[Scene]:
    """The Jobs of one test on these clusters; they are deleted in the end."""
    one = Scene(planes["management"], {name: planes[name] for name in ("idle", "busy")}, NAMESPACE)
    yield one
    for client, path in ((one.client, one.jobs()), *((one.client_of(name), one.jobs(name)) for name in one.workers)):
        await client.delete(path)
    await one.close()


@pytest.mark.parametrize("outage_seconds", [3, 15])
async def test_a_status_flows_again_as_soon_as_its_worker_is_back(
    planes: dict[str, ControlPlane], broken: Scene, outage_seconds: float
) -> None:
    """From the moment the worker is ready again to its change being stored: no backoff keeps anybody waiting."""
    async with ManagerProcess.start(planes["management"], {"idle": planes["idle"]}) as manager:
        await broken.create(job("waits", manager.managed_by, run_for="never", parallelism=3, completions=3))
        await broken.mirror_until("idle", "waits", bool)
        await write_status(broken, "waits", startTime=now(), active=1)
        await broken.source_until("waits", active(1))

        await planes["idle"].kill_apiserver()
        await asyncio.sleep(outage_seconds)  # the outage itself
        await planes["idle"].restart_apiserver()
        ready = time.monotonic()
        await write_status(broken, "waits", active=2)
        await broken.source_until("waits", active(2))
        took = time.monotonic() - ready

        print(f"after {outage_seconds} s without its API server: {took:.2f} s from ready to stored")
        assert took < SOON_SECONDS
        assert list(await broken.mirrors("waits")) == ["idle"]


async def test_an_api_server_that_hangs_costs_the_other_worker_nothing(
    planes: dict[str, ControlPlane], broken: Scene
) -> None:
    """Stopped by SIGSTOP it keeps its connections and says nothing; the other worker's Jobs run, and then its own."""
    on_busy, on_idle = {"worker-selector": "name=busy"}, {"worker-selector": "name=idle"}
    both = {name: planes[name] for name in ("idle", "busy")}
    async with ManagerProcess.start(planes["management"], both) as manager:
        fast, slow = [f"fast-{number}" for number in range(10)], [f"slow-{number}" for number in range(70)]
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up") == len(both))
        planes["idle"].pause_apiserver()
        try:
            await broken.create(*(job(name, manager.managed_by, annotations=on_idle) for name in slow))
            await until_sources(broken, slow, is_placed_or_waits)
            await broken.create(*(job(name, manager.managed_by, annotations=on_busy) for name in fast))
            began = time.monotonic()
            ended = await until_over(broken, fast)
            print(f"ten Jobs beside a worker that hangs: {time.monotonic() - began:.2f} s")
        finally:
            planes["idle"].resume_apiserver()

        assert all(map(is_complete, ended.values()))
        await until(lambda: broken.client_of("idle").list(broken.jobs("idle")), lambda found: len(found) == len(slow))


async def test_a_wave_survives_the_death_of_the_management_api_server(
    planes: dict[str, ControlPlane], broken: Scene
) -> None:
    """Nothing can be stored for five seconds in which Jobs end: in the end each has run once and its end is stored."""
    names = [f"wave-{number}" for number in range(40)]
    management, busy = planes["management"], planes["busy"]
    async with (
        ManagerProcess.start(management, {"busy": busy}, settings=PATIENT) as manager,
        Recorder.watching([busy], NAMESPACE) as recorder,
    ):
        await broken.create(*(job(name, manager.managed_by, run_for="1s") for name in names))
        await until(lambda: sources(broken), lambda found: sum(map(is_complete, found.values())) >= 5)

        await management.kill_apiserver()
        await asyncio.sleep(5.0)  # the outage itself
        await management.restart_apiserver()
        ready = time.monotonic()
        await broken.create(job("new", manager.managed_by))
        await broken.source_until("new", placed_on)
        seen_after = time.monotonic() - ready
        ended = await until_over(broken, [*names, "new"])

        print(f"from ready to a new Job being placed {seen_after:.2f} s, to all ends {time.monotonic() - ready:.2f} s")
        assert seen_after < SOON_SECONDS
        await assert_ran_once(broken, ended, recorder)
        assert {uid(source) for source in ended.values()} == set(recorder.by_source())


async def write_status(scene: Scene, name: str, **status: object) -> None:
    """Merge this into the status of the mirror on the worker without controllers."""
    await scene.client_of("idle").merge(f"{scene.jobs('idle')}/{name}/status", {"status": status})


def active(pods: int) -> Callable[[Json | None], bool]:
    """A question: does the status count so many active pods?"""
    return lambda found: (found or {}).get("status", {}).get("active") == pods


def now() -> str:
    """The time as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
