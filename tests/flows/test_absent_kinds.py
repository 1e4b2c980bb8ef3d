"""What kinds cost that a cluster does not serve, and that discovery decides nothing but when they are listed (D23)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from declared_world import PATH, DeclaredWorld, in_world, runs, stored, told
from doubles.drills import definition, drill
from flow_drills import DEFINITIONS
from flow_world import MANAGER, FlowWorld

from mirror.embedded.apiserver.discovery.groups import AGGREGATED_TYPE
from mirror.embedded.apiserver.messages import Request, Response
from mirror.embedded.faults.kinds import Slow
from mirror.embedded.faults.targets import Target, Which
from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.planes.plane import ControlPlane
from mirror.settings.kinds import KindEntry
from mirror.workers.inventory import Entry

MINUTES = 5
NOTHING = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []}
DOUBTFUL = ("management", "east", "west")


class TwelveWorld(DeclaredWorld):
    """Whose manager knows twelve kinds that no cluster serves."""

    undefined = frozenset(DOUBTFUL)
    mirrored = kinds_of([KindEntry(kind=name) for name in list(built_in())[:12]])


class LateWorld(DeclaredWorld):
    """In which nobody serves Drills yet."""

    undefined = frozenset(DOUBTFUL)


class Asked:
    """What the manager has sent to one cluster, by verb and path."""

    def __init__(self, plane: ControlPlane) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.bytes = 0
        """Of discovery documents that went out."""
        before = plane.faults.on_answer

        def on_answer(request: Request, target: Target, answer: Any) -> None:
            if request.peer == MANAGER:
                self.requests[target.verb if target.plural else "get", request.path] += 1
                if request.path == "/apis" and isinstance(answer, Response):
                    self.bytes += len(answer.body)
            if before is not None:
                before(request, target, answer)

        plane.faults.on_answer = on_answer

    def of(self, path: str) -> int:
        return sum(count for (_, asked), count in self.requests.items() if asked == path)

    def lists(self) -> int:
        """Lists and watches, but for those of Jobs."""
        return sum(n for (verb, path), n in self.requests.items() if verb in ("list", "watch") and "batch" not in path)


@in_world(TwelveWorld)
async def test_twelve_absent_kinds_cost_one_request_in_fifteen_seconds(world: FlowWorld) -> None:
    """On each cluster; each was listed once, at the start, and the document came once."""
    await asyncio.sleep(20)
    asked = {name: Asked(plane) for name, plane in world.planes.items()}
    await asyncio.sleep(60 * MINUTES)
    for name, counted in asked.items():
        most = 4 * MINUTES
        assert most - 1 <= counted.of("/apis") <= most, name
        assert counted.bytes == 0, name
        absent = {one: count for one, count in counted.requests.items() if "jobsets" in one[1] or "ray" in one[1]}
        assert absent == {}, name
        assert counted.lists() <= 4 * MINUTES, (name, counted.requests)  # Secrets' and pods' watches, begun anew
    # A heartbeat in ten seconds, and what was counted above.
    assert asked["east"].requests.total() <= (6 + 4) * MINUTES + 5


@in_world(TwelveWorld)
async def test_one_of_them_starts_by_itself_and_no_other_is_listed(world: FlowWorld) -> None:
    """With the next look."""
    await asyncio.sleep(20)
    asked = Asked(world.planes["east"])
    await world.planes["east"].api.create(DEFINITIONS, job_sets())
    await asyncio.sleep(17)
    listed = {path for (verb, path), _ in asked.requests.items() if verb in ("list", "watch") and "batch" not in path}
    assert listed == {"/apis/jobset.x-k8s.io/v1alpha2/jobsets"}
    assert world.registry is not None
    assert "JobSet" not in world.registry.workers["east"].unserved_kinds
    assert len(world.registry.workers["east"].unserved_kinds) == 11


def job_sets() -> dict[str, Any]:
    """A definition of JobSets, whatever they hold."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": "v1alpha2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "jobset.x-k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "jobsets", "kind": "JobSet"},
        "versions": [served | {"subresources": {"status": {}}}],
    }
    return {"metadata": {"name": "jobsets.jobset.x-k8s.io"}, "spec": spec}


