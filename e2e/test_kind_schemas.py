"""Every kind of the table against a real API server with the kind's own CRD, no field unknown to it (D25).

What is proved: sources are taken as the samples have them, mirrors as we make them; our records, ends and suspensions
are stored as they are sent, beside a status such as the kind's controller writes; and so is each change that follows to
a mirror. No controller or webhook runs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import yaml

from e2e.controlplane.client import JSON_PATCH, Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.definitions import defined
from e2e.go_modules import definition_of
from mirror.kinds.base import Changes, MirrorTransform
from mirror.kinds.carried import Part
from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kube.objects import Object, decode_object
from mirror.model import names
from mirror.model.field_paths import Place, at, without
from mirror.settings.kinds import KindEntry
from tests.doubles import carried_parts
from tests.doubles.carried_parts import SAMPLES

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AT = "2026-01-02T03:04:05Z"
STRICT = "?fieldValidation=Strict"
TRANSFORM = MirrorTransform(origin="home")
_CONDITION = {"reason": "Because", "message": "", "lastTransitionTime": AT}
_COUNTS = {"active": 1, "ready": 1, "suspended": 0, "succeeded": 0, "failed": 0}
_OF_KUBEFLOW = {
    "startTime": AT,
    "replicaStatuses": {"Worker": {"active": 1}},
    "conditions": [{"type": "Running", "status": "True", **_CONDITION, "lastUpdateTime": AT}],
}
_OF_TEKTON = {"startTime": AT, "conditions": [{"type": "Succeeded", "status": "Unknown", **_CONDITION}]}
_OF_RAY = {
    "state": "ready",
    "desiredCPU": "2",
    "desiredMemory": "4G",
    "availableWorkerReplicas": 1,
    "readyWorkerReplicas": 1,
    "head": {"podIP": "10.0.0.1", "serviceName": "a-head-svc"},
    "endpoints": {"dashboard": "8265"},
    "stateTransitionTimes": {"ready": AT},
    "conditions": [{"type": "HeadPodReady", "status": "True", **_CONDITION}],
}
RUNNING: dict[str, Json] = {
    "JobSet": {
        "restarts": 0,
        "replicatedJobsStatus": [{"name": "leader", **_COUNTS}],
        "conditions": [{"type": "StartupPolicyCompleted", "status": "True", **_CONDITION, "observedGeneration": 1}],
    },
    "MPIJob": _OF_KUBEFLOW,
    "TrainJob": {
        "jobsStatus": [{"name": "node", **_COUNTS}],
        "conditions": [{"type": "Suspended", "status": "False", **_CONDITION}],
    },
    **dict.fromkeys(("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob"), _OF_KUBEFLOW),
    "PipelineRun": {**_OF_TEKTON, "childReferences": [{"kind": "TaskRun", "name": "a", "apiVersion": "tekton.dev/v1"}]},
    "TaskRun": {**_OF_TEKTON, "podName": "a-pod"},
    "RayJob": {
        "jobId": "a-1",
        "jobStatus": "RUNNING",
        "jobDeploymentStatus": "Running",
        "rayClusterName": "a-cluster",
        "dashboardURL": "a-head-svc.team.svc.cluster.local:8265",
        "startTime": AT,
        "succeeded": 0,
        "failed": 0,
        "rayClusterStatus": _OF_RAY,
        "observedGeneration": 1,
    },
    "RayCluster": {**_OF_RAY, "observedGeneration": 1},
    "RayService": {
        "activeServiceStatus": {"rayClusterName": "a-cluster", "rayClusterStatus": _OF_RAY},
        "serviceStatus": "Running",
        "numServeEndpoints": 2,
        "conditions": [{"type": "Ready", "status": "True", **_CONDITION, "observedGeneration": 1}],
        "observedGeneration": 1,
    },
    "AppWrapper": {
        "phase": "Running",
        "conditions": [{"type": "ResourcesDeployed", "status": "True", **_CONDITION}],
        "componentStatus": [{"apiVersion": "batch/v1", "kind": "Job", "name": "wrapped", "podSets": []}],
    },
}
"""What a worker's controller says of one that runs."""
FIXED = ("TrainJob", "RayJob", "RayCluster", "RayService")
"""Whose definition admits two values of ``managedBy`` alone."""
_DEFAULTED = {"RayJob": {"succeeded": 0, "failed": 0}}
"""What a CRD sets in every status."""
_OF_METADATA = ("metadata.labels", "metadata.annotations")
NOT_YET: dict[str, Place] = {"RayService": ("spec", "suspend")}
"""What follows of a later version than the one whose definition is here."""


