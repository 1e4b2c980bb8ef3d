"""What a process remembers of a Job is of the mirror that it had: a move that it did not see ends that (D14)."""

from __future__ import annotations

import asyncio

import pytest
from controllers.test_flows_fence import (
    FENCE,
    MARGIN,
    MINUTE,
    TTL,
    covered,
    deadline,
    expire,
    fenced_on_east,
    left,
    mark,
    start,
)
from doubles.clock import LoopClock
from doubles.jobs import condition, job
from doubles.refusals import forbidden
from doubles.transport import Fault
from doubles.world import WAITING, World, manager_of, standby_of, two_workers

from mirror.decide.snapshot import Policy
from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.kube.requests import Request
from mirror.model import names
from mirror.model.fences import FENCED
from mirror.model.losses import OnLoss

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

RESCHEDULE = Policy(on_loss=OnLoss.RESCHEDULE)


async def test_a_standby_moves_no_job_for_a_lease_that_ended_before_it_led() -> None:
    """It saw the mirror on east end by its lease; who led then has placed the Job on west, where it runs."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with standby_of(world, LoopClock(), policy=FENCE) as standby:
        async with manager_of(world, policy=FENCE) as leader:
            await fenced_on_east(world, leader)
            world.annotate_worker("east", cordoned="true")
            await leader.settle(5)
            expire(world)
            await leader.settle(20)
            assert world.placed() == "west"
            start(world, "west")
            await leader.settle(20)
            assert world.mirrors() == ["west"]
            world.annotate_worker("east", cordoned=None)
            await leader.settle(5)
        standby.start(standby.mirroring.lead(), "lead")
        await standby.settle(3 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert len(world.texts("Moved")) == 1


async def test_a_lease_there_is_not_counted_by_the_one_before() -> None:
    """The answer to the move was lost; west is lost, too, before it was renewed: its lease lasts as it was sent."""
    async with two_workers(policy=FENCE) as (world, manager):
        world.add_worker("north", annotations={"cordoned": "true"})
        await manager.settle(5)
        await fenced_on_east(world, manager)
        await manager.settle(13 * MINUTE)
        world.workers["east"].go_down()
        await manager.settle(28 * MINUTE)
        assert world.placed() == "east"
        world.management.arrange("patch", "jobs", Fault.LOSE_ANSWER, times=1)
        await manager.settle(3 * MINUTE)
        assert world.placed() == "west"
        start(world, "west")
        await manager.settle(5)
        world.workers["east"].restore()
        world.annotate_worker("east", cordoned="true")
        world.annotate_worker("north", cordoned=None)
        await manager.settle(MINUTE)
        world.workers["west"].go_down()
        ends_in = left(world, "west")
        assert ends_in > TTL - 5 * MINUTE
        await manager.settle(ends_in + MARGIN - 5)
        assert world.placed() == "west"
        await manager.settle(20 * MINUTE)
        assert world.placed() == "north"


async def test_a_lease_that_begins_late_is_counted_from_its_start() -> None:
    """Its user resumed it, and its worker's controller started it ten minutes later (F4)."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(25 * MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        world.controller("east").suspend("train")
        await manager.settle(5)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(10 * MINUTE)
        start(world)
        await manager.settle(MINUTE)
        world.workers["east"].go_down()
        ends_in = left(world)
        assert ends_in > TTL - 2 * MINUTE
        await manager.settle(ends_in + MARGIN - 5)
        assert world.placed() == "east"
        await manager.settle(15 * MINUTE)
        assert world.placed() == "west"


