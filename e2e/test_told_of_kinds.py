"""What is told of other kinds than Jobs where something is in their way: on real API servers with shipped rights (D22).

Their definitions are served, and no controller of theirs runs. Not here: Jobs (``test_troubleshooting``).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from itertools import product
from pathlib import Path

import pytest_asyncio
import yaml

from e2e import jobsets
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.definitions import define, name_of, undefine
from e2e.go_modules import definition_of
from e2e.jobs import Scene, annotation, read_or_none, until
from e2e.jobsets import JOBSETS, job_set
from e2e.manager import ManagerProcess
from e2e.operator_table import MPIJOBS, TRAINJOBS
from e2e.troubles.policies import Rule, until_refused
from mirror.kube.resources import Resource
from mirror.model import names

SAMPLES = Path(__file__).parents[1] / "config/samples/kinds"
RAYJOBS = Resource("ray.io", "v1", "rayjobs", "RayJob")
KINDS = ("JobSet", "MPIJob", "RayJob", "TrainJob")
NAME = "train"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(management: ControlPlane, east: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """One that mirrors them to ``east``; both clusters serve all of them."""
    clients = [plane.client(user_agent="e2e-told") for plane in (management, east)]
    definitions = [definition_of(kind) for kind in KINDS]
    try:
        await asyncio.gather(*(define(*one) for one in product(clients, definitions)))
        settings: Json = {"kinds": [*KINDS], "sweep": {"interval": "2s"}}
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as running:
            yield running
    finally:
        await asyncio.gather(*(undefine(*one) for one in product(clients, map(name_of, definitions))))
        for client in clients:
            await client.close()


def sample(kind: Resource, name: str = NAME, **annotations: str) -> Json:
    """As ``config/samples`` has one."""
    body: Json = yaml.safe_load((SAMPLES / f"{kind.kind.lower()}.yaml").read_text())
    noted = {names.PREFIX + key.replace("_", "-"): text for key, text in annotations.items()}
    return {**body, "metadata": {"name": name, "annotations": noted}}


def unplaced(reason: str, text: str) -> Callable[[Json | None], bool]:
    """A question: does it wait for this reason, with this text in the message?"""

    def is_so(found: Json | None) -> bool:
        listed = ((found or {}).get("status") or {}).get("conditions") or recorded(found)
        one: Json = next((one for one in listed if one["type"] == names.PLACED), {})
        return (one.get("status"), one.get("reason")) == ("False", reason) and text in one["message"]

    return is_so


def is_placed(found: Json | None) -> bool:
    listed = ((found or {}).get("status") or {}).get("conditions") or recorded(found)
    return any((one["type"], one["status"]) == (names.PLACED, "True") for one in listed)


def recorded(found: Json | None) -> list[Json]:
    """The conditions of a kind that has none."""
    listed: list[Json] = json.loads(annotation(found, "conditions") or "[]")
    return listed


async def told(scene: Scene, reason: str, text: str, name: str = NAME) -> None:
    """An event, waited for."""
    event = await scene.event(name, reason)
    assert event["type"] == "Warning"
    assert text in event["message"]


async def mirror_of(scene: Scene, kind: Resource) -> Json | None:
    return await read_or_none(scene.client_of("east"), kind.path(scene.namespace, NAME))


async def test_a_kind_that_no_worker_serves_waits_for_its_definition(manager: ManagerProcess, scene: Scene) -> None:
    """It starts by itself once the definition is there."""
    await undefine(scene.client_of("east"), jobsets.NAME)
    try:
        await scene.client.create(JOBSETS.path(scene.namespace), job_set(NAME, manager.managed_by))
        path, text = JOBSETS.path(scene.namespace, NAME), "no worker serves JobSet: east: does not serve the kind"
        await scene.client.wait_until(path, unplaced("KindNotServed", text))
        await told(scene, "KindNotServed", text)
        assert not is_placed(await scene.client.get(path))
    finally:
        await jobsets.define(scene.client_of("east"))
    await scene.client.wait_until(path, is_placed)
    await until(lambda: mirror_of(scene, JOBSETS))


async def test_a_worker_with_an_older_definition_gets_none_and_its_field_is_named(
    manager: ManagerProcess, scene: Scene
) -> None:
    """A release without suspension, say: its operator reads it on the worker's Secret, its user on the JobSet."""
    client, older = scene.client_of("east"), definition_of("JobSet")
    for version in older["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["suspend"]

    async def about_worker() -> list[str]:
        path = f"/api/v1/namespaces/{manager.namespace}/events"
        listed = await scene.client.list(path, fieldSelector="involvedObject.name=east")
        return [one["message"] for one in listed if one["reason"] == "InvalidKindEntry"]

    async def absences() -> int:
        lines = [line for line in manager.log_lines() if "kind not served" in line and "worker=east" in line]
        return len([line for line in lines if "JobSet" in line])

    before = await absences()
    await undefine(client, jobsets.NAME)
    try:
        await until(absences, lambda found: found > before)  # else the definition is known, and read again in an hour
        await define(client, older)
        (text,) = await until(about_worker)
        assert "suspend.path: spec.suspend is no field of JobSet; this worker gets no JobSet until" in text
        await scene.client.create(JOBSETS.path(scene.namespace), job_set(NAME, manager.managed_by))
        path = JOBSETS.path(scene.namespace, NAME)
        text = "with all required fields: east: its definition lacks required fields (spec.suspend)"
        await scene.client.wait_until(path, unplaced("KindNotServed", text))
        await told(scene, "KindNotServed", text)
        assert await mirror_of(scene, JOBSETS) is None
    finally:
        await undefine(client, jobsets.NAME)
        await jobsets.define(client)
    await scene.client.wait_until(path, is_placed)
    await until(lambda: mirror_of(scene, JOBSETS))


async def test_one_whose_time_is_over_and_that_a_policy_keeps_says_so(
    manager: ManagerProcess, scene: Scene, east: ControlPlane
) -> None:
    """Its time to live is the manager's to honour; a cluster's own rule is not fought."""
    rule = Rule("false", "archive it first", resource="jobsets", group=JOBSETS.group, operation="DELETE")
    path = JOBSETS.path(scene.namespace, NAME)
    await rule.enforce(scene.client, scene.namespace)
    await scene.client.create(JOBSETS.path(scene.namespace), job_set("probe", "example.com/nobody"))
    await until_refused(scene.client, JOBSETS.path(scene.namespace, "probe"), None)
    async with jobsets.played(east):
        body = job_set(NAME, manager.managed_by, ends="Completed", ttlSecondsAfterFinished=0)
        await scene.client.create(JOBSETS.path(scene.namespace), body)
        by = f"denied by ValidatingAdmissionPolicy {scene.namespace}: archive it first"
        await told(scene, "DeleteRefused", f"its time to live is over, and it cannot be deleted: {by}")
    assert await scene.client.get(path)
    await rule.lift(scene.client, scene.namespace)


async def test_one_that_no_worker_can_run_as_it_should_says_what_to_write(
    manager: ManagerProcess, scene: Scene
) -> None:
    """It goes on once that is written; and a record that somebody changes is put back."""
    path, body = RAYJOBS.path(scene.namespace, NAME), sample(RAYJOBS)
    body["spec"]["shutdownAfterJobFinishes"] = False
    await scene.client.create(RAYJOBS.path(scene.namespace), body)
    text = "spec.shutdownAfterJobFinishes: without it a RayJob cannot be suspended on its worker"
    await scene.client.wait_until(path, unplaced("UnsupportedSpec", text))
    await told(scene, "UnsupportedSpec", text)
    assert await mirror_of(scene, RAYJOBS) is None

    await scene.client.merge(path, {"spec": {"shutdownAfterJobFinishes": True}})
    await scene.client.wait_until(path, is_placed)
    mirror = await until(lambda: mirror_of(scene, RAYJOBS))
    await scene.client.merge(path, {"metadata": {"annotations": {names.CONDITIONS: "[]"}}})
    await told(scene, "RecordChanged", "its record was changed; it is on worker east")
    await scene.client.wait_until(path, is_placed)
    assert (await mirror_of(scene, RAYJOBS) or {})["metadata"]["uid"] == (mirror or {})["metadata"]["uid"]


async def test_one_that_names_another_controller_now_says_what_becomes_of_its_mirror(
    manager: ManagerProcess, scene: Scene
) -> None:
    """mpi-operator's definition lets ``managedBy`` change: its own controller runs it then."""
    path, body = MPIJOBS.path(scene.namespace, NAME), sample(MPIJOBS)
    body["spec"]["runPolicy"]["managedBy"] = manager.managed_by
    await scene.client.create(MPIJOBS.path(scene.namespace), body)
    await until(lambda: mirror_of(scene, MPIJOBS))
    await scene.client.merge(path, {"spec": {"runPolicy": {"managedBy": None}}})
    text = "spec.runPolicy.managedBy is not set now, so that another controller runs it; its mirror on worker east is"
    await told(scene, "ManagedByChanged", f"{text} deleted")
    await until(lambda: mirror_of(scene, MPIJOBS), lambda found: found is None)


async def test_a_kind_that_another_controller_runs_here_is_placed_no_more(
    manager: ManagerProcess, scene: Scene
) -> None:
    """As Trainer before 2.3 does, which does not know ``managedBy``; the event says which version does."""
    collection = TRAINJOBS.path(scene.namespace)
    await scene.client.create(collection, sample(TRAINJOBS, "theirs", worker_selector="name=nowhere"))
    path = TRAINJOBS.path(scene.namespace, "theirs")
    await scene.client.wait_until(path, unplaced("NoMatchingWorker", "nowhere"))
    counts = {"active": 1, "ready": 0, "suspended": 0, "succeeded": 0, "failed": 0}
    await scene.client.merge(f"{path}/status", {"status": {"jobsStatus": [{"name": "node", **counts}]}})
    text = "a controller on the management cluster writes statuses of TrainJobs that are not its own"
    await told(scene, "StatusConflict", "another controller writes this TrainJob's status", "theirs")
    await told(scene, "KindRunsHere", text, "theirs")

    await scene.client.create(collection, sample(TRAINJOBS))
    path = TRAINJOBS.path(scene.namespace, NAME)
    await scene.client.wait_until(path, unplaced("KindRunsHere", f"{text}, so it does not honour spec.managedBy"))
    await told(scene, "KindRunsHere", "Trainer 2.3 or newer does: upgrade it, or take it away there")
    assert await mirror_of(scene, TRAINJOBS) is None

    await scene.client.delete(TRAINJOBS.path(scene.namespace, "theirs"))
    await manager.restart()
    await scene.client.wait_until(path, is_placed)
