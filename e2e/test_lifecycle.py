"""From creation to the end: Jobs of every shape start when they may and end as they would at home (D3–D8)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import (
    Scene,
    condition,
    indexed,
    is_complete,
    is_over,
    is_suspended,
    job,
    placed_on,
    runs,
    uid,
)
from e2e.manager import ManagerProcess

OURS = "jobmirror.io/"


@dataclass(frozen=True)
class Ending:
    """A Job, how it ends, and what of its status is told."""

    body: Json
    verdict: str
    reason: str
    status: Json
    message: str = ""


FAIL_ON_42 = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
FIRST_INDEX = {"rules": [{"succeededIndexes": "0"}]}

ENDINGS = [
    Ending(job("succeeds"), "Complete", "CompletionsReached", {"succeeded": 1}),
    Ending(job("fails", exit_code=3), "Failed", "BackoffLimitExceeded", {"failed": 1}),
    Ending(
        indexed("indexed", completions=4), "Complete", "CompletionsReached", {"succeeded": 4, "completedIndexes": "0-3"}
    ),
    Ending(
        indexed(
            "success-policy", completions=2, pods={"exit-code-index-1": "1"}, backoffLimit=6, successPolicy=FIRST_INDEX
        ),
        "Complete",
        "SuccessPolicy",
        {"completedIndexes": "0"},
        message="index 0",
    ),
    Ending(
        job("failure-policy", exit_code=42, backoffLimit=6, podFailurePolicy=FAIL_ON_42),
        "Failed",
        "PodFailurePolicy",
        {"failed": 1},
        message="exit code 42",
    ),
    Ending(
        indexed("per-index", pods={"exit-code-index-2": "1"}, backoffLimit=100, backoffLimitPerIndex=0),
        "Failed",
        "FailedIndexes",
        {"succeeded": 2, "completedIndexes": "0,1", "failedIndexes": "2"},
    ),
    Ending(job("too-late", run_for="never", activeDeadlineSeconds=1), "Failed", "DeadlineExceeded", {"failed": 1}),
]


async def test_jobs_of_every_shape_end_as_they_would_at_home(shared_manager: ManagerProcess, scene: Scene) -> None:
    """Verdict, reason, message, counters, indexes and times on the source are those of its mirror."""
    names = [ending.body["metadata"]["name"] for ending in ENDINGS]

    await scene.create(*(ours(ending.body, shared_manager) for ending in ENDINGS))
    ended = dict(zip(names, await scene.sources_until(names, is_over), strict=True))

    for ending in ENDINGS:
        source = ended[ending.body["metadata"]["name"]]
        found = condition(source, ending.verdict)
        assert ending.reason == found.get("reason"), source["status"]
        assert ending.message in found["message"]
        assert ending.status == {key: source["status"].get(key) for key in ending.status}
        [(_, mirror)] = (await scene.mirrors(source["metadata"]["name"])).items()
        assert told_by_a_worker(source) == told_by_a_worker(mirror)


def ours(body: Json, manager: ManagerProcess) -> Json:
    """The same Job, for this manager."""
    return {**body, "spec": {**body["spec"], "managedBy": manager.managed_by}}


def told_by_a_worker(found: Json) -> Json:
    """A status without what only sources have."""
    status = dict(found["status"])
    status["conditions"] = sorted(
        (entry["type"], entry["status"], entry["reason"], entry["message"], entry["lastTransitionTime"])
        for entry in status["conditions"]
        if not entry["type"].startswith(OURS)
    )
    return status


async def test_a_suspended_job_is_shown_as_suspended_and_mirrored_on_resume(
    shared_manager: ManagerProcess, scene: Scene, management: ControlPlane
) -> None:
    """Without a mirror we say Suspended ourselves, so that kubectl does not say Running (D3)."""
    await scene.create(job("held", shared_manager.managed_by, suspend=True))

    held = await scene.source_until("held", is_suspended)
    await scene.event("held", "Suspended")
    shown = await management.kubectl("get", "job", "held", "--namespace", scene.namespace)
    assert condition(held, "Suspended")["reason"] == "JobSuspended"
    assert "Suspended" in shown.splitlines()[1].split()
    assert await scene.mirrors("held") == {}
    assert placed_on(held) == ""

    await scene.patch("held", {"spec": {"suspend": False}})
    ended = await scene.source_until("held", is_complete)
    assert [entry["reason"] for entry in ended["status"]["conditions"] if entry["type"] == "Suspended"] == [
        "JobResumed"
    ]
    await scene.only_event("held", "Mirrored")


async def test_suspending_a_running_job_stops_its_pods_and_resuming_carries_what_changed(
    shared_manager: ManagerProcess, scene: Scene, east: ControlPlane
) -> None:
    """The mirror stays, suspended; on resume, scheduling and resources follow in the write that unsuspends (D3)."""
    await scene.create(
        job("paused", shared_manager.managed_by, run_for="never", parallelism=2, completions=2, annotations=on("east"))
    )
    await scene.source_until("paused", runs(2))
    before = await scene.mirror_until("east", "paused", runs(2))

    await scene.patch("paused", {"spec": {"suspend": True}})
    paused = await scene.source_until("paused", lambda found: is_suspended(found) and not active(found))
    await scene.until_no_pods("east", "paused")
    assert condition(paused, "Suspended")["reason"] == "JobSuspended"
    assert await scene.mirror_until("east", "paused", is_suspended)

    await until_quiet(scene, "east", "paused")
    await scene.source_until("paused", lambda found: found and not found["status"].get("terminating"))
    seen = len(await east.audit_entries())
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "10m"}}}
    template = {
        "metadata": {"annotations": {"e2e.jobmirror.io/run-for": "300ms", "a-note": "new"}},
        "spec": {
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "spot", "operator": "Exists"}],
            "containers": [container],
        },
    }
    await scene.patch("paused", {"spec": {"suspend": False, "template": template}})
    await scene.source_until("paused", is_complete)

    mirror = await scene.mirror_until("east", "paused", is_complete)
    carried = mirror["spec"]["template"]
    assert uid(before) == uid(mirror)
    assert carried["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert carried["spec"]["tolerations"] == [{"key": "spot", "operator": "Exists"}]
    assert carried["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "10m"}
    assert carried["metadata"]["annotations"]["a-note"] == "new"
    writes = [
        entry
        for entry in (await east.audit_entries())[seen:]
        if entry.resource == "jobs" and entry.name == "paused" and entry.verb in ("patch", "update", "create")
        if entry.namespace == scene.namespace and not entry.subresource
    ]
    assert [(entry.verb, entry.code) for entry in writes] == [("patch", 200)]


async def test_the_place_is_recorded_and_told_once(shared_manager: ManagerProcess, scene: Scene) -> None:
    """Condition, annotation and one event name the worker; a status change brings no second event (D5)."""
    names = [f"told-{number}" for number in range(4)]

    await scene.create(*(indexed(name, shared_manager.managed_by, completions=2) for name in names))
    ended = await scene.sources_until(names, is_complete)

    for source in ended:
        [worker] = await scene.mirrors(source["metadata"]["name"])
        assert placed_on(source) == worker
        assert source["metadata"]["annotations"][f"{OURS}assigned-worker"] == worker
        assert source["metadata"]["annotations"][f"{OURS}mirror-uid"] == uid(
            (await scene.mirrors(source["metadata"]["name"]))[worker]
        )
        event = await scene.event(source["metadata"]["name"], "Mirrored")
        assert event["message"] == f"Mirrored to worker {worker}"
        assert event["type"] == "Normal"
        assert len(await scene.events(source["metadata"]["name"])) == 1
    assert {placed_on(source) for source in ended} == {"east", "west"}


@pytest.mark.parametrize(
    ("retention", "seconds"),
    [
        pytest.param("0s", 0, id="deleted as soon as its status is stored"),
        pytest.param("2s", 2, id="deleted after a while"),
        pytest.param("", None, id="kept as long as its source"),
    ],
)
async def test_a_finished_mirror_stays_for_its_retention(
    retention: str,
    seconds: float | None,
    management: ControlPlane,
    east: ControlPlane,
    west: ControlPlane,
    scene: Scene,
) -> None:
    """The final status is on the source before the mirror may go, and nothing of it changes when it does (D8)."""
    settings: Json = {"mirrors": {"retention": retention}}
    async with ManagerProcess.start(management, {"east": east, "west": west}, settings=settings) as manager:
        await scene.create(job("good", manager.managed_by), job("bad", manager.managed_by, exit_code=1))
        ended = await scene.sources_until(["good", "bad"], is_over)
        if seconds is None:
            assert all([await scene.mirrors(name) for name in ("good", "bad")])
            return
        for source in ended:
            name = source["metadata"]["name"]
            await scene.until_no_mirror(name)
            await scene.until_no_pods(placed_on(source), name)
            now = await scene.source(name)
            assert now is not None
            assert source["status"] == now["status"]
            assert not await scene.events(name, "MirrorLost")
            [over] = [one for one in source["status"]["conditions"] if one["type"] in ("Complete", "Failed")]
            kept = await deleted_at(scene, name) - datetime.fromisoformat(over["lastTransitionTime"])
            assert kept >= timedelta(seconds=seconds)


async def deleted_at(scene: Scene, name: str) -> datetime:
    """When a worker was asked to delete the mirror of this name."""
    entries = [one for plane in scene.planes.values() for one in await plane.audit_entries()]
    about = ("delete", "jobs", scene.namespace, name)
    return min(one.received for one in entries if (one.verb, one.resource, one.namespace, one.name) == about)


def on(worker: str) -> dict[str, str]:
    """The annotation that pins a Job."""
    return {"worker-selector": f"name={worker}"}


def active(found: Json | None) -> int:
    """How many pods its status counts."""
    return int((found or {}).get("status", {}).get("active") or 0)


async def until_quiet(scene: Scene, worker: str, name: str) -> None:
    """Wait until the mirror's status is at rest as suspended: no pods that still terminate."""
    await scene.mirror_until(worker, name, lambda found: found and not found["status"].get("terminating"))