def let_discovery_say(plane: ControlPlane, said: object, status: int = 200) -> None:
    """Whoever asks a cluster for the aggregated form hears this; all else it tells as ever."""
    tell = plane.server._discover

    def discover(request: Request, registry: Any) -> Response | None:
        if request.path == "/apis" and "APIGroupDiscoveryList" in request.headers.get("accept", ""):
            return Response(status, json.dumps(said).encode(), AGGREGATED_TYPE)
        return tell(request, registry)

    vars(plane.server)["_discover"] = discover


def served(kind: str, version: str, *plurals: str, freshness: str = "Current") -> dict[str, Any]:
    """A document that lists these resources of a group."""
    resources = [{"resource": plural, "verbs": ["create", "list"]} for plural in plurals]
    versions = [{"version": version, "resources": resources, "freshness": freshness}]
    return {**NOTHING, "items": [{"metadata": {"name": kind}, "versions": versions}]}


async def is_over(world: FlowWorld) -> bool:
    return "Succeeded" in told(await stored(world))


@pytest.mark.slow
@in_world(DeclaredWorld)
async def test_what_discovery_denies_goes_on_where_it_is_served(world: FlowWorld) -> None:
    """D23: nothing is deleted, failed or held up by its word; a watch that ends is followed by a list as ever."""
    await asyncio.sleep(20)  # they were defined after the manager's first lists
    for plane in world.planes.values():
        let_discovery_say(plane, NOTHING)
    body = drill()
    body["spec"]["rounds"] = 150
    await world.management.api.create(PATH, body)
    await world.until(lambda: runs(world))
    for plane in world.planes.values():
        plane.faults.cut_watches()
    await world.until(lambda: is_over(world), seconds=300)
    await world.management.api.create(PATH, drill("other"))

    async def other_is_over() -> bool:
        return "Succeeded" in told(await stored(world, name="other"))

    await world.until(other_is_over)


@in_world(LateWorld)
async def test_what_discovery_claims_is_not_served_for_that(world: FlowWorld) -> None:
    """D23: it is listed, at the same pace, and is as absent as it was."""
    await asyncio.sleep(20)
    asked = {name: Asked(plane) for name, plane in world.planes.items()}
    for plane in world.planes.values():
        let_discovery_say(plane, served("example.com", "v1", "drills"))
    await asyncio.sleep(60)
    for name, counted in asked.items():
        assert 3 <= counted.of("/apis/example.com/v1/drills") <= 5, name
    assert world.registry is not None
    assert {worker.unserved_kinds for worker in world.registry.workers.values()} == {frozenset({"Drill"})}


DUMB = {
    "it is an older server": ({"kind": "APIGroupList", "groups": []}, 200),
    "it has none": ({"kind": "Status", "code": 404, "reason": "NotFound"}, 404),
    "it is forbidden": ({"kind": "Status", "code": 403, "reason": "Forbidden"}, 403),
    "it fails": ({"kind": "Status", "code": 500, "reason": "InternalError"}, 500),
    "the group's server does not answer": (served("example.com", "v1", freshness="Stale"), 200),
}


@pytest.mark.slow
@pytest.mark.parametrize(("said", "status"), DUMB.values(), ids=DUMB)
def test_where_discovery_says_nothing_each_kind_is_looked_for(said: object, status: int) -> None:
    """As before there was any: it starts by itself."""

    @in_world(LateWorld)
    async def flow(world: FlowWorld) -> None:
        for plane in world.planes.values():
            let_discovery_say(plane, said, status)
        await asyncio.sleep(40)
        for plane in world.planes.values():
            await plane.api.create(DEFINITIONS, definition())
        await asyncio.sleep(20)
        await world.management.api.create(PATH, drill())
        await world.until(lambda: is_over(world))

    flow()


@in_world(TwelveWorld)
async def test_a_worker_is_ready_though_what_is_absent_answers_last(world: FlowWorld) -> None:
    """All is found anew where this process begins to lead; whoever waits for the worker hears of the last answer."""
    await asyncio.sleep(20)
    assert world.registry is not None
    east = world.registry.workers["east"]
    world.planes["east"].faults.arrange(Slow(2.0), Which(verb="watch", plural="jobsets"), times=1)
    east.begin_anew(Entry())
    east.check_again()
    await asyncio.sleep(1)
    assert up(world) == 0
    await asyncio.sleep(4)
    assert (east.is_reachable, up(world)) == (True, 1)


def up(world: FlowWorld) -> float | None:
    """What metrics say of east."""
    return world.metrics.registry.get_sample_value("jobmirror_worker_up", {"worker": "east"})
