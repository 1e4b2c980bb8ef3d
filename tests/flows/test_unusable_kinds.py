"""Kinds whose entry names fields that the management cluster's definition does not have (D23)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from declared_world import PATH, SETTINGS, DeclaredWorld, in_world, runs, stored, texts, told
from doubles.drills import drill
from flow_drills import DEFINITIONS, STORED_AS
from flow_world import FlowWorld

from mirror.controllers.kind_schemas import INTERVAL_SECONDS, KindSchemas, kinds_by_path
from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.settings.load import parse
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.slow


class LookedAt(DeclaredWorld):
    """Whose manager looks at definitions, as ``app`` has it."""

    async def _manage(self, settings: MirroringSettings) -> None:
        client = self.management.client(peer="manager")
        # Of this manager alone: a kind remembers what its definition lacks.
        kinds = kinds_of(parse(SETTINGS, "f").kinds)

        def look_again(kind: Kind) -> None:
            assert self.mirroring is not None
            self.mirroring.look_again(kind)

        by_path = kinds_by_path(kinds, parse(SETTINGS, "f").kinds)
        async with asyncio.TaskGroup() as scope:
            schemas = KindSchemas(client, by_path, look_again, log=get_log("mirror"))
            looking = scope.create_task(schemas.run(), name="look at definitions")
            try:
                await super()._manage(replace(settings, kinds=kinds))
            finally:
                looking.cancel()
                await client.close()


def spec_with(**run: Any) -> dict[str, Any]:
    """A schema of the spec with these fields of ``run``."""
    fields = {"managedBy": {"type": "string"}, **run}
    return {
        "type": "object",
        "properties": {"rounds": {"type": "integer"}, "run": {"type": "object", "properties": fields}},
    }


async def define(world: FlowWorld, spec: dict[str, Any]) -> None:
    path = f"{DEFINITIONS}/{STORED_AS}"
    (version,) = (await world.management.api.get(path))["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
    await world.management.api.merge(path, {"spec": {"versions": [version]}})


async def waits(world: FlowWorld, name: str) -> bool:
    listed = ((await stored(world, name=name) or {}).get("status") or {}).get("conditions") or ()
    return ("False", "InvalidKindEntry") in [
        (one["status"], one["reason"]) for one in listed if one["type"] == names.PLACED
    ]


@in_world(LookedAt)
async def test_nothing_more_is_placed_of_a_kind_that_cannot_be_suspended_here(world: FlowWorld) -> None:
    """Its source says which key leads nowhere; Jobs and what is placed go on, and all do once the field is there."""
    body = drill("train")
    body["spec"]["rounds"] = 150
    await world.management.api.create(PATH, body)
    await world.until(lambda: runs(world))
    await define(world, spec_with())
    await asyncio.sleep(INTERVAL_SECONDS + 5)
    await world.management.api.create(PATH, drill("other"))
    await world.create("plain")
    await world.until(lambda: waits(world, "other"))
    (text,) = await texts(world, "InvalidKindEntry")
    assert "kinds[0].suspend.path: spec.run.paused is no field of Drill: the operator corrects the entry" in text

    async def are_over(name: str, *, says: str) -> bool:
        return says in told(await stored(world, name=name))

    async def job_is_over() -> bool:
        listed = ((await world.source("plain") or {}).get("status") or {}).get("conditions") or ()
        return "Complete" in [one["type"] for one in listed]

    await world.until(job_is_over)
    await world.until(lambda: are_over("train", says="Succeeded"), seconds=600)
    assert await waits(world, "other")
    assert [await stored(world, worker, "other") for worker in ("east", "west")] == [None, None]

    await define(world, spec_with(paused={"type": "boolean"}))
    await world.until(lambda: are_over("other", says="Succeeded"), seconds=INTERVAL_SECONDS + 60)
