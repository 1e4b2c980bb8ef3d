"""Worlds whose manager knows Drills by its settings alone, and flows in them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from doubles.drills import DRILLS
from flow_drills import DrillInvariants, DrillWorld
from flow_settled import settle
from flow_world import FlowWorld, flow_world

from mirror.embedded import virtual
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.kinds.declared.choosing import kinds_of
from mirror.settings.load import parse

Json = dict[str, Any]
Flow = Callable[[FlowWorld], Awaitable[None]]
SETTINGS = b"""
kinds:
- kind: Drill
  resource: drills.v1.example.com
  managedBy: {path: spec.run.managedBy}
  suspend: {path: spec.run.paused}
  done: {succeeded: [condition Succeeded=True], failed: [condition Broken=True]}
  suspended: {conditions: [{type: Paused}]}
  lost: {conditions: [{type: Broken}]}
"""
PATH = DRILLS.path("default")


class DeclaredWorld(DrillWorld):
    """Whose manager knows Drills by its settings."""

    mirrored = kinds_of(parse(SETTINGS, "f").kinds)


def in_world(form: type[DeclaredWorld]) -> Callable[[Flow], Callable[[], None]]:
    """A flow in a world of its own."""

    def decorate(flow: Flow) -> Callable[[], None]:
        async def main() -> None:
            async with flow_world("east", "west", form=form) as world:
                laws = DrillInvariants(world)
                await asyncio.sleep(5)
                await flow(world)
                laws.check()
                if not form.undefined:
                    await settle(world, laws)

        def run() -> None:
            virtual.run(main())

        run.__name__, run.__doc__ = flow.__name__, flow.__doc__
        return run

    return decorate


async def stored(world: FlowWorld, cluster: str = "management", name: str = "train") -> Json | None:
    """A Drill on a cluster; None where there is none, or no kind of it."""
    try:
        found = await world.planes[cluster].api.list(PATH)
    except StatusError:
        return None
    return next((one for one in found if one["metadata"]["name"] == name), None)


async def runs(world: FlowWorld) -> bool:
    """Whether the source has counted something."""
    return bool(((await stored(world) or {}).get("status") or {}).get("rounds"))


async def texts(world: FlowWorld, reason: str) -> list[str]:
    """Of all events with this reason."""
    listed = await world.management.api.list("/api/v1/events")
    return [one["message"] for one in listed if one["reason"] == reason]


def told(found: Json | None) -> dict[str, str]:
    """Type to message of the True conditions."""
    listed = ((found or {}).get("status") or {}).get("conditions") or ()
    return {one["type"]: one["message"] for one in listed if one["status"] == "True"}
