"""CronJobs of the real cronjob controller whose Jobs are run by ours, or mirrored to a worker that runs them (J3).

All CronJobs are made at once, in both worlds, and catch up with two schedules that were missed, as after a downtime of
the cronjob controller. Their schedules are of one time a day: none comes by itself while they are looked at, and
nothing depends on what fits into a minute of the clock.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import aiohttp
import pytest
import pytest_asyncio

from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import MANAGEMENT
from e2e.cronjobs import create_with_missed_run, cronjob, owner, run_again
from e2e.job_controller import CHOSEN, WITHOUT_JOBS, JobController
from e2e.jobs import Scene, condition, is_complete, is_failed, is_over, job, runs, uid, until
from e2e.manager import ManagerProcess

WORKER = "worker"
TEMPLATES: dict[str, tuple[Json, Json]] = {
    # name: (fields of the CronJob, what its Jobs are like)
    "allow": ({"concurrencyPolicy": "Allow"}, {"run_for": "never"}),
    "forbid": ({"concurrencyPolicy": "Forbid"}, {"run_for": "never"}),
    "replace": ({"concurrencyPolicy": "Replace"}, {"run_for": "never"}),
    "free-again": ({"concurrencyPolicy": "Forbid"}, {}),
    "lingering": (
        {"concurrencyPolicy": "Forbid"},
        {"run_for": "never", "pods": {"stop-after": "3000s"}, "activeDeadlineSeconds": 4},  # by then its pod has a node
    ),
    "bad": ({"failedJobsHistoryLimit": 1}, {"exit_code": 1}),
    "good": ({"successfulJobsHistoryLimit": 1}, {}),
    "by-hand": ({"suspend": True, "successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1}, {}),
}
SCHEDULED = [name for name in TEMPLATES if name != "by-hand"]
ONLY_ONE = ("forbid", "lingering")
"""Those whose first Job goes on, so that they get no second one."""


@dataclass(slots=True)
class Diary:
    """Every Job that a namespace ever had, by name, in the order of creation, as last seen."""

    jobs: dict[str, Json] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    """When one was deleted, by the monotonic clock."""

    async def keep(self, client: Client, path: str) -> None:
        """Watch until cancelled."""
        version = (await client.get(path))["metadata"]["resourceVersion"]
        while True:
            try:
                async for event in client.watch(path, version):
                    found = event["object"]
                    version = found["metadata"]["resourceVersion"]
                    self.jobs[found["metadata"]["name"]] = found
                    if event["type"] == "DELETED":
                        self.gone[found["metadata"]["name"]] = time.monotonic()
            except (aiohttp.ClientError, StatusError):
                await asyncio.sleep(0.1)

    def of(self, cronjob: str) -> list[Json]:
        """The Jobs that this CronJob had, oldest first."""
        return [found for found in self.jobs.values() if owner(found) == cronjob]

    def left_of(self, cronjob: str) -> list[Json]:
        """Those that are still there."""
        return [found for found in self.of(cronjob) if found["metadata"]["name"] not in self.gone]


@dataclass(frozen=True, slots=True)
class World:
    """Where CronJobs live, and who runs their Jobs."""

    name: str
    scene: Scene
    managed_by: str | None
    diary: Diary = field(default_factory=Diary)

    @property
    def cronjobs(self) -> str:
        """The path of the CronJobs."""
        return f"/apis/batch/v1/namespaces/{self.scene.namespace}/cronjobs"

    async def cronjob(self, name: str) -> Json:
        """One CronJob as it is now."""
        return await self.scene.client.get(f"{self.cronjobs}/{name}")

    async def until(self, name: str, condition: Callable[[list[Json]], object], *, seconds: float = 120) -> list[Json]:
        """Wait until the Jobs that a CronJob ever had fulfil a condition."""

        async def look() -> list[Json]:
            return self.diary.of(name)

        async def describe() -> str:
            return "\n".join([await self.scene.describe(found["metadata"]["name"]) for found in self.diary.of(name)])

        return await until(look, condition, seconds=seconds, describe=describe)

    async def reasons(self, name: str) -> list[str]:
        """The reasons of the events about a CronJob."""
        path = f"/api/v1/namespaces/{self.scene.namespace}/events"
        events = await self.scene.client.list(path, fieldSelector=f"involvedObject.name={name}")
        return [event["reason"] for event in events if event["involvedObject"]["kind"] == "CronJob"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def worlds(binaries: None) -> AsyncIterator[dict[str, World]]:
    """Both worlds, with all CronJobs, after both schedules."""
    namespace = f"e2e-{uuid.uuid4().hex[:10]}"
    everything = replace(WITHOUT_JOBS, controllers="*,-job")  # as an operator would say it
    async with AsyncExitStack() as stack:
        home, management, worker = await asyncio.gather(
            stack.enter_async_context(Cluster.start("home", everything)),
            stack.enter_async_context(Cluster.start("management", MANAGEMENT)),
            stack.enter_async_context(Cluster.start(WORKER, WITHOUT_JOBS)),
        )
        for cluster in (home, worker):
            await stack.enter_async_context(JobController.start(cluster, CHOSEN))
        manager = await stack.enter_async_context(ManagerProcess.start(management, {WORKER: worker}))
        both = {
            "run": World("run", Scene(home, {WORKER: home}, namespace), None),
            "mirrored": World("mirrored", Scene(management, {WORKER: worker}, namespace), manager.managed_by),
        }
        await worker.client().create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        scope = await stack.enter_async_context(asyncio.TaskGroup())
        diaries = []
        for world in both.values():
            await world.scene.make_namespace()
            keeping = world.diary.keep(world.scene.client, world.scene.jobs())
            diaries.append(scope.create_task(keeping, name=f"diary of {world.name}"))
        await meet_two_schedules(list(both.values()))
        yield both
        for diary in diaries:
            diary.cancel()


async def meet_two_schedules(both: list[World]) -> None:
    """Make all CronJobs, let them catch up with a time that was missed, and then with another."""
    second = datetime.now(UTC).replace(second=0, microsecond=0)
    first = second - timedelta(minutes=1)
    for world in both:
        for name, (fields, jobs) in TEMPLATES.items():
            body = cronjob(name, job("any", world.managed_by, **jobs), first, **fields)
            await create_with_missed_run(world.scene.client, world.cronjobs, body, first)
    for world in both:
        for name in SCHEDULED:
            await world.until(name, len)
        for name in ("free-again", "bad", "good"):
            await world.until(name, lambda jobs: is_over(jobs[0]))
        for name in ("allow", "forbid", "replace"):
            await world.until(name, lambda jobs: runs()(jobs[0]))
        await world.until("lingering", lambda jobs: condition(jobs[0], "FailureTarget"))
    for world in both:
        for name in SCHEDULED:
            await run_again(world.scene.client, world.cronjobs, name, second)
    for world in both:
        for name in SCHEDULED:
            if name in ONLY_ONE:
                await until(partial(world.reasons, name), lambda reasons: "JobAlreadyActive" in reasons)
            else:
                await world.until(name, lambda jobs: len(jobs) == 2)


@pytest.fixture(params=["run", "mirrored"])
def world(request: pytest.FixtureRequest, worlds: dict[str, World]) -> World:
    """Each of the two."""
    return worlds[request.param]


async def test_allow_runs_the_next_job_beside_the_last(world: World) -> None:
    """Both run, and the CronJob counts both as active."""
    jobs = await world.until("allow", lambda jobs: len(jobs) == 2 and all(map(runs(), jobs)))

    uids = [uid(found) for found in jobs]
    await until_status(world, "allow", lambda status: [one["uid"] for one in status.get("active", ())] == uids)
    for found in jobs:
        assert "batch.kubernetes.io/cronjob-scheduled-timestamp" in found["metadata"]["annotations"]
        assert len(await world.scene.pods(WORKER, found["metadata"]["name"])) == 1


async def test_forbid_makes_no_second_job_while_the_first_runs(world: World) -> None:
    """The schedule passes, and an event says why nothing was made."""
    assert "JobAlreadyActive" in await world.reasons("forbid")

    [only] = world.diary.of("forbid")
    assert runs()(only)


async def test_forbid_makes_the_next_job_once_the_first_is_over(world: World) -> None:
    """The end of a Job, wherever it ran, empties the list of active ones."""
    jobs = await world.until("free-again", lambda jobs: len(jobs) == 2 and all(map(is_complete, jobs)))

    first, second = jobs
    assert first["status"]["completionTime"] <= second["status"]["startTime"]
    await until_status(world, "free-again", lambda status: not status.get("active"))


async def test_forbid_waits_for_pods_that_still_stop(world: World) -> None:
    """A Job past its deadline is over only when its pods are: until then it is active (J3)."""
    assert "JobAlreadyActive" in await world.reasons("lingering")

    [only] = world.diary.of("lingering")
    assert condition(only, "FailureTarget")["reason"] == "DeadlineExceeded"
    assert not is_failed(only)
    assert only["status"]["terminating"] == 1


async def test_replace_puts_the_next_job_in_the_place_of_the_last(world: World) -> None:
    """The first Job, its mirror and its pods go; the second runs."""
    first, second = await world.until("replace", lambda jobs: len(jobs) == 2 and runs()(jobs[1]))

    name = first["metadata"]["name"]
    assert name in world.diary.gone
    await world.scene.until_no_mirror(name)
    await world.scene.until_no_pods(WORKER, name)
    await until_status(
        world,
        "replace",
        lambda status: [one["uid"] for one in status.get("active", ())] == [second["metadata"]["uid"]],
    )


async def test_only_complete_jobs_count_as_successful(world: World) -> None:
    """lastSuccessfulTime is a Complete Job's completionTime; a failed one leaves it alone."""
    jobs = await world.until("good", lambda jobs: len(jobs) == 2 and all(map(is_complete, jobs)))
    await world.until("bad", lambda jobs: len(jobs) == 2 and all(map(is_failed, jobs)))

    latest = jobs[-1]["status"]["completionTime"]
    await until_status(world, "good", lambda status: status.get("lastSuccessfulTime") == latest)
    bad = await until_status(world, "bad", lambda status: not status.get("active"))
    assert "lastSuccessfulTime" not in bad
    assert bad["lastScheduleTime"]


