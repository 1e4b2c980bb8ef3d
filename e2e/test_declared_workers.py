"""Workers that others declare, on real API servers: Secrets as Cluster API writes them, ClusterProfiles (D15, D18)."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import yaml

from e2e.commands import Said, administrator_says, operator_says
from e2e.controlplane.client import Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.declared_life import (
    CLUSTER_NAME,
    capi_secret,
    cluster_profiles,
    create_profile,
    define_profiles,
    encoded,
    profile,
    secret_sources,
    workers_up,
)
from e2e.jobs import Scene, annotation, is_complete, job, placed_on, until
from e2e.manager import ManagerProcess
from mirror.model import names
from mirror.workers.cluster_profiles import CLUSTER_PROFILES, KUBECONFIG_READER, SECRET_READER

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def settings_for(namespace: str) -> Json:
    return {"workers": {**secret_sources(namespace)["workers"], **cluster_profiles(namespace)["workers"]}}


async def test_secrets_of_cluster_api_and_profiles_are_workers(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """With the shipped rights; profiles are served only later; one that vanishes is a loss."""
    namespace = scene.namespace
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    async with ManagerProcess.start(management, settings=settings_for(namespace)) as manager:
        await scene.client.create(secrets, capi_secret("prod", await manager.kubeconfig_of(east), region="eu"))
        await until(lambda: workers_up(manager), lambda up: up == 1)
        selected = {"worker-selector": f"{CLUSTER_NAME}=prod,region=eu,name=prod"}
        await scene.client.create(scene.jobs(), job("first", manager.managed_by, annotations=selected))
        assert placed_on(await scene.source_until("first", is_complete)) == "prod"

        await define_profiles(scene.client)
        kubeconfig = yaml.safe_load(await manager.kubeconfig_of(west))
        token = {"token": encoded(kubeconfig["users"][0]["user"]["token"].encode())}
        own = f"/api/v1/namespaces/{manager.namespace}/secrets"
        named = {"name": "fleet-token", "annotations": {names.FOR_CLUSTER_PROFILES: "fleet"}}
        await scene.client.create(own, {"metadata": named, "data": token})
        says = {
            "properties": [{"name": "topology.example/zone", "value": "b"}],
            "version": {"kubernetes": "1.36.3"},
        }
        body = profile("fleet", SECRET_READER, kubeconfig, {"clusterName": "fleet-token"}, **says)
        await create_profile(scene.client, namespace, body)
        await until(lambda: workers_up(manager), lambda up: up == 2)
        selected = {"worker-selector": "region=asia,topology.example/zone=b,kubernetes-version=1.36.3,name=fleet"}
        await scene.client.create(scene.jobs(), job("second", manager.managed_by, annotations=selected))
        assert placed_on(await scene.source_until("second", is_complete)) == "fleet"
        # Labels and properties are followed: nobody has the old value any more.
        await scene.client.merge(
            f"{CLUSTER_PROFILES.path(namespace)}/fleet",
            {"status": {"properties": [{"name": "topology.example/zone", "value": "c"}]}},
        )
        await scene.until_jobs_wait(manager.managed_by, "fleet", selected)
        selected = {"worker-selector": "topology.example/zone=c"}
        await scene.client.create(scene.jobs(), job("third", manager.managed_by, annotations=selected))
        assert placed_on(await scene.source_until("third", is_complete)) == "fleet"

        await scene.client.delete(f"{CLUSTER_PROFILES.path(namespace)}/fleet")
        await until(lambda: workers_up(manager), lambda up: up == 1)
        assert placed_on(await scene.source_until("second", is_complete)) == "fleet"


async def test_client_certificates_reach_declared_workers(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """As Cluster API's kubeconfigs have them: in a Secret of another namespace, and in one that a profile names."""
    namespace = scene.namespace
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    administrators = ["system:masters"]
    async with ManagerProcess.start(management, settings=settings_for(namespace)) as manager:
        kubeconfig = east.kubeconfig_for("kubernetes-admin", groups=administrators).read_bytes()
        assert b"client-certificate-data" in kubeconfig
        await scene.client.create(secrets, capi_secret("prod", kubeconfig))
        await until(lambda: workers_up(manager), lambda up: up == 1)

        await define_profiles(scene.client)
        content = west.kubeconfig_for("kubernetes-admin", groups=administrators).read_bytes()
        await scene.client.create(secrets, {"metadata": {"name": "kube"}, "data": {"config": encoded(content)}})
        named = {"name": "kube", "namespace": namespace, "key": "config"}
        await create_profile(
            scene.client, namespace, profile("fleet", KUBECONFIG_READER, yaml.safe_load(content), named)
        )
        await until(lambda: workers_up(manager), lambda up: up == 2)
        for worker in ("prod", "fleet"):
            selected = {"worker-selector": f"name={worker}"}
            await scene.client.create(scene.jobs(), job(worker, manager.managed_by, annotations=selected))
            assert placed_on(await scene.source_until(worker, is_complete)) == worker

        # Another certificate in the Secret is used from then on; a broken one is a loss.
        fresh = east.kubeconfig_for("kubernetes-admin-2", groups=administrators).read_bytes()
        path = f"{secrets}/prod-kubeconfig"
        await scene.client.merge(path, {"data": {"value": encoded(b"no kubeconfig")}})
        await until(lambda: workers_up(manager), lambda up: up == 1)
        await scene.client.merge(path, {"data": {"value": encoded(fresh)}})
        await until(lambda: workers_up(manager), lambda up: up == 2)


