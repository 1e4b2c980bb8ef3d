"""Workers that others declare, on real API servers: Secrets as Cluster API writes them, ClusterProfiles (D15, D18)."""

from __future__ import annotations

import base64
from typing import Any

import yaml

from e2e.controlplane.client import Client, Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, is_complete, job, placed_on, until
from e2e.manager import ManagerProcess
from mirror.workers.cluster_profiles import CLUSTER_PROFILES, EXTENSION, SECRET_READER

CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def settings_for(namespace: str) -> Json:
    source = {
        "labelSelector": CLUSTER_NAME,
        "nameFromLabel": CLUSTER_NAME,
        "namespaces": [namespace],
        "key": "value",
        "type": "cluster.x-k8s.io/secret",
    }
    profiles = {"enabled": True, "namespaces": [namespace]}
    return {"workers": {"secretSources": [source], "clusterProfiles": profiles}}


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def workers_up(manager: ManagerProcess) -> float:
    return (await manager.metrics()).value("jobmirror_worker_up")


async def define_profiles(client: Client) -> None:
    """Serve ClusterProfiles, unless somebody does already."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    names = {"plural": "clusterprofiles", "singular": "clusterprofile", "kind": "ClusterProfile"}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/cluster-inventory-api"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"clusterprofiles.{CLUSTER_PROFILES.group}", "annotations": approved},
        "spec": {"group": CLUSTER_PROFILES.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    try:
        await client.create(DEFINITIONS, body)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise


def profile_of(name: str, kubeconfig: dict[str, Any], secret: str) -> Json:
    """As a cluster manager writes it: where the cluster is, and in which Secret its token."""
    cluster = dict(kubeconfig["clusters"][0]["cluster"])
    cluster["extensions"] = [{"name": EXTENSION, "extension": {"clusterName": secret}}]
    return {
        "apiVersion": CLUSTER_PROFILES.api_version,
        "kind": CLUSTER_PROFILES.kind,
        "metadata": {"name": name, "labels": {"region": "asia"}},
        "spec": {"displayName": name, "clusterManager": {"name": "e2e"}},
        "status": {
            "accessProviders": [{"name": SECRET_READER, "cluster": cluster}],
            "properties": [{"name": "topology.example/zone", "value": "b"}],
        },
    }


async def test_secrets_of_cluster_api_and_profiles_are_workers(
    management: ControlPlane, east: ControlPlane, west: ControlPlane, scene: Scene
) -> None:
    """With the shipped rights; profiles are served only later; one that vanishes is a loss."""
    namespace = scene.namespace
    secrets = f"/api/v1/namespaces/{namespace}/secrets"
    async with ManagerProcess.start(management, settings=settings_for(namespace)) as manager:
        body = {
            "metadata": {"name": "prod-kubeconfig", "labels": {CLUSTER_NAME: "prod"}},
            "type": "cluster.x-k8s.io/secret",
            "data": {"value": encoded(await manager.kubeconfig_of(east))},
        }
        await scene.client.create(secrets, body)
        await until(lambda: workers_up(manager), lambda up: up == 1)
        selected = {"worker-selector": f"{CLUSTER_NAME}=prod"}
        await scene.client.create(scene.jobs(), job("first", manager.managed_by, annotations=selected))
        assert placed_on(await scene.source_until("first", is_complete)) == "prod"

        await define_profiles(scene.client)
        kubeconfig = yaml.safe_load(await manager.kubeconfig_of(west))
        token = {"token": encoded(kubeconfig["users"][0]["user"]["token"].encode())}
        own = f"/api/v1/namespaces/{manager.namespace}/secrets"
        named = {"name": "fleet-token", "annotations": {"jobmirror.io/for-cluster-profiles": "fleet"}}
        await scene.client.create(own, {"metadata": named, "data": token})
        profiles = CLUSTER_PROFILES.path(namespace)
        await until(
            lambda: _created(scene.client, profiles, profile_of("fleet", kubeconfig, "fleet-token")), lambda done: done
        )
        await until(lambda: workers_up(manager), lambda up: up == 2)
        selected = {"worker-selector": "region=asia,topology.example/zone=b,name=fleet"}
        await scene.client.create(scene.jobs(), job("second", manager.managed_by, annotations=selected))
        assert placed_on(await scene.source_until("second", is_complete)) == "fleet"

        await scene.client.delete(f"{profiles}/fleet")
        await until(lambda: workers_up(manager), lambda up: up == 1)
        assert placed_on(await scene.source_until("second", is_complete)) == "fleet"


async def _created(client: Client, profiles: str, body: Json) -> bool:
    """Whether it is there: a definition takes a moment to be served."""
    try:
        await client.create(profiles, body)
    except StatusError as error:
        return error.reason == "AlreadyExists"
    return True
