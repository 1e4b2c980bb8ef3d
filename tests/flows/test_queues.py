"""Beside Kueue: on the management cluster as a gate, and on a worker (D26); what it does is ``queue_hand``'s."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.managers import conditions, placed
from flow_settled import settle
from flow_world import FlowWorld, flow_world, has_ended, job, path
from queue_hand import KUEUE, MIN_PARALLELISM, QueueHand, labels_of
from queue_world import QueueInvariants, QueueWorld

from mirror.embedded import virtual
from mirror.kinds.base import MirrorTransform
from mirror.model import names
from mirror.planes.api import Json

QUEUE = {names.QUEUE_NAME: "users"}
Flow = Callable[[FlowWorld, QueueHand], Awaitable[None]]


@asynccontextmanager
async def queue_world(
    cluster: str, *, is_settled: bool, tolerates: str = "", **settings: Any
) -> AsyncIterator[tuple[FlowWorld, QueueHand]]:
    """``tolerates``: what the API server may refuse the queue."""
    async with flow_world("east", form=QueueWorld, queues_on=(cluster,), **settings) as world:
        assert isinstance(world, QueueWorld)
        laws, hand = QueueInvariants(world), world.hands[cluster]
        yield world, hand
        laws.check()
        if is_settled:
            await settle(world, laws)
        assert all(tolerates in text for text in hand.refused) if tolerates else not hand.refused, hand.refused[:3]


def with_a_queue(cluster: str, *, is_settled: bool = True, **settings: Any) -> Callable[[Flow], Callable[[], None]]:
    """A flow in a world with a Kueue on one cluster; rules hold at every write."""

    def decorate(flow: Flow) -> Callable[[], None]:
        async def main() -> None:
            async with queue_world(cluster, is_settled=is_settled, **settings) as (world, hand):
                await flow(world, hand)

        def run() -> None:
            virtual.run(main())

        run.__name__, run.__doc__ = flow.__name__, flow.__doc__
        return run

    return decorate


async def queued(world: FlowWorld, name: str = "train", **spec: Any) -> Json:
    """A source in the queue, as a user creates it."""
    annotations = spec.pop("annotations", None)
    body = job(name, annotations=annotations, suspend=True, **spec)
    body["metadata"]["labels"] = QUEUE
    return await world.management.api.create(path(""), body)


async def start_of(world: FlowWorld, name: str = "train") -> str | None:
    source = await world.source(name)
    assert source is not None
    start: str | None = (source.get("status") or {}).get("startTime")
    return start


def is_suspended(body: Json | None) -> bool:
    return bool(body and body["spec"].get("suspend"))


# -- on the management cluster -----------------------------------------------------------------------------------------


@with_a_queue("management")
async def test_a_queue_here_is_a_gate(world: FlowWorld, hand: QueueHand) -> None:
    """Admitted is unsuspended is placed; the flavor's directives and the queue's notes stay here; quota comes back."""
    await queued(world, "first", run_for="10s")
    await queued(world, "second", run_for="10s")
    await asyncio.sleep(5)
    first, second = await world.source("first"), await world.source("second")
    if placed(first) is None:
        first, second = second, first
    assert first is not None
    assert second is not None
    assert (placed(first), placed(second)) == ("east", None)
    assert first["spec"]["template"]["spec"]["nodeSelector"] == labels_of("spot")
    mirror = await world.mirror("east", first["metadata"]["name"])
    assert mirror is not None
    template = mirror["spec"]["template"]
    assert not {"nodeSelector", "tolerations"} & template["spec"].keys()
    keys = (*(template["metadata"].get("labels") or {}), *(template["metadata"].get("annotations") or {}))
    assert not [key for key in keys if key.startswith(KUEUE)]
    assert mirror["metadata"]["labels"][names.QUEUE_NAME] == "users"
    await asyncio.sleep(30)
    assert all(has_ended(source) for source in await world.sources())


@pytest.mark.slow
@pytest.mark.parametrize("step_seconds", [0.0, 0.004, 0.05, 2.0])
def test_preemptions_here_suspend_the_mirror(step_seconds: float) -> None:
    """Its three writes are not fought, however quick; a Job gives its quota back, and is resumed when admitted again.

    The template is restored once the mirror's pods are gone: until then the API server refuses that, and it is retried.
    """

    @with_a_queue("management", tolerates="field is immutable")
    async def flow(world: FlowWorld, hand: QueueHand) -> None:
        hand.step_seconds = step_seconds
        source = await queued(world, run_for="40s")
        await asyncio.sleep(5)
        for number in range(5):
            hand.quota = 0
            hand.preempt(source["metadata"]["uid"])
            await asyncio.sleep(6)
            now = await world.source()
            assert now is not None
            assert is_suspended(await world.mirror("east"))
            assert "Suspended" in conditions(now)
            assert (now["status"].get("active") or 0, now["status"].get("startTime")) == (0, None)
            assert "nodeSelector" not in now["spec"]["template"]["spec"]
            hand.flavors = [f"flavor-{number}"]
            hand.quota = 1
            await asyncio.sleep(5)
            assert not is_suspended(await world.mirror("east"))
        assert "StatusConflict" not in await world.events()
        await asyncio.sleep(60)
        assert has_ended(await world.source())
        assert hand.stops == 5

    flow()


@pytest.mark.slow
@with_a_queue("management", tolerates="field is immutable")
async def test_a_preemption_of_a_job_whose_worker_is_away(world: FlowWorld, hand: QueueHand) -> None:
    """It is suspended there once the worker is back; meanwhile what runs keeps its quota, which is the truth."""
    source = await queued(world, run_for="300s")
    await asyncio.sleep(5)
    world.workers["east"].faults.go_down("manager")
    hand.quota = 0
    hand.preempt(source["metadata"]["uid"])
    await asyncio.sleep(20)
    world.workers["east"].faults.restore()
    await asyncio.sleep(10)
    assert is_suspended(await world.mirror("east"))
    assert not hand.workloads[source["metadata"]["uid"]].is_admitted
    hand.quota = 1
    await asyncio.sleep(10)
    assert not is_suspended(await world.mirror("east"))


REPLACED = MirrorTransform(
    "",
    strip_node_selectors=("example.com/*",),
    replace_node_selectors=((("example.com/spot", "true"), ("tier", "preemptible")),),
)


@with_a_queue("management", transform=REPLACED, is_settled=False)
async def test_a_flavor_becomes_labels_of_the_workers_nodes(world: FlowWorld, hand: QueueHand) -> None:
    """Each admission with its own; one that is not listed is stripped."""
    source = await queued(world, run_for="never")
    await asyncio.sleep(5)
    for flavor, expected in (("spot", {"tier": "preemptible"}), ("reserved", None), ("spot", {"tier": "preemptible"})):
        hand.flavors = [flavor]
        hand.preempt(source["metadata"]["uid"])
        await asyncio.sleep(8)
        mirror = await world.mirror("east")
        assert mirror is not None
        assert not is_suspended(mirror)
        assert mirror["spec"]["template"]["spec"].get("nodeSelector") == expected


# -- on a worker -------------------------------------------------------------------------------------------------------


async def sent(world: FlowWorld, name: str = "train", **spec: Any) -> Json:
    """A source that may run, whose mirror is queued on its worker."""
    body = job(name, **spec)
    body["metadata"]["labels"] = QUEUE
    return await world.management.api.create(path(""), body)


@with_a_queue("east")
async def test_a_queue_on_a_worker_decides_when_a_mirror_runs(world: FlowWorld, hand: QueueHand) -> None:
    """It is shown as suspended, and why; then it is admitted, and nothing of that is fought or reported."""
    hand.quota = 0
    await sent(world, run_for="10s")
    await asyncio.sleep(70)
    source = await world.source()
    assert source is not None
    assert "Suspended" in conditions(source)
    assert "SuspendedOnWorker" in await world.events()
    shown = [one["reason"] for one in source["status"]["conditions"] if one["type"] == "jobmirror.io/Progressing"]
    assert shown == ["SuspendedOnWorker"]
    waiting = source["metadata"]["annotations"][names.WAITING_BECAUSE]
    assert waiting == "queue users of worker east has not admitted it"
    hand.quota = 1
    await asyncio.sleep(5)
    source, mirror = await world.source(), await world.mirror("east")
    assert source is not None
    assert mirror is not None
    assert mirror["spec"]["template"]["spec"]["nodeSelector"] == labels_of("spot")
    assert names.WAITING_BECAUSE not in source["metadata"]["annotations"]
    await asyncio.sleep(20)
    assert has_ended(await world.source())
    assert (hand.starts, hand.stops) == (1, 0)
    assert not {"MirrorChanged", "ChangeReverted"} & {*await world.events()}


@with_a_queue("east")
async def test_a_preemption_on_a_worker_is_shown(world: FlowWorld, hand: QueueHand) -> None:
    """Suspended, restored and admitted again with another flavor: each is the worker's."""
    await sent(world, run_for="20s")
    await asyncio.sleep(5)
    mirror = await world.mirror("east")
    assert mirror is not None
    for number in range(3):
        before = await start_of(world)
        hand.quota = 0
        hand.preempt(mirror["metadata"]["uid"])
        await asyncio.sleep(5)
        source = await world.source()
        assert source is not None
        assert "Suspended" in conditions(source)
        assert not is_suspended(source)
        hand.flavors, hand.quota = [f"flavor-{number}"], 1
        await asyncio.sleep(5)
        assert await start_of(world) not in (None, before)
    assert hand.stops == 3
    assert not {"MirrorChanged", "ChangeReverted", "StatusConflict"} & {*await world.events()}
    await asyncio.sleep(60)
    assert has_ended(await world.source())


