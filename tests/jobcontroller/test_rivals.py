"""D20: kube-controller-manager's Job controller beside ours is noticed; what it left behind is not held against it."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from operator import methodcaller
from typing import Any

import pytest
from doubles.clock import BEGIN, LoopClock
from doubles.transport import Wire, client_of, wire_to

from mirror.jobcontroller.controller_conflict import ControllerConflict, Evidence, Rivals, evidence_in, is_enough
from mirror.kube.objects import Object, decode_object
from mirror.runtime.informer import Change
from mirror.telemetry.logs import get_log

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def entry(
    manager: str = "kube-controller-manager", *, seconds: float = 60, subresource: str = "status"
) -> dict[str, str]:
    time = (NOON + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"manager": manager, "operation": "Update", "subresource": subresource, "time": time}


def stored(name: str, *entries: dict[str, str], managed_by: str | None = None, active: int = 1) -> dict[str, Any]:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}
    spec: dict[str, Any] = {"template": {"spec": pod}}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "managedFields": list(entries)},
        "spec": spec | ({"managedBy": managed_by} if managed_by else {}),
        "status": {"active": active},
    }


@pytest.mark.parametrize(
    "job",
    [
        stored("a"),
        stored("a", entry("jobmirror"), entry("kubectl")),
        stored("a", entry(seconds=-60)),
        stored("a", entry(seconds=0)),
        stored("a", entry(subresource="")),
        stored("a", entry(), managed_by="example.com/other"),
        stored("a", {"manager": "kube-controller-manager", "subresource": "status", "time": "yesterday"}),
        {"metadata": {"managedFields": "none"}, "spec": None},
    ],
    ids=[
        "nobody wrote",
        "others wrote",
        "it wrote before us",
        "it wrote at the very moment",
        "it wrote something else",
        "a job that is not its",
        "a time that is none",
        "junk",
    ],
)
def test_this_is_no_evidence(job: dict[str, Any]) -> None:
    """Only a status that it wrote later, of a Job that it would sync."""
    assert evidence_in(job, after=NOON) is None


@pytest.mark.parametrize("managed_by", [None, "kubernetes.io/job-controller"])
def test_a_later_write_is_evidence(managed_by: str | None) -> None:
    """The newest one of several; nothing else tells of another controller (Q28)."""
    job = stored("a", entry(seconds=3), entry(seconds=9), entry("jobmirror"), managed_by=managed_by)

    assert evidence_in(job, after=NOON) == Evidence("uid-a", "default/a", NOON + timedelta(seconds=9))


def test_several_writes_to_several_jobs_are_enough() -> None:
    """A single Job or a single moment may be an accident."""
    one, again, other = (Evidence(uid, uid, NOON + timedelta(seconds=at)) for uid, at in (("a", 1), ("a", 2), ("b", 1)))

    assert not is_enough({one, again})
    assert not is_enough({one, other})
    assert is_enough({one, again, other})


def change(wire: Wire, watch: Rivals, *jobs: dict[str, Any]) -> None:
    """Somebody writes the statuses of these Jobs, and the informer tells of it."""
    for job in jobs:
        name = job["metadata"]["name"]
        before = wire.server.find("jobs", name)
        if before is None:
            wire.server.put("jobs", job)
            continue
        managed = {"managedFields": job["metadata"]["managedFields"]}
        write = {"metadata": before["metadata"] | managed, "status": job["status"]}
        now = wire.server.edit("jobs", name, methodcaller("update", write))
        watch.on_job(seen(before), seen(now), Change.SEEN)


def seen(job: dict[str, Any]) -> Object:
    return decode_object(json.dumps(job).encode())


@pytest.mark.looptime
async def test_a_rival_ends_us_within_seconds() -> None:
    """The error names it, some of the Jobs, and what to do."""
    wire = wire_to("home")
    rivals = Rivals(client_of(wire), clock=LoopClock(), log=get_log("test"))
    change(wire, rivals, *(stored(name) for name in "abcdef"))
    async with asyncio.TaskGroup() as scope:
        watching = scope.create_task(expect_fight(rivals), name="watch")
        for number in range(1, 16):
            await asyncio.sleep(1)
            change(wire, rivals, *(stored(name, entry(seconds=number), active=number + 1) for name in "abcdef"))
        assert watching.done()
    assert "kube-controller-manager keeps writing the statuses of jobs" in watching.result()
    assert "default/f" in watching.result()  # the newest suspects were asked
    assert "--controllers=*,-job-controller" in watching.result()


async def expect_fight(rivals: Rivals) -> str:
    with pytest.raises(ControllerConflict) as caught:
        await rivals.watch()
    return str(caught.value)


@pytest.mark.slow
@pytest.mark.looptime
@pytest.mark.parametrize(
    "entries",
    [[entry(seconds=-1)], [entry(seconds=4)], [entry("jobmirror")], []],
    ids=["left behind", "its last words", "our own writes", "nobody"],
)
async def test_what_an_earlier_controller_left_ends_nobody(entries: list[dict[str, str]]) -> None:
    """Also not its last writes, just after we took over; and then little is asked."""
    wire = wire_to("home")
    rivals = Rivals(client_of(wire), clock=LoopClock(), log=get_log("test"))
    change(wire, rivals, *(stored(name) for name in "abcdef"))
    async with asyncio.TaskGroup() as scope:
        watching = scope.create_task(rivals.watch(), name="watch")
        for number in range(1, 301):
            await asyncio.sleep(1)
            change(wire, rivals, *(stored(name, *entries, active=number + 1) for name in "abcdef"))
        assert not watching.done()
        watching.cancel()
    assert BEGIN == NOON
    assert len([sent for sent in wire.sent if sent.verb == "get"]) < 60


@pytest.mark.looptime
async def test_nothing_is_asked_while_nothing_foreign_happens() -> None:
    """An unchanged status, a new Job or a deletion is no reason to look."""
    wire = wire_to("home")
    rivals = Rivals(client_of(wire), clock=LoopClock(), log=get_log("test"))
    async with asyncio.TaskGroup() as scope:
        watching = scope.create_task(rivals.watch(), name="watch")
        await asyncio.sleep(0.1)
        found = seen(stored("a"))
        rivals.on_job(None, found, Change.SEEN)
        rivals.on_job(found, found, Change.SEEN)
        rivals.on_job(found, None, Change.DELETED)
        await asyncio.sleep(300)
        watching.cancel()
    assert wire.sent == []


@pytest.mark.looptime
async def test_a_server_that_is_away_is_asked_again() -> None:
    """Failing to look is no reason to end."""
    wire = wire_to("home")
    rivals = Rivals(client_of(wire), clock=LoopClock(), log=get_log("test"))
    change(wire, rivals, stored("a"))
    async with asyncio.TaskGroup() as scope:
        watching = scope.create_task(rivals.watch(), name="watch")
        await asyncio.sleep(0.1)
        change(wire, rivals, stored("a", active=5))
        wire.is_down = True
        await asyncio.sleep(60)
        assert not watching.done()
        watching.cancel()
