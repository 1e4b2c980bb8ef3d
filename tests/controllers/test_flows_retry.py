"""A Job of which no pod ever ran is tried on another worker: each state, and on to the next one (D2, D31)."""

from __future__ import annotations

import pytest
from doubles.retried import (
    AFTER,
    MINUTE,
    PULLING,
    UNSTARTED,
    is_suspended,
    outcomes,
    put_pod,
    record,
    remove_pod,
    set_pod,
    start,
    stop,
    waiting_on_east,
)
from doubles.world import WAITING

pytestmark = [pytest.mark.looptime, pytest.mark.slow]


async def test_one_of_which_no_pod_ever_ran_is_tried_elsewhere() -> None:
    """Waiting, draining, proved, gone, placed: suspended, proved by its pods, deleted, recorded elsewhere."""
    async with waiting_on_east() as (world, manager):
        uid = world.mirror("east")["metadata"]["uid"]
        started = world.source()["status"]["startTime"]
        await manager.settle(AFTER - MINUTE)
        assert (record(world), is_suspended(world)) == (None, False)
        await manager.settle(MINUTE)
        assert record(world) == ("Unknown", f"mirror {uid}")
        assert is_suspended(world)
        assert "it is tried on another one if none has run" in (world.annotation(WAITING) or "")
        assert outcomes(manager, "Begun") == 1
        remove_pod(world)
        await manager.settle(MINUTE)
        assert record(world) == ("Unknown", f"mirror {uid}")
        stop(world)
        await manager.settle(20)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
        status, message = record(world) or ("", "")
        assert status == "False"
        assert message.startswith(f"not started at {started}; tried east at ")
        assert world.conditions()["Suspended"] == "RetriedElsewhere"
        assert world.annotation(WAITING) is None
        text = "no pod of it became ready on worker east, and none ran: it is tried on another worker"
        assert world.texts("RetriedElsewhere") == [text]
        assert outcomes(manager, "Retried") == 1
        await manager.settle(5)
        start(world, "west", ready=1)
        await manager.settle(2)
        assert "Suspended" not in world.conditions()
        assert world.source()["status"]["startTime"] != started
        assert world.annotation("jobmirror.io/mirror-uid") == world.mirror("west")["metadata"]["uid"]
        world.controller("west").complete("train")
        await manager.settle(5)
        assert "Complete" in world.conditions()
        assert "StatusConflict" not in world.events()


async def test_a_pod_on_a_node_must_be_seen_to_end_unstarted() -> None:
    """Kubelets since 1.27 write a final phase before they let a pod go."""
    async with waiting_on_east() as (world, manager):
        put_pod(world, "train-y", PULLING, node="node")
        await manager.settle(AFTER)
        assert is_suspended(world)
        set_pod(world, UNSTARTED, "train-y")
        await manager.settle(1)
        remove_pod(world, "train-y")
        remove_pod(world)
        stop(world)
        await manager.settle(20)
        assert (world.placed(), world.mirrors()) == ("west", ["west"])
