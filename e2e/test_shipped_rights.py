"""The rights in ``config/rbac`` on real API servers: the manager gets along with them, and uses every single one.

Sufficiency is proved by every other test, too: their managers and workers have these rights and no more, and the run
fails if one was lacking (``conftest``). Here is what is given compared with what is used, by the servers' own logs.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import aiohttp
import pytest

from e2e import shipped
from e2e.controlplane.audit import AuditEntry
from e2e.controlplane.client import JSON_PATCH
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.kubeconfigs import read_kubeconfig
from e2e.job_controller import WITHOUT_JOBS
from e2e.jobs import Scene, is_complete, job, runs, until
from e2e.manager import ManagerProcess
from e2e.shipped import Right, user_of
from e2e.shipped_life import life, old_clusters
from e2e.test_job_controller_process import WithKubeconfig
from mirror.adapters.job import HELD
from mirror.model import names

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]


def spare(given: set[Right], entries: list[AuditEntry], user: str) -> set[Right]:
    """The rights without which all that the user did would have been allowed as well, by the others."""
    made = {
        (entry.verb, entry.resource, entry.subresource, entry.namespace, entry.name): entry
        for entry in entries
        if entry.user == user and not entry.is_forbidden
    }
    by = [[right for right in given if right.allows(entry)] for entry in made.values()]
    return given - {allowing[0] for allowing in by if len(allowing) == 1}


def granted(*files: str, manager: ManagerProcess, chosen: Iterable[str] = ()) -> Iterator[Right]:
    return shipped.rights(shipped.read(*files, namespace=manager.namespace, chosen=chosen))


@pytest.mark.parametrize("is_everywhere", [True, False], ids=["all namespaces", "chosen namespaces"])
async def test_the_manager_uses_every_right_and_lacks_none(is_everywhere: bool) -> None:
    """On servers that make it list before it watches; with Roles alone where namespaces are chosen."""
    name = f"team-{uuid.uuid4().hex[:6]}"
    chosen = [] if is_everywhere else [name]
    async with old_clusters() as (management, east):
        scene = Scene(management, {"east": east}, name)
        await scene.make_namespace()
        if not is_everywhere:
            await scene.make_namespace("east")  # its Role is in it
        settings = {"namespaces": chosen, "workers": {"createNamespaces": is_everywhere}}
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
            manager.expect_complaints("IdentityRefused")
            await life(manager, scene)
            files = ["management", *(["management-namespaced"] if chosen else [])]
            given = set(granted(*files, manager=manager, chosen=chosen))
            given_east = set(
                granted("worker" if is_everywhere else "worker-namespaced", manager=manager, chosen=chosen)
            )
            await manager.stop()
            user = user_of(manager.namespace)
            entries, on_east = await management.audit_entries(), await east.audit_entries()
        await scene.close()

    assert shipped.refused(entries) == []
    assert shipped.refused(on_east) == []
    assert spare(given, entries, user) == set()
    assert spare(given_east, on_east, user) == set()


async def test_webhook_and_access_use_every_right_that_comes_with_them() -> None:
    """Whom to trust, held Jobs, users' tokens and rights, where access is; pods, logs and events on the worker."""
    name = f"team-{uuid.uuid4().hex[:6]}"
    settings = {
        "webhook": {"enabled": True},
        "access": {"enabled": True, "url": "https://jobmirror.example"},
        "https": {"listen": "127.0.0.1:0"},
        "workers": {"createNamespaces": True},
    }
    async with old_clusters() as (management, east):
        scene = Scene(management, {"east": east}, name)
        await scene.make_namespace()
        jane = read_kubeconfig(await management.service_account_kubeconfig(name, "jane")).headers
        await management.kubectl(
            *("create", "rolebinding", "jane", "--clusterrole=view", f"--serviceaccount={name}:jane", "-n", name)
        )
        await management.kubectl("apply", "--filename", str(shipped.RBAC.parent / "webhook.yaml"))
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
            manager.expect_complaints("kubelet|pods/log|502|503")
            await scene.create(job("long", manager.managed_by, run_for="never"))
            await scene.source_until("long", runs())
            (pod,) = await scene.pods("east", "long")
            # As if the webhook had held it, which nobody can reach here.
            await scene.create(job("held", manager.managed_by, annotations={"held": HELD}, suspend=True))
            await scene.source_until("held", is_complete)
            # What is kept of certificates is lost; a new authority is made, and told.
            await until(lambda: told_where(manager))
            secret = f"/api/v1/namespaces/{manager.namespace}/secrets/{names.HTTPS_SECRET}"
            first = await told_where(manager)
            await manager.stop()
            await manager.client.call("PATCH", secret, [{"op": "remove", "path": "/data"}], JSON_PATCH)
            manager.launch()
            await manager.wait_until_ready()
            await until(lambda: told_where(manager), lambda found: found != first)
            one = f"/v1/namespaces/{name}/jobs/long"
            statuses = [
                await ask(manager, f"{one}{what}", jane)
                for what in ("", "/pods", "/events", f"/log?pod={pod['metadata']['name']}")
            ]
            given = {
                right
                for right in granted("https", "webhook", "access", manager=manager)
                if right != reader(manager.namespace)
            }
            given_east = set(granted("worker-logs", manager=manager))
            await manager.stop()
            user = user_of(manager.namespace)
            entries, on_east = await management.audit_entries(), await east.audit_entries()
        await scene.close()

    assert statuses[:3] == [200, 200, 200]  # a log takes a kubelet; that it was asked for is seen below
    assert shipped.refused(entries) == []
    assert shipped.refused(on_east) == []
    assert spare(given, entries, user) == set()
    assert spare(given_east, on_east, user) == set()


