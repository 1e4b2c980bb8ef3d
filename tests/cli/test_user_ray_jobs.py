"""Logs and pods of a RayJob: the pod that submits it is a Job's, the others are those of its RayCluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from test_user_commands import refused, told
from test_user_declared import asked_as
from user_fleet import NAMESPACE, UserFleet, user_fleet

from mirror.model import names
from mirror.planes.api import Api
from mirror.settings.kinds import KindEntry

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

Json = dict[str, Any]
RAY = f"/apis/ray.io/v1/namespaces/{NAMESPACE}"
RAY_JOB = f"{RAY}/rayjobs/train"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLUSTER = "train-x7"


def definition(kind: str) -> Json:
    """Of a kind of Ray, whatever it holds."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    plural = f"{kind.lower()}s"
    spec = {
        "group": "ray.io",
        "scope": "Namespaced",
        "names": {"plural": plural, "kind": kind},
        "versions": [version | {"subresources": {"status": {}}}],
    }
    return {"metadata": {"name": f"{plural}.ray.io"}, "spec": spec}


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory, required_program: Callable[..., Path]) -> Iterator[UserFleet]:
    """A RayJob ``train`` on ``east``, run there as KubeRay 1.6 does, with pods that have ended."""
    required_program("sleep")
    definitions = (definition("RayJob"), definition("RayCluster"))
    with user_fleet(tmp_path_factory.mktemp("fleet"), *definitions, kinds=(KindEntry(kind="RayJob"),)) as found:
        asyncio.run_coroutine_threadsafe(play(found), found.loop).result(150)
        yield found


async def play(found: UserFleet) -> None:
    """The user, and the operator on the worker. A stranger's pods have the same labels."""
    management, east = (one.plane.api for one in (found.fleet.management, found.fleet.workers["east"]))
    body = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "train", "annotations": {names.WORKER_SELECTOR: "name=east"}},
        "spec": {"managedBy": "kueue.x-k8s.io/multikueue", "shutdownAfterJobFinishes": True},
    }
    await management.create(f"{RAY}/rayjobs", body)
    async with asyncio.timeout(60):
        while not await east.list(f"{RAY}/rayjobs"):  # noqa: ASYNC110 - another's
            await asyncio.sleep(0.05)
    (mirror,) = await east.list(f"{RAY}/rayjobs")
    await east.merge(f"{RAY_JOB}/status", {"status": {"jobDeploymentStatus": "Running", "rayClusterName": CLUSTER}})
    cluster = {"metadata": {"name": CLUSTER, "ownerReferences": [owner(mirror)]}}
    cluster = await east.create(f"{RAY}/rayclusters", {"apiVersion": "ray.io/v1", "kind": "RayCluster", **cluster})
    template = {"spec": {"restartPolicy": "Never", "containers": [container("ray-job-submitter", "driver")]}}
    for name, owners in (("train", [owner(mirror)]), ("stranger", [])):
        meta = {"name": name, "ownerReferences": owners}
        await east.create(JOBS, {"metadata": meta, "spec": {"template": template}})
    labels = {"ray.io/cluster": CLUSTER}
    for name, role, owners in (
        ("head", "head", [owner(cluster)]),
        ("worker", "worker", [owner(cluster)]),
        ("strangers-head", "head", []),
        ("strangers-submitter", "", []),
    ):
        its = {**labels, "ray.io/node-type": role} if role else {"batch.kubernetes.io/job-name": "train"}
        meta = {"name": name, "labels": its, "ownerReferences": owners}
        spec = {"restartPolicy": "Never", "containers": [container("ray", name)]}
        await east.create(PODS, {"metadata": meta, "spec": spec})
    async with asyncio.timeout(100):
        while not await have_ended(east):  # noqa: ASYNC110 - another's
            await asyncio.sleep(0.05)


async def have_ended(api: Api) -> bool:
    found = await api.list(PODS)
    return len(found) == 6 and all((one.get("status") or {}).get("phase") == "Succeeded" for one in found)


def owner(found: Json) -> Json:
    named = {"apiVersion": "ray.io/v1", "kind": found["kind"], "name": found["metadata"]["name"]}
    return {**named, "uid": found["metadata"]["uid"], "controller": True}


def container(name: str, text: str) -> Json:
    return {"name": name, "image": "x", "command": ["sh", "-c", f"echo {text}"]}


WAYS = {"the manager": (), "the worker": ("--worker-context", "east")}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_pods_are_those_of_its_cluster_and_the_one_that_submits_it(planes: UserFleet, way: tuple[str, ...]) -> None:
    """That one first, then the head; nobody else's, whatever labels it has."""
    found = json.loads(told(planes, "pods", "rayjob/train", *way, "-o", "json"))["items"]
    assert [one["role"] for one in found] == ["submitter", "head", "worker"]
    assert [one["name"] for one in found[1:]] == ["head", "worker"]
    assert found[0]["name"].startswith("train-")


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_log_is_the_drivers_and_the_heads_by_its_role(planes: UserFleet, way: tuple[str, ...]) -> None:
    """Both, and the workers', with all pods."""
    assert told(planes, "logs", "rayjob/train", *way) == "driver\n"
    assert told(planes, "logs", "rayjob/train", "--role", "submitter", *way) == "driver\n"
    assert told(planes, "logs", "rayjob/train", "--role", "head", *way) == "head\n"
    everything = told(planes, "logs", "rayjob/train", "--all-pods", "--no-prefix", *way)
    assert sorted(everything.split()) == ["driver", "head", "worker"]
    assert "no pod" in refused(planes, "logs", "rayjob/train", "--pod", "strangers-head", *way)


def test_pages_have_each_pod_once(planes: UserFleet) -> None:
    """Through the manager: the pod that submits it comes with the first page."""
    names, token, pages = list[str](), "", 0
    while token or not pages:
        query = f"limit=2&continue={quote(token)}" if token else "limit=2"
        code, text = asked_as(planes, "ann", f"/v1/namespaces/{NAMESPACE}/rayjobs.ray.io/train/pods?{query}")
        assert code == 200
        page = json.loads(text)
        names += [one["metadata"]["name"] for one in page["items"]]
        token, pages = page["metadata"].get("continue", ""), pages + 1
        assert pages < 10
    assert names[0].startswith("train-")
    assert sorted(names[1:]) == ["head", "worker"]
    assert pages > 1


def test_events_are_of_its_own_pods(planes: UserFleet) -> None:
    """A stranger's has the same labels."""
    found = json.loads(told(planes, "events", "rayjob/train", "-o", "json"))["items"]
    assert not any("stranger" in one["about"] for one in found)
