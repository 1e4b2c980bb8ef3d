"""Whatever is not certain ends a retry: the Job stays where it is, and goes on there (D2, D13, D31)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from doubles.jobs import job
from doubles.refusals import Refused, forbidden
from doubles.retried import (
    AFTER,
    ALWAYS,
    MINUTE,
    PULLING,
    RUNNING,
    drain,
    empty,
    is_suspended,
    outcomes,
    place_on_east,
    prove,
    put_pod,
    record,
    remove_pod,
    set_pod,
    settings_of_retries,
    start,
    stop,
    waiting_on_east,
    world_of_two,
)
from doubles.world import WAITING, RunningManager, World, manager_of

from mirror.model import names
from mirror.model.losses import OnLoss

pytestmark = [pytest.mark.looptime, pytest.mark.slow]

FAILED_RULE = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


STATES: dict[str, Callable[[World, RunningManager], Awaitable[None]]] = {
    "draining": drain,
    "proved": prove,
    "gone": empty,
}


def stays(world: World, why: str) -> None:
    assert (world.placed(), world.mirrors()) == ("east", ["east"])
    assert record(world) == ("False", f"given up: {why}")
    assert world.texts("RetryGivenUp") == [f"it stays on worker east: {why}"]


@pytest.mark.parametrize("status", [RUNNING, {"phase": "Running"}])
async def test_one_of_which_a_pod_runs_is_left_alone(status: dict[str, Any]) -> None:
    """Though no pod of it is ready: it is not even suspended, and its pods are not listed again and again."""
    async with waiting_on_east() as (world, manager):
        set_pod(world, status)
        await manager.settle(30 * MINUTE)
        assert (record(world), is_suspended(world), world.placed()) == (None, False, "east")
        lists = [sent for sent in world.workers["east"].sent if sent.verb == "list" and sent.path.endswith("/pods")]
        assert len(lists) <= 2


async def test_a_pod_that_starts_while_it_is_stopped_ends_it() -> None:
    """Its mirror is resumed, and runs there."""
    async with waiting_on_east() as (world, manager):
        await drain(world, manager)
        set_pod(world, RUNNING)
        await manager.settle(5)
        stays(world, "pod train-x is Running")
        assert not is_suspended(world)
        assert outcomes(manager, "GivenUp") == 1
        start(world, "east", ready=1)
        await manager.settle(2)
        world.controller("east").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()


async def test_a_pod_that_vanishes_from_its_node_proves_nothing() -> None:
    """It may have run between two words of its kubelet."""
    async with waiting_on_east() as (world, manager):
        put_pod(world, "train-y", PULLING, node="node")
        await drain(world, manager)
        remove_pod(world, "train-y")
        await manager.settle(5)
        stays(world, "pod train-y was deleted before its node said that it had ended")
        assert not is_suspended(world)
        await manager.settle(60 * MINUTE)
        assert not is_suspended(world), "it was stopped once: what ran since then cannot be known"


async def test_what_somebody_suspended_unseen_proves_nothing() -> None:
    """The mirrors' watch is behind: its pod ran, and went uncounted before the pods were listed."""
    async with waiting_on_east() as (world, manager):
        set_pod(world, RUNNING)
        await manager.settle(AFTER - 30)
        east = world.workers["east"]
        east.mute_watches("jobs")
        east.server.edit("jobs", "train", lambda body: body["spec"].update(suspend=True))
        remove_pod(world)
        stop(world)
        await manager.settle(60)
        stays(world, "it was changed there")


async def test_a_watch_that_breaks_proves_nothing() -> None:
    async with waiting_on_east() as (world, manager):
        await drain(world, manager)
        world.workers["east"].arrange("watch", "pods", Refused(500, "InternalError"), times=3)
        world.workers["east"].break_watches()  # whether the one that proves it was open already or not
        await manager.settle(20)
        assert world.texts("RetryGivenUp")[0].startswith("it stays on worker east: the watch of its pods has ended")
        assert not is_suspended(world)


async def test_a_watch_that_its_server_ends_goes_on() -> None:
    """That is no gap: it goes on from its last version."""
    async with waiting_on_east() as (world, manager):
        await drain(world, manager)
        for _ in range(5):
            world.workers["east"].end_watches()
            await manager.settle(3)
        remove_pod(world)
        world.workers["east"].end_watches()
        stop(world)
        await manager.settle(30)
        assert world.placed() == "west"


async def test_what_was_counted_has_run() -> None:
    async with waiting_on_east() as (world, manager):
        await drain(world, manager)
        remove_pod(world)
        stop(world, failed=1)
        await manager.settle(20)
        stays(world, "pods of it were counted")


