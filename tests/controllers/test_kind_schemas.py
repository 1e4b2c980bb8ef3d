"""What the manager says of settings that do not fit the definitions of its kinds, in virtual time."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import pytest

from mirror.controllers.kind_schemas import INTERVAL_SECONDS, KindSchemas, kinds_by_path
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.client import Client
from mirror.kube.errors import PageNotFound
from mirror.kube.requests import Request
from mirror.settings.load import parse
from mirror.telemetry.logs import Log

pytestmark = pytest.mark.looptime

SETTINGS = b"""
kinds:
- Job
- JobSet
- kind: Simulation
  resource: simulations.v1.example.com
  suspend: {path: spec.pausd}
  done: {succeeded: [phase=Done], failed: [phase=Lost]}
  lost: {set: {phase: Lost}}
"""
TEXT = {"type": "string"}


class Cluster:
    """Serves Simulations from some time on, and no JobSets."""

    def __init__(self) -> None:
        self.is_defined = False
        self.requests: list[str] = []

    async def send(self, request: Request) -> bytes:
        self.requests.append(request.path)
        if not self.is_defined or "jobset" in request.path:
            raise PageNotFound("404")
        properties = {
            "spec": {"properties": {"managedBy": TEXT, "paused": TEXT}},
            "status": {"properties": {"phase": TEXT}},
        }
        schemas = {"com.example.v1.Simulation": {"properties": properties}}
        return json.dumps({"components": {"schemas": schemas}}).encode()


class Lines:
    """A log."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, event: str, *, kind: str, problem: str) -> None:
        assert event
        assert kind
        self.warnings.append(problem)


async def test_each_kind_is_looked_at_once_it_is_served() -> None:
    """With the path of the key, once; whoever is not served is asked for again, and nobody else."""
    log = Lines()
    settings, cluster = parse(SETTINGS, "mirror.yaml"), Cluster()
    found = kinds_by_path(kinds_of(settings.kinds), settings.kinds)
    assert {path: kind.name for path, kind in found.items()} == {"kinds[1]": "JobSet", "kinds[2]": "Simulation"}
    running = asyncio.create_task(KindSchemas(cast(Client, cluster), found, log=cast(Log, log)).run())
    await asyncio.sleep(1)
    assert (len(cluster.requests), log.warnings) == (2, [])

    cluster.is_defined = True
    await asyncio.sleep(3 * INTERVAL_SECONDS)
    assert log.warnings == [
        "kinds[2].record: status.conditions is no field of Simulation",
        "kinds[2].suspend.path: spec.pausd is no field of Simulation",
    ]
    assert len([path for path in cluster.requests if "example.com" in path]) == 2
    running.cancel()
