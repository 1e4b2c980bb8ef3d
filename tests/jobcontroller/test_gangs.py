"""Workloads and PodGroups of Jobs on a cluster in memory, which serves them as custom resources.

It drops ``schedulingGroup`` from pods, as an API server without ``GenericWorkload`` does: what pods are sent with is
``decide``'s, and what becomes of it is shown on real API servers (``e2e/test_job_gang.py``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.jobworld import JobWorld
from doubles.loglines import Lines
from doubles.pods import Body
from doubles.refusals import Refused
from doubles.transport import Fault

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.controller import ControllerSettings
from mirror.jobcontroller.decide.gang import workload_name
from mirror.jobcontroller.syncing import Behaviour
from mirror.kube.resources import POD_GROUPS, WORKLOADS, Resource
from mirror.planes.api import Api

pytestmark = pytest.mark.looptime

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ON = ControllerSettings(Behaviour(gates=FeatureGates(generic_workload=True, workload_with_job=True)))
FIRST = ["create workloads", "create podgroups", "create pods", "create pods", "update status"]


class GangWorld(JobWorld):
    """A cluster that serves Workloads and PodGroups."""

    def __init__(self, settings: ControllerSettings = ON) -> None:
        super().__init__(settings)
        self.api = Api(self.wire.server.inner)
        for resource in (WORKLOADS, POD_GROUPS):
            self.api.call_nowait("POST", DEFINITIONS, definition(resource))

    def found(self, resource: Resource) -> list[Body]:
        items: list[Body] = self.api.call_nowait("GET", resource.path())["items"]
        return items

    def names(self, resource: Resource) -> list[str]:
        return [one["metadata"]["name"] for one in self.found(resource)]

    def put(self, resource: Resource, name: str, spec: Body, *owners: Body) -> Body:
        """Create one as somebody else."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        body["metadata"] = {"name": name, "ownerReferences": list(owners)}
        return self.api.call_nowait("POST", resource.path("default"), body)

    def remove(self, resource: Resource) -> None:
        """Delete all there are."""
        for name in self.names(resource):
            self.api.call_nowait("DELETE", resource.path("default", name), {})

    def create_gang(self, **spec: Any) -> Body:
        return self.create(completionMode="Indexed", completions=2, parallelism=2, **spec)

    def sent(self) -> list[str]:
        """What was written: verb and the last word of the path that is no name."""
        written = [(one.verb, one.path.split("/")) for one in self.wire.writes()]
        return [f"{verb} {path[-1 if verb == 'create' or path[-1] == 'status' else -2]}" for verb, path in written]


def definition(resource: Resource) -> Body:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    singular = resource.kind.lower()
    named = {"plural": resource.plural, "kind": resource.kind, "singular": singular, "listKind": f"{resource.kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
        },
        "spec": {"group": resource.group, "scope": "Namespaced", "names": named, "versions": [version]},
    }


@asynccontextmanager
async def gang_world(before: Callable[[GangWorld], object] = lambda _: None) -> AsyncIterator[GangWorld]:
    world = GangWorld()
    await world.settle()  # until the new kinds are served
    before(world)
    async with world.running():
        yield world


def refers_to_job(*templates: str, name: str = "train") -> Body:
    """A Workload's spec."""
    policy = {"gang": {"minCount": 2}}
    return {
        "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": name},
        "podGroupTemplates": [{"name": one, "schedulingPolicy": policy} for one in templates],
    }


def controller(job: Body) -> Body:
    meta = job["metadata"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


async def test_a_gang_has_its_workload_and_group_before_its_pods() -> None:
    """The Workload belongs to the Job, the PodGroup to the Job and, without blocking it, to the Workload."""
    async with gang_world() as world:
        job = world.create_gang()
        await world.settle()
        assert world.sent() == FIRST
        (workload,), (group,) = world.found(WORKLOADS), world.found(POD_GROUPS)
        name = workload["metadata"]["name"]
        assert name.startswith("train-")
        assert workload["metadata"]["ownerReferences"] == [controller(job)]
        assert workload["spec"] == refers_to_job("train-pgt-0")
        assert group["metadata"]["name"].startswith(f"{name}-train-pgt-0-")
        of_workload = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "Workload", "name": name}
        owner = of_workload | {"uid": workload["metadata"]["uid"]}
        assert group["metadata"]["ownerReferences"] == [controller(job), owner]
        assert group["spec"] == {
            "podGroupTemplateRef": {"workload": {"workloadName": name, "podGroupTemplateName": "train-pgt-0"}},
            "schedulingPolicy": {"gang": {"minCount": 2}},
        }
        text = f"Created Workload {name} for Job train"
        assert world.told.events[0] == ("Normal", "WorkloadCreated", text)
        for pod in world.active():
            world.node.succeed(pod)
        await world.settle()
        assert "Complete" in world.conditions()
        assert (len(world.found(WORKLOADS)), len(world.found(POD_GROUPS))) == (1, 1)


