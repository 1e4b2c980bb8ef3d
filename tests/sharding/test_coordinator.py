"""Several replicas on one API server, in virtual time: each slot is worked on by one, whatever becomes of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.clock import LoopClock
from doubles.transport import Wire, client_of, wire_to

from mirror.kube.limits import Limiter
from mirror.model import names
from mirror.runtime.environment import Environment
from mirror.sharding.coordinator import Coordinator, Holding, ShardingSettings
from mirror.sharding.membership import MemberSettings
from mirror.sharding.slots import slot_of_worker
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics

pytestmark = pytest.mark.looptime

HOME = "jobmirror-system"


class Work:
    """Who works on what, as it is now; two on one slot are an error at once."""

    def __init__(self) -> None:
        self.on: dict[str, list[str]] = {}
        self.terms: Counter[str] = Counter()

    def of(self, name: str) -> list[str]:
        return sorted(what for what, workers in self.on.items() if name in workers)

    async def __call__(self, name: str, holding: Holding) -> None:
        what = str(holding.slot) if holding.slot is not None else "assigning"
        assert holding.permit.seconds_left() > 0
        self.terms[f"{what} {holding.term()}"] += 1
        workers = self.on.setdefault(what, [])
        workers.append(name)
        assert len(workers) == 1, f"{what}: {workers}"
        try:
            await asyncio.Event().wait()
        finally:
            workers.remove(name)


def replica(wire: Wire, work: Work, name: str, slots: int = 4, address: Callable[[], str] = str) -> Coordinator:
    environment = Environment(LoopClock(), get_log("test"), Metrics())
    settings = ShardingSettings(MemberSettings(HOME, name, slots))

    async def works(holding: Holding) -> None:
        await work(name, holding)

    return Coordinator(
        client_of(wire, peer=name),
        settings,
        works,
        is_ready=lambda: True,
        limiter=Limiter(0, 1, environment.clock.monotonic),
        address=address,
        environment=environment,
    )


@asynccontextmanager
async def running(*replicas: Coordinator) -> AsyncIterator[list[asyncio.Task[None]]]:
    async with asyncio.TaskGroup() as scope:
        tasks = [scope.create_task(one.run(), name="replica") for one in replicas]
        try:
            yield tasks
        finally:
            for task in tasks:
                task.cancel()


async def test_one_alone_works_on_everything() -> None:
    wire, work = wire_to("c"), Work()
    only = replica(wire, work, "one")
    async with running(only):
        await asyncio.sleep(10)
        assert work.of("one") == ["0 of 4", "1 of 4", "2 of 4", "3 of 4", "assigning"]
        assert len(only.held) == 4
        assert only.obstacle == ""


@pytest.mark.slow
async def test_a_second_one_gets_half() -> None:
    """S4: and the first goes on with the other half, without a break."""
    wire, work = wire_to("c"), Work()
    async with running(replica(wire, work, "one")):
        await asyncio.sleep(20)
        async with running(replica(wire, work, "two")):
            await asyncio.sleep(25)
            assert len(work.of("one")) == 5, "not before it has been there for a while"
            await asyncio.sleep(60)
            assert len(work.of("two")) == 2
            assert len(work.of("one")) == 3
            assert set(work.terms.values()) == {1}
        await asyncio.sleep(10)
        assert len(work.of("one")) == 5
        assert set(work.terms.values()) == {1}, "a term is never used twice"


@pytest.mark.slow
async def test_what_a_killed_one_had_is_taken_when_its_leases_end() -> None:
    """S5: not before, and by all of the others."""
    wire, work = wire_to("c"), Work()
    names = ("one", "two", "three")
    async with running(*(replica(wire, work, name, slots=9) for name in names)) as tasks:
        await asyncio.sleep(120)
        assert [len(set(work.of(name)) - {"assigning"}) for name in names] == [3, 3, 3]
        lost = set(work.of("two"))
        wire.faults.cut_off("two")
        await asyncio.sleep(9)
        assert set(work.of("two")) == lost, "it may still work"
        await asyncio.sleep(7)
        assert work.of("two") == [], "it has stopped before anybody else may begin"
        await asyncio.sleep(25)
        assert not [what for what in lost if not work.on[what]]
        wire.faults.heal("two")
        await asyncio.sleep(120)
        assert sorted(len(set(work.of(name)) - {"assigning"}) for name in names) == [3, 3, 3]
        assert len(tasks) == 3


@pytest.mark.slow
async def test_replicas_with_another_number_of_slots_wait_for_each_other() -> None:
    """S3: what one slot of theirs has may be in any of ours. With the last one that assigns, all change over."""
    wire, work = wire_to("c"), Work()
    fours, eights = replica(wire, work, "four", slots=4), replica(wire, work, "eight", slots=8)
    async with running(eights):
        async with running(fours):
            await asyncio.sleep(60)
            assigner = work.on["assigning"][0]
            first, waits = (fours, eights) if assigner == "four" else (eights, fours)
            assert len(first.held) in (4, 8)
            assert waits.held == ()
            assert "sharding.slots is" in waits.obstacle
        await asyncio.sleep(40)
        assert len(eights.held) == 8
        assert not [what for what, workers in work.on.items() if what.endswith("of 4") and workers]


async def test_where_one_without_slots_leads_nothing_is_taken() -> None:
    """S3: it works on everything, as a version without slots does, and leaves what the annotation said before."""
    wire, work = wire_to("c"), Work()
    async with running(replica(wire, work, "one")) as (task,):
        await asyncio.sleep(10)
        wire.server.edit("leases", "jobmirror-manager", lambda body: body["spec"].update(holderIdentity="old"), HOME)
        await asyncio.sleep(2)
        assert not [what for what in work.of("one") if what != "assigning"]
        assert not task.done()


@pytest.mark.parametrize("said", ["1 other", "8 other", "4 one"], ids=["none", "eight", "another version"])
async def test_whose_watch_is_silent_gives_its_slots_back_all_the_same(said: str) -> None:
    """S9: before it renews them it reads who assigns; within the renew deadline nothing of it is left."""
    wire, work = wire_to("c"), Work()

    def take(body: dict[str, Any]) -> None:
        body["spec"]["holderIdentity"] = "other"
        body["metadata"]["annotations"] = {names.SLOTS: said}

    async with running(replica(wire, work, "one")):
        await asyncio.sleep(10)
        assert len(work.of("one")) == 5
        wire.mute_watches("leases")
        wire.server.edit("leases", names.LEASE, take, HOME)
        await asyncio.sleep(16)
        assert work.of("one") == []


async def test_a_lease_of_who_assigns_that_was_deleted_costs_no_slot() -> None:
    """Somebody did it by hand; it is made again with the next renewal."""
    wire, work = wire_to("c"), Work()
    async with running(replica(wire, work, "one")):
        await asyncio.sleep(10)
        wire.server.remove("leases", names.LEASE, HOME)
        await asyncio.sleep(60)
        assert len(work.of("one")) == 5
        assert len([what for what in work.terms if not what.startswith("assigning")]) == 4


@pytest.mark.slow
async def test_an_api_server_that_is_away_costs_the_work_and_not_the_replica() -> None:
    wire, work = wire_to("c"), Work()
    async with running(replica(wire, work, "one")) as (task,):
        await asyncio.sleep(10)
        wire.is_down = True
        await asyncio.sleep(20)
        assert work.of("one") == []
        await asyncio.sleep(100)
        wire.restore()
        await asyncio.sleep(60)
        assert len(work.of("one")) == 5
        assert not task.done()
        assert set(work.terms.values()) == {1}, "although nobody else had the Leases meanwhile: this work knows nothing"


async def test_terms_are_read_although_the_watch_is_late() -> None:
    """S6: what a watch shows may be of before; what is read is as of now, and nobody's slot has no term."""
    wire, work = wire_to("c"), Work()
    one, two = replica(wire, work, "one", slots=2), replica(wire, work, "two", slots=2)
    async with running(one):
        await asyncio.sleep(10)
        async with running(two):
            await asyncio.sleep(10)
            before = two.term_of("east")
            assert (await two.read_term("east"), two.holder_of("east")) == (before, "one")
            wire.mute_watches("leases")
            lease = slot_of_worker("east", 2).lease
            wire.server.edit("leases", lease, lambda body: body["spec"].update(leaseTransitions=7), HOME)
            assert two.term_of("east") == before
            assert await two.read_term("east") not in ("", before)
            wire.server.edit("leases", lease, lambda body: body["spec"].update(holderIdentity=""), HOME)
            assert await two.read_term("east") == ""
            wire.server.remove("leases", lease, HOME)
            assert await two.read_term("east") == ""


async def test_members_say_where_they_are_asked_as_soon_as_they_know() -> None:
    """Each knows of the others; of one that has ended, or says nothing, nothing is known."""
    wire, work, ports = wire_to("c"), Work(), list[int]()
    one = replica(wire, work, "one", address=lambda: f"10.0.0.1:{ports[0]}" if ports else "")
    two = replica(wire, work, "two")
    async with running(one, two) as tasks:
        await asyncio.sleep(10)
        assert (two.address_of("one"), two.me, two.assigner) == ("", "two", "one")
        ports.append(8443)
        await asyncio.sleep(10)
        assert (two.address_of("one"), one.address_of("one"), one.address_of("two")) == ("10.0.0.1:8443",) * 2 + ("",)
        assert two.addresses == {"10.0.0.1:8443"}
        tasks[0].cancel()
        await asyncio.sleep(5)
        assert (two.address_of("one"), two.addresses) == ("", frozenset())
