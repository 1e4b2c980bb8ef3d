"""Kinds whose ``managedBy`` is the one that a MultiKueue of the management cluster looks for, too (D25)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from declared_world import PATH, SETTINGS, DeclaredWorld, in_world, runs, stored, texts, told
from doubles.drills import drill
from doubles.multikueue import CLUSTERS, DEFINITIONS, clusters_definition
from flow_world import FlowWorld

from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.controllers.multikueue import INTERVAL_SECONDS
from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.settings.load import parse
from mirror.starting import find_multikueue
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.slow

OWN_VALUE, THEIR_VALUE = b"spec.run.managedBy}", b"spec.run.managedBy, value: kueue.x-k8s.io/multikueue}"
SHARED = SETTINGS.replace(OWN_VALUE, THEIR_VALUE)


def shared_drill(name: str = "train", rounds: int = 3) -> dict[str, Any]:
    body = drill(name, managedBy=names.MULTIKUEUE_MANAGED_BY)
    body["spec"]["rounds"] = rounds
    return body


class SharedWorld(DeclaredWorld):
    """Whose Drills name MultiKueue; its manager looks for that first, and every minute, as ``app`` has it."""

    mirrored = kinds_of(parse(SHARED, "f").kinds)

    async def _manage(self, settings: MirroringSettings) -> None:
        client = self.management.client(peer="manager")
        multikueue = await find_multikueue(client, self.mirrored, get_log("mirror"))

        def look_again(kind: Kind) -> None:
            assert self.mirroring is not None
            self.mirroring.look_again(kind)

        async with asyncio.TaskGroup() as scope:
            if multikueue is not None:
                scope.create_task(multikueue.run(client, look_again), name="look for MultiKueue")
            try:
                await super()._manage(replace(settings, multikueue=multikueue))
            finally:
                await client.close()


class BesideKueue(SharedWorld):
    """With a Kueue before the manager."""

    async def start(self) -> None:
        await self._begin_with_kueue()
        await super().start()

    async def _begin_with_kueue(self) -> None:
        self.management.start()
        await self.management.api.create(DEFINITIONS, clusters_definition())


class OptedIn(BesideKueue):
    """Whose operator says that no queue dispatches any."""

    mirrored = kinds_of(parse(SHARED.replace(b"- kind: Drill\n", b"- kind: Drill\n  besideKueue: true\n"), "f").kinds)


async def waits(world: FlowWorld, name: str = "train") -> bool:
    """Whether it says that a MultiKueue may run it."""
    listed = ((await stored(world, name=name) or {}).get("status") or {}).get("conditions") or ()
    return ("False", "MultiKueueHere") in [
        (one["status"], one["reason"]) for one in listed if one["type"] == names.PLACED
    ]


async def is_over(world: FlowWorld, name: str = "train") -> bool:
    return "Succeeded" in told(await stored(world, name=name))


@in_world(BesideKueue)
async def test_beside_a_kueue_the_others_are_mirrored(world: FlowWorld) -> None:
    """Jobs go on; of the kind nothing is placed, which says why and what to do, until the Kueue is gone."""
    await world.management.api.create(PATH, shared_drill())
    await world.create("plain")
    await world.until(lambda: waits(world))

    async def job_is_over() -> bool:
        listed = ((await world.source("plain") or {}).get("status") or {}).get("conditions") or ()
        return "Complete" in [one["type"] for one in listed]

    await world.until(job_is_over)
    assert [await stored(world, worker) for worker in ("east", "west")] == [None, None]
    (text,) = await texts(world, "MultiKueueHere")
    assert "Kueue on the management cluster" in text
    assert "Drills with spec.run.managedBy kueue.x-k8s.io/multikueue" in text
    assert "besideKueue: true" in text

    await world.management.api.delete(f"{DEFINITIONS}/{CLUSTERS}")
    await world.until(lambda: is_over(world), seconds=INTERVAL_SECONDS + 30)


@in_world(OptedIn)
async def test_an_operator_may_know_that_no_queue_dispatches_it(world: FlowWorld) -> None:
    """``besideKueue: true``."""
    await world.management.api.create(PATH, shared_drill())
    await world.until(lambda: is_over(world))
    assert "MultiKueueHere" not in await world.events()


@in_world(SharedWorld)
async def test_a_kueue_that_comes_later_keeps_new_ones_from_being_placed(world: FlowWorld) -> None:
    """What is placed already goes on where it is."""
    await world.management.api.create(PATH, shared_drill(rounds=150))
    await world.until(lambda: runs(world))
    await world.management.api.create(DEFINITIONS, clusters_definition())
    await asyncio.sleep(INTERVAL_SECONDS + 5)
    await world.management.api.create(PATH, shared_drill("other"))
    await world.until(lambda: waits(world, "other"))
    await world.until(lambda: is_over(world), seconds=600)
    assert await waits(world, "other")
    await world.management.api.delete(f"{DEFINITIONS}/{CLUSTERS}")
    await world.until(lambda: is_over(world, "other"), seconds=INTERVAL_SECONDS + 30)
