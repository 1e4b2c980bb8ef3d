"""successPolicy (4.12)."""

from __future__ import annotations

from typing import Any

from e2e.controlplane.client import Json
from e2e.job_scenarios.bodies import exit_code_rule, indexed, rules
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, has


def _job(completions: int, *policy: Json, **more: Any) -> Json:
    return indexed(completions, successPolicy=rules(*policy), **more)


@scenario("chain 9; Z1, Z2; TestSuccessPolicy: succeededIndexes")
async def the_leader_succeeds(stage: Stage) -> None:
    """The others are deleted and not counted as failed; Complete waits for them."""
    await stage.create(_job(3, {"succeededIndexes": "0"}))
    zero, one, two = await stage.pods(3)
    await stage.run(zero, one, two)
    await stage.succeed(zero)
    await stage.succeed(one)
    await stage.gone(two)
    await stage.until(has("Complete"))


@scenario("Z1; TestSuccessPolicy: succeededCount")
async def enough_indexes_succeed(stage: Stage) -> None:
    """Any two of three."""
    await stage.create(_job(3, {"succeededCount": 2}))
    zero, one, two = await stage.pods(3)
    await stage.succeed(two)
    await stage.succeed(zero)
    await stage.gone(one)
    await stage.until(has("Complete"))


@scenario("Z1; succeededIndexes with succeededCount, several rules")
async def enough_of_a_list_succeed(stage: Stage) -> None:
    """The second rule is met first; the message says so."""
    policy = ({"succeededIndexes": "0-1"}, {"succeededIndexes": "2-4", "succeededCount": 2})
    await stage.create(_job(5, *policy))
    pods = await stage.pods(5)
    await stage.succeed(pods[0], pods[2])
    await stage.succeed(pods[4])
    await stage.gone(pods[1], pods[3])
    await stage.until(has("Complete"))


@scenario("TestSuccessPolicy: all indexes succeeded")
async def all_succeed_before_any_rule_is_needed(stage: Stage) -> None:
    """All at once: the policy's reason or CompletionsReached, as upstream decides."""
    await stage.create(_job(2, {"succeededIndexes": "0"}))
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("Z1: succeededCount 0 needs a success")
async def a_count_of_zero(stage: Stage) -> None:
    """Nothing happens until the first index succeeds."""
    await stage.create(_job(2, {"succeededCount": 0}))
    zero, one = await stage.pods(2)
    await stage.run(zero, one)
    await stage.succeed(one)
    await stage.gone(zero)
    await stage.until(has("Complete"))


@scenario("Z3; successPolicy and backoffLimitPerIndex in the same sync", is_for_kills=False)
async def failed_indexes_beat_the_policy(stage: Stage) -> None:
    """The last index fails as the rule's index succeeds: Failed."""
    await stage.create(_job(2, {"succeededIndexes": "0"}, backoffLimitPerIndex=0))
    zero, one = await stage.pods(2)
    async with stage.stimulus("one of each"):
        await stage.succeed(zero)
        await stage.fail(one)
    await stage.until(has("Failed"))


@scenario("Z3; successPolicy and backoffLimit in the same sync", is_for_kills=False)
async def the_limit_beats_the_policy(stage: Stage) -> None:
    """backoffLimit 0 is exceeded as the rule is met."""
    await stage.create(_job(3, {"succeededIndexes": "0"}, backoffLimit=0))
    zero, one, two = await stage.pods(3)
    async with stage.stimulus("one of each"):
        await stage.succeed(zero)
        await stage.fail(one)
    await stage.gone(two)
    await stage.until(has("Failed"))


@scenario("Z3; successPolicy and podFailurePolicy in the same sync", is_for_kills=False)
async def fail_job_beats_the_policy(stage: Stage) -> None:
    """PodFailurePolicy is the verdict."""
    policy = rules(exit_code_rule("FailJob", 42))
    await stage.create(_job(3, {"succeededIndexes": "0"}, podFailurePolicy=policy))
    zero, one, two = await stage.pods(3)
    async with stage.stimulus("one of each"):
        await stage.succeed(zero)
        await stage.fail(one, exit_code=42)
    await stage.gone(two)
    await stage.until(has("Failed"))


@scenario("Z3; SuccessCriteriaMet has never been transitioned to Failed")
async def failures_after_the_policy_is_met(stage: Stage) -> None:
    """What lingers may fail as it likes."""
    policy = rules(exit_code_rule("FailJob", 42))
    await stage.create(_job(3, {"succeededIndexes": "0"}, podFailurePolicy=policy, backoffLimit=0))
    zero, one, two = await stage.pods(3)
    await stage.run(one, two)
    await stage.succeed(zero)
    await stage.fail(one, exit_code=42)
    await stage.gone(two)
    await stage.until(has("Complete"))


@scenario("Z1 with failed indexes: the rule is met later")
async def the_policy_is_met_after_a_failed_index(stage: Stage) -> None:
    """Index 1 has failed for good; index 0 succeeds: Complete by the policy."""
    await stage.create(_job(3, {"succeededIndexes": "0"}, backoffLimitPerIndex=0))
    zero, one, two = await stage.pods(3)
    await stage.fail(one)
    await stage.succeed(zero)
    await stage.gone(two)
    await stage.until(has("Complete"))