@pytest_asyncio.fixture(loop_scope="session")
async def client(management: ControlPlane) -> AsyncIterator[Client]:
    async with management.client(user_agent="e2e-schemas") as found:
        yield found


def kind_of(name: str) -> DeclaredKind:
    kind = kinds_of([KindEntry(kind=name)])[name]
    assert isinstance(kind, DeclaredKind)
    return kind


def sample_of(name: str) -> Json:
    found: Json = yaml.load((SAMPLES / f"{name.lower()}.yaml").read_text(), Loader=yaml.CSafeLoader)
    return found


def as_object(body: Json) -> Object:
    return decode_object(msgspec.json.encode(body))


class Stored:
    """One source on the server, whose statuses are written as the manager does."""

    def __init__(self, client: Client, kind: DeclaredKind, body: Json) -> None:
        self._client = client
        self._kind = kind
        self.body = body

    @property
    def found(self) -> Object:
        return as_object(self.body)

    async def write(self, whole: Any) -> None:
        """Raises AssertionError where something else is stored than was sent."""
        assert whole is not None
        status, record = self._kind.as_stored(whole)
        if record is not None:
            noted = {**self.body["metadata"].get("annotations", {}), names.CONDITIONS: record}
            await self._patch("", {"op": "add", "path": "/metadata/annotations", "value": noted})
            assert self.body["metadata"]["annotations"] == noted
        if status or not self._kind.records_by_annotation:
            await self._patch("status", {"op": "add", "path": "/status", "value": status})
            assert self.body["status"] == {**_DEFAULTED.get(self._kind.name, {}), **status}

    async def _patch(self, subresource: str, operation: Json) -> None:
        metadata = self.body["metadata"]
        path = self._kind.resource.path(metadata["namespace"], metadata["name"], subresource)
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]}
        self.body = await self._client.call("PATCH", path + STRICT, [version, operation], "application/json-patch+json")


@pytest.mark.parametrize("name", built_in())
async def test_what_we_write_is_stored_as_it_is(client: Client, fresh_namespace: str, name: str) -> None:
    """A source, its mirror, and every status that follows."""
    kind = kind_of(name)
    definition = definition_of(name)
    path = kind.resource.path(fresh_namespace)
    async with defined([client], [definition]):
        sample = sample_of(name)
        body = await client.create(path + STRICT, sample)
        source = Stored(client, kind, body)
        assert kind.managed_by(source.found) == (kind.managed_by_value or names.DEFAULT_MANAGED_BY)

        mirror_body = kind.mirror_body(source.found, namespace=fresh_namespace, transform=TRANSFORM)
        mirror_body["metadata"]["name"] = "mirror"
        mirror = await client.create(path + STRICT, mirror_body)
        assert kind.is_as_sent(mirror_body, as_object(mirror))
        assert kind.changes(source.found, as_object(mirror), transform=TRANSFORM) is None

        await source.write(kind.stored(source.found).placed_status("east", NOW))
        running = {**mirror, "status": RUNNING[name]}
        following = kind.stored(source.found).next_status(as_object(running), now=NOW)
        await source.write(kind.stored(source.found).mirrored_status(following.status, "m-1", NOW))
        assert kind.stored(source.found).next_status(as_object(running), now=NOW).status is None
        assert kind.summary(source.found).mirror_uid == "m-1"

        await source.write(kind.stored(source.found).lost_status(NOW, message="gone", reason="MirrorLost"))
        assert kind.summary(source.found).is_finished is not kind.never_ends
        assert kind.summary(source.found).placed == "east"

        if kind.entry.suspend.path:
            other = sample_of(name)
            other["metadata"]["name"] = "held"
            (operation,) = kind.claim_operations(as_object(other), kind.managed_by_value or names.DEFAULT_MANAGED_BY)
            other["spec"] = operation["value"]
            held = Stored(client, kind, await client.create(path + STRICT, other))
            assert kind.is_suspended(held.found)
            await held.write(kind.stored(held.found).suspended_status(NOW))
            assert not kind.summary(held.found).is_finished
        await client.create(f"{path}{STRICT}&dryRun=All", {**kind.dry_run_body(), "metadata": {"generateName": "try-"}})


