"""How ResourceQuotas, queues and nodes of workers are read, and when they are known no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from doubles.clock import LoopClock

from mirror.controllers import reading_cluster_queues, reading_nodes, reading_quotas
from mirror.controllers.reading_cluster_queues import read_cluster_queues
from mirror.controllers.reading_nodes import read_nodes
from mirror.controllers.reading_quotas import read_quotas
from mirror.controllers.worker_rounds import INTERVAL_SECONDS, LAPSE_SECONDS, LOOK_SECONDS, Reading, WorkerRounds
from mirror.kinds.registry import BUILT_IN
from mirror.kube.errors import BadAnswer, Forbidden, PageNotFound, Unreachable
from mirror.kube.objects import decode_object
from mirror.kube.resources import Resource
from mirror.placement.facts import OTHERS, Subject
from mirror.runtime.environment import Environment
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.workers.worker import Worker

pytestmark = pytest.mark.looptime


def quota(namespace: str, used: str, hard: str = "10", **spec: Any) -> dict[str, Any]:
    status = {"hard": {"pods": hard}, "used": {"pods": used}}
    return {"metadata": {"name": "q", "namespace": namespace}, "spec": spec, "status": status}


class Fleet:
    """Workers whose mirrors are in namespaces with the prefix ``m-``; ``None`` as their quotas: none answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **quotas: list[dict[str, Any]] | None) -> None:
        self.quotas = quotas
        self.known: dict[str, Mapping[Subject, float]] = {}
        self.hangs = False
        self.workers: dict[str, Worker] = {name: self._worker(name) for name in quotas}
        monkeypatch.setattr(reading_quotas, "list_pages", self._pages)

    @staticmethod
    def _worker(name: str) -> Worker:
        watches = SimpleNamespace(namespaces=(None,))
        return cast(
            Worker,
            SimpleNamespace(
                name=name,
                is_reachable=True,
                client=name,
                watches=watches,
                source_namespace_of=lambda found: found[2:] if found.startswith("m-") else None,
            ),
        )

    async def _pages(self, client: str, resource: Resource, *, namespace: str | None) -> AsyncIterator[Any]:
        assert (resource.plural, namespace) == ("resourcequotas", None)
        if self.hangs:
            await asyncio.sleep(10_000)
        found = self.quotas[client]
        if found is None:
            raise Unreachable("nobody is there")
        yield SimpleNamespace(objects=[decode_object(msgspec.json.encode(one)) for one in found])

    @asynccontextmanager
    async def looked_at(self) -> AsyncIterator[None]:
        environment = Environment(LoopClock(), get_log("mirror"), Metrics())
        reading: Reading[Mapping[Subject, float]]
        reading = Reading("ResourceQuotas", partial(read_quotas, kinds=BUILT_IN), self.known.__setitem__, nothing={})
        rounds = WorkerRounds(self.workers, reading, environment=environment)
        task = asyncio.create_task(rounds.run())
        await asyncio.sleep(1)
        yield
        assert not task.done()
        task.cancel()


async def test_the_free_share_of_each_namespace_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the sources' namespaces; quotas of some pods only, and of namespaces that are not ours, do not count."""
    some = quota("m-b", "10", scopes=["BestEffort"])
    strange = {"metadata": {"name": "x", "namespace": "m-c"}, "spec": {}, "status": {"hard": [1], "used": 7}}
    fleet = Fleet(monkeypatch, east=[quota("m-a", "4"), quota("m-a", "9"), some, quota("other", "1"), strange], west=[])
    async with fleet.looked_at():
        assert fleet.known == {"east": {("a", ""): pytest.approx(0.1)}, "west": {}}
        fleet.quotas["east"] = [quota("m-a", "0")]
        await asyncio.sleep(INTERVAL_SECONDS + LOOK_SECONDS)
        assert fleet.known["east"] == {("a", ""): 1.0}


