"""How ResourceQuotas of workers are read, and when they are known no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from doubles.clock import LoopClock

from mirror.controllers import quota_rounds
from mirror.controllers.quota_rounds import INTERVAL_SECONDS, LAPSE_SECONDS, LOOK_SECONDS, QuotaRounds
from mirror.kube.errors import Unreachable
from mirror.kube.objects import decode_object
from mirror.kube.resources import Resource
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
        self.known: dict[str, Mapping[str, float]] = {}
        self.hangs = False
        self.workers: dict[str, Worker] = {name: self._worker(name) for name in quotas}
        monkeypatch.setattr(quota_rounds, "list_pages", self._pages)

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
        rounds = QuotaRounds(self.workers, self.known.__setitem__, environment=environment)
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
        assert fleet.known == {"east": {"a": pytest.approx(0.1)}, "west": {}}
        fleet.quotas["east"] = [quota("m-a", "0")]
        await asyncio.sleep(INTERVAL_SECONDS + LOOK_SECONDS)
        assert fleet.known["east"] == {"a": 1.0}


@pytest.mark.parametrize("how", ["refused", "hanging", "too many"])
async def test_what_was_known_lapses(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """A worker that does not answer keeps its facts for a while, and has none then; others go on meanwhile (D12)."""
    fleet = Fleet(monkeypatch, east=[quota("m-a", "4")])
    monkeypatch.setattr(quota_rounds, "MOST_QUOTAS", 3)
    async with fleet.looked_at():
        if how == "hanging":
            fleet.hangs = True
        else:
            fleet.quotas["east"] = None if how == "refused" else [quota("m-a", "9")] * 4
        await asyncio.sleep(2 * INTERVAL_SECONDS)
        assert fleet.known["east"] == {"a": pytest.approx(0.6)}
        await asyncio.sleep(LAPSE_SECONDS)
        assert fleet.known["east"] == {}


async def test_a_worker_that_went_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that went while it was asked."""
    fleet = Fleet(monkeypatch, east=[quota("m-a", "4")])
    async with fleet.looked_at():
        del fleet.workers["east"]
        await asyncio.sleep(INTERVAL_SECONDS)
        assert fleet.known["east"] == {}
