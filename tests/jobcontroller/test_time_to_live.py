"""Finished Jobs go when their time to live is over (J1)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.clock import BEGIN, LoopClock
from doubles.refusals import Refused, forbidden
from doubles.transport import Wire, client_of, wire_to

from mirror.jobcontroller.metrics import JobMetrics
from mirror.jobcontroller.ttl import TimeToLive, due_at
from mirror.kube.client import Client
from mirror.kube.objects import Object, decode_object
from mirror.kube.requests import Request
from mirror.runtime.informer import Change
from mirror.runtime.store import Store
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics

NOON = BEGIN.strftime("%Y-%m-%dT%H:%M:%SZ")


def job(
    *, ttl: int | None = 10, ended: str | None = NOON, type_name: str = "Complete", deleting: bool = False, **spec: Any
) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}
    metadata = {"name": "train", "namespace": "default", "uid": "u"}
    condition = {"type": type_name, "status": "True", "lastTransitionTime": ended}
    return {
        "metadata": metadata | ({"deletionTimestamp": NOON} if deleting else {}),
        "spec": {"template": {"spec": pod}, **({} if ttl is None else {"ttlSecondsAfterFinished": ttl}), **spec},
        "status": {"conditions": [condition]} if ended is not None or type_name == "Untimed" else {},
    }


def seen(body: dict[str, Any]) -> Object:
    return decode_object(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (job(), 10),
        (job(ttl=0, type_name="Failed"), 0),
        (job(managedBy="example.com/other"), 10),
        (job(ttl=None), None),
        (job(ended=None), None),
        (job(type_name="FailureTarget"), None),
        (job(type_name="Suspended"), None),
        (job(deleting=True), None),
        (job(ended="soon"), None),
    ],
    ids=["complete", "failed", "run by others", "no ttl", "not ended", "ending", "suspended", "going", "junk"],
)
def test_a_finished_job_with_a_ttl_is_due(body: dict[str, Any], seconds: float | None) -> None:
    """From the terminal condition on, whoever ran it (M8)."""
    due = due_at(seen(body))

    assert due == (None if seconds is None else BEGIN.timestamp() + seconds)


class Slow:
    """A client whose deletes take their time."""

    def __init__(self, client: Client, delete_seconds: float) -> None:
        self._client = client
        self._delete_seconds = delete_seconds

    async def send(self, request: Request) -> bytes:
        if request.verb == "delete":
            await asyncio.sleep(self._delete_seconds)
        return await self._client.send(request)


class Home:
    """A cluster, its cache, and the part that looks after it."""

    def __init__(self, *, delete_seconds: float = 0.0) -> None:
        self.wire: Wire = wire_to("home")
        self.store = Store({})
        self.process = Metrics()
        self.ttl = TimeToLive(
            Slow(client_of(self.wire), delete_seconds),
            self.store,
            metrics=JobMetrics(self.process),
            clock=LoopClock(),
            log=get_log("test"),
        )

    def put(self, body: dict[str, Any]) -> None:
        self.wire.server.put("jobs", body)
        found = seen(self.wire.server.edit("jobs", "train", lambda stored: stored.update(status=body["status"])))
        self.ttl.on_job(self.store.put(found), found, Change.SEEN)

    @property
    def is_there(self) -> bool:
        """And is to stay: in the foreground, a Job that is deleted waits for the garbage collector."""
        found = self.wire.server.find("jobs", "train")
        return found is not None and "deletionTimestamp" not in found["metadata"]

    def deletes(self) -> list[float]:
        return [sent.at for sent in self.wire.sent if sent.verb == "delete"]

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as scope:
            working = scope.create_task(self.ttl.lead(), name="lead")
            await asyncio.sleep(0)
            yield
            working.cancel()


@pytest.mark.looptime
async def test_it_goes_when_it_is_due() -> None:
    """Not before; what ended before we led counts, too; the metric tells how late it was."""
    home = Home()
    home.put(job())
    async with home.leading():
        await asyncio.sleep(9.9)
        assert home.is_there
        await asyncio.sleep(0.2)
        assert not home.is_there
    text = home.process.render()[0].decode()
    assert "ttl_after_finished_controller_job_deletion_duration_seconds_count 1.0" in text


@pytest.mark.looptime
async def test_the_metric_tells_when_it_was_gone() -> None:
    """PM1: the server took seven seconds to delete it."""
    home = Home(delete_seconds=7.0)
    home.put(job())
    async with home.leading():
        await asyncio.sleep(30)
    text = home.process.render()[0].decode()
    name = "ttl_after_finished_controller_job_deletion_duration_seconds_sum"
    late = next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name))
    assert 7 <= late < 8


@pytest.mark.looptime
async def test_a_longer_life_is_respected() -> None:
    """The server's word at that moment counts, not the cache's."""
    home = Home()
    async with home.leading():
        home.put(job())
        home.wire.server.edit("jobs", "train", lambda body: body["spec"].update(ttlSecondsAfterFinished=30))
        await asyncio.sleep(29)
        assert home.is_there
        await asyncio.sleep(2)
        assert not home.is_there


@pytest.mark.looptime
async def test_a_namesake_is_left_alone() -> None:
    """Another Job of that name has a life of its own."""
    home = Home()
    async with home.leading():
        home.put(job())
        home.wire.server.remove("jobs", "train")
        home.wire.server.put("jobs", job() | {"metadata": {"name": "train", "namespace": "default", "uid": "other"}})
        await asyncio.sleep(60)
    assert home.deletes() == []


@pytest.mark.looptime
async def test_who_does_not_lead_deletes_nothing() -> None:
    """A standby only watches."""
    home = Home()
    home.put(job(ttl=0))
    await asyncio.sleep(60)
    assert home.wire.sent == []


@pytest.mark.looptime
async def test_a_job_that_changes_while_it_is_deleted_is_looked_at_again() -> None:
    """A 409: its own precondition, or a change of its own that nobody sees coming."""
    home = Home()
    home.wire.arrange("delete", "jobs", Refused(409, "Conflict", "the object has been modified"))
    home.put(job(ttl=0))
    async with home.leading():
        await asyncio.sleep(0.5)
        assert len(home.deletes()) == 1
        await asyncio.sleep(1)
        assert len(home.deletes()) == 2


@pytest.mark.looptime
async def test_a_refusal_is_tried_again() -> None:
    """With a growing pause."""
    home = Home()
    home.wire.arrange("delete", "jobs", forbidden(), times=3)
    async with home.leading():
        home.put(job(ttl=0))
        await asyncio.sleep(10)
        assert not home.is_there
    assert len(home.deletes()) == 4
