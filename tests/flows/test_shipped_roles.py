"""The roles in config/rbac, enforced: the manager and the Job controller need them all, and nothing beside.

Both run with the rights of the service account that the files name, on clusters that refuse the rest. What is used in a
life with everything in it is compared with what is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import yaml
from flow_world import HOME, FlowWorld, error_lines, has_ended, job, path, repeatable

from mirror.batch.violations import forbidden
from mirror.embedded import virtual
from mirror.embedded.apiserver.apimachinery.errors import StatusError, invalid
from mirror.embedded.apiserver.authn.tokens import account_user
from mirror.embedded.apiserver.authz.rules import Attributes, Rule, allows
from mirror.embedded.apiserver.messages import Answer, Request, Response, User
from mirror.embedded.clocks import LoopClock
from mirror.jobcontroller.metrics import JobMetrics
from mirror.jobcontroller.process import JobControllerComponent, JobControllerSettings
from mirror.kube import requests
from mirror.kube.resources import NAMESPACES
from mirror.planes.api import Json
from mirror.planes.plane import ControlPlane, control_plane
from mirror.planes.shape import Shape
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import Leadership, LeaseSettings
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics

RBAC = Path(__file__).parents[2] / "config" / "rbac"
ACCOUNT = account_user(HOME, "jobmirror")
COLLECTIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}
SPARE = {
    # Where admission asks for it (OwnerReferencesPermissionEnforcement; e2e/test_shipped_rights.py has it on).
    "job-controller.yaml": {"ClusterRole : update jobs/finalizers"},
}
"""What is given and never used."""


class RoledWorld(FlowWorld):
    """Clusters with RBAC, on which the manager is the service account of the files."""

    def __init__(
        self, scope: asyncio.TaskGroup, manifests: dict[str, list[str]], *, is_old: bool, **settings: Any
    ) -> None:
        super().__init__(scope, ["east"], **settings)
        self.used: dict[str, set[Attributes]] = {name: set() for name in self.planes}
        self.refused: list[tuple[str, list[Attributes]]] = []
        self._manifests = manifests
        self._is_old = is_old
        """Whether servers know no watch that begins with what is there, so that clients have to list."""
        for plane in self.planes.values():
            plane.shape = msgspec.structs.replace(plane.shape, authorization="RBAC")
            plane.client = partial(plane.client, user=ACCOUNT)

    def start_manager(self) -> None:
        """Give it its rights, and look how it uses them."""
        for name, plane in self.planes.items():
            for file in self._manifests[name]:
                apply(plane, RBAC / file, is_whole="management-namespaced.yaml" not in self._manifests[name])
            self.look_at(name)
        super().start_manager()

    def look_at(self, name: str) -> None:
        """Note what the API server that runs now is asked."""
        refused = record(self.planes[name], self.used[name], is_old=self._is_old)
        self.refused.append((name, refused))


def record(plane: ControlPlane, used: set[Attributes], *, is_old: bool) -> list[Attributes]:
    """Note what the account asks the API server that runs now; gives the list of what will have been refused."""
    server, refused = plane.server, list[Attributes]()
    decide, handle = server.dependencies.authorizer.decide, server.handle

    def recorded(user: User, wanted: Attributes) -> tuple[bool, str]:
        is_allowed, reason = decide(user, wanted)
        if user.name == ACCOUNT.name:
            used.add(wanted)
            if not is_allowed:
                refused.append(wanted)
        return is_allowed, reason

    async def like_an_old_one(request: Request) -> Answer:
        if "sendInitialEvents" in request.query:
            told = invalid("ListOptions", "meta.k8s.io", "", [forbidden("sendInitialEvents", "not known")])
            return Response(422, msgspec.json.encode(told.status))
        return await handle(request)

    server.dependencies.authorizer.decide = recorded
    if is_old:
        server.handle = like_an_old_one
    return refused


def apply(plane: ControlPlane, file: Path, *, is_whole: bool = True) -> None:
    """Create what is in it and not there yet, as the administrator."""
    for body in documents(file):
        if not is_whole and body["kind"].startswith("ClusterRole"):
            continue
        namespace = body["metadata"].get("namespace", "")
        if namespace:
            create(plane, "/api/v1/namespaces", {"metadata": {"name": namespace}})
        create(plane, COLLECTIONS[body["kind"]].format(namespace), body)


def create(plane: ControlPlane, collection: str, body: Json) -> None:
    try:
        plane.api.call_nowait("POST", collection, body)
    except StatusError as refused:
        if refused.code != 409:
            raise


def documents(file: Path) -> list[Json]:
    return list(yaml.load_all(file.read_text(), Loader=yaml.CSafeLoader))


def rights(file: str) -> Iterator[tuple[str, Rule, str]]:
    """Every right of a file by itself: the namespace of its role, a rule of one of everything, and a text."""
    for document in documents(RBAC / file):
        for rule in document.get("rules", ()):
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    one = {**rule, "resources": [resource], "verbs": [verb]}
                    text = f"{document['kind']} {document['metadata'].get('namespace', '')}: {verb} {resource}"
                    names = rule.get("resourceNames")
                    yield document["metadata"].get("namespace", ""), msgspec.convert(one, Rule), f"{text} {names or ''}"


def unused(file: str, used: set[Attributes]) -> list[str]:
    """The rights of a file of which nothing was made use."""
    return [
        text.strip()
        for namespace, rule, text in rights(file)
        if not any(allows(rule, one) for one in used if not namespace or one.namespace == namespace)
    ]


async def life(world: RoledWorld, namespace: str) -> None:
    """Everything that may happen to a manager's Jobs, in short."""
    management, east, jobs = world.management.api, world.workers["east"], path("", namespace)
    create(world.management, "/api/v1/namespaces", {"metadata": {"name": namespace}})
    client = world.management.client(peer="manager")
    # The manager does it before anything else.
    await client.send(requests.get(NAMESPACES, "kube-system"))

    async def ended() -> bool:
        return has_ended(await management.get(f"{jobs}/done"))

    async def mirrored() -> bool:
        return await mirror(world, "kept", namespace) is not None

    async def unmirrored() -> bool:
        return not await mirrored()

    async with asyncio.TaskGroup() as scope:
        lease = LeaseSettings(HOME, "jobmirror-manager", "me")
        leading = scope.create_task(
            Leadership(client, lease, clock=world.clock, log=get_log("test")).run(asyncio.Event().wait), name="lead"
        )
        await management.create(jobs, job("done"))
        await world.until(ended)
        await management.delete(f"{jobs}/done")
        await management.create(jobs, job("kept", run_for="never"))
        await world.until(mirrored)
        await management.merge(f"{jobs}/kept", {"spec": {"suspend": True}})
        # Somebody deletes a mirror; then the worker is away for a while.
        await management.create(jobs, job("lost", run_for="never"))
        await asyncio.sleep(10)
        await east.api.delete(f"{jobs}/lost")
        await asyncio.sleep(10)
        east.faults.break_connections()
        await east.kill()
        await asyncio.sleep(90)
        east.start()
        world.look_at("east")
        await asyncio.sleep(90)
        # The source goes while nobody looks.
        await world.kill_manager()
        await management.delete(f"{jobs}/kept")
        world.start_manager()
        await world.until(unmirrored, seconds=300)
        leading.cancel()
    await client.close()


