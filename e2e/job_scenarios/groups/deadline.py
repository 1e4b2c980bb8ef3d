"""activeDeadlineSeconds (B3, H2, Y14, W5). Deadlines are long enough for a script to act before them."""

from __future__ import annotations

from e2e.job_scenarios.bodies import indexed, job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, has


@scenario("chain 6; TestSyncJobPastDeadline", is_for_kills=False)
async def a_deadline_ends_running_pods(stage: Stage) -> None:
    """Failed counts precede termination; Failed waits for it."""
    await stage.create(job(completions=2, parallelism=2, activeDeadlineSeconds=20))
    first, second = await stage.pods(2)
    await stage.run(first, second)
    await stage.until(has("FailureTarget"))
    await stage.gone(first)
    await stage.gone(second)
    await stage.until(has("Failed"))


@scenario("B3; activeDeadlineSeconds times-out before any pod starts", is_for_kills=False)
async def a_deadline_ends_unscheduled_pods(stage: Stage) -> None:
    """Unscheduled pods go at once, and the Job fails in the same sync or soon after."""
    await stage.create(job(node=None, activeDeadlineSeconds=20))  # long enough for a slow machine to see the pod
    await stage.pods(1)
    await stage.until(has("Failed"))


@scenario("H2; a deadline is set on a running Job")
async def a_deadline_is_set_later(stage: Stage) -> None:
    """It has a timer of its own, counted from startTime."""
    await stage.create(job(node=None))
    await stage.pods(1)
    await stage.change(activeDeadlineSeconds=10)
    await stage.until(has("Failed"))


@scenario("H2, Q22: a deadline in the past")
async def a_deadline_that_is_over_already(stage: Stage) -> None:
    """It fires at once."""
    await stage.create(job(node=None))
    await stage.pods(1)
    await stage.change(activeDeadlineSeconds=1)
    await stage.until(has("Failed"))


@scenario(
    "W5; activeDeadlineSeconds is not triggered when Job is suspended; TestStartTimeUpdateOnResume", is_for_kills=False
)
async def a_deadline_while_suspended(stage: Stage) -> None:
    """It starts anew when the Job is resumed."""
    await stage.create(job(node=None, activeDeadlineSeconds=20))
    await stage.pods(1)
    await stage.suspend()
    for turn in ("first", "second"):
        await stage.patch({"metadata": {"labels": {"turn": turn}}})
        await stage.settle()
    await stage.resume()
    await stage.until(has("Failed"))


@scenario("B3; activeDeadlineSeconds bigger than single pod execution")
async def a_deadline_that_is_not_reached(stage: Stage) -> None:
    """A Job that completes in time is complete."""
    await stage.create(job(activeDeadlineSeconds=600))
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("Y13: FailJob, limit, deadline; activeDeadlineSeconds with backofflimit reach", is_for_kills=False)
async def deadline_and_backoff(stage: Stage) -> None:
    """The deadline fires while the replacement waits for its backoff."""
    await stage.create(job())
    await stage.fail(*await stage.pods(1))
    await stage.change(activeDeadlineSeconds=1)
    await stage.until(has("Failed"))


@scenario("Y13, T7: an Indexed Job whose indexes are partly done", is_for_kills=False)
async def a_deadline_of_an_indexed_job(stage: Stage) -> None:
    """What succeeded stays counted."""
    await stage.create(indexed(3, activeDeadlineSeconds=20))
    zero, one, two = await stage.pods(3)
    await stage.succeed(one)
    await stage.until(has("FailureTarget"))
    await stage.gone(zero, two)
    await stage.until(has("Failed"))