async def test_a_suspended_gang_has_them_before_it_is_resumed() -> None:
    """One PodGroup for all its lives."""
    async with gang_world() as world:
        world.create_gang(suspend=True)
        await world.settle()
        assert world.sent() == ["create workloads", "create podgroups", "update status"]
        for suspend in (False, True, False):
            world.set_spec(suspend=suspend)
            await world.settle()
        assert len(world.active()) == 2
        assert (len(world.found(WORKLOADS)), len(world.found(POD_GROUPS))) == (1, 1)


async def test_other_jobs_have_none() -> None:
    """Nor are they looked for."""
    async with gang_world() as world:
        world.create("queue", parallelism=2, completions=None)
        world.create("one", completionMode="Indexed", completions=1, parallelism=1)
        await world.settle()
        assert (world.found(WORKLOADS), world.found(POD_GROUPS)) == ([], [])
        assert (len(world.active("queue")), len(world.active("one"))) == (2, 1)


async def test_without_the_gate_nothing_is_asked() -> None:
    """Neither lists nor watches: the account needs no permission for them."""
    world = GangWorld(ControllerSettings())
    async with world.running():
        world.create_gang()
        await world.settle()
        assert len(world.active()) == 2
    assert not [one for one in world.wire.sent if "scheduling.k8s.io" in one.path]


async def test_a_job_that_started_before_the_gate_goes_on_without() -> None:
    """Its pods are not grouped in the middle of its life."""
    world = GangWorld(ControllerSettings())
    async with world.running():
        world.create_gang()
        await world.settle()
    world._settings = ON
    async with world.running():
        world.node.fail(world.active()[0])
        await world.settle(15)
        assert len(world.active()) == 2
        assert world.found(WORKLOADS) == []


async def test_a_restart_finds_what_was_made() -> None:
    """The same Workload and PodGroup; nothing is created twice."""
    async with gang_world() as world:
        world.create_gang()
        await world.settle()
        before = world.names(WORKLOADS), world.names(POD_GROUPS)
    async with world.running():
        world.node.fail(world.active()[0])
        await world.settle(15)
        assert len(world.active()) == 2
        assert (world.names(WORKLOADS), world.names(POD_GROUPS)) == before


@pytest.mark.parametrize(
    ("arrange", "because"),
    [
        pytest.param(
            lambda world: world.put(WORKLOADS, "theirs", refers_to_job("a")),
            "Workload theirs refers to the Job and is not controlled by it",
            id="somebody else's",
        ),
        pytest.param(
            lambda world: [world.put(WORKLOADS, name, refers_to_job("a")) for name in ("one", "other")],
            "more than one Workload refers to the Job",
            id="two",
        ),
    ],
)
async def test_workloads_in_the_way_leave_pods_ungrouped(
    arrange: Callable[[GangWorld], object], because: str, log_lines: Lines
) -> None:
    """The Job runs, none of them is touched, and the log says once why."""
    async with gang_world(arrange) as world:
        world.create_gang()
        await world.settle()
        world.node.run(world.active()[0])
        await world.settle()
        assert len(world.active()) == 2
        assert world.found(POD_GROUPS) == []
    told = [line["because"] for line in log_lines if "one by one" in line["event"]]
    assert told == [because]


