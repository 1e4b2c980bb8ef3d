"""Kinds that are not built in: what docs/kinds.md says of why not, on real API servers with their own definitions.

Their controllers do not run, but JAXJob's, which is training-operator.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

import pytest
import pytest_asyncio

from e2e import kind_choice, operators, shipped
from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.definitions import defined
from e2e.go_modules import definition_of
from e2e.jobs import Scene, until
from e2e.manager import ManagerProcess
from e2e.operator_table import JAX_OPERATOR, JAXJOBS
from mirror.kube.resources import Resource
from mirror.model import names

STRICT = "?fieldValidation=Strict"
_POD: Json = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
_OF_APPS: Json = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, **_POD}}


@dataclass(frozen=True, slots=True)
class Other:
    """A kind without ``managedBy``, and a spec that its definition takes."""

    resource: Resource
    spec: Json

    @property
    def is_custom(self) -> bool:
        return self.resource.group.count(".") > 0


WORKFLOW = Other(Resource("argoproj.io", "v1alpha1", "workflows", "Workflow"), {"entrypoint": "main"})
VOLCANO_JOB = Other(Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job"), {"queue": "default"})
WITHOUT = {
    "SparkApplication": Other(
        Resource("sparkoperator.k8s.io", "v1beta2", "sparkapplications", "SparkApplication"),
        {"type": "Python", "sparkVersion": "4.0.0", "mainApplicationFile": "a.py", "driver": {}, "executor": {}},
    ),
    "Workflow": WORKFLOW,
    "Job (Volcano)": VOLCANO_JOB,
    "LeaderWorkerSet": Other(
        Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"),
        {"leaderWorkerTemplate": {"workerTemplate": _POD}},
    ),
    "StatefulSet": Other(Resource("apps", "v1", "statefulsets", "StatefulSet"), _OF_APPS),
    "Deployment": Other(Resource("apps", "v1", "deployments", "Deployment"), _OF_APPS),
    "Pod": Other(Resource("", "v1", "pods", "Pod"), _POD["spec"]),
}


@pytest_asyncio.fixture(loop_scope="session")
async def client(management: ControlPlane) -> AsyncIterator[Client]:
    async with management.client(user_agent="e2e-not-built-in") as found:
        yield found


def body_of(other: Other, **spec: object) -> Json:
    resource = other.resource
    named = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "one"}}
    return {**named, "spec": {**other.spec, **spec}}


@pytest.mark.parametrize("other", WITHOUT.values(), ids=WITHOUT)
async def test_managed_by_is_no_field_of_it(client: Client, fresh_namespace: str, other: Other) -> None:
    """The API server drops it without a word that a user would see; where unknown fields are refused, it is named."""
    path, body = other.resource.path(fresh_namespace), body_of(other, managedBy="jobmirror.io/controller")
    async with defined([client], [definition_of(other.resource.kind)] if other.is_custom else []):
        with pytest.raises(StatusError, match=r'unknown field \\?"spec\.managedBy'):
            await client.create(path + STRICT, body)
        stored = await client.create(f"{path}?dryRun=All", body)
        assert "managedBy" not in stored["spec"]
        assert stored["spec"].keys() >= other.spec.keys()


async def test_a_workflows_status_is_written_where_users_write(client: Client, fresh_namespace: str) -> None:
    """It has no ``status`` subresource: a status is a change of the object, and makes a generation."""
    path = WORKFLOW.resource.path(fresh_namespace, "one")
    async with defined([client], [definition_of("Workflow")]):
        created = await client.create(WORKFLOW.resource.path(fresh_namespace), body_of(WORKFLOW))
        with pytest.raises(StatusError) as refused:
            await client.merge(f"{path}/status", {"status": {"phase": "Running"}})
        assert refused.value.status == 404
        changed = await client.merge(path, {"status": {"phase": "Running"}})
        assert changed["status"] == {"phase": "Running"}
        assert changed["metadata"]["generation"] == created["metadata"]["generation"] + 1


async def test_a_job_of_volcanos_is_suspended_by_another_object(client: Client, fresh_namespace: str) -> None:
    """No field of it says so; a Command does, which names it."""
    command = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command")
    async with defined([client], [definition_of("Job"), definition_of("Command")]):
        path = VOLCANO_JOB.resource.path(fresh_namespace)
        with pytest.raises(StatusError, match="unknown field"):
            await client.create(path + STRICT, body_of(VOLCANO_JOB, suspend=True))
        job = await client.create(path + STRICT, body_of(VOLCANO_JOB))
        target = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": "one", "uid": job["metadata"]["uid"]}
        named = {"apiVersion": command.api_version, "kind": command.kind, "metadata": {"name": "stop"}}
        body = {**named, "action": "AbortJob", "target": target}
        assert (await client.create(command.path(fresh_namespace) + STRICT, body))["action"] == "AbortJob"


JAX_ENTRY: Json = {
    "kind": "JAXJob",
    "resource": "jaxjobs.v1.kubeflow.org",
    "managedBy": {"path": "spec.runPolicy.managedBy"},
    "suspend": {"path": "spec.runPolicy.suspend"},
    "done": {"succeeded": ["condition Succeeded=True"], "failed": ["condition Failed=True"]},
    "lost": {"conditions": [{"type": "Failed"}, {"type": "Running", "status": "False"}]},
}
"""As that of PyTorchJob."""
TOLD = {"KindRunsHere", "StatusConflict"}


def jax_job(name: str, managed_by: str, worker: str) -> Json:
    """A JAXJob of one pod, for this worker."""
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "jax", "image": "any", "command": ["none"]}]}
    }
    return {
        "apiVersion": JAXJOBS.api_version,
        "kind": JAXJOBS.kind,
        "metadata": {"name": name, "annotations": {names.WORKER_SELECTOR: f"name={worker}"}},
        "spec": {
            "runPolicy": {"managedBy": managed_by},
            "jaxReplicaSpecs": {"Worker": {"replicas": 1, "restartPolicy": "Never", "template": template}},
        },
    }


def permissions(side: str, namespace: str) -> list[Json]:
    """Those of the file of PyTorchJob, with its resource put in, as the document has it."""
    given = shipped.read(f"kinds/{side}-pytorchjob", namespace=namespace)
    found: list[Json] = json.loads(json.dumps(given).replace("pytorchjob", "jaxjob"))
    # Of every account, since that of the manager is not known before it starts, and asks at once.
    everybody = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:serviceaccounts"}]
    return [{**one, "subjects": everybody} if "subjects" in one else one for one in found]


async def is_logged(manager: ManagerProcess, text: str) -> bool:
    """Whether it says that the kind is run here, for this reason."""
    return any("kind runs here" in line and text in line for line in manager.log_lines())


@pytest.mark.skipif(len(kind_choice.CHOSEN) < len(kind_choice.ALL), reason=f"{kind_choice.VARIABLE} is not all")
async def test_a_jax_job_is_run_here_whatever_it_says(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """Its operator takes no notice of ``managedBy``: that is noticed and told, and none of the kind is placed."""
    there, collection = scene.client_of("east"), JAXJOBS.path(scene.namespace)
    sides = {"management": management, "worker": east}
    given = [(plane, permissions(side, scene.namespace)) for side, plane in sides.items()]
    try:
        for plane, objects in given:
            async with plane.client() as administrator:
                for one in objects:
                    await shipped.put(administrator, one)
        async with (
            ManagerProcess.start(management, {"east": east}, settings={"kinds": [JAX_ENTRY]}) as manager,
            defined([there], [definition_of("JAXJob")]),
            operators.running(management, operators=[JAX_OPERATOR]),
        ):
            await scene.client.create(collection, jax_job("first", manager.managed_by, "nowhere"))
            await scene.event("first", "StatusConflict")
            text = "a controller on the management cluster writes statuses of JAXJobs that are not its own"
            await until(partial(is_logged, manager, text))

            await scene.client.create(collection, jax_job("second", manager.managed_by, "east"))
            # Which is seen first: that it waits, or that its status is the operator's.
            await until(lambda: scene.events("second"), lambda found: {one["reason"] for one in found} & TOLD)
            pods, label = f"/api/v1/namespaces/{scene.namespace}/pods", "training.kubeflow.org/job-name=second"
            await until(partial(scene.client.list, pods, labelSelector=label))
            assert not await there.list(collection)
    finally:  # once nobody asks any more
        for plane, objects in given:
            await shipped.withdraw(plane, objects)
