"""Failures: backoff, backoffLimit, restarts by the kubelet (4.8)."""

from __future__ import annotations

from e2e.job_scenarios.bodies import indexed, job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has


@scenario("chain 5; B1, B4; TestJobBackoffOnRestartPolicyNever")
async def backoff_limit_one(stage: Stage) -> None:
    """One retry after ten seconds, then the Job fails."""
    await stage.create(job(backoffLimit=1))
    await stage.fail(*await stage.pods(1))
    await stage.fail(*await stage.pods(1))
    await stage.until(has("Failed"))


@scenario("B1; backoffLimit 0")
async def backoff_limit_zero(stage: Stage) -> None:
    """The first failure ends the Job."""
    await stage.create(job(backoffLimit=0))
    await stage.fail(*await stage.pods(1))
    await stage.until(has("Failed"))


@scenario("Y15, T5, T12; TestDelayTerminalPhaseCondition, TestFinalizersClearedWhenBackoffLimitExceeded")
async def the_limit_is_reached_while_others_run(stage: Stage) -> None:
    """The others are deleted and count as failed at once; Failed waits until they are gone."""
    await stage.create(job(completions=3, parallelism=3, backoffLimit=0))
    first, second, third = await stage.pods(3)
    await stage.run(first, second, third)
    await stage.fail(first)
    await stage.gone(second)
    await stage.gone(third)
    await stage.until(has("Failed"))


@scenario("Q24: leftovers end after the verdict, well or badly")
async def pods_end_after_the_verdict(stage: Stage) -> None:
    """A terminating pod that succeeds after all changes no counter."""
    await stage.create(indexed(3, backoffLimit=0))
    first, second, third = await stage.pods(3)
    await stage.fail(first)
    await stage.succeed(second)
    await stage.fail(third)
    await stage.until(has("Failed"))


@scenario("B4: 10 s, 20 s; TestJobPodsCreatedWithExponentialBackoff")
async def the_backoff_doubles(stage: Stage) -> None:
    """Two failures one after the other, then success."""
    await stage.create(job())
    await stage.fail(*await stage.pods(1))
    await stage.fail(*await stage.pods(1))
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("B5: failed + succeed pods: reset backoff delay", is_for_kills=False)
async def a_success_resets_the_backoff(stage: Stage) -> None:
    """What failed before a success does not delay."""
    await stage.create(job(completions=3, parallelism=2))
    first, second = await stage.pods(2)
    await stage.fail(first)
    await stage.succeed(second)
    await stage.pods(2)


@scenario("B5; two pods fail in one batch")
async def two_failures_at_once(stage: Stage) -> None:
    """Both count for the delay: twenty seconds."""
    await stage.create(job(completions=2, parallelism=2))
    await stage.fail(*await stage.pods(2))
    await stage.pods(2)


@scenario("A6, Q10; too few active pods and active back-off with running pods", is_for_kills=False)
async def one_fails_while_another_runs(stage: Stage) -> None:
    """active stays what it is while the replacement waits."""
    await stage.create(job(completions=2, parallelism=2))
    first, second = await stage.pods(2)
    await stage.run(second)
    await stage.fail(first)
    await stage.run(second, is_ready=False)
    await stage.pods(2)


@scenario("B1: the limit is lowered on a running Job (U1)", is_for_kills=False)
async def the_limit_is_lowered(stage: Stage) -> None:
    """Failures of the past are judged by the new limit."""
    await stage.create(job(completions=2, parallelism=2))
    first, second = await stage.pods(2)
    await stage.run(second)
    await stage.fail(first)
    await stage.change(backoffLimit=0)
    await stage.gone(second)
    await stage.until(has("Failed"))


@scenario("B2; TestJobBackoffForOnFailure: backoffLimit 0")
async def restarts_with_limit_zero(stage: Stage) -> None:
    """One restart by the kubelet ends the Job."""
    await stage.create(job(restart="OnFailure", backoffLimit=0))
    (pod,) = await stage.pods(1)
    await stage.restart(0, pod)
    await stage.restart(1, pod)
    await stage.gone(pod)
    await stage.until(has("Failed"))


@scenario("B2; TestJobBackoffForOnFailure: too many job failures - multiple pods")
async def restarts_of_several_pods_add_up(stage: Stage) -> None:
    """Restarts of running and pending pods count together; the limit itself is too many."""
    await stage.create(job(restart="OnFailure", backoffLimit=3, completions=2, parallelism=2))
    first, second = await stage.pods(2)
    await stage.restart(2, first)
    await stage.restart(1, second, phase="Pending")
    await stage.gone(first, second)
    await stage.until(has("Failed"))


@scenario("B2; restarts of a pod that succeeds in the end; e2e: tasks sometimes fail and are locally restarted")
async def restarts_and_success(stage: Stage) -> None:
    """Fewer restarts than the limit harm nobody."""
    await stage.create(job(restart="OnFailure", backoffLimit=3))
    (pod,) = await stage.pods(1)
    await stage.restart(2, pod)
    await stage.succeed(pod)
    await stage.until(has("Complete"))


@scenario("R2, Y10: a user deletes an unscheduled pod")
async def an_unscheduled_pod_is_deleted(stage: Stage) -> None:
    """It counts as failed and is replaced."""
    await stage.create(job(node=None))
    await stage.remove(*await stage.pods(1))
    await stage.until(counts(failed=1, active=1))


@scenario("Y10, T5: failure and success in one batch with limit 0")
async def success_and_failure_together(stage: Stage) -> None:
    """The failure decides: the Job fails with succeeded 1."""
    await stage.create(job(completions=2, parallelism=2, backoffLimit=0))
    first, second = await stage.pods(2)
    async with stage.stimulus("one succeeds, one fails"):
        await stage.succeed(first)
        await stage.fail(second)
    await stage.until(has("Failed"))


@scenario("Y13: the last success and one failure too many in one batch")
async def all_completions_and_a_failure_together(stage: Stage) -> None:
    """completions reached, but the limit is exceeded in the same sync."""
    await stage.create(job(completions=1, parallelism=1, backoffLimit=0))
    (pod,) = await stage.pods(1)
    await stage.change(backoffLimit=0)
    await stage.succeed(pod)
    await stage.until(has("Complete"))


@scenario("B6: no container says when it ended")
async def a_failure_without_container_statuses(stage: Stage) -> None:
    """The time of the condition Ready, or of creation, takes its place."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    async with stage.stimulus("fail without details"):
        path = f"/api/v1/namespaces/{stage.namespace}/pods/{pod}/status"
        await stage.client.merge(path, {"status": {"phase": "Failed"}})
    await stage.until(counts(failed=1, active=1))