@pytest.mark.parametrize("name", built_in())
async def test_a_definition_takes_another_value_unless_it_fixes_it(
    client: Client, fresh_namespace: str, name: str
) -> None:
    """Hence MultiKueue's in the table; of Kubeflow's v1 kinds a webhook refuses others, which is not here."""
    kind, sample = kind_of(name), sample_of(name)
    *above, field = kind.managed_by_field.split(".")
    part = sample
    for step in above:
        part = part[step]
    part[field] = names.DEFAULT_MANAGED_BY
    path = kind.resource.path(fresh_namespace)

    async with defined([client], [definition_of(name)]):
        if name not in FIXED:
            await client.create(f"{path}?dryRun=All", sample)
            return
        assert kind.managed_by_value == names.MULTIKUEUE_MANAGED_BY
        with pytest.raises(StatusError) as refused:
            await client.create(path, sample)
        assert refused.value.status == 422
        assert "managedBy" in str(refused.value)


class Pair:
    """A source that its user changes, and its mirror, which is kept as the manager does."""

    def __init__(self, client: Client, kind: DeclaredKind, source: Json, mirror: Json) -> None:
        self._client = client
        self._kind = kind
        self.source = source
        self.mirror = mirror

    async def change(self, place: Place, value: Json | None) -> None:
        """Change the source at a place, or remove what is there (None); the mirror has the same after one write.

        Raises:
            AssertionError: it has not, or nothing is written.
            StatusError: one of the changes is refused.
        """
        operation = {"op": "remove"} if value is None else {"op": "add", "value": value}
        self.source = await self._patch(self.source, [{**operation, "path": Part("", place).pointer}])
        changes = self._changes()
        assert changes is not None, place
        self.mirror = await self._patch(self.mirror, changes.operations)
        assert self._changes() is None, place
        if place[0] != "metadata":
            assert at(self.mirror, place) == at(self.source, place)

    def _changes(self) -> Changes | None:
        return self._kind.changes(as_object(self.source), as_object(self.mirror), transform=TRANSFORM)

    async def _patch(self, found: Json, operations: Any) -> Json:
        path = self._kind.resource.path(found["metadata"]["namespace"], found["metadata"]["name"])
        return await self._client.call("PATCH", path + STRICT, list(operations), JSON_PATCH)


@pytest.mark.parametrize("name", built_in())
async def test_what_follows_is_stored_as_it_is(client: Client, fresh_namespace: str, name: str) -> None:
    """Each cell of ``carry``, changed, removed and added: while it is held, and while it runs what always follows."""
    kind, path = kind_of(name), kind_of(name).resource.path(fresh_namespace)
    entry, not_yet = kind.entry, NOT_YET.get(name)
    async with defined([client], [definition_of(name)]):
        body: Json = {**sample_of(name), "spec": carried_parts.whole(name)}
        if not_yet is not None:
            with pytest.raises(StatusError, match="unknown field"):
                await client.create(path + STRICT, body)
            body = without(body, not_yet)
        source = await client.create(path + STRICT, body)
        mirror = kind.mirror_body(as_object(source), namespace=fresh_namespace, transform=TRANSFORM)
        mirror["metadata"]["name"] = "mirror"
        pair = Pair(client, kind, source, await client.create(path + STRICT, mirror))

        async def change_each(paths: tuple[str, ...]) -> None:
            for one in (*_OF_METADATA, *paths):
                first, other = carried_parts.values_of(name, one)
                for place in carried_parts.places(pair.source, one):
                    for value in (other, None, first) if place != not_yet else ():
                        await pair.change(place, value)

        await change_each(entry.carry.always)
        if entry.suspend.path:
            await pair.change(tuple(entry.suspend.path.split(".")), entry.suspend.held)
            await change_each((*entry.carry.always, *entry.carry.suspended))
