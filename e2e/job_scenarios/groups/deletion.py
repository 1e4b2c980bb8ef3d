"""Deleting Jobs, and who cleans up (A12, J2, H3, H6)."""

from __future__ import annotations

from e2e.job_scenarios.bodies import HELD, indexed, job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, has


@scenario("chain 10; TestOrphanPodsFinalizersClearedWithGC: Background")
async def deleted_in_the_background(stage: Stage) -> None:
    """No status is written; the pods lose their finalizers and the garbage collector takes them."""
    await stage.create(job(completions=2, parallelism=2))
    pods = await stage.pods(2)
    await stage.run(*pods)
    await stage.delete()
    await stage.until_gone()
    await stage.gone(*pods)


@scenario("chain 10; A12, J2; TestOrphanPodsFinalizersClearedWithGC: Foreground")
async def deleted_in_the_foreground(stage: Stage) -> None:
    """Finalizers go at once, active and terminating are written until the last pod is gone."""
    await stage.create(job(completions=2, parallelism=2, metadata=HELD))
    first, second = await stage.pods(2)
    await stage.run(first, second)
    await stage.delete_while_held(propagation="Foreground")
    await stage.gone(first)
    await stage.gone(second)
    await stage.until_gone()


@scenario("chain 11; J2; TestOrphanPodsFinalizersClearedWithGC: Orphan; DF16")
async def deleted_with_orphans_left(stage: Stage) -> None:
    """Pods stay, without owner and finalizer."""
    await stage.create(job(completions=2, parallelism=2, metadata=HELD))
    await stage.run(*await stage.pods(2))
    await stage.delete_while_held(propagation="Orphan")
    await stage.until_gone()


@scenario("chain 10: a pod ends while its Job is deleted in the foreground")
async def a_pod_succeeds_while_its_job_goes(stage: Stage) -> None:
    """Its finalizer is gone, so it is not counted."""
    await stage.create(job(completions=2, parallelism=2, metadata=HELD))
    first, second = await stage.pods(2)
    await stage.run(first, second)
    await stage.delete_while_held(propagation="Foreground")
    await stage.succeed(first)
    await stage.gone(second)
    await stage.gone(first)
    await stage.until_gone()


@scenario("H3, H7: a finished Job goes")
async def a_finished_job_is_deleted(stage: Stage) -> None:
    """The garbage collector does it alone."""
    await stage.create(job())
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))
    await stage.delete()
    await stage.until_gone()


@scenario("A12: deleting and scaling up")
async def a_deleting_job_creates_nothing(stage: Stage) -> None:
    """A finalizer of somebody holds the Job; more parallelism brings no pods."""
    await stage.create(job(completions=3, parallelism=1, metadata=HELD))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.delete()
    await stage.change(parallelism=3)
    await stage.gone(pod)
    await stage.let_go()
    await stage.until_gone()


@scenario("A12, T3: pods that ended before the deletion was seen")
async def deleted_while_a_pod_succeeds(stage: Stage) -> None:
    """Held by a finalizer of somebody: what ended with the tracking finalizer still counts."""
    await stage.create(indexed(2, metadata=HELD))
    zero, one = await stage.pods(2)
    async with stage.stimulus("succeed and delete"):
        await stage.succeed(zero)
        await stage.delete()
    await stage.gone(one)


@scenario("H3: a Job goes during the backoff of its pod", is_for_kills=False)
async def deleted_during_a_backoff(stage: Stage) -> None:
    """Nothing is created afterwards."""
    await stage.create(job())
    await stage.fail(*await stage.pods(1))
    await stage.delete()
    await stage.until_gone()


@scenario("A12; a suspended Job is deleted")
async def a_suspended_job_is_deleted(stage: Stage) -> None:
    """There is nothing to clean up."""
    await stage.create(job(suspend=True))
    await stage.delete(propagation="Foreground")
    await stage.until_gone()
