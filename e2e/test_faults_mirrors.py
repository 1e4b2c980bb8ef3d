"""What happens to single mirrors behind our back: lost answers, deletions, lost labels, lies (D1, D2, D7, D11, D20)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import msgspec
import pytest
import pytest_asyncio

from e2e import access
from e2e.controlplane.client import MERGE_PATCH, Json, StatusError
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import BARE
from e2e.controlplane.plane import ControlPlane
from e2e.intercept import Interceptor
from e2e.jobs import PREFIX, Scene, annotation, condition, is_complete, is_over, job, placed_on, runs, uid, until
from e2e.manager import ManagerProcess
from e2e.recorder import Recorder
from e2e.waves import assert_ran_once, mirrored_events, until_over

LONGEST_MESSAGE = 1024
MOST_CONDITIONS = 20
MOST_STATUS_BYTES = 65_536


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def idle(binaries: None) -> AsyncIterator[Cluster]:
    """A worker without controllers: what its Jobs' statuses say is what tests write there."""
    async with Cluster.start("idle", BARE) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def quiet(management: ControlPlane, idle: Cluster, fresh_namespace: str) -> AsyncIterator[Scene]:
    """This test's sources, and the worker without controllers."""
    one = Scene(management, {"idle": idle}, fresh_namespace)
    await one.client_of("idle").create("/api/v1/namespaces", {"metadata": {"name": fresh_namespace}})
    yield one
    await one.close()


