"""backoffLimitPerIndex, maxFailedIndexes, FailIndex (4.9)."""

from __future__ import annotations

from typing import Any

from e2e.controlplane.client import Json
from e2e.job_scenarios.bodies import condition_rule, exit_code_rule, indexed, rules
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has


def _job(completions: int, limit: int, **more: Any) -> Json:
    return indexed(completions, backoffLimitPerIndex=limit, **more)


@scenario("chain 8c; F3, L1, L5; TestBackoffLimitPerIndex: FailIndex")
async def fail_index_and_a_retry(stage: Stage) -> None:
    """Index 0 fails at once, index 1 is run again; in the end the Job fails for index 0."""
    await stage.create(_job(2, 1, podFailurePolicy=rules(exit_code_rule("FailIndex", 42))))
    zero, one = await stage.pods(2)
    async with stage.stimulus("both fail"):
        await stage.fail(zero, exit_code=42)
        await stage.fail(one, exit_code=1)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Failed"))


@scenario("L1, L3; TestBackoffLimitPerIndex: exceeding backoff limit per index")
async def an_index_fails_and_the_others_go_on(stage: Stage) -> None:
    """Limit 0: failedIndexes at once, the Job fails when all is done."""
    await stage.create(_job(3, 0))
    zero, one, two = await stage.pods(3)
    await stage.fail(one)
    await stage.succeed(zero)
    await stage.succeed(two)
    await stage.until(has("Failed"))


@scenario("L3; TestBackoffLimitPerIndex: exceeding max failed indexes")
async def too_many_failed_indexes(stage: Stage) -> None:
    """The rest is ended."""
    await stage.create(_job(4, 0, maxFailedIndexes=1))
    zero, one, two, three = await stage.pods(4)
    await stage.run(two, three)
    await stage.fail(zero)
    await stage.fail(one)
    await stage.gone(two, three)
    await stage.until(has("Failed"))


@scenario("L3: maxFailedIndexes 0")
async def no_failed_index_is_allowed(stage: Stage) -> None:
    """The first one is one too many."""
    await stage.create(_job(2, 0, maxFailedIndexes=0))
    zero, one = await stage.pods(2)
    await stage.fail(zero)
    await stage.gone(one)
    await stage.until(has("Failed"))


@scenario("L4; exceeding the global backoff limit first")
async def the_global_limit_comes_first(stage: Stage) -> None:
    """BackoffLimitExceeded though no index has used up its own."""
    await stage.create(_job(3, 2, backoffLimit=1))
    zero, one, two = await stage.pods(3)
    await stage.run(two)
    await stage.fail(zero, one)
    await stage.gone(two)
    await stage.until(has("Failed"))


@scenario("L5, L7; successful job after a single failure within index; DelayedPodDeletion")
async def an_index_is_retried_and_succeeds(stage: Stage) -> None:
    """The failed pod is held back until its replacement is there, and counted then."""
    await stage.create(_job(2, 1))
    zero, one = await stage.pods(2)
    await stage.succeed(one)
    await stage.fail(zero)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("L6, L7; JobPodsCreatedWithExponentialBackoff")
async def an_index_is_retried_twice(stage: Stage) -> None:
    """Annotations count up: 0, 1, 2; then the index has failed."""
    await stage.create(_job(1, 2))
    await stage.fail(*await stage.pods(1))
    await stage.fail(*await stage.pods(1))
    await stage.fail(*await stage.pods(1))
    await stage.until(has("Failed"))


@scenario("L6; replacement pod creation delayed while another index runs")
async def an_index_waits_while_another_runs(stage: Stage) -> None:
    """The running one is not disturbed."""
    await stage.create(_job(2, 1))
    zero, one = await stage.pods(2)
    await stage.run(one)
    await stage.fail(zero)
    await stage.pods(2)
    await stage.succeed(one)


@scenario("L7; failed pod being replaced, matching the ignore rule")
async def an_ignored_failure_of_an_index(stage: Stage) -> None:
    """job-index-ignored-failure-count appears, failed stays 0."""
    await stage.create(_job(2, 0, podFailurePolicy=rules(exit_code_rule("Ignore", 3))))
    zero, one = await stage.pods(2)
    await stage.fail(zero, exit_code=3)
    (again, _) = await stage.pods(2)
    await stage.fail(again)
    await stage.succeed(one)
    await stage.until(has("Failed"))


@scenario("F3; job failed due to FailJob action, with limits per index")
async def fail_job_beats_limits_per_index(stage: Stage) -> None:
    """The held-back pod is counted with the verdict."""
    await stage.create(_job(3, 1, podFailurePolicy=rules(exit_code_rule("FailJob", 42))))
    zero, one, two = await stage.pods(3)
    await stage.run(two)
    async with stage.stimulus("one retry, one verdict"):
        await stage.fail(zero)
        await stage.fail(one, exit_code=42)
    await stage.gone(two)
    await stage.until(has("Failed"))


@scenario("F3; FailIndex on a condition")
async def fail_index_on_a_condition(stage: Stage) -> None:
    """Other indexes complete; the Job fails in the end."""
    await stage.create(_job(2, 3, podFailurePolicy=rules(condition_rule("FailIndex", "Hopeless"))))
    zero, one = await stage.pods(2)
    await stage.fail(zero, conditions={"Hopeless": "True"})
    await stage.succeed(one)
    await stage.until(has("Failed"))


@scenario("Q17, L5: the held-back pod is deleted by a user; TestBackoffLimitPerIndex_DelayedPodDeletion")
async def the_held_back_pod_is_deleted(stage: Stage) -> None:
    """Its finalizer keeps it until the replacement is there."""
    await stage.create(_job(1, 2))
    (first,) = await stage.pods(1)
    async with stage.stimulus("fail and delete"):
        await stage.fail(first)
        await stage.gone(first)
    await stage.until_place(lambda place: len(place.pod_births) == 2)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("L2, I2: failed indexes beyond the end are forgotten")
async def a_failed_index_is_scaled_away(stage: Stage) -> None:
    """With fewer completions the failed index no longer exists, and the Job completes."""
    await stage.create(_job(3, 0))
    zero, one, two = await stage.pods(3)
    await stage.fail(two)
    await stage.change(completions=2, parallelism=2)
    await stage.succeed(zero, one)
    await stage.until(has("Complete"))


@scenario('L2: failedIndexes is "" from the first write on; all succeed')
async def no_index_fails(stage: Stage) -> None:
    """failedIndexes stays empty, not absent."""
    await stage.create(_job(2, 1))
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("L1, I1: several failed indexes as text")
async def many_failed_indexes(stage: Stage) -> None:
    """failedIndexes 0,1,4-6; the free places go to the next indexes."""
    await stage.create(_job(9, 0, parallelism=7))
    pods = await stage.pods(7)
    await stage.fail(*(pods[index] for index in (0, 1, 4, 5, 6)))
    await stage.until(counts(active=4))