@pytest.mark.parametrize("name", ["good", "bad"])
async def test_only_as_many_finished_jobs_stay_as_the_limit_allows(world: World, name: str) -> None:
    """The oldest goes, with its mirror and its pods, as soon as a newer one has ended the same way."""
    oldest, newest = await world.until(name, lambda jobs: len(jobs) == 2 and all(map(is_over, jobs)))

    await world.until(name, lambda _: [uid(found) for found in world.diary.left_of(name)] == [uid(newest)])
    await world.scene.until_no_mirror(oldest["metadata"]["name"])
    await world.scene.until_no_pods(WORKER, oldest["metadata"]["name"])


async def test_jobs_made_by_hand_from_a_cronjob_are_its_own(world: World) -> None:
    """``kubectl create job --from``, of a suspended CronJob: they run, and its limits and times take them in."""
    names = [f"by-hand-{number}" for number in range(4)]
    for name in names:
        await world.scene.management.kubectl(
            "create", "job", name, "--from=cronjob/by-hand", "--namespace", world.scene.namespace
        )
    jobs = await world.until("by-hand", lambda jobs: len(jobs) == 4 and all(map(is_complete, jobs)))

    latest = max(found["status"]["completionTime"] for found in jobs)
    await world.until("by-hand", lambda _: len(world.diary.left_of("by-hand")) == 2)
    await until_status(world, "by-hand", lambda status: status.get("lastSuccessfulTime") == latest)


async def until_status(world: World, name: str, condition: Callable[[Json], object]) -> Json:
    """Wait until a CronJob's status fulfils a condition, and give it."""

    async def look() -> Json:
        return dict((await world.cronjob(name))["status"])

    return await until(look, condition)