async def test_a_start_that_is_about_to_begin_anew_is_not_renewed() -> None:
    """Suspended it keeps its startTime, and its controller takes a moment to resume it: it stays fenced."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(15 * MINUTE)
        started = world.mirror("east")["status"]["startTime"]
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2)
        suspended = condition("Suspended", world.management.clock.text(), reason="JobSuspended")
        world.controller("east").set("train", {"startTime": started, "conditions": [suspended]})
        await manager.settle(5)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(2)
        assert deadline(world) == TTL
        world.controller("east").resume("train")
        await manager.settle(15 * MINUTE)
        assert mark(world) == FENCED
        assert abs((deadline(world) or 0) - TTL - TTL // 3) < 5
        assert covered(world) >= left(world)


async def test_a_job_that_was_suspended_and_resumed_while_its_worker_was_lost() -> None:
    """Nobody there heard of it: its lease ends as it would have, and the Job moves."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        await manager.settle(15 * MINUTE)
        world.workers["east"].go_down()
        await manager.settle(2 * MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(2 * MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(2 * MINUTE)
        ends_in = left(world)
        await manager.settle(ends_in + MARGIN - 5)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        await manager.settle(MINUTE)
        assert world.placed() == "west"


async def test_a_lease_that_ended_a_job_before_its_pods() -> None:
    """Workers before 1.31 do so, and count them no more: it starts again once they had as long as on a lost worker."""
    async with two_workers(policy=FENCE) as (world, manager):
        await fenced_on_east(world, manager)
        expire(world, terminating=1)
        await manager.settle(MARGIN - 10)
        assert (world.placed(), world.mirrors(), world.events().count("Moved")) == ("east", ["east"], 0)
        assert "once its pods there have ended" in (world.annotation(WAITING) or "")
        await manager.settle(40)
        assert world.events().count("Moved") == 1


async def test_a_copy_that_is_given_the_record_back_is_not_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """West has refused the Job while it was asked what is left on east, which has it again."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        uid = await fenced_on_east(world, manager)
        before = world.source()["status"]
        world.workers["west"].arrange("create", "jobs", Fault.LOSE_REQUEST, times=1_000_000)
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["east"])
        send, asked = Client.send_object, []

        async def send_object(client: Client, request: Request) -> Object:
            if client.name == "east" and request.verb == "get" and request.path.endswith("/jobs/train") and not asked:
                asked.append(request)
                world.edit(lambda body: body.update(status=before))
                await asyncio.sleep(1)
            return await send(client, request)

        monkeypatch.setattr(Client, "send_object", send_object)
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert asked
        assert world.placed() == "east"
        assert world.mirror("east")["metadata"]["uid"] == uid
        assert "Failed" not in world.conditions()


async def test_a_copy_that_completed_before_it_was_scaled_up_does_not_count() -> None:
    """Two indexes of four are done there: the Job goes on where it is now."""
    spec = {"completionMode": "Indexed", "completions": 2, "parallelism": 2}
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await fenced_on_east(world, manager, **spec)
        world.workers["east"].go_down()
        await manager.settle(16 * MINUTE)
        assert world.placed() == "west"
        world.edit(lambda body: body["spec"].update(completions=4, parallelism=4))
        await manager.settle(5)
        start(world, "west")
        world.controller("east").complete("train")
        world.workers["east"].server.edit(
            "jobs", "train", lambda body: body["status"].update(completedIndexes="0,1", succeeded=2)
        )
        world.workers["east"].restore()
        await manager.settle(MINUTE)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert "Complete" not in world.conditions()


async def test_a_place_that_is_lost_before_its_turn_is_replaced() -> None:
    """West was assigned, and takes no Jobs any more when it is the Job's turn: another worker does, at once."""
    async with two_workers(policy=RESCHEDULE, move_rate=0.1) as (world, manager):
        world.add_worker("north", annotations={"cordoned": "true"})
        world.annotate_worker("west", cordoned="true")
        await manager.settle(5)
        for name in ("first", "second"):
            world.create(job(name))
        await manager.settle(5)
        for name in ("first", "second"):
            world.controller("east").start(name)
        world.annotate_worker("west", cordoned=None)
        await manager.settle(5)
        world.workers["east"].go_down()
        while [world.placed(name) for name in ("first", "second")].count("west") == 0:
            await manager.settle(0.5)
        await manager.settle(2)
        world.annotate_worker("north", cordoned=None)
        world.annotate_worker("west", cordoned="true")
        await manager.settle(30)
        assert sorted((world.placed("first"), world.placed("second"))) == ["north", "west"]


async def test_a_move_that_the_api_server_rejects_is_tried_again() -> None:
    """Admission rejects the record for ten minutes: it is asked now and then, and the Job moves once it is let."""
    async with two_workers(policy=RESCHEDULE) as (world, manager):
        await fenced_on_east(world, manager)
        world.workers["east"].go_down()
        await manager.settle(14.5 * MINUTE)
        world.management.arrange("patch", "jobs", forbidden(), times=1_000_000)
        before = len(world.management.writes())
        await manager.settle(10 * MINUTE)
        assert world.placed() == "east"
        assert len(world.management.writes()) - before < 300
        world.management.restore()
        await manager.settle(2 * MINUTE)
        assert world.placed() == "west"


async def test_a_start_over_that_the_api_server_rejects_is_tried_again() -> None:
    """The same where its mirror has vanished."""
    async with two_workers() as (world, manager):
        await fenced_on_east(world, manager, annotations={names.ON_MIRROR_LOSS: "Recreate"})
        world.management.arrange("patch", "jobs", forbidden(), times=1_000_000)
        before = len(world.management.writes())
        world.workers["east"].server.remove("jobs", "train")
        await manager.settle(10 * MINUTE)
        assert world.mirrors() == []
        assert len(world.management.writes()) - before < 300
        world.management.restore()
        await manager.settle(2 * MINUTE)
        assert world.mirrors() == ["east"]


async def test_pods_of_another_mirror_are_counted_anew() -> None:
    """The answer to the first start over was lost; the next mirror vanishes and leaves a pod that runs on."""
    async with two_workers() as (world, manager):
        await fenced_on_east(world, manager, annotations={names.ON_MIRROR_LOSS: "Recreate"})
        east = world.workers["east"].server
        east.remove("jobs", "train")
        await manager.settle(4)
        world.management.arrange("patch", "jobs", Fault.LOSE_ANSWER, times=1)
        await manager.settle(30)
        assert world.mirrors() == ["east"]
        start(world)
        await manager.settle(5)
        spec = {"containers": [{"name": "main", "image": "busybox"}], "restartPolicy": "Never", "nodeName": "node"}
        east.put("pods", {"metadata": {"name": "train-x", "labels": {"job-name": "train"}}, "spec": spec})
        east.remove("jobs", "train")
        await manager.settle(5 * MINUTE)
        assert world.mirrors() == []
        east.edit("pods", "train-x", lambda body: body.setdefault("status", {}).update(phase="Failed"))
        await manager.settle(MINUTE)
        assert world.mirrors() == ["east"]