def reader(namespace: str) -> Right:
    """What users get, not the manager."""
    return Right("get", "configmaps", namespace, names.ACCESS_CONFIGMAP)


async def told_where(manager: ManagerProcess) -> str:
    """The authority in the ConfigMap that tells users where access is; empty while there is none."""
    maps = await manager.client.list(f"/api/v1/namespaces/{manager.namespace}/configmaps")
    found = [one["data"].get("ca.crt", "") for one in maps if one["metadata"]["name"] == names.ACCESS_CONFIGMAP]
    return found[0] if found else ""


async def ask(manager: ManagerProcess, path: str, headers: Mapping[str, str]) -> int:
    """The status of an answer of the manager's HTTPS address."""
    (*_, line) = (line for line in manager.log_lines() if " https: serving listen=" in line)
    address = line.rpartition("listen=")[2].split()[0]
    timeout = aiohttp.ClientTimeout(total=20)
    async with (
        aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
        session.get(f"https://{address}{path}", ssl=False) as answer,
    ):
        await answer.read()
        return answer.status


ENFORCED = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"


@pytest.mark.parametrize("has_finalizers", [True, False], ids=["shipped rights", "without jobs/finalizers"])
async def test_owners_that_block_take_a_right_where_admission_asks(has_finalizers: bool) -> None:
    """``update jobs/finalizers`` looks unused, and is what some distributions want before pods get a Job as owner."""
    async with Cluster.start("odd", replace(WITHOUT_JOBS, apiserver_args=(ENFORCED,))) as cluster:
        rights = shipped.read("job-controller", namespace="robots")
        for one in rights:
            one["rules"] = [
                rule for rule in one.get("rules", []) if has_finalizers or rule["resources"] != ["jobs/finalizers"]
            ]
            if not one["rules"]:
                del one["rules"]
        robot = WithKubeconfig(cluster, await shipped.account(cluster, "robots", rights))
        scene = Scene(cluster, {}, "default")
        try:
            robot.launch()
            await robot.wait_until_ready()
            await scene.create(job("hello"))
            if has_finalizers:
                await scene.source_until("hello", is_complete)
                await robot.stop()
            else:
                await until(lambda: failed_creates(scene), describe=lambda: scene.describe("hello"))
        finally:
            await robot.close()
            await scene.close()


async def failed_creates(scene: Scene) -> list[str]:
    events = await scene.client.list(
        f"/api/v1/namespaces/{scene.namespace}/events", fieldSelector="reason=FailedCreate"
    )
    return [event["message"] for event in events if "blockOwnerDeletion" in event["message"]]
