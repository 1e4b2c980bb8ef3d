"""Sources that are to be deleted some time after their end, where their own controllers leave that to us (D25)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from declared_world import PATH, SETTINGS, DeclaredWorld, in_world, stored, told
from doubles.drills import drill
from flow_world import FlowWorld

from mirror.embedded.apiserver.apimachinery.errors import StatusError, failure, forbidden
from mirror.embedded.faults.targets import Which
from mirror.kinds.declared.choosing import kinds_of
from mirror.settings.load import parse

pytestmark = pytest.mark.slow

Json = dict[str, Any]
SECONDS = 60


class MortalWorld(DeclaredWorld):
    """Whose Drills say how long they want to live."""

    mirrored = kinds_of(parse(SETTINGS + b"  timeToLive: spec.run.ttl\n", "f").kinds)


async def is_over(world: FlowWorld) -> bool:
    return "Succeeded" in told(await stored(world))


@in_world(MortalWorld)
async def test_it_is_deleted_with_its_mirror_when_its_time_is_over(world: FlowWorld) -> None:
    """Not before, by our clock, also where another manager sees its end; the mirror never hears of the time."""
    await world.management.api.create(PATH, drill(ttl=SECONDS))
    await world.management.api.create(PATH, drill("other"))
    await world.until(lambda: is_over(world))
    worker = next(iter([one for one in ("east", "west") if await stored(world, one) is not None]))
    mirror = await stored(world, worker)
    assert mirror is not None
    assert "ttl" not in mirror["spec"]["run"]
    await asyncio.sleep(SECONDS / 2)
    await world.kill_manager()
    world.start_manager()
    await asyncio.sleep(SECONDS / 2 - 20)
    assert await stored(world) is not None
    await asyncio.sleep(40)
    assert await stored(world) is None
    assert await stored(world, worker) is None
    await asyncio.sleep(SECONDS * 3)
    assert await stored(world, name="other") is not None


async def stays_and_that_is_said(world: FlowWorld, refused: StatusError) -> None:
    """Once in ten minutes it is tried again, and goes when it may."""
    world.management.faults.arrange(refused, Which("delete", "drills"), times=1)
    await world.management.api.create(PATH, drill(ttl=0))

    async def is_said() -> bool:
        return "DeleteRefused" in await world.events()

    await world.until(is_said)
    await asyncio.sleep(500)
    assert await stored(world) is not None
    await asyncio.sleep(120)
    assert await stored(world) is None


@in_world(MortalWorld)
async def test_where_it_may_not_be_deleted_that_is_said(world: FlowWorld) -> None:
    """A permission is missing."""
    await stays_and_that_is_said(world, forbidden("drills", "example.com", "train", "no role allows it"))


@in_world(MortalWorld)
async def test_where_a_policy_keeps_it_that_is_said(world: FlowWorld) -> None:
    """Policies answer 422 unless they say otherwise: the same request would be answered the same."""
    by = "ValidatingAdmissionPolicy 'archive' with binding 'archive' denied request: archive it first"
    await stays_and_that_is_said(world, StatusError(failure(422, "Invalid", f'drills "train" is forbidden: {by}')))
