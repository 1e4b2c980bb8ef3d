"""What keeps the pods of a mirror from running is told on its source, and goes with the trouble (D22)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from doubles.drills import DRILLS, KINDS, definition, drill
from doubles.jobs import Body, job
from doubles.refusals import forbidden
from doubles.watched_pods import SPEC, disrupt, let_go, put_pod, set_status, watched, watching
from doubles.world import WAITING, World, manager_of, two_workers

from mirror.model import names

pytestmark = pytest.mark.looptime

IMAGE = {"name": "main", "image": "nope:1", "state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
PULLING = {"phase": "Pending", "containerStatuses": [IMAGE]}
RUNS = {"phase": "Running", "containerStatuses": [{"name": "main", "state": {"running": {}}}]}
CREATING = {
    "phase": "Pending",
    "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}],
}


def warn(world: World, about: Body, kind: str, reason: str, message: str, *, at: datetime | None = None) -> None:
    metadata = about["metadata"]
    event = {
        "metadata": {"name": f"{metadata['name']}.{reason}", "namespace": "default"},
        "involvedObject": {"kind": kind, "namespace": "default", "name": metadata["name"], "uid": metadata["uid"]},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": (at or world.workers["east"].clock.now()).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    world.workers["east"].server.put("events", event)


def told(world: World) -> tuple[str, str] | None:
    """The reason and the message of the condition."""
    listed = world.source()["status"]["conditions"]
    found = next((one for one in listed if one["type"] == names.PROGRESSING), None)
    return (found["reason"], found["message"]) if found else None


async def test_an_image_that_cannot_be_pulled_is_told_until_it_can() -> None:
    """By condition, annotation and one event; the kubelet's two reasons for one trouble are one."""
    async with watched() as (world, manager):
        put_pod(world, "train-a", PULLING)
        await manager.settle(1)
        text = "worker east: pod train-a: container main: image nope:1: not found"
        assert told(world) == ("ImagePullBackOff", text)
        assert world.annotation(WAITING) == text
        assert world.texts("ImagePullBackOff") == [text]
        writes = world.writes()
        waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "nope:1": ErrImagePull: not found'}
        set_status(
            world, "train-a", {"phase": "Pending", "containerStatuses": [IMAGE | {"state": {"waiting": waiting}}]}
        )
        await manager.settle(30)
        assert world.writes() == writes
        set_status(world, "train-a", RUNS)
        await manager.settle(1)
        assert told(world) is None
        assert world.annotation(WAITING) is None


async def test_a_volume_that_cannot_be_mounted_is_told_by_events_alone() -> None:
    """Its pod says ContainerCreating; whose it is, is read from the pod."""
    async with watched() as (world, manager):
        made = put_pod(world, "train-a", CREATING)
        await manager.settle(1)
        assert told(world) is None
        warn(world, made, "Pod", "FailedMount", 'MountVolume.SetUp failed for volume "c": configmap "cfg" not found')
        await manager.settle(1)
        found = told(world)
        assert found is not None
        assert found[0] == "FailedMount"
        assert 'configmap "cfg" not found' in found[1]
        set_status(world, "train-a", RUNS)
        await manager.settle(1)
        assert told(world) is None


@pytest.mark.parametrize("combined", ["", "(combined from similar events): "])
async def test_pods_that_may_not_be_created_are_told_until_one_is(combined: str) -> None:
    """A quota or an admission policy on pods; only the Job's own events say so, after the tenth a combined one."""
    async with watched() as (world, manager):
        mirror = world.mirror("east")
        assert mirror is not None
        text = 'Error creating: pods "train-x7k2p" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3'
        warn(world, mirror, "Job", "FailedCreate", combined + text)
        await manager.settle(1)
        message = "worker east: pods cannot be created: exceeded quota: few, requested: pods=1, used: pods=3"
        assert told(world) == ("QuotaExceeded", message)
        put_pod(world, "train-a", CREATING)
        await manager.settle(1)
        assert told(world) is None


