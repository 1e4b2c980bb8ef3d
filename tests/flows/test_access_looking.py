"""``diff`` says whether a worker has what a Job's pods name, to who may see such objects at home (D18, D27)."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from access_world import AccessWorld, access_world

from mirror.access import looking
from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.embedded.apiserver.apimachinery.errors import StatusError, failure
from mirror.embedded.faults.targets import Which
from mirror.kinds.dependencies import RESOURCES, DependencyPolicy
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
    labels = {names.ORIGIN: world.origin, names.MANAGEMENT_UID: world.origin}
    marked = {"name": "token", "labels": labels, "annotations": {names.COPY_OF: "u/1"}}
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
    got = await world.ask("train/diff")
    return got.code == 200 and got.json["mirror"] != ""


class CopyingWorld(AccessWorld):
    """The settings let everything go along."""

    def _mirroring_settings(self) -> MirroringSettings:
        settings = super()._mirroring_settings()
        policy = DependencyPolicy(frozenset(RESOURCES))
        return replace(settings, transform=msgspec.structs.replace(settings.transform, dependencies=policy))


CARRY: Json = {names.CARRY: "configmaps,secrets,serviceaccounts", names.WORKER_SELECTOR: "name=east"}
CARRYING: Json = {
    "restartPolicy": "Never",
    "containers": [{"name": "a", "image": "b", "envFrom": [{"configMapRef": {"name": "setings"}}]}],
}
WAITS_FOR = (
    "the Job waits for it (DependencyMissing): create it in namespace default of the management cluster, "
    "or correct its name"
)


async def test_a_misspelt_name_is_told_before_the_job_is_created_and_while_it_waits_for_it() -> None:
    """What is missing here keeps the mirror from being made; what will be copied does not, and neither is there yet."""
    async with access_world(form=CopyingWorld) as world:
        await world.allow("bob", READS)
        await world.management.api.create(f"{CORE}/configmaps", {"metadata": {"name": "settings"}})
        body = draft()
        body["metadata"]["annotations"] = CARRY
        body["spec"]["template"]["spec"] = CARRYING | {"volumes": [{"name": "s", "configMap": {"name": "settings"}}]}
        before = (await world.ask("/v1/diff", method="POST", body=body, user="bob")).json
        here = {one["object"]: (one["state"], one["message"]) for one in before["goesAlong"]}

        assert here == {
            "ConfigMap settings": ("Exists", "goes along"),
            "ConfigMap setings": ("Missing", WAITS_FOR),
        }
        assert set(states(before).values()) == {"Missing"}

        await world.create("train", annotations=CARRY, run_for="never", template={"spec": CARRYING})
        await world.until(lambda: _waits(world))
        waiting = await world.ask("train/diff", user="bob")
        assert waiting.code == 200
        assert waiting.json["goesAlong"] == [
            {"object": "ConfigMap setings", "state": "Missing", "message": WAITS_FOR},
        ]
        assert (waiting.json["worker"], waiting.json["mirror"]) == ("east", "")
        assert "worker east has no mirror of this Job" in waiting.json["note"]

        await world.management.api.create(f"{CORE}/configmaps", {"metadata": {"name": "setings"}})
        await world.until(lambda: _has_diff(world))
        live = (await world.ask("train/diff", user="bob")).json
        assert [one["state"] for one in live["goesAlong"]] == ["Exists"]
        assert states(live) == {"ConfigMap setings": "Copied"}
        assert live["note"] == ""


async def _waits(world: AccessWorld) -> bool:
    source = await world.source("train")
    listed = (source or {}).get("status", {}).get("conditions") or []
    return any(one["reason"] == "DependencyMissing" for one in listed)


async def test_a_job_without_a_worker_is_looked_at_as_a_draft_is() -> None:
    """With what is in the way of each worker."""
    async with access_world("east", "west", form=CopyingWorld) as world:
        await world.allow("bob", READS)
        await world.register("east", cordoned="true")
        await world.create("train", annotations=CARRY, template={"spec": CARRYING})
        await world.until(lambda: _lacks(world))
        found = (await world.ask("train/diff", user="bob")).json

        assert found["lacks"] == {"east": "cordoned", "west": "labels do not match worker-selector"}
        assert [one["state"] for one in found["goesAlong"]] == ["Missing"]
        assert found["onWorker"] == []


async def _lacks(world: AccessWorld) -> bool:
    got = await world.ask("train/diff")
    return got.code == 200 and got.json.get("lacks", {}).get("east") == "cordoned"


async def test_a_job_whose_mirror_has_gone_is_refused_as_before() -> None:
    """What was made and is no more is no Job before its mirror."""
    async with access_world() as world:
        await world.running()
        await world.planes["east"].api.delete(f"/apis/batch/v1{CORE.removeprefix('/api/v1')}/jobs/train")
        await world.until(lambda: _has_no_mirror(world))
        assert (await world.ask("train/diff")).code == 409


async def _has_no_mirror(world: AccessWorld) -> bool:
    return (await world.ask("train/pods")).code == 409


async def test_looking_is_bounded_for_each_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """D29: each object costs a review and a request."""
    monkeypatch.setattr(looking, "MOST_OBJECTS", 2)
    monkeypatch.setattr(looking, "LOOKS_AT_ONCE_OF_ONE", 3)
    async with access_world() as world:
        await world.allow("bob", READS)
        got = [await world.ask("/v1/diff", method="POST", body=draft(), user="bob") for _ in range(4)]

        assert [one.code for one in got] == [200, 200, 200, 429]
        assert len(got[0].json["onWorker"]) == 2
        assert got[0].json["leftOut"] == {"objects": 3, "workers": 0}
