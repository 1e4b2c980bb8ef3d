"""Beside Kueue: on the management cluster as a gate, and on a worker (D26); what it does is ``queue_hand``'s.

Each flow is played with every kind of ``queue_forms``; what only Jobs can do says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from doubles.managers import conditions, placed
from flow_settled import settle
from flow_world import flow_world, job, path
from queue_forms import FORMS, JOB, KUEUE, Form
from queue_hand import MIN_PARALLELISM, QueueHand, labels_of
from queue_world import QueueInvariants, QueueWorld, settle_others

from mirror.embedded import virtual
from mirror.kinds.base import MirrorTransform
from mirror.model import names
from mirror.planes.api import Json

QUEUE = {names.QUEUE_NAME: "users"}
IMMUTABLE = "field is immutable"
"""What the API server may refuse a queue that restores the template of a Job whose pods have not gone yet."""
Flow = Callable[[QueueWorld, QueueHand], Awaitable[None]]


@asynccontextmanager
async def queue_world(
    cluster: str, *, is_settled: bool, tolerates: str = "", **settings: Any
) -> AsyncIterator[tuple[QueueWorld, QueueHand]]:
    """``tolerates``: what the API server may refuse the queue."""
    async with flow_world("east", form=QueueWorld, queues_on=(cluster,), **settings) as world:
        assert isinstance(world, QueueWorld)
        laws, hand = QueueInvariants(world), world.hands[cluster]
        yield world, hand
        laws.check()
        if is_settled and world.further:
            await settle_others(world, laws)
        elif is_settled:
            await settle(world, laws)
        assert all(tolerates in text for text in hand.refused) if tolerates else not hand.refused, hand.refused[:3]


def with_a_queue(
    cluster: str, *, of: Sequence[Form] = FORMS, is_settled: bool = True, **settings: Any
) -> Callable[[Flow], Callable[[Form], None]]:
    """A flow in a world with a Kueue on one cluster, for each of these kinds; rules hold at every write."""

    def decorate(flow: Flow) -> Callable[[Form], None]:
        async def main(form: Form) -> None:
            async with queue_world(cluster, is_settled=is_settled, subject=form, **settings) as (world, hand):
                await flow(world, hand)

        def run(form: Form) -> None:
            virtual.run(main(form))

        run.__name__, run.__doc__ = flow.__name__, flow.__doc__
        return each(of)(run)

    return decorate


def each(of: Sequence[Form]) -> pytest.MarkDecorator:
    """A test of these kinds; a quick run has Jobs alone."""
    slow = {form: [] if form is JOB else [pytest.mark.slow] for form in of}
    return pytest.mark.parametrize("form", [pytest.param(form, id=str(form), marks=slow[form]) for form in of])


async def queued(world: QueueWorld, name: str = "train", *, run_for: str = "1s") -> Json:
    """A source in the queue, as a user creates it."""
    form = world.subject
    body = form.held(form.body(name, run_for=run_for))
    body["metadata"]["labels"] = QUEUE
    return await world.management.api.create(form.path(), body)


async def started_at(world: QueueWorld) -> str | None:
    source = await world.look()
    assert source is not None
    return world.subject.started_at(source.get("status") or {})


async def pods_of(world: QueueWorld, cluster: str = "management", name: str = "train") -> list[Json]:
    """The pod templates of one of them."""
    found = await world.look(cluster, name)
    assert found is not None
    return [*world.subject.templates(found).values()]


async def is_held(world: QueueWorld, cluster: str = "management") -> bool:
    """Whether its spec suspends it."""
    return world.subject.is_held(await world.look(cluster))


async def has_ended(world: QueueWorld, *names_of: str) -> bool:
    return all([world.subject.has_ended(await world.look(name=name)) for name in names_of or ("train",)])


# -- on the management cluster -----------------------------------------------------------------------------------------


@with_a_queue("management")
async def test_a_queue_here_is_a_gate(world: QueueWorld, hand: QueueHand) -> None:
    """Admitted is unsuspended is placed; the flavor's directives and the queue's notes stay here; quota comes back."""
    await queued(world, "first", run_for="10s")
    await queued(world, "second", run_for="10s")
    await asyncio.sleep(5)
    placements = {name: placed(await world.look(name=name)) for name in ("first", "second")}
    name = next(name for name, worker in placements.items() if worker)
    assert sorted(placements.values(), key=str) == [None, "east"]
    for template in await pods_of(world, name=name):
        assert template["spec"]["nodeSelector"] == labels_of("spot")
    mirror = await world.look("east", name)
    assert mirror is not None
    for template in await pods_of(world, "east", name):
        assert not {"nodeSelector", "tolerations"} & template["spec"].keys()
        metadata = template.get("metadata") or {}
        keys = (*(metadata.get("labels") or {}), *(metadata.get("annotations") or {}))
        assert not [key for key in keys if key.startswith(KUEUE)]
    assert mirror["metadata"]["labels"][names.QUEUE_NAME] == "users"
    await asyncio.sleep(30)
    assert await has_ended(world, "first", "second")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "step_seconds"),
    [
        pytest.param(form, seconds, id=f"{form}-{seconds:g}")
        for form in FORMS
        for seconds in ((0.0, 0.004, 0.05, 2.0) if form.stops_in_steps else (0.0,))
    ],
)
def test_preemptions_here_suspend_the_mirror(form: Form, step_seconds: float) -> None:
    """Its writes, three or one, are not fought, however quick; quota is given back, and it is resumed when admitted.

    The template of a Job is restored once the mirror's pods are gone: until then the API server refuses that, and it is
    retried.
    """
    virtual.run(_preemptions(form, step_seconds))


async def _preemptions(form: Form, step_seconds: float) -> None:
    async with queue_world("management", is_settled=True, tolerates=IMMUTABLE, subject=form) as (world, hand):
        hand.step_seconds = step_seconds
        source = await queued(world, run_for="40s")
        await asyncio.sleep(5)
        for number in range(5):
            hand.quota = 0
            hand.preempt(source["metadata"]["uid"])
            await asyncio.sleep(6)
            now = await world.look()
            assert now is not None
            assert await is_held(world, "east")
            assert "Suspended" in conditions(now)
            assert not form.is_active(now)
            assert form.started_at(now["status"]) is None or not form.stops_in_steps
            assert not any("nodeSelector" in template["spec"] for template in await pods_of(world))
            assert not hand.workloads[source["metadata"]["uid"]].is_admitted
            hand.flavors = [f"flavor-{number}"]
            hand.quota = 1
            await asyncio.sleep(5)
            assert not await is_held(world, "east")
        assert "StatusConflict" not in await world.events()
        await asyncio.sleep(60)
        assert await has_ended(world)
        assert hand.stops == 5


@pytest.mark.slow
@with_a_queue("management", tolerates=IMMUTABLE)
async def test_a_preemption_of_a_job_whose_worker_is_away(world: QueueWorld, hand: QueueHand) -> None:
    """It is suspended there once the worker is back; meanwhile what runs keeps its quota, which is the truth."""
    source = await queued(world, run_for="300s")
    await asyncio.sleep(5)
    world.workers["east"].faults.go_down("manager")
    hand.quota = 0
    hand.preempt(source["metadata"]["uid"])
    await asyncio.sleep(15)
    assert hand.workloads[source["metadata"]["uid"]].is_admitted
    await asyncio.sleep(5)
    world.workers["east"].faults.restore()
    await asyncio.sleep(10)
    assert await is_held(world, "east")
    assert not hand.workloads[source["metadata"]["uid"]].is_admitted
    hand.quota = 1
    await asyncio.sleep(10)
    assert not await is_held(world, "east")


REPLACED = MirrorTransform(
    "",
    strip_node_selectors=("example.com/*",),
    replace_node_selectors=((("example.com/spot", "true"), ("tier", "preemptible")),),
)


@with_a_queue("management", transform=REPLACED, is_settled=False)
async def test_a_flavor_becomes_labels_of_the_workers_nodes(world: QueueWorld, hand: QueueHand) -> None:
    """Each admission with its own; one that is not listed is stripped."""
    source = await queued(world, run_for="never")
    await asyncio.sleep(5)
    for flavor, expected in (("spot", {"tier": "preemptible"}), ("reserved", None), ("spot", {"tier": "preemptible"})):
        hand.flavors = [flavor]
        hand.preempt(source["metadata"]["uid"])
        await asyncio.sleep(8)
        assert not await is_held(world, "east")
        for template in await pods_of(world, "east"):
            assert template["spec"].get("nodeSelector") == expected


# -- on a worker -------------------------------------------------------------------------------------------------------


async def sent(world: QueueWorld, *, run_for: str = "1s") -> Json:
    """A source that may run, whose mirror is queued on its worker."""
    body = world.subject.body(run_for=run_for)
    body["metadata"]["labels"] = QUEUE
    return await world.management.api.create(world.subject.path(), body)


async def waits_because(world: QueueWorld) -> str | None:
    source = await world.look()
    assert source is not None
    because: str | None = (source["metadata"].get("annotations") or {}).get(names.WAITING_BECAUSE)
    return because


@with_a_queue("east")
async def test_a_queue_on_a_worker_decides_when_a_mirror_runs(world: QueueWorld, hand: QueueHand) -> None:
    """It is shown as suspended, and why; then it is admitted, and nothing of that is fought or reported."""
    hand.quota = 0
    await sent(world, run_for="10s")
    await asyncio.sleep(70)
    source = await world.look()
    assert source is not None
    assert "Suspended" in conditions(source)
    assert not world.subject.is_held(source)
    assert "SuspendedOnWorker" in await world.events()
    shown = [one["reason"] for one in source["status"]["conditions"] if one["type"] == "jobmirror.io/Progressing"]
    assert shown == ["SuspendedOnWorker"]
    assert await waits_because(world) == "queue users of worker east has not admitted it"
    hand.quota = 1
    await asyncio.sleep(5)
    for template in await pods_of(world, "east"):
        assert template["spec"]["nodeSelector"] == labels_of("spot")
    assert await waits_because(world) is None
    await asyncio.sleep(20)
    assert await has_ended(world)
    assert (hand.starts, hand.stops) == (1, 0)
    assert not {"MirrorChanged", "ChangeReverted"} & {*await world.events()}


@with_a_queue("east")
async def test_a_preemption_on_a_worker_is_shown(world: QueueWorld, hand: QueueHand) -> None:
    """Suspended, restored and admitted again with another flavor: each is the worker's."""
    await sent(world, run_for="20s")
    await asyncio.sleep(5)
    mirror = await world.look("east")
    assert mirror is not None
    for number in range(3):
        before = await started_at(world)
        hand.quota = 0
        hand.preempt(mirror["metadata"]["uid"])
        await asyncio.sleep(5)
        assert "Suspended" in conditions(await world.look())
        assert not await is_held(world)
        hand.flavors, hand.quota = [f"flavor-{number}"], 1
        await asyncio.sleep(5)
        assert await started_at(world) not in (None, before)
    assert hand.stops == 3
    assert not {"MirrorChanged", "ChangeReverted", "StatusConflict"} & {*await world.events()}
    await asyncio.sleep(60)
    assert await has_ended(world)