async def test_without_the_permission_it_stays_and_says_why() -> None:
    """Nothing is stopped for what cannot be proved."""
    async with waiting_on_east() as (world, manager):
        world.workers["east"].arrange("list", "pods", forbidden(), times=ALWAYS)
        await manager.settle(30 * MINUTE)
        assert (record(world), is_suspended(world), world.placed()) == (None, False, "east")
        (text,) = world.texts("NotRetried")
        assert text.startswith("it is not tried on another worker: its pods cannot be listed: ")
        world.workers["east"].restore()
        await manager.settle(AFTER)
        assert is_suspended(world)


async def test_who_may_not_stop_it_gives_up() -> None:
    async with waiting_on_east() as (world, manager):
        world.workers["east"].arrange("patch", "jobs", forbidden(), times=ALWAYS)
        await manager.settle(AFTER)
        await manager.settle(20)
        stays(world, "worker east rejected the change: not allowed (403 Forbidden)")
        assert not is_suspended(world)


@pytest.mark.parametrize("state", ["draining", "proved"])
async def test_its_users_own_suspension_ends_it(state: str) -> None:
    """It stays suspended there, and runs there once it is resumed."""
    async with waiting_on_east() as (world, manager):
        await STATES[state](world, manager)
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(5)
        stays(world, "the Job was suspended")
        assert is_suspended(world)
        world.workers["east"].restore()
        stop(world)
        await manager.settle(MINUTE)
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(5)
        assert not is_suspended(world)
        start(world, "east", ready=1)
        await manager.settle(2)
        assert "Suspended" not in world.conditions()


async def test_one_whose_mirror_is_gone_leaves_its_worker_though_it_is_suspended() -> None:
    """There is nothing left to stay with."""
    async with waiting_on_east() as (world, manager):
        await empty(world, manager)
        world.management.restore()
        world.edit(lambda body: body["spec"].update(suspend=True))
        await manager.settle(30)
        assert (world.placed(), world.mirrors()) == (None, [])
        world.edit(lambda body: body["spec"].update(suspend=False))
        await manager.settle(5)
        assert world.mirrors() == ["west"]


@pytest.mark.parametrize("state", sorted(STATES))
async def test_a_deleted_job_leaves_nothing(state: str) -> None:
    async with waiting_on_east() as (world, manager):
        await STATES[state](world, manager)
        world.management.restore()
        world.delete()
        world.workers["east"].restore()
        await manager.settle(30)
        assert world.mirrors() == []


@pytest.mark.parametrize("state", ["draining", "proved"])
async def test_who_resumes_it_there_ends_it(state: str) -> None:
    """What runs is not deleted, whatever is recorded."""
    async with waiting_on_east() as (world, manager):
        await STATES[state](world, manager)
        server = world.workers["east"].server
        server.edit("jobs", "train", lambda body: body["spec"].update(suspend=False))
        start(world, "east", ready=1)
        world.workers["east"].restore()
        await manager.settle(10)
        assert (record(world) or ("",))[0] == "False"
        assert world.mirrors() == ["east"]
        assert not is_suspended(world)


@pytest.mark.parametrize("state", ["draining", "proved"])
async def test_who_resumes_and_suspends_it_there_ends_it(state: str) -> None:
    """It looks as before: only its generation shows that it ran meanwhile."""
    async with waiting_on_east() as (world, manager):
        await STATES[state](world, manager)
        server = world.workers["east"].server
        for value in (False, True):
            server.edit("jobs", "train", lambda body, value=value: body["spec"].update(suspend=value))
        stop(world)
        world.workers["east"].restore()
        await manager.settle(10)
        stays(world, "it was changed there")


@pytest.mark.parametrize("state", sorted(STATES))
async def test_a_lost_worker_stays_where_it_is(state: str) -> None:
    """D13: in each state; what was known of its pods is not, afterwards."""
    async with waiting_on_east() as (world, manager):
        await STATES[state](world, manager)
        world.workers["east"].restore()
        world.workers["east"].go_down()
        await manager.settle(MINUTE)
        world.management.restore()
        await manager.settle(2 * 60 * MINUTE)
        assert world.placed() == "east"
        assert (record(world) or ("",))[0] == ("Unknown" if state == "draining" else "True")
        world.workers["east"].restore()
        await manager.settle(2 * MINUTE)
        if state == "draining":
            assert (record(world) or ("",))[0] == "False"
            assert (world.placed(), world.mirrors(), is_suspended(world)) == ("east", ["east"], False)
        else:
            assert (world.placed(), world.mirrors()) == ("west", ["west"])


async def test_a_lost_worker_is_left_where_its_user_wants_that() -> None:
    """Moving wins: the write that moves it ends the retry, and it is not tried elsewhere any more."""
    async with waiting_on_east(annotations={names.ON_WORKER_LOSS: OnLoss.RESCHEDULE.value}) as (world, manager):
        await drain(world, manager)
        world.add_worker("north")
        await manager.settle(2)
        world.workers["east"].go_down()
        await manager.settle(20 * MINUTE)
        assert world.placed() in ("west", "north")
        assert record(world) == ("False", "given up: it was moved")


