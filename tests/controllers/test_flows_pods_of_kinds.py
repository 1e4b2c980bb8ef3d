"""What keeps the pods of other kinds than Jobs from running: by their counts, and where child Jobs make the pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.jobs import Body
from doubles.watched_pods import SPEC, set_status, watching
from doubles.world import RunningManager, World, manager_of

from mirror.embedded.faults.kinds import Slow
from mirror.embedded.faults.targets import Which
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.planes.other_kinds import JOBSETS, definition
from mirror.settings.kinds import KindEntry

pytestmark = pytest.mark.looptime

KINDS = kinds_of([KindEntry(kind="JobSet")])
REFUSED = 'pods "train-main-0-0-x7k2p" is forbidden: exceeded quota: few, requested: pods=1, used: pods=3'
QUOTA = ("QuotaExceeded", "worker east: pods cannot be created: exceeded quota: few, requested: pods=1, used: pods=3")


def job_set(**spec: Any) -> Body:
    template = {"spec": {"template": {"spec": SPEC | {"restartPolicy": "Never"}}}}
    replicated = [{"name": "main", "replicas": 2, "template": template}]
    return {
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"managedBy": names.DEFAULT_MANAGED_BY, "replicatedJobs": replicated, **spec},
    }


@asynccontextmanager
async def mirrored(*, watched: bool = True) -> AsyncIterator[tuple[World, RunningManager]]:
    """A JobSet that is mirrored to ``east``."""
    world = World()
    world.add_worker("east")
    for server in (world.management.server, world.workers["east"].server):
        server.put("customresourcedefinitions", definition(JOBSETS))
    await asyncio.sleep(1)
    async with manager_of(world, kinds=KINDS, **(watching(world.origin) if watched else {})) as manager:
        world.management.server.put(JOBSETS.plural, job_set())
        await manager.settle(2)
        yield world, manager


def mirror(world: World) -> Body:
    found: Body = world.workers["east"].server.get(JOBSETS.plural, "train")
    return found


def told(world: World) -> tuple[str, str] | None:
    listed = world.management.server.get(JOBSETS.plural, "train")["status"]["conditions"]
    found = next((one for one in listed if one["type"] == names.PROGRESSING), None)
    return (found["reason"], found["message"]) if found else None


def count(world: World, **counts: int) -> None:
    """The worker's JobSet controller writes what its child Jobs are doing."""
    status = {"name": "main", "active": 0, "ready": 0, "succeeded": 0, "failed": 0, "suspended": 0, **counts}
    world.workers["east"].server.edit(
        JOBSETS.plural, "train", lambda body: body.update(status={"restarts": 0, "replicatedJobsStatus": [status]})
    )


def owner(api: str, found: Body, kind: str) -> Body:
    metadata = found["metadata"]
    return {"apiVersion": api, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": True}


def child_job(world: World, name: str = "train-main-0", *, of: Body | None = None) -> Body:
    """As JobSet's controller makes one: neither our labels nor a word of us is on it, but on its pod template."""
    owners = [owner(JOBSETS.api_version, of or mirror(world), "JobSet")]
    metadata = {"name": name, "namespace": "default", "ownerReferences": owners}
    template = {"spec": SPEC | {"restartPolicy": "Never"}}
    made: Body = world.workers["east"].server.put("jobs", {"metadata": metadata, "spec": {"template": template}})
    return made


def pod_of(world: World, child: Body, name: str, status: Body) -> None:
    template = mirror(world)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    labels = template["metadata"]["labels"]
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": labels,
        "ownerReferences": [owner("batch/v1", child, "Job")],
    }
    world.workers["east"].server.put("pods", {"metadata": metadata, "spec": SPEC})
    set_status(world, name, status)