async def test_warnings_of_long_ago_and_of_others_are_none_of_ours() -> None:
    async with watched() as (world, manager):
        mirror = world.mirror("east")
        assert mirror is not None
        warn(world, mirror, "Job", "FailedCreate", "no", at=datetime(2020, 1, 1, tzinfo=UTC))
        other = world.workers["east"].server.put(
            "pods", {"metadata": {"name": "o", "namespace": "default"}, "spec": SPEC}
        )
        warn(world, other, "Pod", "FailedMount", "no")
        stranger = world.workers["east"].server.put("jobs", job("stranger"))
        warn(world, stranger, "Job", "FailedCreate", "no")
        await manager.settle(5)
        assert told(world) is None


async def test_pods_of_another_namespace_say_nothing_of_ours() -> None:
    """Who may create pods anywhere on the worker may label them as they like (D18)."""
    async with watched() as (world, manager):
        world.workers["east"].server.put("namespaces", {"metadata": {"name": "elsewhere"}})
        put_pod(world, "spoof", PULLING, namespace="elsewhere")
        await manager.settle(5)
        assert told(world) is None


async def test_a_job_whose_pods_fail_and_none_runs_is_told() -> None:
    async with watched() as (world, manager):
        ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
        put_pod(world, "train-a", {"phase": "Failed", "containerStatuses": [{"name": "main", "state": ended}]})
        await manager.settle(1)
        assert told(world) is None  # another one runs
        world.workers["east"].server.edit("jobs", "train", lambda body: body["status"].update(failed=2), "default")
        await manager.settle(1)
        assert told(world) == ("OOMKilled", "worker east: pod train-a: container main: OOMKilled, exit code 137")


async def test_pods_that_have_failed_are_of_the_past_once_another_runs_for_a_minute() -> None:
    """And are told again when it fails, too."""
    async with watched() as (world, manager):
        ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
        put_pod(world, "train-a", {"phase": "Failed", "containerStatuses": [{"name": "main", "state": ended}]})
        edit = world.workers["east"].server.edit
        edit("jobs", "train", lambda body: body["status"].update(failed=2), "default")
        await manager.settle(50)
        assert told(world) is not None
        edit("jobs", "train", lambda body: body["status"].update(ready=0), "default")
        await manager.settle(5)
        edit("jobs", "train", lambda body: body["status"].update(ready=1), "default")
        await manager.settle(55)
        assert told(world) is not None  # it has not run for a minute at a stretch
        await manager.settle(15)
        assert told(world) is None
        edit("jobs", "train", lambda body: body["status"].update(failed=3, ready=0), "default")
        await manager.settle(1)
        assert told(world) is not None


def fails(world: World, failed: int, *, succeeded: int = 1, active: int = 0) -> None:
    """One more pod has failed, and the next one is not there yet."""
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    put_pod(world, f"train-{failed}", {"phase": "Failed", "containerStatuses": [{"name": "main", "state": ended}]})
    counts = {"succeeded": succeeded, "failed": failed, "active": active, "ready": active}
    world.workers["east"].server.edit("jobs", "train", lambda body: body["status"].update(counts), "default")


async def test_an_index_that_fails_again_and_again_is_told_though_another_is_done() -> None:
    """``backoffLimitPerIndex``: hours may go by; until something succeeds, or runs for a minute."""
    async with watched() as (world, manager):
        edit = world.workers["east"].server.edit
        edit("jobs", "train", lambda body: body["status"].update(succeeded=1), "default")
        await manager.settle(5)
        fails(world, 1)
        await manager.settle(15)
        assert told(world) is None  # one may fail
        fails(world, 2)
        await manager.settle(1)
        assert told(world) == ("OOMKilled", "worker east: pod train-2: container main: OOMKilled, exit code 137")
        edit("jobs", "train", lambda body: body["status"].update(active=1, ready=1), "default")
        await manager.settle(50)
        assert told(world) is not None
        await manager.settle(20)
        assert told(world) is None
        fails(world, 3)
        await manager.settle(15)
        assert told(world) is not None
        edit("jobs", "train", lambda body: body["status"].update(succeeded=2), "default")
        await manager.settle(15)
        assert told(world) is None


async def test_pods_that_fail_now_and_then_among_others_that_succeed_are_no_trouble() -> None:
    """A large Job goes on, although some of its pods never do: it makes progress."""
    async with watched() as (world, manager):
        for number in range(1, 8):
            fails(world, number, succeeded=3 * number, active=1)
            await manager.settle(15)
            assert told(world) is None
        assert "OOMKilled" not in world.events()


