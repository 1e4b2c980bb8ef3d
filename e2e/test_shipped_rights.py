"""The rights in ``config/rbac`` on real API servers: the manager gets along with them, and uses every single one.

Sufficiency is proved by every other test, too: their managers and workers have these rights and no more, and the run
fails if one was lacking (``conftest``). Here is what is given compared with what is used, by the servers' own logs;
the Roles for tokens are in ``test_token_renewal_live``, which waits for no renewal.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager

import pytest

from e2e import shipped, shipped_life
from e2e.controlplane.client import Json
from e2e.controlplane.cluster import Cluster
from e2e.declared_life import (
    cluster_profiles,
    define_profiles,
    place_of,
    profiles_life,
    secret_sources,
    secrets_life,
)
from e2e.job_controller import GANG_GATES, Flags, WithKubeconfig
from e2e.jobs import Scene, job, until
from e2e.manager import ManagerProcess
from e2e.shipped import Permission, user_of
from e2e.without_rights import WAYS
from mirror.model import names

_WORKERS: Json = {"createNamespaces": True, "onLossOfNamespaces": True}

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]


def granted(*files: str, manager: ManagerProcess, chosen: Iterable[str] = (), **others: str) -> Iterator[Permission]:
    """``others``: the namespaces that stand for the files' examples."""
    there = {example: [namespace] for example, namespace in others.items()}
    return shipped.rights(shipped.read(*files, namespace=manager.namespace, chosen=chosen, others=there))


@asynccontextmanager
async def manager_and_east(settings: Json) -> AsyncIterator[tuple[ManagerProcess, Scene, Cluster, Cluster]]:
    """A manager with these settings; where its Jobs are, a namespace of both clusters; and these, its own one first."""
    async with shipped_life.old_clusters() as (management, east):
        scene = Scene(management, {"east": east}, f"team-{uuid.uuid4().hex[:6]}")
        await scene.make_namespace()
        await scene.make_namespace("east")
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
            yield manager, scene, management, east
        await scene.close()


@pytest.mark.parametrize("is_everywhere", [True, False], ids=["all namespaces", "chosen namespaces"])
async def test_the_manager_uses_every_right_and_lacks_none(is_everywhere: bool) -> None:
    """On servers that make it list before it watches; with Roles alone where namespaces are chosen."""
    name = f"team-{uuid.uuid4().hex[:6]}"
    chosen = [] if is_everywhere else [name]
    async with shipped_life.old_clusters() as (management, east):
        scene = Scene(management, {"east": east}, name)
        await scene.make_namespace()
        if not is_everywhere:
            await scene.make_namespace("east")  # its Role is in it
        settings = shipped_life.chosen_settings(name) if chosen else {"workers": dict(_WORKERS)}
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
            manager.expect_complaints("IdentityRejected")
            if chosen:
                await shipped_life.held_life(manager, scene)
            await shipped_life.life(manager, scene)
            more = ["management-namespaced", "webhook-namespaced"] if chosen else ["management-namespace-policies"]
            files = ["management", *more]
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
    assert shipped.spare(given, entries, user) == set()
    assert shipped.spare(given_east, on_east, user) == set()


async def test_webhook_and_access_use_every_right_that_comes_with_them() -> None:
    """Whom to trust, held Jobs, users' tokens and rights, where access is; pods, logs and events on the worker."""
    name = f"team-{uuid.uuid4().hex[:6]}"
    async with shipped_life.old_clusters() as (management, east):
        scene = Scene(management, {"east": east}, name)
        await scene.make_namespace()
        await management.kubectl("apply", "--filename", str(shipped.RBAC.parent / "webhook.yaml"))
        async with ManagerProcess.start(management, {"east": east}, settings=shipped_life.SERVING) as manager:
            manager.expect_complaints("kubelet|pods/log|502|503")
            await shipped_life.serving_life(manager, scene)
            given = set(granted("https", "webhook", "access", manager=manager))
            given_east = set(granted("worker-logs", manager=manager))
            await manager.stop()
            user, jane = user_of(manager.namespace), f"system:serviceaccount:{name}:{shipped_life.USER}"
            entries, on_east = await management.audit_entries(), await east.audit_entries()
        await scene.close()

    assert shipped.refused(entries) == []
    assert shipped.refused(on_east) == []
    of_users = shipped.spare(given, entries, user)
    assert {(right.verb, right.name) for right in of_users} == {("get", names.ACCESS_CONFIGMAP)}
    assert shipped.spare(of_users, entries, jane) == set()
    assert shipped.spare(given_east, on_east, user) == set()


async def test_what_goes_along_uses_every_right_that_comes_with_it() -> None:
    """Each kind is read, copied, changed, owned, listed and swept."""
    async with manager_and_east(shipped_life.COPYING) as (manager, scene, management, east):
        await shipped_life.copying_life(manager, scene)
        given = set(granted("management-dependencies", manager=manager))
        given_east = set(granted("worker-dependencies", manager=manager))
        await manager.stop()
        user = user_of(manager.namespace)
        entries, on_east = await management.audit_entries(), await east.audit_entries()

    assert (len(given), len(given_east)) == (3, 15)
    assert shipped.refused(entries) == []
    assert shipped.refused(on_east) == []
    assert shipped.spare(given, entries, user) == set()
    assert shipped.spare(given_east, on_east, user) == set()


async def test_watching_pods_uses_every_right_that_comes_with_it() -> None:
    """Each is needed for something that a person sees: the reason on a Job."""
    async with manager_and_east(shipped_life.WATCHING) as (manager, scene, _, east):
        await shipped_life.pods_life(manager, scene)
        given = set(granted("worker-pods", manager=manager))
        await manager.stop()
        user, entries = user_of(manager.namespace), await east.audit_entries()

    assert {str(right) for right in given} == {"get pods", "list pods", "watch pods", "watch events"}
    assert shipped.refused(entries) == []
    assert shipped.spare(given, entries, user) == set()


