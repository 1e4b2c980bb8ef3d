"""What pods refer to goes along with their Job: on real control planes, with the shipped rights and no more (D27)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import yaml

from e2e.controlplane.client import Client, Json
from e2e.controlplane.plane import ControlPlane
from e2e.jobs import Scene, is_complete, runs, until
from e2e.manager import ManagerProcess
from e2e.shipped import RBAC
from e2e.shipped_life import COPYING, NEEDED, needing
from e2e.troubles.stage import says
from mirror.model import names

pytestmark = pytest.mark.usefixtures("binaries")

KINDS = ("configmaps", "secrets", "serviceaccounts")


async def copies(client: Client, scene: Scene) -> dict[str, Json]:
    """The copies in a worker's namespace, by name."""
    found: dict[str, Json] = {}
    for kind in KINDS:
        for one in await client.list(f"/api/v1/namespaces/{scene.namespace}/{kind}", labelSelector=names.ORIGIN):
            found[one["metadata"]["name"]] = one
    return found


def owners(copy: Json) -> set[str]:
    return {owner["name"] for owner in copy["metadata"].get("ownerReferences", ())}


def are_owned_by(*jobs: str) -> Callable[[dict[str, Json]], bool]:
    """Whether all copies are there, and have these owners."""
    return lambda found: len(found) == 3 and all(owners(copy) == set(jobs) for copy in found.values())


async def test_a_job_takes_along_what_its_pods_need(management: ControlPlane, east: ControlPlane, scene: Scene) -> None:
    """Missing at first, shared by two Jobs, changed, kept over a crash, made anew, and collected with the last Job."""
    core = f"/api/v1/namespaces/{scene.namespace}"
    there = scene.client_of("east")
    look = partial(copies, there, scene)
    async with ManagerProcess.start(management, {"east": east}, settings=COPYING) as manager:
        for kind in ("configmaps", "serviceaccounts"):
            await scene.client.create(f"{core}/{kind}", NEEDED[kind])
        await scene.create(needing("one", manager.managed_by, run_for="never"))

        def lacks_secret(source: Json | None) -> bool:
            listed = (source or {}).get("status", {}).get("conditions") or ()
            return any(
                one["type"] == names.PROGRESSING and one["reason"] == "DependencyMissing" and "token" in one["message"]
                for one in listed
            )

        await scene.source_until("one", lacks_secret)
        assert await look() == {}
        await scene.client.create(f"{core}/secrets", NEEDED["secrets"])
        await scene.source_until("one", runs())
        made = await until(look, are_owned_by("one"))
        assert made["settings"]["data"] == {"level": "1"}
        assert made["token"]["data"] == {"key": "Zmlyc3Q="}

        await scene.create(needing("two", manager.managed_by))
        await scene.source_until("two", is_complete)
        await until(look, are_owned_by("one", "two"))

        await manager.kill()
        await scene.client.merge(f"{core}/configmaps/settings", {"data": {"level": "2"}})
        manager.launch()
        await manager.wait_until_ready()
        await until(look, lambda found: found["settings"]["data"] == {"level": "2"})

        # The type of a Secret never changes: it is made anew here, and there, for whoever needs it.
        await scene.client.delete(f"{core}/secrets/token")
        await scene.client.create(f"{core}/secrets", {**NEEDED["secrets"], "type": "example.com/key"})
        await until(look, lambda found: "token" in found and found["token"]["type"] == "example.com/key")
        await until(look, are_owned_by("one", "two"))

        await scene.delete("one")
        await until(look, are_owned_by("two"))
        await scene.delete("two")
        await until(look, lambda found: not found)


async def test_the_sample_runs_with_what_goes_along(management: ControlPlane, east: ControlPlane, scene: Scene) -> None:
    """``config/samples/dependencies.yaml``, as somebody would apply it."""
    paths = {"ConfigMap": "configmaps", "Secret": "secrets"}
    *needed, body = yaml.safe_load_all((RBAC.parent / "samples/dependencies.yaml").read_text())
    async with ManagerProcess.start(management, {"east": east}, settings=COPYING) as manager:
        for one in needed:
            await scene.client.create(f"/api/v1/namespaces/{scene.namespace}/{paths[one['kind']]}", one)
        body["spec"]["managedBy"] = manager.managed_by
        await scene.create(body)
        await scene.source_until("dependencies", is_complete)
        assert set(await copies(scene.client_of("east"), scene)) == {"training", "registry-token"}


async def test_what_the_worker_has_already_is_left_alone(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """The same contents are used; other contents are a refusal that names the object."""
    core = f"/api/v1/namespaces/{scene.namespace}"
    there = scene.client_of("east")
    async with ManagerProcess.start(management, {"east": east}, settings=COPYING) as manager:
        for kind, body in NEEDED.items():
            await scene.client.create(f"{core}/{kind}", body)
        theirs = await there.create(f"{core}/configmaps", {"metadata": {"name": "settings"}, "data": {"level": "x"}})
        await scene.create(needing("refused", manager.managed_by))

        def is_refused(source: Json | None) -> bool:
            text = (source or {"metadata": {}})["metadata"].get("annotations", {}).get(names.WAITING_BECAUSE, "")
            return "ConfigMap settings exists there with other contents" in text

        await scene.source_until("refused", is_refused)
        assert (await there.get(f"{core}/configmaps/settings")) == theirs
        same = await there.merge(f"{core}/configmaps/settings", {"data": {"level": "1"}})
        await scene.source_until("refused", is_complete)
        assert (await there.get(f"{core}/configmaps/settings")) == same


async def test_one_that_conflicts_with_what_came_meanwhile_is_told_where_it_is_placed(
    management: ControlPlane, east: ControlPlane, scene: Scene
) -> None:
    """After a restart nobody knows whether its mirror was ever made, so it stays on its worker and says so there."""
    core = f"/api/v1/namespaces/{scene.namespace}"
    there = scene.client_of("east")
    async with ManagerProcess.start(management, {"east": east}, settings=COPYING) as manager:
        for kind in ("configmaps", "serviceaccounts"):
            await scene.client.create(f"{core}/{kind}", NEEDED[kind])
        await scene.create(needing("train", manager.managed_by))
        await scene.source_until("train", says("DependencyMissing", "Secret token does not exist"))
        await manager.restart()
        await there.create(f"{core}/configmaps", {"metadata": {"name": "settings"}, "data": {"level": "x"}})
        await scene.client.create(f"{core}/secrets", NEEDED["secrets"])

        text = "worker east: ConfigMap settings exists there with other contents, and is not ours"
        await scene.source_until("train", says("DependencyConflict", text))
        event = await scene.event("train", "DependencyConflict")
        assert (event["type"], event["message"]) == ("Warning", text)
        await there.delete(f"{core}/configmaps/settings")
        await scene.source_until("train", is_complete)
