"""Workers that others declare, on real API servers: Secrets as Cluster API writes them, ClusterProfiles (D15, D18)."""

from __future__ import annotations

import yaml

from e2e.controlplane.client import Json
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
from e2e.jobs import Scene, is_complete, job, placed_on, until
from e2e.manager import ManagerProcess
from mirror.model import names
from mirror.workers.cluster_profiles import CLUSTER_PROFILES, KUBECONFIG_READER, SECRET_READER


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
