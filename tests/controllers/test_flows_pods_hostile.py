"""What a worker says of pods is bounded in number, bytes and time, whatever it says (D12, D29)."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec
import pytest
from doubles.jobs import job
from doubles.loglines import Lines
from doubles.refusals import forbidden
from doubles.world import RunningManager, World, manager_of

from mirror.kinds.base import MirrorTransform
from mirror.kinds.declared.choosing import kinds_of
from mirror.kube.client import Client
from mirror.kube.errors import BadAnswer
from mirror.kube.objects import decode_object
from mirror.kube.requests import Request
from mirror.model import names
from mirror.settings.kinds import KindEntry
from mirror.workers import pod_events
from mirror.workers import pods as watching
from mirror.workers.pod_events import LONGEST_LINE, Warned, decode_warning
from mirror.workers.pod_lookups import MOST_OTHERS, REFUSED_SECONDS
from mirror.workers.pod_trouble import condensed
from mirror.workers.pods import MOST_WARNINGS, PodWatches

pytestmark = pytest.mark.looptime

SPEC = {"containers": [{"name": "main", "image": "nope:1"}]}
MIB = 2**20


@asynccontextmanager
async def watched(**changes: Any) -> AsyncIterator[tuple[World, RunningManager, PodWatches]]:
    world = World()
    world.add_worker("east")
    async with manager_of(world, transform=MirrorTransform(world.origin, label_pods=True), **changes) as manager:
        world.create(job())
        await manager.settle()
        world.controller("east").start("train")
        await manager.settle()
        pods = manager.registry.workers["east"].pods
        assert pods is not None
        yield world, manager, pods


def waits(reason: str, message: str = "") -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"name": "main", "image": "nope:1", "state": state}]}


def put_pod(world: World, name: str, status: dict[str, Any]) -> dict[str, Any]:
    mirror = world.mirror("east")
    assert mirror is not None
    labels = mirror["spec"]["template"]["metadata"]["labels"]
    server = world.workers["east"].server
    made = server.put("pods", {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": SPEC})
    server.edit("pods", name, lambda body: body.update(status=status))
    return made


def warning(number: int, message: str = "no", *, name: str = "", reason: str = "FailedMount") -> Warned:
    """About a pod that nobody knows."""
    about = {"kind": "Pod", "namespace": "default", "name": name or f"p{number}", "uid": f"u{number}"}
    event = {"involvedObject": about, "reason": reason, "message": message}
    found = decode_warning(msgspec.json.encode({"type": "ADDED", "object": event}))
    assert found is not None
    return found


def refused(number: int) -> Warned:
    """About a Job that nobody knows."""
    about = {"kind": "Job", "apiVersion": "batch/v1", "namespace": "default", "name": f"j{number}", "uid": f"j{number}"}
    event = {"involvedObject": about, "reason": "FailedCreate", "message": "Error creating: exceeded quota"}
    found = decode_warning(msgspec.json.encode({"type": "ADDED", "object": event}))
    assert found is not None
    return found


@pytest.mark.slow
async def test_reasons_that_change_each_second_are_written_and_told_every_ten() -> None:
    """A Job's text changes at most every ten seconds (D21); an event goes with a change of its reason alone."""
    async with watched() as (world, manager, _):
        put_pod(world, "p", waits("ErrImagePull"))
        await manager.settle(11)
        before = world.writes()
        server = world.workers["east"].server
        for second in range(200):
            reason = ("CreateContainerConfigError", "CrashLoopBackOff", "ErrImagePull")[second % 3]
            text = waits(reason, f"{second}" * 5000)
            server.edit("pods", "p", lambda body, text=text: body.update(status=text))
            await manager.settle(1)
        assert world.writes() - before <= 2 * 200 / 10
        told = [one for one in world.events() if one != "Mirrored"]
        assert len(told) <= 1 + 200 / 10
        source = world.source()
        assert len(msgspec.json.encode(source)) < 8192


