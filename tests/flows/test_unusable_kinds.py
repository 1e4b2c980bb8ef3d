"""Kinds whose entry names fields that a cluster's definition does not have, and nothing works without (D23)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from declared_world import PATH, SETTINGS, DeclaredWorld, in_world, runs, stored, texts, told
from doubles.drills import drill
from flow_drills import DEFINITIONS, STORED_AS
from flow_world import FlowWorld

from mirror.controllers import worker_schemas
from mirror.controllers.kind_schemas import INTERVAL_SECONDS, KindSchemas, kinds_by_path
from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.controllers.worker_schemas import WorkerSchemas
from mirror.kinds.base import Kind
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.runtime.environment import Environment
from mirror.settings.load import parse
from mirror.telemetry.logs import get_log
from mirror.workers.worker import Worker

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


async def define(world: FlowWorld, spec: dict[str, Any], cluster: str = "management") -> None:
    path, api = f"{DEFINITIONS}/{STORED_AS}", world.planes[cluster].api
    (version,) = (await api.get(path))["spec"]["versions"]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = spec
    await api.merge(path, {"spec": {"versions": [version]}})


async def waits(world: FlowWorld, name: str, reason: str = "InvalidKindEntry") -> bool:
    listed = ((await stored(world, name=name) or {}).get("status") or {}).get("conditions") or ()
    return ("False", reason) in [(one["status"], one["reason"]) for one in listed if one["type"] == names.PLACED]


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


class AskedWorld(DeclaredWorld):
    """Whose manager looks at the definitions of workers, as ``app`` has it."""

    async def _manage(self, settings: MirroringSettings) -> None:
        environment = Environment(self.clock, get_log("mirror"), self.metrics)
        async with asyncio.TaskGroup() as scope:
            schemas = WorkerSchemas(
                lambda: self.registry.workers.values() if self.registry is not None else (),
                kinds_by_path(self.mirrored, parse(SETTINGS, "f").kinds),
                warn=self._warn,
                is_working=lambda: True,
                environment=environment,
            )
            looking = scope.create_task(schemas.run(), name="look at definitions of workers")
            try:
                await super()._manage(settings)
            finally:
                looking.cancel()

    def _warn(self, worker: Worker, reason: str, text: str) -> None:
        assert (worker.name, reason) == ("east", "InvalidKindEntry")
        assert "kinds[0].suspend.path: spec.run.paused is no field of Drill" in text


@in_world(AskedWorld)
async def test_a_worker_whose_definition_lacks_a_field_gets_no_more(world: FlowWorld) -> None:
    """What runs there goes on; nor after a restart, before anybody has read it; all do once the field is there."""

    async def are_over(name: str) -> bool:
        return "Succeeded" in told(await stored(world, name=name))

    body = drill("train")
    body["spec"]["rounds"] = 150
    body["metadata"]["annotations"] = {names.WORKER_SELECTOR: "name=east"}
    await world.management.api.create(PATH, body)
    await world.until(lambda: runs(world))
    await define(world, spec_with(), "east")
    await world.kill_manager()
    world.start_manager()
    await asyncio.sleep(2 * worker_schemas.INTERVAL_SECONDS)

    pinned = drill("pinned")
    pinned["metadata"]["annotations"] = {names.WORKER_SELECTOR: "name=east"}
    await world.management.api.create(PATH, pinned)
    await world.management.api.create(PATH, drill("free"))
    await world.until(lambda: waits(world, "pinned", "KindNotServed"))
    (text, *_) = await texts(world, "KindNotServed")
    assert "serves Drill with all required fields: east: its definition lacks required fields (spec.run.paused)" in text
    await world.until(lambda: are_over("free"))
    assert told(await stored(world, name="free"))[names.PLACED] == "west"

    await world.kill_manager()
    world.start_manager()
    await asyncio.sleep(5)
    assert await waits(world, "pinned", "KindNotServed")
    await world.until(lambda: are_over("train"), seconds=600)
    assert told(await stored(world))[names.PLACED] == "east"
    assert await stored(world, "east", "pinned") is None

    await define(world, spec_with(paused={"type": "boolean"}), "east")
    await world.until(lambda: are_over("pinned"), seconds=worker_schemas.SOON_SECONDS + 60)