async def test_one_of_several_active_managers_uses_every_right_that_comes_with_it() -> None:
    """All Leases of its namespace, whatever they are called, and how workers are, for who assigns."""
    async with manager_and_east(shipped_life.SHARDING) as (manager, scene, management, _):
        given = set(granted("management-sharding", manager=manager))
        await shipped_life.sharded_life(manager, scene)
        user, entries = user_of(manager.namespace), await management.audit_entries()

    assert {str(right).partition(" in ")[0] for right in given} == {
        *(f"{verb} leases" for verb in ("get", "list", "watch", "update", "patch", "delete")),
        *(f"{verb} configmaps {names.WORKERS_CONFIGMAP}" for verb in ("list", "watch")),
    }
    assert shipped.refused(entries) == []
    assert shipped.spare(given, entries, user) == set()


@pytest.mark.parametrize(
    ("settings", "living", "file", "example", "count"),
    [
        (secret_sources, secrets_life, "management-secret-sources", "clusters", 3),
        (cluster_profiles, profiles_life, "management-cluster-profiles", "fleet", 6),
    ],
    ids=["Secrets of others", "ClusterProfiles"],
)
async def test_declared_workers_use_every_right_that_comes_with_them(
    settings: Callable[[str], Json],
    living: Callable[[ManagerProcess, Scene], Awaitable[None]],
    file: str,
    example: str,
    count: int,
) -> None:
    """Where namespaces are chosen; else the right to say in events what is wrong is given for all of them already."""
    name = f"team-{uuid.uuid4().hex[:6]}"
    place = place_of(name)
    async with shipped_life.old_clusters() as (management, east):
        scene = Scene(management, {"east": east}, name)
        await scene.make_namespace()
        await scene.make_namespace("east")
        await scene.client.create("/api/v1/namespaces", {"metadata": {"name": place}})
        await define_profiles(scene.client)
        wanted = {"namespaces": [name], **settings(place)}
        wanted["workers"] = {**wanted["workers"], "renewTokens": False}
        async with ManagerProcess.start(management, settings=wanted) as manager:
            manager.expect_complaints(".")
            await living(manager, scene)
            given = set(granted(file, manager=manager, **{example: place}))
            await manager.stop()
            entries, on_east = await management.audit_entries(), await east.audit_entries()
            user = user_of(manager.namespace)
        await scene.close()

    assert len(given) == count
    assert shipped.refused(entries) == []
    assert shipped.refused(on_east) == []
    assert shipped.spare(given, entries, user) == set()


async def test_the_job_controller_uses_every_right_and_lacks_none() -> None:
    """``update jobs/finalizers`` looks unused, and is what some distributions want before pods get a Job as owner."""
    async with shipped_life.strict_cluster() as cluster:
        scene = Scene(cluster, {"here": cluster}, f"team-{uuid.uuid4().hex[:6]}")
        await scene.make_namespace()
        objects = shipped.read("job-controller", namespace="robots")
        robot = WithKubeconfig(cluster, await shipped.account(cluster, "robots", objects))
        (hidden,) = (right for right in shipped.rights(objects) if right.resource == "jobs/finalizers")
        try:
            robot.launch()
            await robot.wait_until_ready()
            await shipped_life.life_of_jobs(scene)
            await robot.stop()
            entries = await cluster.audit_entries()
            await shipped.account(cluster, "robots", shipped.without(objects, hidden))
            robot.launch()
            await robot.wait_until_ready()
            await scene.create(job("hello"))
            await until(lambda: failed_creates(scene), describe=lambda: scene.describe("hello"))
        finally:
            await robot.close()
            await scene.close()

    assert [entry.uri for entry in entries if entry.user == user_of("robots") and entry.code == 403] == []
    assert shipped.spare(set(shipped.rights(objects)), entries, user_of("robots")) == {hidden}


async def test_gang_scheduling_uses_every_right_that_comes_with_it() -> None:
    """Without the gate nothing of it is asked for, which the test above shows: its account has none of these."""
    async with shipped_life.strict_cluster(has_gangs=True) as cluster:
        scene = Scene(cluster, {"here": cluster}, f"team-{uuid.uuid4().hex[:6]}")
        await scene.make_namespace()
        objects = shipped.read("job-controller", "job-controller-gang", namespace="robots")
        kubeconfig = await shipped.account(cluster, "robots", objects)
        robot = WithKubeconfig(cluster, kubeconfig, Flags(gates=GANG_GATES))
        try:
            robot.launch()
            await robot.wait_until_ready()
            await shipped_life.life_of_gangs(scene)
            await robot.stop()
            entries = await cluster.audit_entries()
        finally:
            await robot.close()
            await scene.close()

    assert [entry.uri for entry in entries if entry.user == user_of("robots") and entry.code == 403] == []
    gang = set(shipped.rights(shipped.read("job-controller-gang", namespace="robots")))
    assert len(gang) == 6
    assert shipped.spare(gang, entries, user_of("robots")) == set()


async def failed_creates(scene: Scene) -> list[str]:
    events = await scene.client.list(
        f"/api/v1/namespaces/{scene.namespace}/events", fieldSelector="reason=FailedCreate"
    )
    return [event["message"] for event in events if "blockOwnerDeletion" in event["message"]]


def test_every_file_of_rights_is_taken_apart_by_the_tool() -> None:
    """A new file in ``config/rbac`` needs a life in which it is used; those of kinds are alike (``test_jobsets``)."""
    files = {path.stem for path in shipped.RBAC.glob("*.yaml")}
    assert sorted(file for way in WAYS for file in way.files) == sorted(files)