@asynccontextmanager
async def two_declared(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> AsyncIterator[ManagerProcess]:
    """A manager with ``prod``, whose Secret Cluster API has written, and ``fleet``, which a profile declares."""
    namespace = scene.namespace
    async with ManagerProcess.start(management, settings=settings_for(namespace)) as manager:
        secrets = f"/api/v1/namespaces/{namespace}/secrets"
        await scene.client.create(secrets, capi_secret("prod", await manager.kubeconfig_of(east)))
        await define_profiles(scene.client)
        kubeconfig = yaml.safe_load(await manager.kubeconfig_of(west))
        token = {"token": encoded(kubeconfig["users"][0]["user"]["token"].encode())}
        named = {"name": "fleet-token", "annotations": {names.FOR_CLUSTER_PROFILES: "fleet"}}
        own = f"/api/v1/namespaces/{manager.namespace}/secrets"
        await scene.client.create(own, {"metadata": named, "data": token})
        body = profile("fleet", SECRET_READER, kubeconfig, {"clusterName": "fleet-token"})
        await create_profile(scene.client, namespace, body)
        await until(lambda: workers_up(manager), lambda up: up == 2)
        yield manager


async def reports(manager: ManagerProcess, *arguments: str) -> dict[str, dict[str, Json]]:
    """Findings of ``mirror worker check`` by worker and by what was looked at."""
    said = await administrator_says(
        manager, "worker", "check", *arguments, f"--managed-by={manager.managed_by}", "--output=json"
    )
    items = json.loads(said.output)["items"]
    assert said.code == (1 if "fail" in {one["verdict"] for one in items} else 0), said
    return {one["worker"]: {each["what"]: each for each in one["findings"]} for one in items}


async def until_listed(manager: ManagerProcess, worker: str, **shown: object) -> None:
    """Until the manager has seen an annotation, and ``mirror worker list`` shows it."""

    async def row() -> dict[str, Any]:
        said = await administrator_says(manager, "worker", "list", "--output=json")
        found: dict[str, Any] = next(one for one in json.loads(said.output)["items"] if one["name"] == worker)
        return found

    await until(row, lambda found: all(found[key] == value for key, value in shown.items()))


async def test_operators_commands_reach_what_declares_a_worker(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """check asks them; set, cordon and drain are annotations of the Secret and the profile; remove deletes neither."""
    namespace = scene.namespace
    objects = {
        "prod": f"/api/v1/namespaces/{namespace}/secrets/prod-kubeconfig",
        "fleet": f"{CLUSTER_PROFILES.path(namespace)}/fleet",
    }
    by = {"prod": f"Secret {namespace}/prod-kubeconfig", "fleet": f"ClusterProfile {namespace}/fleet"}
    async with two_declared(management, east, west, scene) as manager:
        found = await reports(manager)
        assert found.keys() == objects.keys() == (await reports(manager, *objects)).keys()
        for worker, findings in found.items():
            assert findings["declaration"]["text"] == f"by {by[worker]}, well-formed"
            assert {"TLS", "version", "identity", "token", "permissions", "namespaces"} <= findings.keys()
            assert not [one for one in findings.values() if one["verdict"] == "fail"], findings

        for worker, path in objects.items():

            async def says(*arguments: str, worker: str = worker) -> Said:
                return await administrator_says(manager, "worker", arguments[0], worker, *arguments[1:])

            before = await scene.client.get(path)
            # What commands rely on: another object of the same name is not changed.
            other = {"metadata": {"uid": str(uuid.uuid4()), "annotations": {names.CORDONED: "true"}}}
            with pytest.raises(StatusError) as refused:
                await scene.client.merge(path, other)
            assert refused.value.reason in ("Conflict", "Invalid")
            assert (await says("set", "--capacity=7", "--labels=tier=gold")).code == 0
            assert (await says("cordon")).code == 0
            await until_listed(manager, worker, capacity=7, cordoned=True)
            selected = {"worker-selector": f"tier=gold,name={worker}"}
            await scene.client.create(scene.jobs(), job(worker, manager.managed_by, annotations=selected))
            await scene.source_until(
                worker, lambda found: bool(found) and "cordoned" in annotation(found, "waiting-because")
            )
            assert (await says("uncordon")).code == 0
            assert placed_on(await scene.source_until(worker, is_complete)) == worker
            assert await scene.mirrors(worker)

            drained = await says("drain")
            assert drained.code == 0, drained
            assert "✓ 1 mirror deleted" in drained.output
            assert f"✓ worker {worker} is empty: to unregister it, delete {by[worker]}" in drained.output
            assert await scene.mirrors(worker) == {}
            removed = await says("remove")
            assert removed.code == 1
            assert f"worker {worker} gets no new Jobs, and stays registered: to unregister it, delete" in removed.errors
            after = await scene.client.get(path)
            assert after["metadata"]["annotations"] == {names.CAPACITY: "7", names.DRAIN: "wait"}
            assert after["metadata"]["labels"] == {**before["metadata"]["labels"], "tier": "gold"}
            for part in ("data", "type", "spec", "status"):
                assert after.get(part) == before.get(part)
        assert await workers_up(manager) == 2


async def test_a_worker_that_nobody_could_look_at_is_not_called_empty(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Its server does not answer any more, and no Job ever ended there: mirrors of deleted ones may be left."""
    secret = f"/api/v1/namespaces/{scene.namespace}/secrets/prod-kubeconfig"
    async with two_declared(management, east, west, scene) as manager:
        document = yaml.safe_load(await manager.kubeconfig_of(east))
        document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        await scene.client.merge(secret, {"data": {"value": encoded(yaml.safe_dump(document).encode())}})
        await until(lambda: workers_up(manager), lambda up: up == 1)
        for command in ("drain", "remove"):
            said = await administrator_says(manager, "worker", command, "prod")
            assert (said.code, "✓" in said.output) == (1, False), said
            assert (
                "mirrors on worker prod were not deleted: worker prod (https://127.0.0.1:1) is unreachable"
                in said.errors
            )
            # Of deleted ones, or of those that other tests had end on a worker of this name.
            assert "; there may be those of " in said.errors
        assert (await reports(manager, "prod", "--allow=loopback"))["prod"]["connection"]["verdict"] == "fail"


async def test_an_operator_without_a_permission_is_told_which(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """Of the Secret, of the profile and of the Secret that it names: a warning of check, an error of the others."""
    namespace = scene.namespace
    async with two_declared(management, east, west, scene) as manager:
        user = f"operator-{namespace}"
        kubeconfig = management.kubeconfig_for(user)
        roles = Roles(scene, user)
        await roles.grant(manager.namespace, "", ["configmaps"], ["get"])
        async with roles.on_cluster("", ["namespaces"], ["get"]):

            async def told(command: str, worker: str, text: str, *, code: int) -> None:
                """What an API server has learnt of new permissions comes a moment later."""

                async def said() -> Said:
                    return await operator_says(manager, kubeconfig, "worker", command, worker)

                await until(said, lambda found: found.code == code and text in found.output + found.errors)

            secret = f"secrets prod-kubeconfig in namespace {namespace} on the management cluster"
            await told("check", "prod", f"not checked: missing permission: get {secret}", code=0)
            await told("cordon", "prod", f"missing permission: get {secret}", code=1)
            await roles.grant(namespace, "", ["secrets"], ["get"])
            await told("check", "prod", "identity: cluster ", code=0)
            await told("cordon", "prod", f"missing permission: patch {secret}", code=1)
            await roles.grant(namespace, "", ["secrets"], ["patch"])
            await told("cordon", "prod", "worker prod is cordoned", code=0)

            profiles = f"clusterprofiles.{CLUSTER_PROFILES.group} fleet in namespace {namespace}"
            await told("check", "fleet", f"not checked: missing permission: get {profiles}", code=0)
            await roles.grant(namespace, CLUSTER_PROFILES.group, [CLUSTER_PROFILES.plural], ["get"])
            token = f"get secrets fleet-token in namespace {manager.namespace} on the management cluster"
            await told("check", "fleet", f"not checked: missing permission: {token}", code=0)
            await told("cordon", "fleet", f"missing permission: patch {profiles}", code=1)


class Roles:
    """What one user may do, more and more."""

    def __init__(self, scene: Scene, user: str) -> None:
        self._client, self._user, self._count = scene.client, user, 0

    async def grant(self, namespace: str, group: str, resources: Sequence[str], verbs: Sequence[str]) -> None:
        self._count += 1
        where, name = f"{RBAC}/namespaces/{namespace}", f"{self._user}-{self._count}"
        await self._client.create(f"{where}/roles", self._rules(name, group, resources, verbs))
        await self._client.create(f"{where}/rolebindings", self._binding(name, "Role"))

    @asynccontextmanager
    async def on_cluster(self, group: str, resources: Sequence[str], verbs: Sequence[str]) -> AsyncIterator[None]:
        await self._client.create(f"{RBAC}/clusterroles", self._rules(self._user, group, resources, verbs))
        await self._client.create(f"{RBAC}/clusterrolebindings", self._binding(self._user, "ClusterRole"))
        try:
            yield
        finally:
            for plural in ("clusterrolebindings", "clusterroles"):
                await self._client.delete(f"{RBAC}/{plural}/{self._user}")

    def _rules(self, name: str, group: str, resources: Sequence[str], verbs: Sequence[str]) -> Json:
        rule = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
        return {"metadata": {"name": name}, "rules": [rule]}

    def _binding(self, name: str, kind: str) -> Json:
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": self._user}
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        return {"metadata": {"name": name}, "roleRef": ref, "subjects": [subject]}