@pytest.mark.parametrize("how", ["refused", "hanging", "too many"])
async def test_what_was_known_lapses(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """A worker that does not answer keeps its facts for a while, and has none then; others go on meanwhile (D12)."""
    fleet = Fleet(monkeypatch, east=[quota("m-a", "4")])
    monkeypatch.setattr(reading_quotas, "MOST_QUOTAS", 3)
    async with fleet.looked_at():
        if how == "hanging":
            fleet.hangs = True
        else:
            fleet.quotas["east"] = None if how == "refused" else [quota("m-a", "9")] * 4
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        assert fleet.known["east"] == {("a", ""): pytest.approx(0.6)}
        await asyncio.sleep(LAPSE_SECONDS)
        assert fleet.known["east"] == {}


async def test_a_worker_that_went_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that went while it was asked."""
    fleet = Fleet(monkeypatch, east=[quota("m-a", "4")])
    async with fleet.looked_at():
        del fleet.workers["east"]
        await asyncio.sleep(INTERVAL_SECONDS)
        assert fleet.known["east"] == {}


def cluster_queue(name: str, nominal: str = "10", reserved: str = "0", **spec: Any) -> dict[str, Any]:
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": nominal}]}]
    taken = [{"name": "default", "resources": [{"name": "cpu", "total": reserved, "borrowed": "0"}]}]
    spec["resourceGroups"] = [{"coveredResources": ["cpu"], "flavors": flavors}]
    return {"metadata": {"name": name}, "spec": spec, "status": {"flavorsReservation": taken}}


def local_queue(name: str, leads_to: str, namespace: str = "m-a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterQueue": leads_to, **spec}}


class Kueue:
    """A worker with these queues, served in one version; in none, there is no Kueue."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, served: str, **collections: list[dict[str, Any]]) -> None:
        self.served = served
        self.collections = collections
        self.worker = Fleet._worker("east")
        monkeypatch.setattr(reading_cluster_queues, "list_pages", self._pages)

    async def _pages(self, client: str, resource: Resource, *, namespace: str | None) -> AsyncIterator[Any]:
        if resource.version != self.served:
            raise PageNotFound("404 without a Status")
        found = self.collections[resource.plural]
        yield SimpleNamespace(objects=[decode_object(msgspec.json.encode(one)) for one in found])


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
async def test_each_queue_has_what_is_free_where_it_leads(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Whichever version is served. Nothing is free in a queue that is stopped, or leads nowhere, or does not exist."""
    queues = [
        local_queue("half", "research"),
        local_queue("again", "research", namespace="m-b"),
        local_queue("held", "research", stopPolicy="Hold"),
        local_queue("astray", "unknown"),
        local_queue("drained", "stopped"),
        local_queue("theirs", "research", namespace="other"),
        {"metadata": {"name": "strange", "namespace": "m-a"}, "spec": [1]},
    ]
    there = [
        cluster_queue("research", reserved="5"),
        cluster_queue("stopped", stopPolicy="HoldAndDrain"),
        {"metadata": {"name": "strange"}, "spec": 7},
    ]
    kueue = Kueue(monkeypatch, version, localqueues=queues, clusterqueues=there)
    assert await read_cluster_queues(kueue.worker) == {
        OTHERS: 0.0,
        ("a", "half"): 0.5,
        ("b", "again"): 0.5,
        ("a", "held"): 0.0,
        ("a", "astray"): 0.0,
        ("a", "drained"): 0.0,
        ("a", "strange"): 0.0,
    }


async def test_without_kueue_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run there without a queue; that is no error, either."""
    assert await read_cluster_queues(Kueue(monkeypatch, "none").worker) == {}


async def test_queues_beyond_all_bounds_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker may answer anything (D29)."""
    monkeypatch.setattr(reading_cluster_queues, "MOST_QUEUES", 2)
    kueue = Kueue(monkeypatch, "v1beta1", localqueues=[], clusterqueues=[cluster_queue(str(n)) for n in range(3)])
    with pytest.raises(BadAnswer, match="more than 2 ClusterQueues"):
        await read_cluster_queues(kueue.worker)


class Nodes:
    """A worker with these nodes and pods; without pods, they may not be listed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **collections: list[dict[str, Any]]) -> None:
        self.collections = collections
        self.worker = Fleet._worker("east")
        monkeypatch.setattr(reading_nodes, "list_pages", self._pages)

    async def _pages(self, client: str, resource: Resource, *, field_selector: str = "") -> AsyncIterator[Any]:
        assert (resource.plural == "pods") == ("nodeName" in field_selector)
        found = self.collections.get(resource.plural)
        if found is None:
            raise Forbidden(403, "Forbidden", "pods is forbidden")
        for one in found:
            yield SimpleNamespace(objects=[decode_object(msgspec.json.encode(one))])


def node(name: str, cpu: str, **spec: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": cpu}, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name}, "spec": spec, "status": status}


def pod(node_name: str, cpu: str) -> dict[str, Any]:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"name": "p"}, "spec": {"nodeName": node_name, "containers": containers}}


async def test_what_pods_request_is_deducted_where_they_may_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else all of the nodes that take pods counts as free."""
    nodes = [node("a", "6"), node("b", "2", unschedulable=True), {"metadata": {"name": "c"}}]
    pods = [pod("a", "1"), pod("a", "3"), pod("b", "2"), pod("other", "9"), {"metadata": {"name": "p"}, "spec": [1]}]
    assert await read_nodes(Nodes(monkeypatch, nodes=nodes).worker) == 0.75
    assert await read_nodes(Nodes(monkeypatch, nodes=nodes, pods=pods).worker) == 0.25
    assert await read_nodes(Nodes(monkeypatch, nodes=[]).worker) is None


@pytest.mark.parametrize("bound", ["MOST_NODES", "MOST_PODS"])
async def test_of_too_many_nothing_is_concluded(monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    monkeypatch.setattr(reading_nodes, bound, 1)
    fleet = Nodes(monkeypatch, nodes=[node("a", "1"), node("b", "1")], pods=[pod("a", "1"), pod("a", "1")])
    with pytest.raises(BadAnswer, match="more than 1"):
        await read_nodes(fleet.worker)
