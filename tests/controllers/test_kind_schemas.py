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
from mirror.kube.errors import OutcomeUnknown, PageNotFound, ServerFailure
from mirror.kube.objects import Object, decode_object
from mirror.kube.requests import Request
from mirror.model.reasons import Reason
from mirror.settings.load import parse
from mirror.telemetry.logs import Log
from mirror.workers.known_workers import Workers

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
        "kinds[2].record: status.conditions is no field of Simulation; with record: annotation none is needed",
        "kinds[2].suspend.path: spec.pausd is no field of Simulation",
    ]
    assert cluster.reads() == 2
    stopped = StoppedKinds(LoopClock(), Workers())
    obstruction = stopped.why(found["kinds[2]"])
    assert obstruction is not None
    assert obstruction.reason == Reason.INVALID_KIND_ENTRY
    assert obstruction.text.startswith("kinds[2].record: status.conditions is no field of Simulation; with record: ")
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


def schema_with(**parts: object) -> dict[str, object]:
    """Of a kind whose paths are all there, with these parts otherwise."""
    spec = {"type": "object", "properties": {"managedBy": TEXT, "suspend": TEXT, "pausd": TEXT}}
    status = {"type": "object", "properties": {"phase": TEXT, "conditions": {"type": "array"}}}
    return {"properties": {"spec": spec, "status": status} | parts}


def published(kind: str, schema: object) -> bytes:
    """The document that has this schema of a kind."""
    return json.dumps({"components": {"schemas": {kind: schema}}}).encode()


def deep(levels: int, leaf: str = "{}") -> bytes:
    """The document of ours whose status has so many levels."""
    status = '{"items":' * levels + leaf + "}" * levels
    return published("com.example.v1.Simulation", schema_with(status="here")).replace(b'"here"', status.encode())


WHOLE_OF_OURS = published("com.example.v1.Simulation", schema_with())
FAILURE = ServerFailure(500, "InternalError", "the server of this group does not answer")
BROKEN: dict[str, bytes | Exception] = {
    "a page": b"<html></html>",
    "a list": b"[]",
    "text that is cut": WHOLE_OF_OURS[:-9],
    "schemas that are a list": b'{"components": {"schemas": []}}',
    "a schema that is a number": published("com.example.v1.Simulation", 5),
    "fields that are a list": published("com.example.v1.Simulation", {"properties": []}),
    "a spec that is text": published("com.example.v1.Simulation", schema_with(spec="x")),
    "a status that is a list": published("com.example.v1.Simulation", schema_with(status=[])),
    "a status of two thousand levels": deep(2000),
    "brackets without end": b"[" * 1_000_000,
    "more values than any has": b"[" + b"1," * 600_000 + b"1]",
    "a failure": FAILURE,
    "no answer": OutcomeUnknown("no answer in time"),
}


class Documents:
    """A cluster that publishes these documents."""

    def __init__(self) -> None:
        self.found: dict[str, bytes | Exception] = {
            JOB_SETS: published("io.x-k8s.jobset.v1alpha2.JobSet", schema_with()),
            OURS: WHOLE_OF_OURS,
        }
        self.index: bytes | None = None

    async def send(self, request: Request) -> bytes:
        if request.path == "/openapi/v3":
            paths = {f"apis/{name}": {"serverRelativeURL": f"/{hash(str(one))}"} for name, one in self.found.items()}
            return self.index or json.dumps({"paths": paths}).encode()
        found = self.found[request.path.removeprefix("/openapi/v3/apis/")]
        if isinstance(found, Exception):
            raise found
        return found


class Running:
    """``KindSchemas`` in front of ``Documents``, and what it has said."""

    def __init__(self) -> None:
        settings = parse(SETTINGS, "mirror.yaml")
        self.cluster, self.kinds = Documents(), kinds_by_path(kinds_of(settings.kinds), settings.kinds)
        self.counted, self.looked = list[str](), list[str]()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Running:
        schemas = KindSchemas(
            cast(Client, self.cluster),
            self.kinds,
            lambda kind: self.looked.append(kind.name),
            count=lambda kind, _: self.counted.append(kind),
            log=cast(Log, SilentLog()),
        )
        self._task = asyncio.create_task(schemas.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        assert not self._task.done()
        self._task.cancel()

    def dropped(self) -> int:
        """How much of a status with a field that no definition here has is left out; 0 while none is known."""
        kind = self.kinds["kinds[2]"]
        mirror = simulation(status={"phase": "Going", "step": "5"})
        return kind.stored(simulation()).next_status(mirror, now=datetime(2026, 2, 3, tzinfo=UTC)).cut


class SilentLog(Lines):
    def debug(self, event: str, **fields: object) -> None:
        assert event


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_a_broken_document_disturbs_only_its_kind(broken: bytes | Exception) -> None:
    """Other kinds are read; what was known of it holds; and it is read again as soon as it is whole."""
    async with Running() as one:
        one.cluster.found[OURS] = broken
        await asyncio.sleep(3 * INTERVAL_SECONDS)
        assert (one.counted, one.looked, one.dropped()) == (["JobSet"], [], 0)
        one.cluster.found[OURS] = WHOLE_OF_OURS
        await asyncio.sleep(INTERVAL_SECONDS)
        assert (one.counted, one.dropped()) == (["JobSet", "Simulation"], 1)

        one.cluster.found[OURS] = broken
        one.cluster.found[JOB_SETS] = published("io.x-k8s.jobset.v1alpha2.JobSet", schema_with(metadata={}))
        await asyncio.sleep(INTERVAL_SECONDS)
        assert (one.counted, one.dropped()) == (["JobSet", "Simulation", "JobSet"], 1)
        assert [kind.unusable for kind in one.kinds.values()] == [(), ()]


@pytest.mark.parametrize("index", [b"<html></html>", b"[]", b'{"paths": []}', b"[" * 1_000_000], ids=range(4))
async def test_a_broken_index_keeps_no_definition_from_being_read(index: bytes) -> None:
    """Each once; that one has changed is only seen where the index says so."""
    async with Running() as one:
        one.cluster.index = index
        await asyncio.sleep(3 * INTERVAL_SECONDS)
        assert sorted(one.counted) == ["JobSet", "Simulation"]


async def test_a_status_of_very_many_levels_ends_nothing() -> None:
    """As many as can just be decoded: what is compared, and looked through, ends sooner."""
    async with Running() as one:
        for levels in range(800, 1000, 10):
            for leaf in ("{}", '{"type": "string"}'):
                one.cluster.found[OURS] = deep(levels, leaf)
                await asyncio.sleep(INTERVAL_SECONDS)
                one.dropped()
        assert one.counted[0] == "JobSet"


async def test_what_the_index_does_not_list_is_not_asked_for() -> None:
    """Of twelve kinds that a cluster does not serve that would be twelve requests a minute."""
    settings, cluster = parse(SETTINGS, "mirror.yaml"), Cluster()
    cluster.is_defined = True
    found = kinds_by_path(kinds_of(settings.kinds), settings.kinds)
    running = asyncio.create_task(KindSchemas(cast(Client, cluster), found, log=cast(Log, Lines())).run())
    await asyncio.sleep(5 * INTERVAL_SECONDS + 1)
    assert [path for path in cluster.requests if "jobset" in path] == []
    assert cluster.reads() == 1
    running.cancel()