@with_a_queue("east", of=(JOB,), is_settled=False)
async def test_a_partial_admission_on_a_worker_is_left(world: QueueWorld, hand: QueueHand) -> None:
    """Kueue runs it with fewer pods than the user asked for, as the annotation allows: not put back. Of Jobs alone."""
    body = job("train", annotations={MIN_PARALLELISM: "1"}, parallelism=3, completions=3, run_for="never")
    body["metadata"]["labels"] = QUEUE
    await world.management.api.create(path(""), body)
    await asyncio.sleep(30)
    mirror = await world.look("east")
    assert mirror is not None
    assert mirror["spec"]["parallelism"] == 1
    assert (hand.starts, hand.stops) == (1, 0)
    assert not {"MirrorChanged", "ChangeReverted"} & {*await world.events()}


@with_a_queue("east", is_settled=False)
async def test_a_users_suspension_that_the_workers_queue_undoes_is_reported(world: QueueWorld, hand: QueueHand) -> None:
    """It is sent once, since each time ends the pods; then it is said that the mirror runs."""
    await sent(world, run_for="never")
    await asyncio.sleep(5)
    await _suspend(world, True)
    await asyncio.sleep(30)
    assert hand.starts == 2
    assert await waits_because(world) == "the queue of worker east keeps the mirror running although it was suspended"
    await _suspend(world, False)
    await asyncio.sleep(20)
    assert await waits_because(world) is None
    assert hand.starts == 2


async def _suspend(world: QueueWorld, is_held: bool) -> None:
    """As its user does."""
    patch = world.subject.held({}, is_held)
    await world.management.api.merge(world.subject.path("train"), patch)