@with_a_queue("east", is_settled=False)
async def test_a_partial_admission_on_a_worker_is_left(world: FlowWorld, hand: QueueHand) -> None:
    """Kueue runs it with fewer pods than the user asked for, as the annotation allows: not put back."""
    await sent(world, annotations={MIN_PARALLELISM: "1"}, parallelism=3, completions=3, run_for="never")
    await asyncio.sleep(30)
    mirror = await world.mirror("east")
    assert mirror is not None
    assert mirror["spec"]["parallelism"] == 1
    assert (hand.starts, hand.stops) == (1, 0)
    assert not {"MirrorChanged", "ChangeReverted"} & {*await world.events()}


@with_a_queue("east", is_settled=False)
async def test_a_users_suspension_that_the_workers_queue_undoes_is_reported(world: FlowWorld, hand: QueueHand) -> None:
    """It is sent once, since each time ends the pods; then it is said that the mirror runs."""
    await sent(world, run_for="never")
    await asyncio.sleep(5)
    await world.change("train", {"spec": {"suspend": True}})
    await asyncio.sleep(30)
    assert hand.starts == 2
    source = await world.source()
    assert source is not None
    waiting = source["metadata"]["annotations"][names.WAITING_BECAUSE]
    assert waiting == "the queue of worker east keeps the mirror running although it was suspended"
    await world.change("train", {"spec": {"suspend": False}})
    await asyncio.sleep(20)
    source = await world.source()
    assert source is not None
    assert names.WAITING_BECAUSE not in source["metadata"]["annotations"]
    assert hand.starts == 2