@pytest.mark.slow
async def test_a_flood_of_warnings_keeps_a_bounded_number_and_asks_for_few_pods() -> None:
    """What is not known is asked for one by one, a hundred wait, and the rest is left out."""
    async with watched() as (world, manager, pods):
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for number in range(100_000):
                pods._on_warning(warning(number, "x" * 1000))
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert grown < MIB
        sent = len(world.workers["east"].sent)
        await manager.settle(30)
        assert len([one for one in world.workers["east"].sent[sent:] if "/pods/" in one.path]) <= 100
        assert len(pods._notes) == 0
        # Each is remembered as somebody else's, and never asked for again.
        sent = len(world.workers["east"].sent)
        for _ in range(1000):
            pods._on_warning(warning(7))
        await manager.settle(30)
        assert not [one for one in world.workers["east"].sent[sent:] if "/pods/" in one.path]
        assert len(pods._lookups._others) <= MOST_OTHERS
        world.create(job("another"))
        await manager.settle()
        assert world.mirrors("another") == ["east"]


@pytest.mark.slow
async def test_a_flood_of_warnings_about_child_jobs_asks_for_few() -> None:
    """As of pods: whose each one is costs a request, after all that mirrors need."""
    kinds = kinds_of([KindEntry(kind="JobSet")])
    async with watched(kinds=kinds) as (world, manager, pods):
        for number in range(50_000):
            pods._on_warning(refused(number))
            pods._on_warning(refused(7))
        sent = len(world.workers["east"].sent)
        await manager.settle(30)
        asked = [one.path for one in world.workers["east"].sent[sent:] if "/jobs/j" in one.path]
        assert 0 < len(asked) <= 100
        assert len(asked) == len(set(asked))
        assert len(pods._notes) == 0
        assert len(pods._lookups._others) <= MOST_OTHERS
        world.create(job("another"))
        await manager.settle()
        assert world.mirrors("another") == ["east"]


async def test_owners_that_may_not_be_read_are_asked_for_again_minutes_later(log_lines: Lines) -> None:
    """One refusal stands for all in its namespace until then; the permission that is missing is logged."""
    async with watched(kinds=kinds_of([KindEntry(kind="JobSet")])) as (world, manager, pods):
        world.workers["east"].arrange("get", "jobs", forbidden(), times=99)
        sent = len(world.workers["east"].sent)

        def asked() -> int:
            return len([one for one in world.workers["east"].sent[sent:] if "/jobs/j" in one.path])

        for number in range(200):
            pods._on_warning(refused(number))
        await manager.settle(20)
        for number in range(200):
            pods._on_warning(refused(number))
        await manager.settle(20)
        assert asked() == 1
        assert sum(line["event"] == "whose pods are is not read" for line in log_lines) == 1
        await manager.settle(REFUSED_SECONDS)
        for number in range(200):
            pods._on_warning(refused(number))
        await manager.settle(20)
        assert asked() == 2
        put_pod(world, "p", waits("ErrImagePull"))
        await manager.settle(11)
        assert "ImagePullBackOff" in world.events()


async def test_warnings_about_our_pods_are_looked_up_while_mirrors_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither waits for the other, and what waits for the mirrors waits once for all of them."""
    kinds = kinds_of([KindEntry(kind="JobSet")])
    async with watched(kinds=kinds) as (world, manager, pods):
        monkeypatch.setattr(type(pods._host.mirrors), "are_synced", False)
        ours = put_pod(world, "p", {"phase": "Pending"})
        for number in range(200):
            pods._on_warning(refused(number))
        mount = warning(1, "volume not found", name="p")
        mount.about.uid = ours["metadata"]["uid"]
        pods._on_warning(mount)
        await manager.settle(11)
        found = pods.obstruction_of(world.source()["metadata"]["uid"], "default", is_stalled=True)
        assert found is not None
        assert "volume not found" in found.text
        monkeypatch.undo()
        sent = len(world.workers["east"].sent)
        await manager.settle(3)
        assert len([one for one in world.workers["east"].sent[sent:] if "/jobs/j" in one.path]) == 100


async def test_a_uid_that_is_said_to_be_of_another_source_is_forgotten_of_the_first() -> None:
    """A worker may say of any uid what it likes; looking at either source goes on."""
    async with watched() as (_, manager, pods):
        pods._note_warning("first", warning(1, "of the first"))
        pods._note_warning("second", warning(1, "of the second"))
        assert pods.obstruction_of("first", "default", is_stalled=True) is None
        found = pods.obstruction_of("second", "default", is_stalled=True)
        assert found is not None
        assert "of the first" not in found.text
        pods._forget("u1")
        assert pods.obstruction_of("first", "default", is_stalled=True) is None
        assert pods.obstruction_of("second", "default", is_stalled=True) is None
        assert not pods._noted
        await manager.settle(1)


async def test_warnings_about_our_own_pods_are_kept_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest give way, and nothing is left of them."""
    monkeypatch.setattr(watching, "MOST_WARNINGS", 50)
    async with watched() as (world, manager, pods):
        assert MOST_WARNINGS == 5_000
        uid = world.source()["metadata"]["uid"]
        for number in range(500):
            pods._note_warning(uid, warning(number, f"{number}" * 1000))
        assert len(pods._notes) == 50
        assert len(pods._noted[uid]) == 50
        await manager.settle(700)
        assert pods.obstruction_of(uid, "default", is_stalled=True) is None