async def mirror(world: RoledWorld, name: str, namespace: str) -> Json | None:
    try:
        return await world.workers["east"].api.get(path(name, namespace))
    except StatusError as refused:
        if refused.code == 404:
            return None
        raise


async def lived(files: dict[str, list[str]], namespace: str, *, is_old: bool, **settings: Any) -> RoledWorld:
    """A world in which that has happened."""
    with repeatable(0), error_lines() as errors:
        async with asyncio.TaskGroup() as scope:
            world = RoledWorld(scope, files, is_old=is_old, **settings)
            try:
                await world.start()
                await life(world, namespace)
            finally:
                await world.stop()
    assert not errors, errors
    return world


CLUSTER_WIDE = {
    "management": ["management.yaml", "management-create-namespaces.yaml", "management-namespace-policies.yaml"],
    "east": ["worker.yaml"],
}
NAMESPACED = {"management": ["management.yaml", "management-namespaced.yaml"], "east": ["worker-namespaced.yaml"]}
"""Of the first file without what is for the whole cluster."""


@pytest.mark.slow
def test_the_manager_needs_its_roles_and_no_more() -> None:
    """On servers of today, and on older ones, where it lists before it watches."""
    features = {"create_namespaces": True, "on_loss_of_namespaces": True}
    worlds = [virtual.run(lived(CLUSTER_WIDE, "team", is_old=is_old, **features)) for is_old in (False, True)]

    assert not [one for world in worlds for _, refused in world.refused for one in refused]
    for cluster, files in CLUSTER_WIDE.items():
        used = set().union(*(world.used[cluster] for world in worlds))
        for file in files:
            assert set(unused(file, used)) == SPARE.get(file, set())