async def test_a_deleted_pod_group_is_made_again() -> None:
    """At the next sync, as long as there is its Workload; without one, pods are ungrouped from then on."""
    async with gang_world() as world:
        world.create_gang()
        await world.settle()
        world.remove(POD_GROUPS)
        world.node.run(world.active()[0])
        await world.settle()
        assert len(world.found(POD_GROUPS)) == 1
        world.remove(POD_GROUPS)
        world.remove(WORKLOADS)
        world.node.run(world.active()[1])
        await world.settle()
        assert (world.found(WORKLOADS), world.found(POD_GROUPS)) == ([], [])
        assert len(world.active()) == 2


@pytest.mark.parametrize("plural", ["workloads", "podgroups"])
async def test_a_refused_create_holds_a_new_job(plural: str) -> None:
    """Nothing is stored, so that the Job counts as new at the next try; an event says what the server said."""
    async with gang_world() as world:
        kind = "Workload" if plural == "workloads" else "PodGroup"
        world.wire.arrange("create", plural, Refused(403, "Forbidden", "quota exceeded"), times=2)
        world.create_gang()
        await world.settle(0.5)
        assert (world.job().get("status") or {}, world.pods()) == ({}, [])
        text = f"Failed to create {kind} for Job train: quota exceeded"
        assert ("Warning", f"Failed{kind}Create", text) in world.told.events
        await world.settle(5)
        assert len(world.active()) == 2
        assert (len(world.found(WORKLOADS)), len(world.found(POD_GROUPS))) == (1, 1)


async def test_a_refused_pod_group_does_not_keep_ended_pods_from_counting() -> None:
    """Only new pods wait: upstream's Job would never be over."""
    async with gang_world() as world:
        world.create_gang()
        await world.settle()
        world.remove(POD_GROUPS)
        world.wire.arrange("create", "podgroups", Refused(403, "Forbidden", "quota exceeded"), times=999)
        first, second = world.active()
        world.node.fail(first)
        await world.settle(30)
        assert world.status()["failed"] == 1
        assert world.active() == [second]
        assert world.told.reasons()["FailedPodGroupCreate"] > 1
        world.wire.restore()
        await world.settle(60)
        assert len(world.active()) == 2


@pytest.mark.parametrize("plural", ["workloads", "podgroups"])
async def test_a_create_without_an_answer_is_looked_up(plural: str) -> None:
    """The next try is told that the name is taken: by the Job's own."""
    async with gang_world() as world:
        world.wire.mute_watches(plural)
        world.wire.arrange("create", plural, Fault.LOSE_ANSWER)
        world.create_gang()
        await world.settle(5)
        assert len(world.active()) == 2
        assert (len(world.found(WORKLOADS)), len(world.found(POD_GROUPS))) == (1, 1)


async def test_what_was_created_is_known_before_the_watch_shows_it() -> None:
    """Upstream's next sync takes the Job for one that started without a Workload, and pods for ungrouped ones."""
    async with gang_world() as world:
        for plural in ("workloads", "podgroups"):
            world.wire.mute_watches(plural)
        world.create_gang()
        await world.settle()
        world.node.fail(world.active()[0])
        await world.settle(15)
        assert len(world.active()) == 2
        assert world.sent().count("create workloads") == world.sent().count("create podgroups") == 1
        memory = world.controller.memories.of(world.job()["metadata"]["uid"])
        assert memory.ungrouped_because == ""


async def test_a_name_that_somebody_else_has_taken_holds_the_job() -> None:
    """As upstream: an object that is not the Job's is never used; it can be deleted."""
    async with gang_world() as world:
        world.wire.arrange("create", "workloads", Refused(500, "InternalError", "later"), times=1)
        job = world.create_gang()
        await world.settle(0.5)
        uid = job["metadata"]["uid"]
        world.put(WORKLOADS, workload_name("train", uid), refers_to_job("a", name="another"))
        await world.settle(10)
        assert world.pods() == []
        world.remove(WORKLOADS)
        await world.settle(60)
        assert len(world.active()) == 2


async def test_a_job_that_is_being_deleted_creates_none() -> None:
    """Its pods are all that is left to do."""
    async with gang_world() as world:
        world.create_gang()
        await world.settle()
        world.remove(POD_GROUPS)
        world.edit(lambda body: body["metadata"].update(finalizers=["example.com/wait"]))
        world.wire.server.remove("jobs", "train")
        world.node.run(world.active()[0])
        await world.settle()
        assert world.found(POD_GROUPS) == []
