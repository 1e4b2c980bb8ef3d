"""The rights in ``config/rbac`` on real API servers: the manager gets along with them, and uses every single one.

Sufficiency is proved by every other test, too: their managers and workers have these rights and no more, and the run
fails if one was lacking (``conftest``). Here is what is given compared with what is used, by the servers' own logs.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from e2e import shipped
from e2e.controlplane.audit import AuditEntry
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import MANAGEMENT, WORKER
from e2e.job_controller import WITHOUT_JOBS
from e2e.jobs import Scene, is_complete, job, runs, until
from e2e.manager import ManagerProcess
from e2e.shipped import Right, user_of
from e2e.test_job_controller_process import WithKubeconfig

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]

OLD = ("--feature-gates=WatchList=false",)
"""Servers that know no watch that begins with what is there: their clients have to list."""


def unused(given: Iterable[Right], entries: list[AuditEntry], user: str) -> set[Right]:
    """The rights that allowed none of the user's requests."""
    made = [entry for entry in entries if entry.user == user and not entry.is_forbidden]
    return {right for right in given if not any(right.allows(entry) for entry in made)}


@asynccontextmanager
async def old_clusters() -> AsyncIterator[tuple[Cluster, Cluster]]:
    async with (
        Cluster.start("management", replace(MANAGEMENT, apiserver_args=OLD)) as management,
        Cluster.start("east", replace(WORKER, apiserver_args=OLD)) as east,
    ):
        yield management, east


async def life(manager: ManagerProcess, scene: Scene) -> None:
    """What makes use of every right: an end, a suspension, a mirror that vanishes, a source that goes unseen."""
    (worker,) = scene.workers
    await scene.create(job("done", manager.managed_by), job("kept", manager.managed_by, run_for="never"))
    await scene.source_until("done", is_complete)
    await scene.source_until("kept", runs())
    await scene.patch("kept", {"spec": {"suspend": True}})
    await scene.mirror_until(worker, "kept", lambda found: found and found["spec"]["suspend"])
    # Somebody takes away a mirror that has not started: it is looked for, and made again.
    await scene.create(job("waiting", manager.managed_by, run_for="never"))
    first = await scene.mirror_until(worker, "waiting", bool)
    await scene.client_of(worker).delete(f"{scene.jobs(worker)}/waiting")
    await until(lambda: told(manager, scene, first["metadata"]["uid"]), describe=lambda: scene.describe("waiting"))
    # The same cluster a second time is refused, and its Secret says so.
    await manager.register("twin", scene.planes[worker])
    await until(lambda: manager.worker_events("twin", "IdentityRefused"))
    # A source goes while nobody looks.
    await manager.kill()
    await scene.delete("kept")
    manager.launch()
    await manager.wait_until_ready()
    await scene.until_no_mirror("kept")


async def told(manager: ManagerProcess, scene: Scene, uid: str) -> bool:
    """Whether the loss of this mirror was dealt with: there is another, or the source has failed."""
    (worker,) = scene.workers
    found, source = await scene.mirror(worker, "waiting"), await scene.source("waiting")
    conditions = (source or {}).get("status", {}).get("conditions", ())
    is_failed = any(one["type"] == "Failed" and one["status"] == "True" for one in conditions)
    return is_failed or bool(found and found["metadata"]["uid"] != uid)


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
    assert unused(given, entries, user) == set()
    assert unused(given_east, on_east, user) == set()


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
