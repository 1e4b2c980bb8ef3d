"""``diff`` says whether a worker has what a Job's pods name, to who may see such objects at home (D18, D27)."""

from __future__ import annotations

import pytest
from access_world import AccessWorld, access_world

from mirror.access import looking
from mirror.embedded.apiserver.apimachinery.errors import StatusError, failure
from mirror.embedded.faults.targets import Which
from mirror.model import names
from mirror.planes.api import Json

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

CORE = "/api/v1/namespaces/default"
READS: list[Json] = [
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "create"]},
    {
        "apiGroups": [""],
        "resources": ["configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims"],
        "verbs": ["get"],
    },
]
POD: Json = {
    "restartPolicy": "Never",
    "serviceAccountName": "robot",
    "containers": [{"name": "a", "image": "b", "envFrom": [{"configMapRef": {"name": "settings"}}]}],
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "token", "secret": {"secretName": "token"}},
        {"name": "odd", "configMap": {"name": "../../secrets/token"}},
    ],
}


def draft() -> Json:
    metadata = {"name": "new", "namespace": "default", "annotations": {names.WORKER_SELECTOR: "name=east"}}
    spec = {"template": {"spec": POD}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def states(found: Json) -> dict[str, str]:
    """Object to state."""
    return {one["object"]: one["state"] for one in found["onWorker"]}


async def provide(world: AccessWorld) -> None:
    """What is there on east: one thing of its own, and one copy."""
    east = world.planes["east"].api
    await east.create(f"{CORE}/configmaps", {"metadata": {"name": "settings"}, "data": {"secret": "content"}})
    marked = {"name": "token", "annotations": {names.COPY_OF: "u/1"}}
    await east.create(f"{CORE}/secrets", {"metadata": marked, "data": {"t": "Y29udGVudA=="}})


async def test_what_a_draft_needs_is_looked_for_on_workers_that_may_take_it() -> None:
    """Existence alone: no contents are asked for, and no name becomes a path."""
    async with access_world() as world:
        await world.allow("bob", READS)
        await provide(world)
        got = await world.ask("/v1/diff", method="POST", body=draft(), user="bob")

        assert states(got.json) == {
            "ServiceAccount robot": "Missing",
            "ConfigMap settings": "Exists",
            "Secret token": "Copied",
            "PersistentVolumeClaim data": "Unknown",  # the embedded server has none
        }
        assert {one["worker"] for one in got.json["onWorker"]} == {"east"}
        assert "content" not in str(got.json["onWorker"])


async def test_who_may_not_see_it_at_home_learns_nothing_of_the_worker() -> None:
    """Nor is the worker asked."""
    async with access_world() as world:
        await provide(world)
        got = await world.ask("/v1/diff", method="POST", body=draft())

        assert set(states(got.json).values()) == {"Unknown"}
        assert all("ann cannot get" in one["message"] for one in got.json["onWorker"])


async def test_a_missing_permission_on_the_worker_is_said_and_nothing_else_fails() -> None:
    async with access_world() as world:
        await world.allow("bob", READS)
        await provide(world)
        refusal = StatusError(failure(403, "Forbidden", "no"))
        world.workers["east"].faults.arrange(refusal, Which("get", "secrets"))
        got = await world.ask("/v1/diff", method="POST", body=draft(), user="bob")
        (secret,) = [one for one in got.json["onWorker"] if one["object"] == "Secret token"]

        assert (secret["state"], secret["message"]) == (
            "Unknown",
            "the manager has no permission to get secrets on worker east",
        )
        assert states(got.json)["ConfigMap settings"] == "Exists"


async def test_of_a_live_mirror_its_own_worker_is_asked() -> None:
    async with access_world() as world:
        await world.allow("bob", READS)
        await provide(world)
        await world.create("train", run_for="never", template={"spec": POD})
        await world.until(lambda: _has_diff(world))
        got = await world.ask("train/diff", user="bob")

        assert states(got.json)["ConfigMap settings"] == "Exists"
        assert {one["worker"] for one in got.json["onWorker"]} == {got.json["worker"]}


async def _has_diff(world: AccessWorld) -> bool:
    return (await world.ask("train/diff")).code == 200


async def test_looking_is_bounded_for_each_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """D29: each object costs a review and a request."""
    monkeypatch.setattr(looking, "MOST_OBJECTS", 2)
    monkeypatch.setattr(looking, "LOOKS_AT_ONCE_OF_ONE", 3)
    async with access_world() as world:
        await world.allow("bob", READS)
        got = [await world.ask("/v1/diff", method="POST", body=draft(), user="bob") for _ in range(4)]

        assert [one.code for one in got] == [200, 200, 200, 429]
        assert len(got[0].json["onWorker"]) == 2
