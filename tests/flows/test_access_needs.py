"""``diff`` of a kind that names objects beside pods says whether a worker has them (``needs`` of its entry; D18)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from access_world import AccessWorld, Got, access_world
from flow_drills import DEFINITIONS
from flow_world import FlowWorld

from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.resources import Resource
from mirror.planes.api import Json
from mirror.planes.other_kinds import definition
from mirror.settings.kinds import KindEntry

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

RUNS = Resource("tekton.dev", "v1", "pipelineruns", "PipelineRun")
PIPELINES = Resource("tekton.dev", "v1", "pipelines", "Pipeline")


class TektonWorld(FlowWorld):
    """Its manager mirrors PipelineRuns, and no controller of theirs runs."""

    def __init__(self, scope: asyncio.TaskGroup, workers: Sequence[str], **settings: Any) -> None:
        super().__init__(scope, workers, kinds=kinds_of([KindEntry(kind=RUNS.kind)]), **settings)

    async def start(self) -> None:
        await super().start()
        for plane in self.planes.values():
            for resource in (RUNS, PIPELINES):
                await plane.api.create(DEFINITIONS, definition(resource))


class World(AccessWorld, TektonWorld):
    """With users: bob may see PipelineRuns and Pipelines, eve PipelineRuns alone."""

    async def prepared(self) -> None:
        """They may, and the worker has one Pipeline of two that are here."""
        runs: Json = {"apiGroups": [RUNS.group], "resources": [RUNS.plural], "verbs": ["get", "create"]}
        both = {"apiGroups": [RUNS.group], "resources": [PIPELINES.plural], "verbs": ["get"]}
        await self.allow("bob", [runs, both])
        await self.allow("eve", [runs])
        await asyncio.sleep(20)  # until the kind is served, and watched
        for plane, name in ((self.management, "build"), (self.management, "release"), (self.planes["east"], "build")):
            body = {"apiVersion": PIPELINES.api_version, "kind": PIPELINES.kind, "metadata": {"name": name}}
            await plane.api.create(PIPELINES.path("default"), body)

    async def diff(self, pipeline: str, user: str) -> Got:
        spec = {"managedBy": "jobmirror.io/controller", "pipelineRef": {"name": pipeline}}
        metadata = {"name": "run", "namespace": "default"}
        body = {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": metadata, "spec": spec}
        return await self.ask("/v1/diff", method="POST", body=body, user=user)


async def test_a_pipeline_that_is_missing_on_the_worker_is_said_before_its_run_is_created() -> None:
    """By the right of whoever asks to see a Pipeline of that name at home."""
    async with access_world("east", form=World) as world:
        await world.prepared()
        there, missing, hidden = [
            (await world.diff(*asked)).json["onWorker"]
            for asked in (("build", "bob"), ("release", "bob"), ("release", "eve"))
        ]

    assert [(one["object"], one["state"]) for one in there] == [("Pipeline build", "Exists")]
    assert [(one["object"], one["state"]) for one in missing] == [("Pipeline release", "Missing")]
    ((state, why),) = [(one["state"], one["message"]) for one in hidden]
    assert state == "Unknown"
    assert "eve cannot get pipelines.tekton.dev release" in why