async def test_a_manager_that_takes_over_goes_on_telling_of_an_index_that_fails() -> None:
    """What it shows is all that is known of before."""
    world = World()
    world.add_worker("east")
    async with manager_of(world, **watching(world.origin)) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        for number in (1, 2):
            await manager.settle(15)
            fails(world, number)
        await manager.settle(15)
        assert told(world) is not None
    async with manager_of(world, **watching(world.origin)) as manager:
        await manager.settle(300)
        assert (told(world) or ("",))[0] == "OOMKilled"
        assert len(world.texts("OOMKilled")) == 1


async def test_a_command_that_does_not_exist_is_named_until_pods_run_again() -> None:
    """``restartPolicy: Never``: no container waits, each pod is over; the reason is that of one that would wait."""
    why = 'failed to create containerd task: exec: "trian": executable file not found in $PATH: unknown'
    ended = {"terminated": {"exitCode": 128, "reason": "StartError", "message": why}}
    async with watched() as (world, manager):
        for name in ("train-a", "train-b"):
            put_pod(world, name, {"phase": "Failed", "containerStatuses": [{"name": "main", "state": ended}]})
        edit = world.workers["east"].server.edit
        edit("jobs", "train", lambda body: body["status"].update(failed=2, ready=0), "default")
        await manager.settle(1)
        assert told(world) == ("CreateContainerError", f"worker east: pod train-b: container main: {why}")
        edit("jobs", "train", lambda body: body["status"].update(ready=1), "default")
        await manager.settle(70)
        assert told(world) is None


async def test_pods_that_are_evicted_and_deleted_are_told_until_another_runs_for_a_minute() -> None:
    """As those that a kubelet evicts, which stay: a drained node, a preemption, a taint."""
    async with watched() as (world, manager):
        edit = world.workers["east"].server.edit
        put_pod(world, "train-a", RUNS)
        disrupt(world, "train-a", "Eviction API: evicting")
        edit("jobs", "train", lambda body: body["status"].update(ready=0, terminating=1), "default")
        await manager.settle(1)
        evicted = ("Evicted", "worker east: pod train-a: Eviction API: evicting")
        assert told(world) == evicted
        writes = world.writes()
        put_pod(world, "train-b", CREATING)  # before the other one has ended, or after it
        failed = {
            "phase": "Failed",
            "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 143}}}],
        }
        disrupt(world, "train-a", "Eviction API: evicting", **failed)
        let_go(world, "train-a")
        put_pod(world, "train-c", CREATING)
        await manager.settle(50)
        assert told(world) == evicted
        assert world.writes() == writes
        edit("jobs", "train", lambda body: body["status"].update(ready=1), "default")
        await manager.settle(70)
        assert told(world) is None
        assert world.texts("Evicted") == [evicted[1]]


async def test_an_eviction_of_long_ago_is_no_trouble_of_now() -> None:
    async with watched() as (world, manager):
        put_pod(world, "train-a", RUNS)
        disrupt(world, "train-a", "Eviction API: evicting")
        let_go(world, "train-a")
        await manager.settle(1200)
        world.workers["east"].server.edit("jobs", "train", lambda body: body["status"].update(ready=0), "default")
        await manager.settle(1)
        assert told(world) is None