async def test_one_that_is_to_be_fenced_is_not_tried_elsewhere() -> None:
    """Its lease and its stop would be of one mirror: the fence excludes it."""
    async with waiting_on_east(annotations={names.ON_WORKER_LOSS: OnLoss.FENCE.value}) as (world, manager):
        await manager.settle(30 * MINUTE)
        assert (record(world), is_suspended(world), world.placed()) == (None, False, "east")


async def test_a_drained_worker_wins() -> None:
    """Its move ends the retry."""
    async with waiting_on_east() as (world, manager):
        await drain(world, manager)
        world.annotate_worker("east", drain="move")
        await manager.settle(3)
        assert record(world) == ("False", "given up: the worker is drained")
        remove_pod(world)
        stop(world)
        await manager.settle(20)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        assert "Moved" in world.events()


@pytest.mark.parametrize(
    "more",
    [
        {"podFailurePolicy": {"rules": [FAILED_RULE]}},
        {"parallelism": 0},
        {"labels": {names.QUEUE_NAME: "users"}},
    ],
    ids=["pods that are ignored", "no pods", "a queue"],
)
async def test_some_are_never_tried_elsewhere(more: dict[str, Any]) -> None:
    """A pod of them may run and leave no trace, or none should."""
    async with waiting_on_east(**more) as (world, manager):
        await manager.settle(30 * MINUTE)
        assert (record(world), is_suspended(world), world.placed()) == (None, False, "east")


async def test_one_that_was_changed_is_not() -> None:
    """A pod that a scaled or suspended Job loses is not counted: what ran before cannot be known."""
    async with waiting_on_east(parallelism=2, completions=4) as (world, manager):
        world.edit(lambda body: body["spec"].update(parallelism=1))
        await manager.settle(30 * MINUTE)
        assert (record(world), is_suspended(world), world.placed()) == (None, False, "east")


async def test_without_another_place_nothing_is_stopped() -> None:
    async with waiting_on_east() as (world, manager):
        world.annotate_worker("west", cordoned="true")
        await manager.settle(30 * MINUTE)
        assert (record(world), is_suspended(world)) == (None, False)
        world.annotate_worker("west", cordoned=None)
        await manager.settle(2 * MINUTE)
        assert is_suspended(world)


async def test_off_by_default() -> None:
    world = world_of_two()
    settings = settings_of_retries(world)
    del settings["policy"]
    async with manager_of(world, **settings) as manager:
        await place_on_east(world, manager)
        before = len(world.workers["east"].sent)
        await manager.settle(60 * MINUTE)
        assert (record(world), is_suspended(world), world.placed()) == (None, False, "east")
        asked = [sent for sent in world.workers["east"].sent[before:] if "labelSelector=batch" in sent.path]
        assert not asked


async def test_at_most_three_workers_and_not_the_same_again() -> None:
    """Where it was is avoided for an hour, and after the third one it stays."""
    async with waiting_on_east() as (world, manager):
        for name in ("north", "south"):
            world.add_worker(name)
        await manager.settle(5)
        been = ["east"]
        for _ in range(3):
            worker = been[-1]
            await manager.settle(AFTER + MINUTE)
            assert is_suspended(world, worker)
            if worker == "east":
                remove_pod(world)
            stop(world, worker)
            await manager.settle(30)
            been.append(str(world.placed()))
            start(world, been[-1])
        assert sorted(been) == ["east", "north", "south", "west"]
        await manager.settle(60 * MINUTE)
        assert (world.placed(), is_suspended(world, been[-1])) == (been[-1], False)


async def test_where_no_other_is_eligible_it_goes_back() -> None:
    """West is cordoned once the mirror on east is gone: east may have it again."""
    async with waiting_on_east() as (world, manager):
        await drain(world, manager)
        world.annotate_worker("west", cordoned="true")
        remove_pod(world)
        stop(world)
        await manager.settle(30)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
        assert not is_suspended(world)
        assert (record(world) or ("", ""))[1].count("tried east at ") == 1


async def test_it_waits_where_others_are_only_full() -> None:
    """North has no room: it waits for that, and goes back to east only after an hour."""
    async with waiting_on_east() as (world, manager):
        world.add_worker("north", annotations={"capacity": "1"})
        await manager.settle(5)
        world.create(job("other", annotations={names.WORKER_SELECTOR: "name=north"}))
        await drain(world, manager)
        world.annotate_worker("west", cordoned="true")
        remove_pod(world)
        stop(world)
        await manager.settle(30)
        assert (world.placed(), world.mirrors()) == (None, [])
        assert "at capacity" in (world.annotation(WAITING) or "")
        assert "no pod of it became ready there" in (world.annotation(WAITING) or "")
        assert "StatusConflict" not in world.events()
        await manager.settle(50 * MINUTE)
        assert world.placed() is None
        await manager.settle(15 * MINUTE)
        assert (world.placed(), world.mirrors()) == ("east", ["east"])
