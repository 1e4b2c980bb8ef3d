"""Workers that others declare, as real cluster managers write them, and lives in which every right for them is used.

Used by ``test_declared_workers``, ``test_shipped_rights`` and ``without_rights``.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import yaml

from e2e.controlplane.client import Client, Json, StatusError
from e2e.definitions import DEFINITIONS
from e2e.jobs import Scene, until
from e2e.manager import ManagerProcess
from mirror.model import names
from mirror.workers.cluster_profiles import CLUSTER_PROFILES, EXTENSION, KUBECONFIG_READER, OCM, SECRET_READER

CLUSTER_NAME = "cluster.x-k8s.io/cluster-name"
_CAPI_TYPE = "cluster.x-k8s.io/secret"
_SUFFIX = "-declared"


def place_of(namespace: str) -> str:
    """Where declarations are, beside a namespace with Jobs: rights in the one are none in the other."""
    return namespace + _SUFFIX


def secret_sources(namespace: str) -> Json:
    """Settings that take the kubeconfigs of Cluster API in this namespace."""
    source = {
        "labelSelector": CLUSTER_NAME,
        "nameFromLabel": CLUSTER_NAME,
        "namespaces": [namespace],
        "key": "value",
        "type": _CAPI_TYPE,
    }
    return {"workers": {"secretSources": [source]}}


def cluster_profiles(namespace: str) -> Json:
    """Settings that take the ClusterProfiles of this namespace."""
    return {"workers": {"clusterProfiles": {"enabled": True, "namespaces": [namespace]}}}


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def capi_secret(cluster: str, kubeconfig: bytes, **labels: str) -> Json:
    """As Cluster API writes it."""
    return {
        "metadata": {"name": f"{cluster}-kubeconfig", "labels": {CLUSTER_NAME: cluster, **labels}},
        "type": _CAPI_TYPE,
        "data": {"value": encoded(kubeconfig)},
    }


async def workers_up(manager: ManagerProcess) -> float:
    return (await manager.metrics()).value("jobmirror_worker_up")


async def define_profiles(client: Client) -> None:
    """Serve ClusterProfiles, unless somebody does already."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    named = {"plural": "clusterprofiles", "singular": "clusterprofile", "kind": "ClusterProfile"}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    approved = {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/cluster-inventory-api"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"clusterprofiles.{CLUSTER_PROFILES.group}", "annotations": approved},
        "spec": {"group": CLUSTER_PROFILES.group, "scope": "Namespaced", "names": named, "versions": [version]},
    }
    try:
        await client.create(DEFINITIONS, body)
    except StatusError as error:
        if error.reason != "AlreadyExists":
            raise


def profile(name: str, provider: str, kubeconfig: Mapping[str, Any], extension: Json, **status: object) -> Json:
    """As a cluster manager writes it: where the cluster is, and where its credentials are."""
    cluster = dict(kubeconfig["clusters"][0]["cluster"])
    cluster["extensions"] = [{"name": EXTENSION, "extension": extension}]
    return {
        "apiVersion": CLUSTER_PROFILES.api_version,
        "kind": CLUSTER_PROFILES.kind,
        "metadata": {"name": name, "labels": {"region": "asia"}},
        "spec": {"displayName": name, "clusterManager": {"name": "e2e"}},
        "status": {"accessProviders": [{"name": provider, "cluster": cluster}], **status},
    }


async def create_profile(client: Client, namespace: str, body: Json) -> None:
    """As soon as the definition is served."""

    async def is_created() -> bool:
        try:
            await client.create(CLUSTER_PROFILES.path(namespace), body)
        except StatusError as error:
            return error.reason == "AlreadyExists"
        return True

    await until(is_created, lambda done: done)


async def secrets_life(manager: ManagerProcess, scene: Scene) -> None:
    """A Secret of Cluster API becomes a worker; another one is of no use, and says so where its author looks."""
    (worker,) = scene.workers
    place = place_of(scene.namespace)
    secrets = f"/api/v1/namespaces/{place}/secrets"
    kubeconfig = await manager.kubeconfig_of(scene.planes[worker])
    await scene.client.create(secrets, capi_secret("prod", kubeconfig))
    await until(lambda: workers_up(manager), lambda up: up == 1)
    await scene.client.create(secrets, capi_secret("broken", b"no kubeconfig"))
    await until(lambda: _events(scene.client, place, "broken-kubeconfig"), bool)


async def profiles_life(manager: ManagerProcess, scene: Scene) -> None:
    """A profile for each provider: two lead to the same cluster, one to no Secret, and all that is told there."""
    (worker,) = scene.workers
    place = place_of(scene.namespace)
    own, beside = (f"/api/v1/namespaces/{namespace}/secrets" for namespace in (manager.namespace, place))
    kubeconfig = await manager.kubeconfig_of(scene.planes[worker])
    document = yaml.safe_load(kubeconfig)
    token = {"token": encoded(document["users"][0]["user"]["token"].encode())}
    allowed = {"name": "token", "annotations": {names.FOR_CLUSTER_PROFILES: "first"}}
    await scene.client.create(own, {"metadata": allowed, "data": token})
    await create_profile(scene.client, place, profile("first", SECRET_READER, document, {"clusterName": "token"}))
    await until(lambda: workers_up(manager), lambda up: up == 1, seconds=75)
    await scene.client.create(beside, {"metadata": {"name": "kube"}, "data": {"config": encoded(kubeconfig)}})
    named = {"name": "kube", "namespace": place, "key": "config"}
    await create_profile(scene.client, place, profile("second", KUBECONFIG_READER, document, named))
    await until(lambda: _events(scene.client, place, "second"), bool)  # the same cluster a second time
    await create_profile(scene.client, place, profile("third", OCM, document, {"clusterName": "nowhere"}))
    await until(lambda: _events(scene.client, place, "third"), bool)


async def _events(client: Client, namespace: str, name: str) -> list[Json]:
    return await client.list(f"/api/v1/namespaces/{namespace}/events", fieldSelector=f"involvedObject.name={name}")
