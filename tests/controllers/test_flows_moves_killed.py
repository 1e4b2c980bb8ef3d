"""A manager is killed at each write of a move and of what follows a return: all ends as if it was not (D5, D14).

It ends at the very moment when the write has been carried out, or was lost on its way, and never has its answer.
Workers' Job controllers go on all the time, leases included.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from doubles.jobs import Body
from doubles.moving_jobs import a_job, moves_of, watched
from doubles.transport import Wire
from doubles.world import RunningManager, World, manager_of

from mirror.decide.snapshot import Policy
from mirror.embedded.apiserver.messages import Answer, Request
from mirror.embedded.faults.kinds import Loss
from mirror.embedded.faults.targets import Target, Which
from mirror.model import names
from mirror.model.losses import OnLoss

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

LOST_AFTER, TTL, MARGIN, MINUTE = 90.0, 300, 150, 60.0
POLICY = Policy(lost_after_seconds=LOST_AFTER, fence_ttl_seconds=TTL)
MOVED_BY = LOST_AFTER + TTL * 4 / 3 + MARGIN + 2 * MINUTE
"""So long after the loss it has moved under either policy, though a manager was killed meanwhile."""

Conditions = dict[str, Body]


@dataclass(frozen=True)
class Step:
    """A write at which a manager is killed."""

    cluster: str
    which: Which
    is_done: Callable[[World], bool]
    """By the clusters, whether it was carried out."""
    writes: Callable[[Conditions], bool] = field(default=lambda _: True)
    """Of writes to the status, which one it is, by the conditions that it writes."""
    is_after_return: bool = False
    had_completed: bool = False
    """The copy that was left behind."""

    def is_it(self, request: Request, target: Target) -> bool:
        return self.which.suits(request, target) and self.writes(dict(conditions_in(request.body)))


STATUS, CREATE, DELETE = Which("patch", "jobs", subresource="status"), Which("create", "jobs"), Which("delete", "jobs")
STEPS = {
    "record": Step(
        "",
        STATUS,
        lambda world: world.placed() == "west",
        lambda written: text_of(written, names.PLACED) == "west" and names.MOVED in written,
    ),
    "create": Step("west", CREATE, lambda world: "west" in world.mirrors()),
    "first status": Step(
        "",
        STATUS,
        lambda world: "Suspended" not in world.conditions(),
        lambda written: names.MOVED in written and written.get("Suspended", {}).get("status") == "False",
    ),
    "delete of the loser": Step("east", DELETE, lambda world: world.mirrors() == ["west"], is_after_return=True),
    "store of the old end": Step(
        "",
        STATUS,
        lambda world: "Complete" in world.conditions(),
        lambda written: "Complete" in written,
        is_after_return=True,
        had_completed=True,
    ),
    "delete of the new copy": Step(
        "west", DELETE, lambda world: world.mirrors() == ["east"], is_after_return=True, had_completed=True
    ),
}


def conditions_in(body: bytes) -> Iterator[tuple[str, Body]]:
    """Those that a patch writes, by type."""
    found: Any = json.loads(body or b"null")
    for one in found if isinstance(found, list) else ():
        status = one.get("value") if one.get("path") == "/status" else None
        for condition in (status or {}).get("conditions", ()):
            yield condition["type"], condition


def text_of(written: Conditions, type_name: str) -> str:
    return str(written.get(type_name, {}).get("message", ""))


def killing_at(wire: Wire, step: Step, *, is_carried_out: bool) -> asyncio.Event:
    """Happens with the first such write, to which there is no answer."""
    reached, faults = asyncio.Event(), wire.faults
    asked, answered = faults.on_request, faults.on_answer

    def on_request(request: Request, target: Target) -> None:
        if asked is not None:
            asked(request, target)
        if not reached.is_set() and step.is_it(request, target):
            faults.arrange(Loss.HANG_AFTER if is_carried_out else Loss.HANG, step.which)
            if not is_carried_out:
                reached.set()

    def on_answer(request: Request, target: Target, answer: Answer) -> None:
        if answered is not None:
            answered(request, target, answer)
        if step.is_it(request, target):
            reached.set()

    faults.on_request, faults.on_answer = on_request, on_answer
    return reached


async def running_on_east(world: World, manager: RunningManager, policy: OnLoss) -> None:
    world.annotate_worker("west", cordoned="true")
    await manager.settle()
    world.create(a_job("train", policy))
    await manager.settle(5)
    assert world.source()["status"].get("startTime")
    world.annotate_worker("west", cordoned=None)
    await manager.settle()


async def lose_east(world: World, manager: RunningManager, step: Step) -> None:
    """Until shortly before the step."""
    world.workers["east"].go_down()
    if step.had_completed:
        world.controller("east").complete("train")
    if step.is_after_return:
        await manager.settle(MOVED_BY)
        assert (world.placed(), "Suspended" in world.conditions()) == ("west", False)
        world.workers["east"].is_down = False


@pytest.mark.parametrize("is_carried_out", [False, True], ids=["lost", "carried out"])
@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("policy", [OnLoss.RESCHEDULE, OnLoss.FENCE])
async def test_a_manager_that_is_killed_at_a_step_of_a_move(policy: OnLoss, name: str, is_carried_out: bool) -> None:
    """38: the next one goes on; one move, one copy that counts, and under Fence never two that run (the laws)."""
    step, world = STEPS[name], World()
    for worker in ("east", "west"):
        world.add_worker(worker)
    async with watched(world) as laws:
        async with manager_of(world, policy=POLICY) as manager:
            await running_on_east(world, manager, policy)
            wire = world.workers[step.cluster] if step.cluster else world.management
            reached = killing_at(wire, step, is_carried_out=is_carried_out)
            await lose_east(world, manager, step)
            async with asyncio.timeout(MOVED_BY):
                await reached.wait()
        assert step.is_done(world) is is_carried_out
        async with manager_of(world, policy=POLICY) as manager:
            if not step.is_after_return:
                await manager.settle(MOVED_BY)
                assert (world.placed(), sorted(world.mirrors())) == ("west", ["east", "west"])
                world.workers["east"].is_down = False
            await manager.settle(MINUTE)
            counts = "east" if step.had_completed else "west"
            assert (world.placed(), world.mirrors()) == (counts, [counts])
            if not step.had_completed:
                assert not {"Complete", "Suspended"} & set(world.conditions())
                world.controller(counts).complete("train")
                await manager.settle(5)
            assert "Complete" in world.conditions()
            assert (laws.moves["train"], moves_of(world.source()).count) == (1, 1)
            assert not {"FenceBreached", "MirrorLost"} & set(world.events())
