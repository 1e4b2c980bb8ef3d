"""``kubectl mirror`` about JobSets, as a user types it, on real control planes with their CRD and shipped permissions.

The JobSet controller does not run: a player writes statuses, and the test makes the Jobs of the mirror as that
controller labels and owns them; the real Job controller makes their pods. No kubelet serves logs here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest_asyncio

from e2e import jobsets
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, job, until
from e2e.jobsets import JOBSETS, job_set
from e2e.manager import ManagerProcess
from e2e.people import may_read, person
from e2e.serving import serving_manager

POD: Json = {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "main", "image": "busybox"}]}}
ON_EAST = {"jobmirror.io/worker-selector": "name=east"}
OWN_LABEL, ROLE, NUMBER = (f"jobset.sigs.k8s.io/{name}" for name in ("jobset-name", "replicatedjob-name", "job-index"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def serving(management: ControlPlane, east: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """A manager that mirrors JobSets and serves users."""
    clients = [plane.client() for plane in (management, east)]
    try:
        async with (
            jobsets.defined(*clients),
            jobsets.played(east),
            serving_manager(management, {"east": east}, settings={"kinds": ["JobSet"]}) as running,
        ):
            yield running
    finally:
        for client in clients:
            await client.close()


def replicated(name: str) -> Json:
    return {"name": name, "replicas": 1, "template": {"spec": {"template": POD}}}


def child(mirror: Json, role: str, number: int, *, is_its: bool = True) -> Json:
    """A Job as the JobSet controller makes it; or a stranger's, with the same labels."""
    labels = {OWN_LABEL: mirror["metadata"]["name"], ROLE: role, NUMBER: str(number)}
    body = job(f"train-{role}-{number}", run_for="never", labels=labels, completionMode="Indexed", completions=1)
    body["spec"]["template"]["metadata"]["labels"] = labels
    if is_its:
        owner = {"apiVersion": JOBSETS.api_version, "kind": JOBSETS.kind, "name": mirror["metadata"]["name"]}
        body["metadata"]["ownerReferences"] = [{**owner, "uid": mirror["metadata"]["uid"], "controller": True}]
    return body


async def test_a_user_finds_a_job_set_and_what_is_in_it(
    serving: ManagerProcess, scene: Scene, management: ControlPlane, east: ControlPlane
) -> None:
    """Where it is, its story, pods by replicated job, events and logs; nothing of a stranger, who labels alike."""
    path, there = JOBSETS.path(scene.namespace, "train"), scene.client_of("east")
    body = job_set("train", serving.managed_by, replicatedJobs=[replicated("leader"), replicated("workers")])
    body["metadata"]["annotations"] |= ON_EAST
    await scene.client.create(JOBSETS.path(scene.namespace), body)
    mirror = await there.wait_until(path, lambda found: found is not None)
    children = [child(mirror, "leader", 0), child(mirror, "workers", 0), child(mirror, "workers", 1)]
    for one in (*children, child(mirror, "stranger", 0, is_its=False)):
        await there.create(scene.jobs("east"), one)
    ann = await person(management, scene.namespace, "ann", serving, may_view=True)
    bob = await person(management, scene.namespace, "bob", serving, may_view=True)
    assert "jobsets.jobset.x-k8s.io" in await bob.refused("get", "jobsets")
    assert "bob cannot get jobsets.jobset.x-k8s.io train" in await bob.refused("pods", "jobset/train")

    await may_read(scene.client, ann, "ann", JOBSETS)
    said = await until(lambda: ann.says("get", "jobsets", "-n", ann.namespace), lambda said: said.code == 0)
    row = said.output.splitlines()[1].split()
    assert row[:2] == ["train", "east"]
    assert await ann.mirror("get", "-o", "name") == "jobset.jobset.x-k8s.io/train\n"
    await until(lambda: ann.mirror("get", "jobset", "train"), lambda text: "Running" in text)

    [story] = json.loads(await ann.mirror("explain", "jobset", "train", "-o", "json"))["items"]
    assert (story["job"]["kind"], story["job"]["worker"], story["notes"]) == ("JobSet", "east", [])
    assert {"Created", "Placed", "Mirrored"} <= {moment["kind"] for moment in story["timeline"]}
    assert "spec.managedBy" in await ann.mirror("diff", "jobset/train")

    def roles(text: str) -> list[str]:
        return [one["role"] for one in json.loads(text)["items"]]

    every = ["leader/0", "workers/0", "workers/1"]
    pods = await until(lambda: ann.mirror("pods", "jobset/train", "-o", "json"), lambda text: roles(text) == every)
    owned = {one["name"].rpartition("-")[0] for one in json.loads(pods)["items"]}
    assert owned == {"train-leader-0-0", "train-workers-0-0", "train-workers-1-0"}
    await until(lambda: ann.mirror("events", "jobset", "train"), lambda text: "pod/train-workers-1" in text)
    assert "stranger" not in await ann.mirror("events", "jobset", "train")

    said = await ann.says("logs", "jobset", "train", "--role", "workers/1", "-n", ann.namespace)
    assert (said.code, "worker east" in said.errors) == (1, True)  # no kubelet answers; the manager let them that far
    assert "no pod of role stranger; its roles: leader/0, workers/0, workers/1" in await ann.refused(
        "logs", "jobset/train", "--role", "stranger"
    )
    said = await ann.says("explain", "mpijob/train", "-n", ann.namespace)
    assert (said.code, "its operator adds mpijob to the setting kinds" in said.errors) == (2, True)
    await asyncio.gather(*(there.delete(f"{scene.jobs('east')}/train-{one.replace('/', '-')}") for one in every))
    await scene.client.delete(path)
