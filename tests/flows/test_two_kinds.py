"""A second kind beside Jobs: the same names in the same namespaces, each with its own story (D24)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from doubles.drills import DRILLS, drill
from doubles.managers import placed
from doubles.refusals import Refused
from flow_drills import DrillInvariants, DrillWorld
from flow_settled import settle
from flow_world import MANAGER, FlowWorld, flow_world, has_ended

from mirror.decide.snapshot import Policy
from mirror.embedded import virtual
from mirror.embedded.apiserver.messages import Request
from mirror.embedded.faults.kinds import Expiry, Loss, Slow, conflict
from mirror.embedded.faults.targets import Target, Which
from mirror.model import names

Json = dict[str, Any]
Flow = Callable[[FlowWorld], Awaitable[None]]
ANNOTATING = Which("patch", DRILLS.plural, subresource="", peer=MANAGER)
KEPT_SECONDS = 30.0
WEBHOOK_DOWN = Refused(500, "InternalError", 'failed calling webhook "drills": connection refused')


def with_drills(flow: Flow, **settings: Any) -> Callable[[], None]:
    """A flow in a world of its own, in which Drills are served and run everywhere."""

    async def main() -> None:
        async with flow_world("east", "west", form=DrillWorld, **settings) as world:
            laws = DrillInvariants(world)
            await asyncio.sleep(5)
            await flow(world)
            laws.check()
            await settle(world, laws)

    def run() -> None:
        virtual.run(main())

    run.__name__, run.__doc__ = flow.__name__, flow.__doc__
    return run


with_drills_kept_shortly = partial(with_drills, policy=Policy(retention_seconds=KEPT_SECONDS))


def conditions(found: Json | None) -> dict[str, Any]:
    """Type to message of the True conditions."""
    listed = ((found or {}).get("status") or {}).get("conditions") or ()
    return {one["type"]: one["message"] for one in listed if one["status"] == "True"}


async def stored(world: FlowWorld, cluster: str = "management", name: str = "train") -> Json | None:
    """A Drill on a cluster."""
    found = await world.planes[cluster].api.list(DRILLS.path("default"))
    return next((one for one in found if one["metadata"]["name"] == name), None)


async def has_succeeded(world: FlowWorld) -> bool:
    return "Succeeded" in conditions(await stored(world))


async def is_annotated(world: FlowWorld) -> bool:
    """Whether its worker is written where people look."""
    source = await stored(world)
    return names.ASSIGNED_WORKER in ((source or {}).get("metadata") or {}).get("annotations", {})


@with_drills
async def test_both_kinds_run_under_one_name(world: FlowWorld) -> None:
    """Each is placed, mirrored and followed to its end; deleting one leaves the other."""
    await world.create(run_for="5s")
    await world.management.api.create(DRILLS.path("default"), drill())

    async def are_over() -> bool:
        return has_ended(await world.source()) and await has_succeeded(world)

    await world.until(are_over)
    told = conditions(await stored(world))
    mirror = await stored(world, told[names.PLACED])
    assert mirror is not None
    assert told[names.MIRRORED] == mirror["metadata"]["uid"]
    source = await stored(world)
    assert source is not None
    assert source["status"]["rounds"] == 3
    assert source["metadata"]["annotations"][names.ASSIGNED_WORKER] == told[names.PLACED]
    await world.management.api.delete(DRILLS.path("default", "train"))

    async def is_gone() -> bool:
        return await stored(world, told[names.PLACED]) is None

    await world.until(is_gone)
    assert await world.mirror(placed(await world.source() or {}) or "") is not None


@with_drills
async def test_annotations_that_are_refused_keep_nothing_from_going_on(world: FlowWorld) -> None:
    """D25: the record is in the status, which is stored by then; the second request is for people."""
    world.management.faults.arrange(Refused(403, "Forbidden").answer(), ANNOTATING, times=math.inf)
    await world.management.api.create(DRILLS.path("default"), drill())
    await world.until(lambda: has_succeeded(world))
    source = await stored(world)
    assert source is not None
    assert names.ASSIGNED_WORKER not in source["metadata"].get("annotations", {})
    assert "RecordRefused" not in await world.events()
    assert "Mirrored" in await world.events()

    world.management.faults.restore()
    await world.kill_manager()
    world.start_manager()
    await world.until(lambda: is_annotated(world))


@with_drills
async def test_annotations_take_one_request_which_nothing_waits_for(world: FlowWorld) -> None:
    """D25: the mirror is created before, and all of them go together."""
    sent: list[str] = []

    def note(request: Request, target: Target) -> None:
        if ANNOTATING.suits(request, target):
            sent.append(target.name)

    faults = world.management.faults
    faults.on_request = note
    faults.arrange(Slow(5.0), ANNOTATING, times=math.inf)
    await world.management.api.create(DRILLS.path("default"), drill())

    async def has_mirror() -> bool:
        return any([await stored(world, worker) is not None for worker in ("east", "west")])

    await world.until(has_mirror, seconds=4)
    await world.until(lambda: has_succeeded(world))
    await asyncio.sleep(20)
    source = await stored(world)
    assert source is not None
    told, notes = conditions(source), source["metadata"]["annotations"]
    assert (notes[names.ASSIGNED_WORKER], notes[names.MIRROR_UID]) == (told[names.PLACED], told[names.MIRRORED])
    assert sent == ["train"]
    faults.restore()


@with_drills
async def test_annotations_that_meet_a_conflict_are_written_again(world: FlowWorld) -> None:
    """D25: what went before them is in the cache, so that nothing is decided twice."""
    world.management.faults.arrange(conflict(), ANNOTATING, times=2)
    await world.management.api.create(DRILLS.path("default"), drill())
    await world.until(lambda: is_annotated(world))
    assert "RecordRefused" not in await world.events()
    await world.until(lambda: has_succeeded(world))


@pytest.mark.parametrize("loss", [None, Loss.HANG], ids=["its webhook fails", "nothing comes back"])
def test_annotations_that_fail_keep_nothing_else_from_being_done(loss: Loss | None) -> None:
    """D25, D8: the kind's webhook is not asked for ``/status``: suspension, statuses and the mirror's end go on."""

    async def flow(world: FlowWorld) -> None:
        world.management.faults.arrange(loss or WEBHOOK_DOWN.answer(), ANNOTATING, times=math.inf)
        await world.create(run_for="5s")
        body = drill()
        body["spec"]["rounds"] = 60
        await world.management.api.create(DRILLS.path("default"), body)
        await world.until(lambda: counts(world))
        worker = conditions(await stored(world))[names.PLACED]
        for paused in (True, False):
            patch = {"spec": {"run": {"paused": paused}}}
            await world.management.api.merge(DRILLS.path("default", "train"), patch)
            await world.until(lambda paused=paused: is_paused(world, worker, paused))
        await world.until(lambda: has_succeeded(world))
        await world.until(lambda: is_gone(world, worker), seconds=120)
        assert not await is_annotated(world)
        assert has_ended(await world.source())
        assert "Mirrored" in await world.events()

        world.management.faults.restore()
        await world.until(lambda: is_annotated(world))

    with_drills_kept_shortly(flow)()


async def counts(world: FlowWorld) -> bool:
    """Whether what its mirror says comes back."""
    return bool(((await stored(world) or {}).get("status") or {}).get("rounds"))


async def is_paused(world: FlowWorld, worker: str, paused: bool) -> bool:
    """Whether its mirror is."""
    mirror = await stored(world, worker)
    assert mirror is not None
    return bool(mirror["spec"]["run"].get("paused")) is paused


async def is_gone(world: FlowWorld, worker: str) -> bool:
    """Whether it has no mirror."""
    return await stored(world, worker) is None


@pytest.mark.slow
@with_drills
async def test_what_one_kind_lists_anew_leaves_the_other(world: FlowWorld) -> None:
    """A watch that ends, and a manager that is killed: nothing of the other kind is taken for gone."""
    await world.create(run_for="10m")
    await world.management.api.create(DRILLS.path("default"), drill())
    await world.until(lambda: has_succeeded(world))
    for plane in world.planes.values():
        plane.faults.expire_watches(Expiry.BY_EVENT, MANAGER)
    await asyncio.sleep(60)
    await world.kill_manager()
    world.start_manager()
    await asyncio.sleep(130)
    source = await world.source()
    assert source is not None
    assert await world.mirrors() == [placed(source)]
    assert not has_ended(source)
    assert "MirrorLost" not in await world.events()
    await world.delete()
    await asyncio.sleep(5)
    assert await world.mirrors() == []
    assert await stored(world, conditions(await stored(world))[names.PLACED]) is not None


@pytest.mark.slow
@with_drills
async def test_the_end_of_one_kind_says_nothing_of_the_other(world: FlowWorld) -> None:
    """A Drill is paused, and resumed; the Job of its name runs on."""
    await world.create(run_for="10m")
    await world.management.api.create(DRILLS.path("default"), drill(paused=True))
    await asyncio.sleep(10)
    assert "Paused" in conditions(await stored(world))
    resume = {"spec": {"run": {"paused": False}}}
    await world.management.api.merge(DRILLS.path("default", "train"), resume)
    await world.until(lambda: has_succeeded(world))
    source = await world.source()
    assert source is not None
    assert not source["spec"].get("suspend")
    assert not has_ended(source)
