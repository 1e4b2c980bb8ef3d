"""A Job whose podFailurePolicy rules have names ends with the name as its reason, wherever it ran (D17)."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.jobs import condition, job
from doubles.world import WAITING, World, two_workers

from mirror.model import names

pytestmark = pytest.mark.looptime

POLICY = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
MESSAGE = "Container main for pod default/p failed with exit code 42 matching FailJob rule at index 0"


def named(text: str) -> dict[str, Any]:
    return job(annotations={names.RULE_NAMES: text}, podFailurePolicy=POLICY)


def fail(world: World, reason: str = "PodFailurePolicy") -> None:
    at = world.management.clock.text()
    ends = [condition(kind, at, reason=reason, message=MESSAGE) for kind in ("FailureTarget", "Failed")]
    status = {"failed": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "startTime": at}
    world.controller("east").set("train", status | {"conditions": ends})


def reasons(world: World) -> list[str]:
    ends = ("FailureTarget", "Failed")
    return [one["reason"] for one in world.source()["status"]["conditions"] if one["type"] in ends]


@pytest.mark.parametrize("reported", ["PodFailurePolicy", "PodFailurePolicy_OutOfMemory"], ids=["plain", "named"])
async def test_the_source_tells_which_rule_failed_it(reported: str) -> None:
    """Whether the worker's controller knows names or not."""
    async with two_workers() as (world, manager):
        world.create(named('{"0":"OutOfMemory"}'))
        await manager.settle()
        fail(world, reported)
        await manager.settle()

        assert reasons(world) == ["PodFailurePolicy_OutOfMemory"] * 2


async def test_a_job_without_names_has_the_plain_reason() -> None:
    """As on any real server."""
    async with two_workers() as (world, manager):
        world.create(job(podFailurePolicy=POLICY))
        await manager.settle()
        fail(world)
        await manager.settle()

        assert reasons(world) == ["PodFailurePolicy"] * 2


async def test_a_map_that_cannot_be_used_keeps_the_job_from_being_placed() -> None:
    """It says why; once it is mended the Job goes on."""
    async with two_workers() as (world, manager):
        world.create(named('{"3":"OutOfMemory"}'))
        await manager.settle()
        assert world.mirrors() == []
        assert world.annotation(WAITING) == (
            f"annotation {names.RULE_NAMES}: names rule 3, which podFailurePolicy does not have"
        )

        world.management.server.edit(
            "jobs", "train", lambda body: body["metadata"]["annotations"].update({names.RULE_NAMES: '{"0":"Memory"}'})
        )
        await manager.settle(seconds=15)
        assert world.mirrors() == ["east"]
        assert world.annotation(WAITING) is None


async def test_what_is_edited_later_does_not_count() -> None:
    """The map is fixed at placement: a broken one neither stops a running Job nor takes its names away."""
    async with two_workers() as (world, manager):
        world.create(named('{"0":"OutOfMemory"}'))
        await manager.settle()
        world.management.server.edit(
            "jobs", "train", lambda body: body["metadata"]["annotations"].update({names.RULE_NAMES: "junk"})
        )
        await manager.settle()
        assert world.annotation(WAITING) is None
        fail(world)
        await manager.settle()

        assert reasons(world) == ["PodFailurePolicy_OutOfMemory"] * 2