async def test_a_create_whose_answer_was_lost_makes_one_mirror(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """What may have happened is found, not repeated and not tried elsewhere; people are told of it once."""
    workers = {"east": east, "west": west}
    robot = await access.account(east, "intercepted")
    names = [f"lost-{number}" for number in range(8)]
    async with (
        Interceptor.before(east) as interceptor,
        ManagerProcess.start(management, {"west": west}) as manager,
        Recorder.watching(workers.values(), scene.namespace) as recorder,
    ):
        await manager.register(
            "east", kubeconfig=interceptor.kubeconfig(robot).read_bytes(), annotations={"weight": "3"}
        )
        await until(manager.metrics, lambda found: found.value("jobmirror_worker_up", worker="east") == 1)
        interceptor.lose_answers_to(lambda method, path: method == "POST" and path.endswith("/jobs"))
        await scene.create(*(job(name, manager.managed_by) for name in names))

        ended = await until_over(scene, names)

        made = [line for line in interceptor.lost if line.endswith("201")]
        assert made
        await assert_ran_once(scene, ended, recorder)
        told = await until(lambda: mirrored_events(scene), lambda found: found.keys() == set(names))
        assert set(told.values()) == {1}


async def test_a_mirror_that_vanishes_before_it_started_is_made_again_on_the_same_worker(
    management: ControlPlane, idle: Cluster, west: ControlPlane, quiet: Scene
) -> None:
    """Nothing ran yet, so nothing can run twice; the record of its place stays."""
    async with ManagerProcess.start(management, {"idle": idle}) as manager:
        await quiet.create(job("early", manager.managed_by))
        first = await quiet.mirror_until("idle", "early", bool)
        await manager.register("west", west)

        await quiet.client_of("idle").delete(f"{quiet.jobs('idle')}/early")

        second = await quiet.mirror_until("idle", "early", lambda found: bool(found) and uid(found or {}) != uid(first))
        source = await quiet.source("early")
        assert second["metadata"]["labels"] == first["metadata"]["labels"]
        assert placed_on(source) == "idle"
        assert not is_over(source)


async def test_a_mirror_that_vanishes_after_it_started_fails_its_source(manager: ManagerProcess, scene: Scene) -> None:
    """What ran cannot be told any more, so nothing runs again: FailureTarget first, then Failed, and no pod counted."""
    await scene.create(job("lost", manager.managed_by, run_for="never", parallelism=2))
    worker = placed_on(await scene.source_until("lost", runs(2)))

    await scene.client_of(worker).delete(f"{scene.jobs(worker)}/lost")

    source = await scene.source_until("lost", is_over)
    assert condition(source, "Failed")["reason"] == "MirrorLost"
    assert condition(source, "FailureTarget")["reason"] == "MirrorLost"
    assert not {
        key: source["status"].get(key) for key in ("active", "ready", "terminating") if source["status"].get(key)
    }
    assert "MirrorLost" in (await scene.event("lost", "MirrorLost"))["reason"]
    await scene.until_no_pods(worker, "lost")
    assert not await scene.mirrors("lost")


@pytest.mark.parametrize(
    ("verdict", "reason", "end"),
    [
        pytest.param("FailureTarget", "BackoffLimitExceeded", "Failed", id="it had failed"),
        pytest.param("SuccessCriteriaMet", "SuccessPolicy", "Complete", id="it had succeeded"),
    ],
)
async def test_a_verdict_that_was_stored_outlives_the_mirror(
    management: ControlPlane, idle: Cluster, quiet: Scene, verdict: str, reason: str, end: str
) -> None:
    """A mirror that vanishes after its verdict was copied ends its source by that verdict."""
    policy: Json = {"successPolicy": {"rules": [{"succeededCount": 1}]}} if end == "Complete" else {}
    shape: Json = {"completions": 2, "parallelism": 2, "completionMode": "Indexed", **policy}
    async with ManagerProcess.start(management, {"idle": idle}) as manager:
        await quiet.create(job("judged", manager.managed_by, **shape))
        await quiet.mirror_until("idle", "judged", bool)
        judged = {"startTime": now(), "terminating": 1, "conditions": [true(verdict, reason)]}
        await write_status(quiet, "judged", {**judged, "completedIndexes": "0", "succeeded": 1} if policy else judged)
        await quiet.source_until("judged", lambda found: condition(found, verdict))

        await quiet.client_of("idle").delete(f"{quiet.jobs('idle')}/judged")

        source = await quiet.source_until("judged", is_over)
        assert condition(source, end)["reason"] == reason
        assert not source["status"].get("terminating")


async def test_a_label_that_is_taken_off_a_mirror_is_put_back(manager: ManagerProcess, scene: Scene) -> None:
    """A watch's DELETED for a lost label is no deletion: the same mirror goes on, and people are told."""
    await scene.create(job("stripped", manager.managed_by, run_for="never"))
    worker = placed_on(await scene.source_until("stripped", runs()))
    before = await scene.mirror(worker, "stripped") or {}

    await scene.client_of(worker).merge(
        f"{scene.jobs(worker)}/stripped", {"metadata": {"labels": {f"{PREFIX}origin": None}}}
    )

    restored = await scene.mirror_until(
        worker, "stripped", lambda found: bool(found) and f"{PREFIX}origin" in (found or {})["metadata"]["labels"]
    )
    assert (uid(restored), restored["metadata"]["labels"]) == (uid(before), before["metadata"]["labels"])
    await scene.event("stripped", "MirrorChanged")
    await scene.end_pods(worker, "stripped")
    assert is_complete(await scene.source_until("stripped", is_over))


async def test_what_a_hostile_worker_writes_is_cut_and_the_truth_still_comes_through(
    management: ControlPlane, idle: Cluster, quiet: Scene
) -> None:
    """Thousands of conditions, a megabyte of text, contradictions: the status stays bounded, and honesty wins later."""
    flood = [true(f"flood.example/{number}", "Junk") for number in range(5000)]
    many = {"active": 2_000_000_000, "ready": 1_999_999_999, "terminating": 2_000_000_000, "failed": 2_000_000_000}
    lies: list[Json] = [
        {"active": 1, "ready": 1, "conditions": flood},
        {"active": 1, "ready": 1, "conditions": [true("Odd", "Junk", message="\x1b[31m" + "x" * 1_000_000)]},
        {"active": 1, "conditions": [{**true("Suspended", "Junk"), "lastTransitionTime": "9999-12-31T23:59:59Z"}]},
        {"conditions": [true("FailureTarget", "Junk"), true("SuccessCriteriaMet", "Junk")]},
        {"uncountedTerminatedPods": {"failed": [f"uid-{number}" for number in range(5_000)]}},
        many,
    ]
    async with ManagerProcess.start(management, {"idle": idle}) as manager:
        names = [f"lied-{number}" for number in range(len(lies))]
        await quiet.create(*(job(name, manager.managed_by, run_for="never") for name in names))
        accepted = []
        for name, lie in zip(names, lies, strict=True):
            await quiet.mirror_until("idle", name, bool)
            if await write_status(quiet, name, {"startTime": now(), **lie}):
                accepted.append(name)

        assert len(accepted) >= 5, accepted
        for name in accepted:
            source = await quiet.source_until(name, lambda found: (found or {}).get("status", {}).get("startTime"))
            assert_is_bounded(source["status"])
        for name in accepted[:2]:
            assert await write_status(quiet, name, {"active": 1, "ready": 0, "conditions": None})
            await quiet.source_until(name, lambda found: not (found or {})["status"].get("ready"))
            honest = {"active": 0, "succeeded": 1, "completionTime": now()}
            ending = [true("SuccessCriteriaMet", "CompletionsReached"), true("Complete", "CompletionsReached")]
            assert await write_status(quiet, name, {**honest, "conditions": ending})
            assert is_complete(await quiet.source_until(name, is_over))


async def test_a_status_that_another_controller_writes_is_left_alone(
    management: ControlPlane, idle: Cluster, quiet: Scene
) -> None:
    """Two writers would fight for ever: after a few foreign writes we stop, say so, and write no status."""
    async with ManagerProcess.start(management, {"idle": idle}) as manager:
        await quiet.create(job("fought", manager.managed_by))
        await quiet.mirror_until("idle", "fought", bool)
        await write_status(quiet, "fought", {"startTime": now(), "active": 1})
        await quiet.source_until("fought", lambda found: (found or {})["status"].get("active"))
        path = f"{quiet.jobs()}/fought/status"
        ready = 0
        async with asyncio.timeout(120):
            while not await quiet.events("fought", "StatusConflict"):
                ready = 1 - ready
                await quiet.client.call("PATCH", path, {"status": {"ready": ready}}, MERGE_PATCH)
        left = await quiet.source_until("fought", lambda found: annotation(found, "waiting-because"))

        await write_status(quiet, "fought", {"active": 3, "ready": 3})
        await asyncio.sleep(1.0)  # nothing announces that nothing happens

        source = await quiet.source("fought") or {}
        assert source["status"] == left["status"]
        assert "another controller" in annotation(source, "waiting-because")


def assert_is_bounded(status: Json) -> None:
    """What D7 promises of any status on a source."""
    conditions = status.get("conditions", [])
    assert len(conditions) <= MOST_CONDITIONS
    assert len({entry["type"] for entry in conditions}) == len(conditions)
    assert all(len(entry.get("message", "")) <= LONGEST_MESSAGE for entry in conditions)
    assert len(msgspec.json.encode(status)) <= MOST_STATUS_BYTES
    assert status.get("ready", 0) <= status.get("active", 0)
    types = {entry["type"] for entry in conditions if entry["status"] == "True"}
    assert not {"FailureTarget", "SuccessCriteriaMet"} <= types


async def write_status(scene: Scene, name: str, status: Json) -> bool:
    """Merge this into a mirror's status, as its worker would; whether the worker's API server took it."""
    path = f"{scene.jobs('idle')}/{name}/status"
    try:
        await scene.client_of("idle").merge(path, {"status": status})
    except StatusError as error:
        if error.status != 422:
            raise
        return False
    return True


def true(kind: str, reason: str, *, message: str = "") -> Json:
    """A condition that holds."""
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now()}


def now() -> str:
    """The time as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