def refuse(world: World, about: Body, *, kind: str = "Job", api: str = "batch/v1", text: str = REFUSED) -> None:
    """The worker's Job controller may not create pods."""
    metadata = about["metadata"]
    regarding = {
        "apiVersion": api,
        "kind": kind,
        "namespace": "default",
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    event = {
        "metadata": {"generateName": "refused-", "namespace": "default"},
        "involvedObject": regarding,
        "type": "Warning",
        "reason": "FailedCreate",
        "message": f"Error creating: {text}",
        "lastTimestamp": world.workers["east"].clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    world.workers["east"].server.put("events", event)


def untold(body: Body) -> None:
    listed = body["status"]["conditions"]
    body["status"]["conditions"] = [one for one in listed if one["type"] != names.PROGRESSING]


def asked(world: World, path: str) -> int:
    return sum(sent.verb == "get" and path in sent.path for sent in world.workers["east"].sent)


async def test_child_jobs_that_are_not_ready_are_told_after_a_minute() -> None:
    """With no permission but that to see the JobSet; cleared when they are ready."""
    async with mirrored(watched=False) as (world, manager):
        count(world, active=2, ready=1)
        await manager.settle(50)
        assert told(world) is None
        await manager.settle(20)
        assert told(world) == ("PodsNotReady", "pods on worker east are not ready")
        count(world, active=2, ready=2)
        await manager.settle(2)
        assert told(world) is None
        assert not [sent for sent in world.workers["east"].sent if "pods" in sent.path or "events" in sent.path]


async def test_child_jobs_that_get_no_pods_are_told_and_left_alone() -> None:
    """A quota, most often. It is the Job controller that may have forgotten a Job, which this is not (D30)."""
    async with mirrored(watched=False) as (world, manager):
        count(world)
        await manager.settle(70)
        assert told(world) == ("PodsNotReady", "worker east has no pods of it")
        await manager.settle(600)
        assert names.TOUCHED_AT not in mirror(world)["metadata"]["annotations"]
        count(world, active=2, ready=2)
        await manager.settle(2)
        assert told(world) is None


async def test_a_kind_whose_controller_is_not_there_is_told() -> None:
    async with mirrored(watched=False) as (world, manager):
        await manager.settle(310)
        text = "worker east has not started it: its JobSet controller has not written a status"
        assert told(world) == ("PodsNotReady", text)


async def test_pods_that_a_child_job_may_not_create_are_told_until_it_does() -> None:
    """The warning is about the child Job, which is no mirror: its owners say whose it is (D1)."""
    async with mirrored() as (world, manager):
        count(world)
        child = child_job(world)
        refuse(world, child)
        await manager.settle(1)
        assert told(world) == QUOTA
        assert list(world.texts("QuotaExceeded")) == [QUOTA[1]]
        before = asked(world, "jobs/train-main-0")
        refuse(world, child, text=REFUSED.replace("x7k2p", "a1b2c"))
        await manager.settle(11)
        assert asked(world, "jobs/train-main-0") == before  # whose it is, is known
        pod_of(world, child, "train-main-0-0-b", {"phase": "Running"})
        count(world, active=1, ready=1)
        await manager.settle(11)
        assert told(world) is None


async def test_a_pod_of_one_child_job_says_nothing_of_another() -> None:
    """One is refused still while the other one's pods are created."""
    async with mirrored() as (world, manager):
        count(world)
        first, second = child_job(world), child_job(world, "train-main-1")
        refuse(world, first)
        await manager.settle(11)
        pod_of(world, second, "train-main-1-0-b", {"phase": "Running"})
        await manager.settle(11)
        assert told(world) == QUOTA
        pod_of(world, first, "train-main-0-0-b", {"phase": "Running"})
        count(world, active=2, ready=2)
        await manager.settle(11)
        assert told(world) is None


async def test_child_jobs_of_others_are_looked_at_once_and_are_none_of_ours() -> None:
    """Somebody's own Job, and one of a JobSet that is no mirror; however often they are warned of."""
    async with mirrored() as (world, manager):
        count(world, active=1, ready=1)
        server = world.workers["east"].server
        template = {"spec": SPEC | {"restartPolicy": "Never"}}
        stranger = server.put("jobs", {"metadata": {"name": "own"}, "spec": {"template": template}})
        theirs = server.put(JOBSETS.plural, job_set() | {"metadata": {"name": "theirs", "namespace": "default"}})
        child = child_job(world, "theirs-main-0", of=theirs)
        for _ in range(5):
            refuse(world, stranger)
            refuse(world, child)
            await manager.settle(5)
        assert told(world) is None
        assert asked(world, "jobs/own") == 1
        assert asked(world, "jobs/theirs-main-0") == 1


async def test_a_child_job_that_only_says_whose_it_is_is_not_believed() -> None:
    """An owner of that name, with another uid; an owner that is no controller; another kind in between (D1)."""
    async with mirrored() as (world, manager):
        count(world, active=1, ready=1)
        real = owner(JOBSETS.api_version, mirror(world), "JobSet")
        for number, claimed in enumerate(
            (real | {"uid": "another"}, real | {"controller": False}, real | {"kind": "Job", "apiVersion": "batch/v1"})
        ):
            template = {"spec": SPEC | {"restartPolicy": "Never"}}
            metadata = {"name": f"spoof-{number}", "namespace": "default", "ownerReferences": [claimed]}
            made = world.workers["east"].server.put("jobs", {"metadata": metadata, "spec": {"template": template}})
            refuse(world, made)
        await manager.settle(11)
        assert told(world) is None


async def test_what_is_no_part_of_any_kind_is_not_asked_for() -> None:
    """Warnings of Deployments and the like, of which a worker may have thousands."""
    async with mirrored() as (world, manager):
        sent = len(world.workers["east"].sent)
        refuse(world, mirror(world), kind="ReplicaSet", api="apps/v1")
        refuse(world, {"metadata": {"name": "x", "uid": "u9"}}, kind="Job", api="batch.volcano.sh/v1alpha1")
        await manager.settle(11)
        later = world.workers["east"].sent[sent:]
        assert not [one for one in later if one.verb == "get" and "/namespaces/default/" in one.path]
        assert told(world) is None


async def test_a_manager_that_starts_tells_of_warnings_before_it_knows_the_mirrors() -> None:
    """Those of the last hour come at once; whose they are is known only once mirrors were listed."""
    async with mirrored() as (world, manager):
        count(world)
        refuse(world, child_job(world))
        await manager.settle(11)
        assert told(world) == QUOTA
        world.management.server.edit(JOBSETS.plural, "train", untold)
    for verb in ("list", "watch"):
        world.workers["east"].faults.arrange(Slow(20), Which(verb, JOBSETS.plural))
    async with manager_of(world, kinds=KINDS, **watching(world.origin)) as manager:
        await manager.settle(10)
        assert not manager.registry.workers["east"].is_synced
        await manager.settle(35)
        assert told(world) == QUOTA


async def test_the_first_pod_that_fails_is_told_while_the_next_one_is_not_ready() -> None:
    """As of a Job of which nothing has succeeded."""
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    async with mirrored() as (world, manager):
        count(world, active=1, ready=0)
        child = child_job(world)
        pod_of(world, child, "a", {"phase": "Failed", "containerStatuses": [{"name": "main", "state": killed}]})
        await manager.settle(2)
        assert told(world) == ("OOMKilled", "worker east: pod a: container main: OOMKilled, exit code 137")


async def test_pods_of_child_jobs_that_fail_are_told_though_none_of_these_has() -> None:
    """A JobSet counts Jobs: its pods fail again and again while they go on."""
    killed = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    failed = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": killed}]}
    async with mirrored() as (world, manager):
        count(world, active=1, ready=1, succeeded=1)
        child = child_job(world)
        pod_of(world, child, "train-main-0-0-a", failed)
        await manager.settle(11)
        assert told(world) is None  # one may fail, and the next one is ready
        pod_of(world, child, "train-main-0-0-b", failed)
        count(world, active=1, ready=0, succeeded=1)
        await manager.settle(11)
        text = "worker east: pod train-main-0-0-b: container main: OOMKilled, exit code 137"
        assert told(world) == ("OOMKilled", text)
        count(world, active=1, ready=1, succeeded=1)
        await manager.settle(75)
        assert told(world) is None