@pytest.mark.slow
def test_so_does_a_manager_of_chosen_namespaces() -> None:
    """Roles take the place of cluster roles; there are no rights elsewhere."""
    worlds = [
        virtual.run(lived(NAMESPACED, "team-a", is_old=is_old, namespaces=("team-a",))) for is_old in (False, True)
    ]

    assert not [one for world in worlds for _, refused in world.refused for one in refused]
    for cluster, file in (("management", "management-namespaced.yaml"), ("east", "worker-namespaced.yaml")):
        used = set().union(*(world.used[cluster] for world in worlds))
        assert not unused(file, used)


async def life_of_jobs(plane: ControlPlane) -> None:
    """Everything that the Job controller does, in short."""
    api, jobs = plane.api, path("")
    plain: Json = {"managed_by": None}

    await api.create(jobs, job("done", ttlSecondsAfterFinished=5, **plain))
    await asyncio.sleep(4)
    assert has_ended(await api.get(f"{jobs}/done"))
    # Suspended and resumed: pods go, events are counted.
    await api.create(jobs, job("long", run_for="never", **plain))
    for is_suspended in (True, False, True, False):
        await asyncio.sleep(5)
        await api.merge(f"{jobs}/long", {"spec": {"suspend": is_suspended}})
    await asyncio.sleep(5)
    # Its pod loses its owner, and is adopted.
    (pod,) = await api.list("/api/v1/namespaces/default/pods", labelSelector="job-name=long")
    await api.merge(
        f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}", {"metadata": {"ownerReferences": None}}
    )
    await asyncio.sleep(5)
    await api.delete(f"{jobs}/long")
    await asyncio.sleep(30)


async def lived_by_jobs(*, is_old: bool) -> tuple[set[Attributes], list[Attributes]]:
    """What the account asked in such a life, and what of it was refused."""
    shape = Shape(controllers=("gc", "scheduler", "kubelet"), authorization="RBAC")
    used, metrics = set[Attributes](), Metrics()
    async with control_plane(shape, clock=LoopClock(), chance=Random(0)) as plane, asyncio.TaskGroup() as scope:
        apply(plane, RBAC / "job-controller.yaml")
        refused = record(plane, used, is_old=is_old)
        client, stop = plane.client(user=ACCOUNT), asyncio.Event()
        environment = Environment(plane.clock, get_log("test"), metrics)
        part = JobControllerComponent(
            client, JobControllerSettings(), environment=environment, metrics=JobMetrics(metrics)
        )
        scope.create_task(part.run(stop), name="jobs")
        await life_of_jobs(plane)
        stop.set()
    await client.close()
    return used, refused


@pytest.mark.slow
def test_so_does_the_job_controller() -> None:
    """With its Lease, and the adoption of pods."""
    lives = [virtual.run(lived_by_jobs(is_old=is_old)) for is_old in (False, True)]

    assert not [one for _, refused in lives for one in refused]
    file = "job-controller.yaml"
    assert set(unused(file, set().union(*(used for used, _ in lives)))) == SPARE[file]