async def test_without_watching_pods_that_stay_unready_are_told_after_a_minute() -> None:
    """No permission is needed, nothing is on the template, and no pod or event is asked for."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        worker = world.placed()
        assert worker is not None
        world.controller(worker).start("train")
        body = world.mirror(worker)
        assert body is not None
        assert names.ORIGIN not in (body["spec"]["template"]["metadata"].get("labels") or {})
        world.workers[worker].server.edit("jobs", "train", lambda body: body["status"].update(ready=0), "default")
        await manager.settle(50)
        assert told(world) is None
        await manager.settle(15)
        assert told(world) == ("PodsNotReady", f"pods on worker {worker} are not ready")
        world.workers[worker].server.edit("jobs", "train", lambda body: body["status"].update(ready=1), "default")
        await manager.settle(1)
        assert told(world) is None
        assert not [sent for sent in world.workers[worker].sent if "pods" in sent.path or "events" in sent.path]


async def test_why_a_pod_is_not_ready_is_told_once_that_has_lasted() -> None:
    """A probe that fails while a container starts is no news; the worker's own words are, after a minute."""
    unready = RUNS | {"conditions": [{"type": "Ready", "status": "False"}]}
    async with watched() as (world, manager):
        world.workers["east"].server.edit("jobs", "train", lambda body: body["status"].update(ready=0), "default")
        made = put_pod(world, "train-a", unready)
        warn(world, made, "Pod", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
        await manager.settle(50)
        assert told(world) is None
        await manager.settle(25)
        text = "worker east: pod train-a: Readiness probe failed: HTTP probe failed with statuscode: 503"
        assert told(world) == ("PodsNotReady", text)
        set_status(world, "train-a", RUNS | {"conditions": [{"type": "Ready", "status": "True"}]})
        world.workers["east"].server.edit("jobs", "train", lambda body: body["status"].update(ready=1), "default")
        await manager.settle(1)
        assert told(world) is None


async def test_a_scheduler_that_does_not_exist_is_named() -> None:
    async with watched() as (world, manager):
        world.workers["east"].server.edit("jobs", "train", lambda body: body["status"].update(ready=0), "default")
        labels = world.mirror("east")["spec"]["template"]["metadata"]["labels"]
        metadata = {"name": "train-a", "namespace": "default", "labels": labels}
        spec = SPEC | {"schedulerName": "volcano"}
        world.workers["east"].server.put(
            "pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}
        )
        await manager.settle(70)
        assert told(world) == (
            "PodsNotReady", "worker east: pod train-a: scheduler volcano has not reported anything about it"
        )  # fmt: skip


async def test_what_is_known_of_another_pod_comes_before_one_that_is_only_not_ready() -> None:
    """A pod that was evicted, and the next, which no kubelet has taken yet; and one whose volume is not there."""
    fresh = {"phase": "Pending", "qosClass": "BestEffort"}
    async with watched() as (world, manager):
        put_pod(world, "train-b", {"phase": "Failed", "reason": "Evicted", "message": "low on disk"})
        labels = world.mirror("east")["spec"]["template"]["metadata"]["labels"]
        metadata = {"name": "train-a", "namespace": "default", "labels": labels}
        spec = SPEC | {"nodeName": "n1"}
        made = world.workers["east"].server.put("pods", {"metadata": metadata, "spec": spec, "status": fresh})
        world.workers["east"].server.edit("jobs", "train", lambda body: body["status"].update(ready=0), "default")
        await manager.settle(1)
        assert told(world) == ("Evicted", "worker east: pod train-b: low on disk")
        warn(world, made, "Pod", "FailedMount", 'secret "keys" not found')
        await manager.settle(15)
        assert told(world) == ("FailedMount", 'worker east: pod train-a: secret "keys" not found')


async def test_a_mirror_that_no_controller_looks_at_is_told() -> None:
    """The worker's Job controller is not there: it would have written a status within a second."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle(295)
        assert told(world) is None
        await manager.settle(10)
        worker = world.placed()
        text = f"worker {worker} has not started it: its Job controller has not written a status"
        assert told(world) == ("PodsNotReady", text)
        world.controller(str(worker)).start("train")
        await manager.settle(1)
        assert told(world) is None


async def test_pods_that_are_deleted_and_do_not_end_are_told() -> None:
    """Their node is away, most often; with podReplacementPolicy Failed nothing takes their place."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        worker = str(world.placed())
        world.controller(worker).start("train")
        server = world.workers[worker].server
        server.edit("jobs", "train", lambda body: body["status"].update(active=0, ready=0, terminating=1), "default")
        await manager.settle(55)
        assert told(world) is None
        await manager.settle(10)
        assert told(world) == ("PodsNotReady", f"pods on worker {worker} are being deleted and have not ended")
        server.edit("jobs", "train", lambda body: body["status"].update(active=1, ready=1, terminating=0), "default")
        await manager.settle(1)
        assert told(world) is None


async def test_a_mirror_that_is_deleted_and_kept_by_a_finalizer_is_told() -> None:
    """Its controller leaves it alone from then on; the Job is lost once it has gone (D11)."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        worker = str(world.placed())
        world.controller(worker).start("train")
        server = world.workers[worker].server

        def delete(body: Body) -> None:
            at = world.workers[worker].clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            body["metadata"] |= {"finalizers": ["example.com/keep"], "deletionTimestamp": at}

        server.edit("jobs", "train", delete, "default")
        await manager.settle(5)
        assert told(world) is None
        await manager.settle(10)
        text = f"the mirror on worker {worker} is being deleted there; finalizers keep it: example.com/keep"
        assert told(world) == ("MirrorTerminating", text)


@pytest.mark.slow
async def test_a_mirror_that_gets_no_pods_is_told_and_touched() -> None:
    """D30: kube-controller-manager may wait for pods that it believes to have created, and then for any change."""
    async with two_workers() as (world, manager):
        world.create(job())
        await manager.settle()
        worker = world.placed()
        assert worker is not None
        server, controller = world.workers[worker].server, world.controller(worker)
        controller.start("train", active=0)
        await manager.settle(55)
        assert told(world) is None
        await manager.settle(10)
        assert told(world) == ("PodsNotReady", f"worker {worker} has no pods of it")
        await manager.settle(240)
        assert names.TOUCHED_AT not in server.get("jobs", "train", "default")["metadata"]["annotations"]
        await manager.settle(10)
        touched = server.get("jobs", "train", "default")["metadata"]["annotations"]
        assert touched[names.TOUCHED_AT]
        assert names.CARRIED in touched
        assert "MirrorTouched" in world.events()
        await manager.settle(3000)
        assert server.get("jobs", "train", "default")["metadata"]["annotations"] == touched
        await manager.settle(700)
        assert server.get("jobs", "train", "default")["metadata"]["annotations"] != touched

        controller.start("train")
        await manager.settle(1)
        assert told(world) is None
        touched = server.get("jobs", "train", "default")["metadata"]["annotations"]
        await manager.settle(7200)
        assert server.get("jobs", "train", "default")["metadata"]["annotations"] == touched


async def test_pods_of_another_kind_are_told_by_the_labels_of_its_template() -> None:
    """Whatever makes them, their names and their kind's own labels (D24); its own warnings are found by its uid."""
    world = World()
    world.add_worker("east")
    east, here = world.workers["east"].server, world.management.server
    for server in (here, east):
        server.put("customresourcedefinitions", definition())
    await asyncio.sleep(1)
    async with manager_of(world, kinds=KINDS, **watching(world.origin)) as manager:
        here.put(DRILLS.plural, drill())
        await manager.settle(2)
        mirror = east.get(DRILLS.plural, "train")
        labels = mirror["spec"]["template"]["metadata"]["labels"]
        east.put("pods", {"metadata": {"name": "p", "namespace": "default", "labels": labels}, "spec": SPEC})
        set_status(world, "p", PULLING)
        await manager.settle(1)

        def why() -> list[tuple[str, str]]:
            listed = here.get(DRILLS.plural, "train")["status"]["conditions"]
            return [(one["reason"], one["message"]) for one in listed if one["type"] == names.PROGRESSING]

        assert why() == [("ImagePullBackOff", "worker east: pod p: container main: image nope:1: not found")]
        set_status(world, "p", RUNS)
        await manager.settle(11)
        assert why() == []
        warn(world, mirror, DRILLS.kind, "FailedCreate", "Error creating: exceeded quota: few")
        await manager.settle(11)
        assert why() == [("QuotaExceeded", "worker east: pods cannot be created: exceeded quota: few")]


async def test_a_pod_that_ends_well_is_in_trouble_no_more() -> None:
    """What happens to it afterwards is not watched; that it left is enough."""
    async with watched() as (world, manager):
        put_pod(world, "train-a", PULLING)
        await manager.settle(11)
        assert told(world) is not None
        set_status(world, "train-a", {"phase": "Succeeded"})
        await manager.settle(11)
        assert told(world) is None
        pods = manager.registry.workers["east"].pods
        assert pods is not None
        assert len(pods._store) == 0


async def test_a_refusal_to_watch_pods_loses_no_worker() -> None:
    """D12: the rest goes on."""
    world = World()
    east = world.add_worker("east")
    for verb in ("watch", "list"):
        east.arrange(verb, "pods", forbidden(), times=99)
    async with manager_of(world, **watching(world.origin)) as manager:
        world.create(job())
        await manager.settle(30)
        assert world.mirrors() == ["east"]
