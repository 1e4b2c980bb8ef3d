"""The rights in ``config/rbac/kinds`` on real API servers: of every kind each right on it is used, and none is lacking.

The kinds have their own definitions, and no controllers: statuses are played. What their files give on other
resources, to find pods by their owners, is used where there are such owners (``test_kind_lives``,
``test_job_set_users``). Rights for Jobs: ``test_shipped_rights``.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping

import pytest

from e2e import operators, shipped, shipped_life
from e2e.controlplane.client import JSON_PATCH, Json
from e2e.jobs import Scene, until
from e2e.kind_choice import ALL
from e2e.lives import KINDS, Kind, Lives
from e2e.manager import ManagerProcess
from e2e.played_statuses import status_of
from mirror.model import names

pytestmark = [pytest.mark.usefixtures("binaries"), pytest.mark.controlplane]

_AT = "2026-01-01T00:00:00Z"


async def test_every_kind_uses_every_right_on_it_and_lacks_none() -> None:
    """On servers that make it list before it watches."""
    async with shipped_life.old_clusters() as (management, east):
        scene = Scene(management, {"east": east}, f"team-{uuid.uuid4().hex[:6]}")
        await scene.make_namespace()
        await scene.make_namespace("east")
        clients = (scene.client, scene.client_of("east"))
        for kind in ALL:  # all of them at once are megabytes, in which a server takes no other connection for seconds
            await asyncio.gather(*(operators.define(client, kind.resource) for client in clients))
        settings: Json = {"kinds": [str(kind) for kind in ALL]}
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as manager:
            all_lives = [Lives(scene, kind, manager.managed_by) for kind in ALL]
            for lives in all_lives:
                await lives.prepare()
            await asyncio.gather(*map(_live, all_lives))
            await _go_unseen(manager, all_lives)
            await manager.stop()
            user, namespace = shipped.user_of(manager.namespace), manager.namespace
            entries, on_east = await management.audit_entries(), await east.audit_entries()
        await scene.close()

    assert shipped.refused(entries) == []
    assert shipped.refused(on_east) == []
    for kind in ALL:
        assert shipped.spare(_given("management", kind, namespace), entries, user) == set()
        assert shipped.spare(_given("worker", kind, namespace), on_east, user) == set()


def _given(side: str, kind: Kind, namespace: str) -> set[shipped.Permission]:
    """What its file gives on the kind itself."""
    objects = shipped.read(f"kinds/{side}-{str(kind).lower()}", namespace=namespace)
    return {one for one in shipped.rights(objects) if one.resource.partition("/")[0] == kind.resource.plural}


async def _live(lives: Lives) -> None:
    """One that runs, and is labelled; one whose mirror vanishes; one whose time to live is over."""
    await lives.create("kept")
    await lives.create("waiting")
    mirror = (await until(lambda: lives.mirrors("waiting"), describe=lambda: lives.describe("waiting")))["east"]
    there = lives.scene.client_of("east")
    await there.delete(lives.path("waiting"))
    await until(lambda: _is_dealt_with(lives, mirror["metadata"]["uid"]), describe=lambda: lives.describe("waiting"))
    await _say(lives, "kept", "running")
    await lives.scene.client.merge(lives.path("kept"), {"metadata": {"labels": {"team": "a"}}})
    await there.wait_until(lives.path("kept"), lambda found: found and found["metadata"]["labels"].get("team") == "a")
    if lives.kind.has_ttl:
        await lives.create("over", ttlSecondsAfterFinished=0)
        await _say(lives, "over", "succeeded")
        await lives.until(lambda found: found is None, "over")


async def _is_dealt_with(lives: Lives, uid: str) -> bool:
    """Whether the loss of this mirror was: there is another, or the source has failed."""
    found = (await lives.mirrors("waiting")).get("east")
    return (found is not None and found["metadata"]["uid"] != uid) or lives.is_over(await lives.source("waiting"))


async def _say(lives: Lives, name: str, phase: str) -> None:
    """Be the worker's controller, once there is a mirror, until the source says something of it."""
    await until(lambda: lives.mirrors(name), describe=lambda: lives.describe(name))
    change = [{"op": "add", "path": "/status", "value": _status(lives.kind, phase)}]
    await lives.scene.client_of("east").call("PATCH", f"{lives.path(name)}/status", change, JSON_PATCH)
    if phase == "running":
        await lives.until(lambda found: bool((found or {}).get("status")), name)


def _status(kind: Kind, phase: str) -> Json:
    if kind not in KINDS:
        return status_of(str(kind), phase)
    said: Mapping[str, str] = {"running": "Running", "succeeded": kind.succeeded}
    one = {"type": said[phase], "status": "True", "reason": "Played", "message": "played", "lastTransitionTime": _AT}
    return {"conditions": [one]}


async def _go_unseen(manager: ManagerProcess, all_lives: list[Lives]) -> None:
    """Sources go while nobody looks; their mirrors are deleted once somebody does."""
    await manager.kill()
    await asyncio.gather(*(lives.delete("kept") for lives in all_lives))
    # Nobody waits for its end.
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{manager.namespace}/leases"
    await manager.client.delete(f"{leases}/{names.LEASE}")
    manager.launch()
    await manager.wait_until_ready()
    await asyncio.gather(*(lives.until_no_mirror("kept") for lives in all_lives))
