"""Further kinds on real API servers with their own definitions, whose controllers are played (``played_statuses``).

Whole lives: what a controller says is shown as it is, a source is suspended and resumed with a changed template, and
ends in its kind's own words, also where its mirror is lost. The controllers themselves: ``test_kind_lives``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import product

import pytest
import pytest_asyncio

from e2e import operators
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.further_lives import FURTHER
from e2e.jobs import Scene, until
from e2e.lives import Kind, Lives, end
from e2e.manager import ManagerProcess
from e2e.played_statuses import status_of
from e2e.ray_lives import RAY
from mirror.model import names

PLAYED = (*FURTHER, *RAY)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(management: ControlPlane, east: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """One that knows all of them, which both clusters serve."""
    clients = [plane.client(user_agent="e2e-played") for plane in (management, east)]
    try:
        await asyncio.gather(*(operators.define(client, kind.resource) for client, kind in product(clients, PLAYED)))
        settings: Json = {"kinds": [str(kind) for kind in PLAYED]}
        async with ManagerProcess.start(management, {"east": east}, settings=settings) as running:
            yield running
    finally:
        await asyncio.gather(*(operators.undefine(client, kind.resource) for client, kind in product(clients, PLAYED)))
        for client in clients:
            await client.close()


@pytest.fixture(params=PLAYED, ids=str)
def lives(
    request: pytest.FixtureRequest, management: ControlPlane, east: ControlPlane, manager: ManagerProcess, scene: Scene
) -> Lives:
    """Of each kind."""
    kind: Kind = request.param
    return Lives(scene, kind, manager.managed_by)


def without_ours(status: Json) -> Json:
    """What of a source's status is not our own, and tells of no generation."""
    listed = [one for one in status.get("conditions") or () if not one["type"].startswith(names.PREFIX)]
    kept = [{key: value for key, value in one.items() if key != "observedGeneration"} for one in listed]
    return {**{key: value for key, value in status.items() if key != "observedGeneration"}, "conditions": kept}


async def play(lives: Lives, phase: str) -> None:
    """Be the worker's controller, until the source shows what it has said."""
    client, status = lives.scene.client_of("east"), status_of(str(lives.kind), phase)
    await client.call(
        "PATCH",
        f"{lives.path()}/status",
        [{"op": "add", "path": "/status", "value": status}],
        "application/json-patch+json",
    )
    await lives.until(lambda found: without_ours((found or {}).get("status") or {}) == without_ours(status))


async def mirror_until(lives: Lives, is_held: bool) -> Json:
    """The mirror, once it is held or not."""
    held = lives.kind.held or {}

    async def look() -> Json | None:
        mirror = (await lives.mirrors()).get("east")
        return mirror if mirror and (lives.policy_of(mirror).items() >= held.items()) is is_held else None

    found = await until(look, describe=lives.describe)
    assert found is not None
    return found


async def test_it_succeeds_after_a_suspension(lives: Lives) -> None:
    """D3, D6, D9: each phase is shown whole, beside our record; the template that was changed meanwhile is carried."""
    kind = lives.kind
    await lives.create(**(kind.held or {}))
    if kind.held:
        await lives.until(kind.is_suspended)
        assert not await lives.mirrors()
        await lives.set_policy(kind.released)
    mirror = await until(lambda: lives.mirrors(), describe=lives.describe)
    uid = mirror["east"]["metadata"]["uid"]
    await play(lives, "created")
    await play(lives, "running")
    if kind.is_held_again:
        source = await lives.source() or {}
        await lives.set_policy(kind.held or {})
        await mirror_until(lives, is_held=True)
        await play(lives, "suspended")
        changed = kind.with_pod_annotations(source["spec"], {"a/b": "c"})
        await lives.scene.client.merge(lives.path(), {"spec": changed})
        await lives.set_policy(kind.released)
        found = str((await mirror_until(lives, is_held=False))["spec"]).replace("'", '"')
        assert ('"a/b": "c"' in found) is kind.is_changed_while_held
        await play(lives, "resumed")
    if kind.ends:
        await play(lives, "succeeded")
        await lives.until_over()
    assert end(await lives.source(), names.MIRRORED)["message"] == uid
    await lives.delete()
    await lives.until_no_mirror()


@pytest.mark.parametrize("lives", [kind for kind in PLAYED if kind.ends], ids=str, indirect=True)
async def test_it_fails(lives: Lives) -> None:
    """With the worker's reason; what never ends cannot."""
    await lives.create()
    await until(lambda: lives.mirrors(), describe=lives.describe)
    await play(lives, "running")
    await play(lives, "failed")
    source = await lives.until_over(succeeded=False)
    assert end(source, lives.kind.failed)["reason"] == lives.kind.fails_because


async def test_its_mirror_is_lost(lives: Lives) -> None:
    """D11: in the words of its kind, with nothing that counts as active."""
    await lives.create()
    await until(lambda: lives.mirrors(), describe=lives.describe)
    await play(lives, "running")
    before = (await lives.mirrors())["east"]["metadata"]["uid"]
    await lives.scene.client_of("east").delete(lives.path())
    await lives.scene.event("train", "MirrorLost")
    if not lives.kind.ends:
        mirror = await until(lambda: lives.mirrors(), describe=lives.describe)
        assert mirror["east"]["metadata"]["uid"] != before
        await play(lives, "created")
        assert not lives.kind.is_running(await lives.source())
        return
    source = await lives.until_over(succeeded=False)
    assert end(source, lives.kind.failed)["reason"] == "MirrorLost"
    assert not lives.kind.is_running(source)
