"""What the manager says of settings that do not fit the definitions of its kinds, in virtual time."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from typing import cast

import pytest
from doubles.clock import LoopClock

from mirror.controllers.kind_schemas import INTERVAL_SECONDS, KindSchemas, kinds_by_path
from mirror.controllers.stopped_kinds import StoppedKinds
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.client import Client
from mirror.kube.errors import PageNotFound
from mirror.kube.objects import Object, decode_object
from mirror.kube.requests import Request
from mirror.model.reasons import Reason
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
JOB_SETS, OURS = "jobset.x-k8s.io/v1alpha2", "example.com/v1"


class Cluster:
    """Serves Simulations from some time on, and no JobSets."""

    def __init__(self) -> None:
        self.is_defined = False
        self.spec: dict[str, object] = {"managedBy": TEXT, "paused": TEXT}
        self.status: dict[str, object] = {"phase": TEXT}
        self.requests: list[str] = []

    async def send(self, request: Request) -> bytes:
        self.requests.append(request.path)
        if not self.is_defined or "jobset" in request.path:
            raise PageNotFound("404")
        properties = {
            "spec": {"type": "object", "properties": self.spec},
            "status": {"type": "object", "properties": self.status},
        }
        document = json.dumps({"components": {"schemas": {"com.example.v1.Simulation": {"properties": properties}}}})
        if request.path != "/openapi/v3":
            return document.encode()
        address = f"/openapi/v3/apis/example.com/v1?hash={hash(document)}"
        return json.dumps({"paths": {"apis/example.com/v1": {"serverRelativeURL": address}}}).encode()

    def reads(self) -> int:
        return len([path for path in self.requests if "example.com" in path])


def simulation(**parts: object) -> Object:
    whole = {"apiVersion": OURS, "kind": "Simulation", "metadata": {"name": "a"}, "spec": {}, **parts}
    return decode_object(json.dumps(whole).encode())


class Lines:
    """A log."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, event: str, *, kind: str, problem: str) -> None:
        assert event
        assert kind
        self.warnings.append(problem)

    def info(self, event: str, *, kind: str) -> None:
        assert event
        assert kind


async def test_each_kind_is_looked_at_once_it_is_served() -> None:
    """With the path of the key, once; whoever is not served is asked for again, and nobody else."""
    log = Lines()
    settings, cluster = parse(SETTINGS, "mirror.yaml"), Cluster()
    found = kinds_by_path(kinds_of(settings.kinds), settings.kinds)
    assert {path: kind.name for path, kind in found.items()} == {"kinds[1]": "JobSet", "kinds[2]": "Simulation"}
    running = asyncio.create_task(KindSchemas(cast(Client, cluster), found, log=cast(Log, log)).run())
    await asyncio.sleep(1)
    assert (cluster.requests[1:], log.warnings) == ([f"/openapi/v3/apis/{JOB_SETS}", f"/openapi/v3/apis/{OURS}"], [])

    cluster.is_defined = True
    await asyncio.sleep(3 * INTERVAL_SECONDS)
    assert log.warnings == [
        "kinds[2].record: status.conditions is no field of Simulation",
        "kinds[2].suspend.path: spec.pausd is no field of Simulation",
    ]
    assert cluster.reads() == 2
    stopped = StoppedKinds(LoopClock())
    obstruction = stopped.why(found["kinds[2]"])
    assert obstruction is not None
    assert obstruction.reason == Reason.INVALID_KIND_ENTRY
    assert obstruction.text.startswith("kinds[2].record: status.conditions is no field of Simulation; kinds[2].suspend")
    assert stopped.is_stopped(found["kinds[2]"])
    assert stopped.why(found["kinds[1]"]) is None

    cluster.spec["pausd"], cluster.status["conditions"] = TEXT, {"type": "array"}
    await asyncio.sleep(INTERVAL_SECONDS)
    assert stopped.why(found["kinds[2]"]) is None
    running.cancel()


async def test_a_definition_that_changes_is_read_anew() -> None:
    """By the old one a field of the new would be left out of all statuses; what is the same is not asked for again."""
    settings = parse(SETTINGS.replace(b"pausd", b"paused"), "mirror.yaml")
    cluster, looked = Cluster(), list[str]()
    cluster.is_defined, cluster.status["conditions"] = True, {"type": "array"}
    found = kinds_by_path(kinds_of(settings.kinds), settings.kinds)
    kind = found["kinds[2]"]
    source, mirror = simulation(), simulation(status={"phase": "Going", "step": "5"})

    def shown() -> object:
        following = kind.stored(source).next_status(mirror, now=datetime(2026, 2, 3, tzinfo=UTC))
        return following.status, following.cut

    schemas = KindSchemas(cast(Client, cluster), found, lambda kind: looked.append(kind.name), log=cast(Log, Lines()))
    running = asyncio.create_task(schemas.run())
    await asyncio.sleep(3 * INTERVAL_SECONDS)
    assert (cluster.reads(), looked, shown()) == (1, [], ({"phase": "Going"}, 1))

    cluster.status["step"] = TEXT
    await asyncio.sleep(INTERVAL_SECONDS)
    assert (cluster.reads(), looked, shown()) == (2, ["Simulation"], ({"phase": "Going", "step": "5"}, 0))

    cluster.spec["more"] = TEXT
    await asyncio.sleep(3 * INTERVAL_SECONDS)
    assert (cluster.reads(), looked) == (3, ["Simulation"])

    del cluster.spec["paused"]
    await asyncio.sleep(3 * INTERVAL_SECONDS)
    assert (cluster.reads(), looked) == (4, ["Simulation", "Simulation"])
    assert kind.unusable == ("kinds[2].suspend.path: spec.paused is no field of Simulation",)
    running.cancel()