async def test_pods_in_trouble_are_kept_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond it are not kept, and mirroring goes on."""
    monkeypatch.setattr(watching, "MOST_PODS", 20)
    async with watched() as (world, manager, pods):
        for number in range(60):
            put_pod(world, f"p{number:02}", waits("ErrImagePull"))
        await manager.settle(11)
        assert len(pods._store) == 20
        world.create(job("another"))
        await manager.settle()
        assert world.mirrors("another") == ["east"]


async def test_names_that_no_server_gives_are_not_kept() -> None:
    """A uid of 60 KB, 5,000 times, would be 300 MB."""
    async with watched() as (world, manager, pods):
        pods._on_warning(warning(1, name="n" * 60_000))
        await asyncio.sleep(0)
        assert pods._lookups.asked == 0
        uid = world.source()["metadata"]["uid"]
        for field in ("name", "namespace", "uid", "resourceVersion"):
            metadata = {"name": "p", "namespace": "default", "uid": "1", "labels": {names.SOURCE_UID: uid}}
            body = {"metadata": {**metadata, field: "x" * 255}, "status": waits("ErrImagePull")}
            assert condensed(decode_object(msgspec.json.encode(body))) is None
            with pytest.raises(BadAnswer):
                decode_object(msgspec.json.encode({**body, "metadata": {**metadata, field: "x" * 1000}}))
        await manager.settle(1)


@pytest.mark.parametrize(
    "line", [b"x", b'{"type":"ADDED","object":{"involvedObject":{"kind":"Pod","uid":"u"},"reason":"FailedMount"}}']
)
async def test_warnings_that_come_faster_than_they_are_read_leave_the_loop_to_others(line: bytes) -> None:
    """D12: lines that are there already are read without waiting, megabytes of them."""
    number, turns, is_over = 20_000, 0, asyncio.Event()

    class Flood:
        @asynccontextmanager
        async def stream(self, request: Request, *, silent_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
            yield self._lines()

        async def _lines(self) -> AsyncIterator[bytes]:
            for _ in range(number):
                yield line
            is_over.set()

    async def others() -> None:
        nonlocal turns
        while not is_over.is_set():
            turns += 1
            await asyncio.sleep(0)

    client = cast("Client", Flood())
    following = asyncio.create_task(
        pod_events.follow(lambda: client, None, take=lambda _: None, on_trouble=lambda _: None)
    )
    await others()
    following.cancel()
    assert turns > number / 300


def test_lines_that_are_too_long_are_not_decoded() -> None:
    """Nor is what is no event."""
    event = {"involvedObject": {"kind": "Pod"}, "reason": "FailedMount", "message": "x" * LONGEST_LINE}
    assert decode_warning(msgspec.json.encode({"type": "ADDED", "object": event})) is None
    for line in (b'{"involvedObject"', b'{"type":"ADDED","object":{"involvedObject":7}}', b"\xff" * 100):
        assert decode_warning(line) is None
