"""What clients meet over a transport in memory when things go wrong, on a server that only echoes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from random import Random

import msgspec
import pytest

from mirror.embedded import virtual
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.messages import Answer, Request, Response, Stream
from mirror.embedded.clocks import LoopClock, SkewedClock
from mirror.embedded.faults.injector import Faults
from mirror.embedded.faults.kinds import (
    Expiry,
    Fault,
    Loss,
    Slow,
    conflict,
    internal_error,
    too_many_requests,
    unavailable,
)
from mirror.embedded.faults.random_faults import ROUGH, RandomFaults
from mirror.embedded.faults.targets import Target, Which
from mirror.embedded.memory import Wire, client_of
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import (
    ApiError,
    Conflict,
    Expired,
    KubeError,
    OutcomeUnknown,
    ServerFailure,
    TooManyRequests,
    Unreachable,
)
from mirror.kube.resources import JOBS, PODS
from mirror.kube.watch import watch

JOB = b'{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7"}}'
LINE = b'{"type":"ADDED","object":' + JOB + b"}\n"
CREATE = requests.create(JOBS, JOB, namespace="n")
GET = requests.get(JOBS, "a", namespace="n")
WATCH = requests.watch(JOBS, timeout_seconds=300)


class Echo:
    """A server that knows one Job, and remembers what it carried out."""

    def __init__(self) -> None:
        self.faults = Faults()
        self.done: list[str] = []
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.closed = 0

    async def handle(self, request: Request) -> Answer:
        try:
            await self.faults.before(request)
        except StatusError as refused:
            body = msgspec.json.encode(refused.status)
            return Response(refused.code, body, headers=refused.headers)
        self.done.append(request.method)
        answer: Answer = Response(200, JOB)
        if "watch" in request.parameters:
            answer = Stream(200, self._stream())
        return await self.faults.after(request, answer)

    async def _stream(self) -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield await self.lines.get()
        finally:
            self.closed += 1


class Setting:
    """The server, and clients of it."""

    def __init__(self) -> None:
        self.server = Echo()
        self.faults = self.server.faults
        self.wire = Wire("east", LoopClock(), self.server)

    def client(self, peer: str = "") -> Client:
        return client_of(self.wire, peer=peer)

    async def follow(self, peer: str, take: Callable[[str], None]) -> None:
        """Watch, and hand on the types of all events until it ends."""
        async for event in watch(self.client(peer), WATCH, silent_seconds=60):
            take(event.type)


def in_virtual_time(test: Callable[[Setting], Awaitable[None]]) -> Callable[[], None]:
    """A test of its own little world."""

    async def main() -> None:
        await test(Setting())

    def run() -> None:
        virtual.run(main())

    run.__doc__, run.__name__ = test.__doc__, test.__name__
    return run


@pytest.mark.parametrize(
    ("fault", "error", "is_done"),
    [
        (Loss.NO_CONNECTION, Unreachable, False),
        (Loss.LOSE_REQUEST, OutcomeUnknown, False),
        (Loss.LOSE_ANSWER, OutcomeUnknown, True),
        (Loss.HANG, OutcomeUnknown, False),
        (Loss.HANG_AFTER, OutcomeUnknown, True),
        (too_many_requests(), TooManyRequests, False),
        (internal_error(), ServerFailure, False),
        (unavailable(3), ServerFailure, False),
        (conflict(), Conflict, False),
    ],
    ids=lambda value: getattr(value, "name", None) or getattr(value, "reason", None) or str(value),
)
def test_each_fault_is_met_once(fault: Fault, error: type[KubeError], is_done: bool) -> None:
    """It is what the client is told, the work is done or not, and the next request is well."""

    @in_virtual_time
    async def test(setting: Setting) -> None:
        setting.faults.arrange(fault, Which("create", "jobs"))
        client = setting.client()
        assert (await client.send_object(GET)).metadata.name == "a"
        with pytest.raises(error) as raised:
            await client.send(CREATE)
        assert ("POST" in setting.server.done) is is_done
        if isinstance(raised.value, ApiError):
            assert raised.value.code >= 400
        await client.send(CREATE)
        await client.close()

    test()


@in_virtual_time
async def test_retry_after_is_told(setting: Setting) -> None:
    """The header says for how long to wait."""
    setting.faults.arrange(too_many_requests(7), Which())
    client = setting.client()
    with pytest.raises(TooManyRequests) as raised:
        await client.send(GET)
    assert raised.value.retry_after_seconds == 7


@in_virtual_time
async def test_slow_ways_take_their_time(setting: Setting) -> None:
    """Latency is for each way, and a slow request is slower than that."""
    loop, client = asyncio.get_running_loop(), setting.client()
    setting.faults.latency_seconds = 0.5
    await client.send(GET)
    assert loop.time() == pytest.approx(1.0)
    setting.faults.arrange(Slow(3), Which())
    await client.send(GET)
    assert loop.time() == pytest.approx(5.0)


@in_virtual_time
async def test_faults_may_be_for_one_client(setting: Setting) -> None:
    """A partition between one client and the server is none for others."""
    near, far = setting.client("near"), setting.client("far")
    setting.faults.go_down("far")
    await near.send(GET)
    with pytest.raises(Unreachable):
        await far.send(GET)
    setting.faults.restore("far")
    setting.faults.cut_off("far")
    await near.send(GET)
    with pytest.raises(OutcomeUnknown):
        await far.send(GET)
    setting.faults.restore()
    await far.send(GET)


@in_virtual_time
async def test_going_down_breaks_what_is_on_its_way(setting: Setting) -> None:
    """A request that has not arrived is lost, and its client knows no more than that."""
    setting.faults.latency_seconds = 10.0
    client = setting.client()
    asking = asyncio.ensure_future(client.send(CREATE))
    await asyncio.sleep(5)
    setting.faults.go_down()
    with pytest.raises(OutcomeUnknown):
        await asking
    assert setting.server.done == []


@in_virtual_time
async def test_a_killed_server_is_not_there(setting: Setting) -> None:
    """Nobody listens."""
    setting.wire.server = None
    with pytest.raises(Unreachable):
        await setting.client().send(GET)


@in_virtual_time
async def test_closing_the_client_ends_its_requests(setting: Setting) -> None:
    """Those under way fail, and later ones, too."""
    client = setting.client()
    setting.faults.arrange(Loss.HANG, Which())
    asking = asyncio.ensure_future(client.send(GET))
    await asyncio.sleep(1)
    await client.close()
    with pytest.raises(OutcomeUnknown):
        await asking
    with pytest.raises(Unreachable):
        await client.send(GET)


@in_virtual_time
async def test_what_is_ending_can_be_broken_again(setting: Setting) -> None:
    """A watch, a request on its way, a client: a second time, before the first is noticed, changes nothing."""
    client, faults = setting.client(), setting.faults
    setting.server.lines.put_nowait(LINE)
    faults.arrange(Slow(60), Which("get"))
    faults.arrange(Loss.HANG, Which("create"))
    watching = asyncio.ensure_future(setting.follow("it", lambda _: None))
    under_way = [asyncio.ensure_future(client.send(one)) for one in (GET, CREATE)]
    await asyncio.sleep(1)
    for _ in range(2):
        faults.break_connections()
        await client.close()
        await asyncio.sleep(0)
    ended = await asyncio.gather(watching, *under_way, return_exceptions=True)
    assert [type(one) for one in ended] == [Unreachable, OutcomeUnknown, OutcomeUnknown]


async def _while_watching(setting: Setting, do: Callable[[], None]) -> tuple[list[str], BaseException | None]:
    """Watch, see one event, let something happen; the events, and what ended the watch."""
    seen: list[str] = []
    error: BaseException | None = None

    async def read() -> None:
        nonlocal error
        try:
            await setting.follow("it", seen.append)
        except KubeError as raised:
            error = raised

    reading = asyncio.ensure_future(read())
    setting.server.lines.put_nowait(LINE)
    await asyncio.sleep(1)
    assert setting.faults.open_watches == 1
    do()
    setting.server.lines.put_nowait(LINE)
    await reading
    assert setting.faults.open_watches == 0
    assert setting.server.closed == 1
    return seen, error


@in_virtual_time
async def test_a_watch_can_be_cut(setting: Setting) -> None:
    """Its reader learns that at once."""
    seen, error = await _while_watching(setting, setting.faults.cut_watches)
    assert seen == ["ADDED"]
    assert isinstance(error, Unreachable)
    assert asyncio.get_running_loop().time() == pytest.approx(1)


@in_virtual_time
async def test_a_watch_can_be_ended(setting: Setting) -> None:
    """A clean end is no error."""
    seen, error = await _while_watching(setting, setting.faults.end_watches)
    assert (seen, error) == (["ADDED"], None)


@in_virtual_time
async def test_a_watch_can_fall_silent(setting: Setting) -> None:
    """The reader gives up by itself; what comes is not shown."""
    seen, error = await _while_watching(setting, setting.faults.mute_watches)
    assert seen == ["ADDED"]
    assert isinstance(error, Unreachable)
    assert asyncio.get_running_loop().time() == pytest.approx(60)


@pytest.mark.parametrize("form", [Expiry.BY_EVENT, Expiry.BY_REASON])
def test_a_watch_can_expire(form: Expiry) -> None:
    """410 in the middle, in both forms."""

    @in_virtual_time
    async def test(setting: Setting) -> None:
        seen, error = await _while_watching(setting, lambda: setting.faults.expire_watches(form))
        assert seen == ["ADDED"]
        assert isinstance(error, Expired)

    test()


@in_virtual_time
async def test_a_silent_watch_goes_on_after_a_short_partition(setting: Setting) -> None:
    """Nothing is lost by a partition that ends before anybody gives up."""
    seen: list[str] = []
    reading = asyncio.ensure_future(setting.follow("it", seen.append))
    await asyncio.sleep(1)
    setting.faults.cut_off("it")
    setting.server.lines.put_nowait(LINE)
    await asyncio.sleep(10)
    assert seen == []
    setting.faults.restore("it")
    await asyncio.sleep(1)
    assert seen == ["ADDED"]
    setting.faults.end_watches()
    await reading


@in_virtual_time
async def test_a_clock_that_is_wrong_shows_in_the_date(setting: Setting) -> None:
    """Clients notice how far the server's clock is ahead."""
    setting.wire.clock = SkewedClock(LoopClock(), ahead_seconds=90)
    client = client_of(setting.wire, clock=LoopClock())
    await client.send(GET)
    assert client.clock_offset_seconds == pytest.approx(90, abs=1)


