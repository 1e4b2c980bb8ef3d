"""Leader election: at most one works, whatever the API server does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from doubles.clock import LoopClock
from doubles.refusals import Refused
from doubles.transport import Fault, Sent, Wire, client_of, wire_to

from mirror.kube import requests
from mirror.kube.errors import Unreachable
from mirror.kube.permits import WritePermit
from mirror.runtime.leadership import Leadership, LeadershipLost, LeaseSettings, Sighting, may_take
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

HOME = "jobmirror-system"


class Worked:
    """What a leader does: nothing, but it takes a moment to stop."""

    def __init__(self) -> None:
        self.begun: list[float] = []
        self.ended: list[float] = []
        self.stops_in = 0.0

    @property
    def is_at_work(self) -> bool:
        return len(self.begun) > len(self.ended)

    async def __call__(self) -> None:
        loop = asyncio.get_running_loop()
        self.begun.append(loop.time())
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(self.stops_in)
            self.ended.append(loop.time())


def candidate(wire: Wire, identity: str) -> Leadership:
    settings = LeaseSettings(HOME, "lease", identity)
    return Leadership(client_of(wire), settings, clock=LoopClock(), log=get_log("test"))


def holder(wire: Wire) -> str:
    found: dict[str, Any] | None = wire.server.find("leases", "lease", HOME)
    return str(found["spec"]["holderIdentity"]) if found else ""


async def stopped(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})


@pytest.mark.parametrize(
    ("seen", "now", "may"),
    [
        pytest.param(None, 0, True, id="there is none"),
        pytest.param(Sighting("", "1", 0, 15), 0, True, id="given back"),
        pytest.param(Sighting("me", "1", 0, 15), 0, True, id="ours"),
        pytest.param(Sighting("other", "1", 100, 15), 114.9, False, id="somebody's, renewed lately as far as we know"),
        pytest.param(Sighting("other", "1", 100, 15), 115, True, id="not renewed for its duration since we saw it"),
    ],
)
async def test_when_a_lease_may_be_taken(seen: Sighting | None, now: float, may: bool) -> None:
    """Only our own clock counts, never the times that others wrote."""
    assert may_take(seen, "me", now) is may


async def test_the_first_takes_it_the_second_stands_by_and_gets_it_at_once() -> None:
    """A clean exit hands over within a retry period."""
    wire = wire_to("c")
    first, second = Worked(), Worked()
    async with asyncio.TaskGroup() as scope:
        one = scope.create_task(candidate(wire, "one").run(first), name="one")
        await asyncio.sleep(1)
        two = scope.create_task(candidate(wire, "two").run(second), name="two")
        await asyncio.sleep(100)
        assert (first.is_at_work, second.is_at_work, holder(wire)) == (True, False, "one")
        await stopped(one)
        assert holder(wire) == ""
        await asyncio.sleep(2.5)
        assert (first.is_at_work, second.is_at_work, holder(wire)) == (False, True, "two")
        await stopped(two)


async def test_a_dead_leaders_lease_is_taken_after_its_duration() -> None:
    """Measured from our first sight of its last renewal; its clock may say what it likes."""
    wire = wire_to("c")
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 15, "renewTime": "2099-01-01T00:00:00.000000Z"}
    wire.server.put("leases", {"metadata": {"name": "lease", "namespace": HOME}, "spec": spec})
    work = Worked()
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(candidate(wire, "me").run(work), name="me")
        await asyncio.sleep(14.9)
        assert not work.is_at_work
        await asyncio.sleep(2.5)
        assert work.is_at_work
        assert wire.server.get("leases", "lease", HOME)["spec"]["leaseTransitions"] == 1
        await stopped(task)


async def test_a_leader_that_renews_is_never_overtaken() -> None:
    """Each renewal is a new sighting."""
    wire = wire_to("c")
    first, second = Worked(), Worked()
    async with asyncio.TaskGroup() as scope:
        tasks = [
            scope.create_task(candidate(wire, "one").run(first), name="one"),
            scope.create_task(candidate(wire, "two").run(second), name="two"),
        ]
        await asyncio.sleep(900)
        assert [first.is_at_work, second.is_at_work].count(True) == 1
        assert len(first.begun) + len(second.begun) == 1
        for task in tasks:
            await stopped(task)


@pytest.mark.parametrize("how", ["is down", "hangs", "answers 500"])
async def test_who_cannot_renew_stops_before_anybody_else_may_begin(how: str) -> None:
    """Work is cancelled at the renew deadline *and has ended* before LeadershipLost is raised."""
    wire = wire_to("c")
    work = Worked()
    work.stops_in = 1.5
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(_lost_at(candidate(wire, "me"), work), name="me")
        await asyncio.sleep(5)
        wire.is_down, wire.is_hung = how == "is down", how == "hangs"
        if how == "answers 500":
            wire.arrange("update", "leases", Refused(500, "InternalError"), times=99)
        cut_at = asyncio.get_running_loop().time()
        lost_at = await task
    assert work.ended[0] <= lost_at
    assert work.ended[0] - cut_at < 15.0 - 1.0, "well within the lease's duration since the last renewal"
    assert not work.is_at_work


async def _lost_at(leadership: Leadership, work: Worked) -> float:
    with pytest.raises(LeadershipLost):
        await leadership.run(work)
    assert not work.is_at_work
    return asyncio.get_running_loop().time()


async def test_a_lease_that_somebody_took_by_force_ends_the_work() -> None:
    """An administrator edits the lease: the next renewal meets a conflict, then another holder."""
    wire = wire_to("c")
    work = Worked()
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(_lost_at(candidate(wire, "me"), work), name="me")
        await asyncio.sleep(5)
        wire.server.edit("leases", "lease", lambda body: body["spec"].update(holderIdentity="admin"), HOME)
        await task
    assert holder(wire) == "admin"
    assert work.ended[0] < 5 + 5


class Other:
    """What else says whether the lease may be held."""

    def __init__(self) -> None:
        self.allows = True
        self.fails = False
        self.takes_seconds = 0.0
        self.calls = 0

    async def __call__(self) -> bool:
        self.calls += 1
        await asyncio.sleep(self.takes_seconds)
        if self.fails:
            raise Unreachable("no such host")
        return self.allows


def guarded(wire: Wire, other: Other, permit: WritePermit | None = None) -> Leadership:
    settings = LeaseSettings(HOME, "lease", "me", guard=other)
    return Leadership(client_of(wire), settings, clock=LoopClock(), log=get_log("test"), permit=permit)


async def test_a_lease_is_neither_taken_nor_kept_where_something_else_forbids_it() -> None:
    """S9: the next renewal ends the work, and the lease is given back."""
    wire, other, work = wire_to("c"), Other(), Worked()
    other.allows = False
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(_lost_at(guarded(wire, other), work), name="me")
        await asyncio.sleep(30)
        assert work.begun == []
        assert holder(wire) == ""
        other.allows = True
        await asyncio.sleep(5)
        assert work.is_at_work
        other.allows = False
        asked_at = asyncio.get_running_loop().time()
        await task
    assert work.ended[0] - asked_at < 2.5
    assert holder(wire) == ""


async def test_a_lease_of_which_nothing_is_known_is_not_renewed() -> None:
    """S9: as if its API server was away: for a moment it costs nothing, and then the work."""
    wire, other, work = wire_to("c"), Other(), Worked()
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(_lost_at(guarded(wire, other), work), name="me")
        await asyncio.sleep(5)
        other.fails = True
        await asyncio.sleep(7)
        other.fails = False
        await asyncio.sleep(30)
        assert work.is_at_work
        other.fails = True
        failed_at = asyncio.get_running_loop().time()
        lost_at = await task
    assert 5 < lost_at - failed_at < 11


async def test_a_lease_counts_from_before_it_was_asked_whether_it_may_be_held() -> None:
    """S9, D28: what forbids it may have come right after the answer."""
    wire, other, clock = wire_to("c"), Other(), LoopClock()
    other.takes_seconds = 3.0
    permit, left = WritePermit(clock.boottime), list[float]()

    async def work() -> None:
        left.append(permit.seconds_left())

    await guarded(wire, other, permit).run(work)
    assert left[0] == pytest.approx(15.0 - 3.0, abs=0.1)


async def test_what_forbids_a_lease_that_is_free_is_asked_in_its_time() -> None:
    """S9: it is a request, each time."""
    wire, other, work = wire_to("c"), Other(), Worked()
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 15}
    wire.server.put("leases", {"metadata": {"name": "lease", "namespace": HOME}, "spec": spec})
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(_lost_at(guarded(wire, other), work), name="me")
        await asyncio.sleep(5)
        other.allows, other.calls = False, 0
        await asyncio.sleep(60)
        assert other.calls <= 31
        other.fails, other.calls = True, 0
        await asyncio.sleep(60)
        assert other.calls <= 31
        await stopped(task)


async def test_a_conflict_alone_is_no_loss() -> None:
    """Somebody only annotated the lease."""
    wire = wire_to("c")
    work = Worked()
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(candidate(wire, "me").run(work), name="me")
        await asyncio.sleep(5)
        wire.server.edit("leases", "lease", lambda body: body["metadata"].update(annotations={"a": "b"}), HOME)
        await asyncio.sleep(60)
        assert work.is_at_work
        await stopped(task)


async def test_a_renewal_whose_answer_was_lost_is_no_loss() -> None:
    """It was carried out: the next one meets a conflict, looks, and finds itself."""
    wire = wire_to("c")
    work = Worked()
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(candidate(wire, "me").run(work), name="me")
        await asyncio.sleep(3)
        wire.arrange("update", "leases", Fault.LOSE_ANSWER)
        await asyncio.sleep(60)
        assert work.is_at_work
        await stopped(task)


async def test_a_renewal_that_nobody_has_read_does_not_keep_the_lease() -> None:
    """Stopped between a renewal that was carried out and the look that would show it: handed over all the same."""
    wire = wire_to("c")
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(candidate(wire, "me").run(Worked()), name="me")
        await asyncio.sleep(3)
        wire.arrange("update", "leases", Fault.LOSE_ANSWER)
        await asyncio.sleep(1.5)
        await stopped(task)
    assert holder(wire) == ""


async def test_two_that_create_at_once_are_one_leader() -> None:
    """The API server picks one of them."""
    wire = wire_to("c")
    works = [Worked(), Worked()]
    async with asyncio.TaskGroup() as scope:
        tasks = [
            scope.create_task(candidate(wire, f"c{number}").run(work), name=f"c{number}")
            for number, work in enumerate(works)
        ]
        await asyncio.sleep(10)
        assert sum(work.is_at_work for work in works) == 1
        for task in tasks:
            await stopped(task)


async def test_work_that_ends_by_itself_gives_the_lease_back() -> None:
    """``run`` returns."""
    wire = wire_to("c")

    async def brief() -> None:
        await asyncio.sleep(3)

    await candidate(wire, "me").run(brief)
    assert holder(wire) == ""


async def test_an_api_server_that_hangs_at_the_start_only_delays() -> None:
    """Standing by has no deadline."""
    wire = wire_to("c")
    wire.arrange("get", "leases", Fault.HANG)
    work = Worked()
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(candidate(wire, "me").run(work), name="me")
        await asyncio.sleep(30)
        assert work.is_at_work
        await stopped(task)


async def test_a_lease_that_was_deleted_is_made_again() -> None:
    """By who holds it, unless somebody else was faster."""
    wire = wire_to("c")
    work = Worked()
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(candidate(wire, "me").run(work), name="me")
        await asyncio.sleep(5)
        wire.server.remove("leases", "lease", HOME)
        await asyncio.sleep(60)
        assert (work.is_at_work, len(work.begun), holder(wire)) == (True, 1, "me")
        await stopped(task)


class Watched:
    """Sends on, and notes which term it was at each request."""

    def __init__(self, wire: Wire) -> None:
        self.terms: list[tuple[str, int]] = []
        self._client = client_of(wire)
        self.leader = Leadership(self, LeaseSettings(HOME, "lease", "me"), clock=LoopClock(), log=get_log("test"))

    async def send(self, request: requests.Request) -> bytes:
        if self.leader.is_leader:
            self.terms.append(self.leader.term)
        return await self._client.send(request)


async def test_a_term_goes_on_while_it_is_looked_who_holds_the_lease() -> None:
    """S6: one that stands for no Lease would be the same each time. A Lease that is made again begins another."""
    wire = wire_to("c")
    watched = Watched(wire)
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(watched.leader.run(Worked()), name="me")
        await asyncio.sleep(5)
        first = watched.leader.term
        wire.server.edit("leases", "lease", lambda body: body["metadata"].update(annotations={"a": "b"}), HOME)
        await asyncio.sleep(20)
        assert first[0]
        assert set(watched.terms) == {first}
        wire.server.remove("leases", "lease", HOME)
        await asyncio.sleep(20)
        assert watched.leader.term != first
        assert set(watched.terms) == {first, watched.leader.term}
        await stopped(task)


class SlowToAcquire:
    """The first write is carried out at once and answered late; no later one is answered."""

    def __init__(self) -> None:
        self.taken_at: float | None = None

    async def send(self, request: requests.Request) -> bytes:
        if request.verb == "get":
            return b'{"metadata":{"name":"lease","resourceVersion":"1"},"spec":{"holderIdentity":""}}'
        if self.taken_at is not None:
            await asyncio.Event().wait()
        self.taken_at = asyncio.get_running_loop().time()
        await asyncio.sleep(3.9)
        assert request.body is not None
        return request.body


async def test_the_first_term_counts_from_when_it_was_asked_for() -> None:
    """Others count from when the lease was written, not from when we heard of it."""
    sender, work = SlowToAcquire(), Worked()
    settings = LeaseSettings(HOME, "lease", "me", duration_seconds=15.0, renew_deadline_seconds=10.0)
    with pytest.raises(LeadershipLost):
        await Leadership(sender, settings, clock=LoopClock(), log=get_log("test")).run(work)
    assert sender.taken_at is not None
    assert work.ended[0] - sender.taken_at <= 10.1


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b'{"metadata":[1]}', b'{"spec":"x"}', b"[" * 5000, b"\xff"])
async def test_an_answer_that_is_no_lease_is_a_failure_like_others(answer: bytes) -> None:
    """Somebody on the way answered; the next try may meet the API server."""

    class Junk:
        async def send(self, request: requests.Request) -> bytes:
            return answer

    task = asyncio.create_task(
        Leadership(Junk(), LeaseSettings(HOME, "lease", "me"), clock=LoopClock(), log=get_log("test")).run(Worked())
    )
    await asyncio.sleep(30)
    assert not task.done()
    await stopped(task)


async def test_a_server_that_fails_with_the_lease_for_long_is_an_obstacle() -> None:
    """Its etcd is full, most likely: it answers reads, so nothing else tells; a restart of it is none."""
    wire = wire_to("c")
    wire.arrange("create", "leases", Refused(500, "", "etcdserver: mvcc: database space exceeded"), times=999)
    work, one = Worked(), candidate(wire, "me")
    task = asyncio.create_task(one.run(work))
    await asyncio.sleep(10)
    assert one.obstacle == ""
    await asyncio.sleep(20)
    assert one.obstacle == (f"Lease {HOME}/lease cannot be taken: 500: etcdserver: mvcc: database space exceeded")
    wire.restore()
    await asyncio.sleep(5)
    assert (one.obstacle, work.is_at_work) == ("", True)
    await stopped(task)


SLOW_SECONDS = 0.3
"""One way."""


def slow(wire: Wire, identity: str, guard: Other | None = None) -> asyncio.Task[None]:
    """Somebody who takes the lease over a slow way: it is read after 0.6 seconds, and taken after as many again."""
    wire.faults.latency_seconds = SLOW_SECONDS
    settings = LeaseSettings(HOME, "lease", identity, guard=guard)
    taking = Leadership(client_of(wire, peer=identity), settings, clock=LoopClock(), log=get_log("test"))
    return asyncio.ensure_future(taking.run(Worked()))


def free(wire: Wire) -> None:
    spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
    wire.server.put("leases", {"metadata": {"name": "lease", "namespace": HOME}, "spec": spec})


@pytest.mark.parametrize("is_there", [False, True], ids=["created", "updated"])
@pytest.mark.parametrize("seconds", [0.2, 0.4, 0.8, 1.1], ids=["reads", "has read", "writes", "has written"])
async def test_a_taking_that_is_cancelled_leaves_the_lease_free(seconds: float, is_there: bool) -> None:
    """Whoever has taken it, and does not know it yet, gives it back: others would wait until it ends."""
    wire = wire_to("c")
    if is_there:
        free(wire)
    taking = slow(wire, "me")
    await asyncio.sleep(seconds)
    await stopped(taking)
    assert holder(wire) == ""
    await asyncio.sleep(60)
    assert holder(wire) == ""
    assert [one for one in wire.given_up if one.request.method != "GET"] == []


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST])
async def test_a_taking_whose_answer_never_comes_leaves_the_lease_free(fault: Fault) -> None:
    wire = wire_to("c")
    free(wire)
    taking = slow(wire, "me")
    wire.arrange("update", "leases", fault)
    await asyncio.sleep(1.1)
    began = asyncio.get_running_loop().time()
    await stopped(taking)
    assert asyncio.get_running_loop().time() - began < 5
    assert holder(wire) == ""


async def test_who_is_cancelled_before_it_takes_the_lease_takes_it_no_more() -> None:
    wire, other = wire_to("c"), Other()
    other.takes_seconds = 5.0
    taking = slow(wire, "me", other)
    await asyncio.sleep(2)
    await stopped(taking)
    assert [sent.verb for sent in wire.sent] == []


@pytest.mark.parametrize("seconds", [0.0, 0.2], ids=["carried out", "answered soon"])
async def test_who_leaves_hears_what_became_of_its_last_renewal(seconds: float) -> None:
    """Cut off, it might be carried out at any time."""
    wire = wire_to("c")
    leading = slow(wire, "me")
    await asyncio.sleep(5)
    renewals = len(renewals_of(wire))
    for _ in range(400):
        await asyncio.sleep(0.01)
        if len(renewals_of(wire)) > renewals:
            break
    await asyncio.sleep(seconds)
    await stopped(leading)
    assert holder(wire) == ""
    assert [one for one in wire.given_up if one.request.method != "GET"] == []


def renewals_of(wire: Wire) -> list[Sent]:
    """Those that have arrived."""
    return [sent for sent in wire.sent if sent.writes]


async def test_who_takes_a_moment_to_leave_keeps_the_lease_until_then() -> None:
    """What it does in that moment is done as the leader: nobody else begins meanwhile, however long it takes."""
    wire, work, permit = wire_to("c"), Worked(), WritePermit(LoopClock().boottime)
    work.stops_in = 30.0
    leadership = Leadership(
        client_of(wire), LeaseSettings(HOME, "lease", "me"), clock=LoopClock(), log=get_log("test"), permit=permit
    )
    leading = asyncio.ensure_future(leadership.run(work))
    await asyncio.sleep(5)
    leading.cancel()
    for _ in range(29):
        await asyncio.sleep(1)
        assert (permit.seconds_left() > 0, holder(wire)) == (True, "me")
    await asyncio.wait({leading})
    assert (permit.seconds_left(), holder(wire)) == (0.0, "")