@in_virtual_time
async def test_a_storm_of_conflicts_ends_with_restore(setting: Setting) -> None:
    """Every write is too late, for as long as it lasts."""
    setting.faults.refuse_writes("jobs", times=math.inf)
    client = setting.client()
    patch = requests.merge_patch(JOBS, "a", {}, namespace="n")
    for _ in range(20):
        with pytest.raises(Conflict):
            await client.send(patch)
    await client.send(CREATE)
    setting.faults.restore()
    await client.send(patch)


def test_random_faults_repeat_themselves() -> None:
    """The same seed, the same faults; every kind of them comes."""

    async def main(seed: int) -> list[str]:
        setting = Setting()
        setting.faults.random_faults = RandomFaults(Random(seed))
        client = setting.client()
        ends: list[str] = []
        patch = requests.merge_patch(JOBS, "a", {}, namespace="n")
        for _ in range(400):
            try:
                await client.send(patch)
                ends.append("fine")
            except ApiError as error:
                ends.append(str(error.code))
            except KubeError as error:
                ends.append(type(error).__name__)
        return ends

    first, again, other = virtual.run(main(1)), virtual.run(main(1)), virtual.run(main(2))
    assert first == again != other
    assert set(first + other) == {"fine", "409", "429", "500", "503", "Unreachable", "OutcomeUnknown"}
    assert len(ROUGH) == 10


@pytest.mark.parametrize(
    ("method", "path", "query", "target"),
    [
        ("GET", "/api/v1/pods", "watch=1", Target("watch", "pods")),
        ("GET", "/api/v1/pods", "watch=false", Target("list", "pods")),
        ("GET", "/apis/batch/v1/namespaces/n/jobs/a/status", "", Target("get", "jobs", "n", "a", "status")),
        ("PUT", "/api/v1/namespaces/n", "", Target("update", "namespaces", "", "n")),
        ("PUT", "/api/v1/namespaces/n/finalize", "", Target("update", "namespaces", "", "n", "finalize")),
        ("DELETE", "/api/v1/namespaces/n/pods", "", Target("deletecollection", "pods", "n")),
        ("GET", "/version", "", Target("get", "")),
        ("GET", "/", "", Target("list", "")),
        ("BREW", "/%zz", "", Target("", "")),
    ],
)
def test_targets(method: str, path: str, query: str, target: Target) -> None:
    """What a request is about."""
    found = Target.of(Request(method, path, query))
    assert found.plural == target.plural
    if target.plural:
        assert found == target
    assert PODS.plural == "pods"
