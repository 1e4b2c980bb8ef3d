"""What happens while the controller is down, found when it is back (Q4, H7). All share one outage."""

from __future__ import annotations

from e2e.job_scenarios.bodies import TRACKING, exit_code_rule, indexed, job, lone_pod, manual, rules
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has


@scenario("Q4; TestNonParallelJob with restart", has_outage=True)
async def a_pod_ends_meanwhile(stage: Stage) -> None:
    """Its success is counted once."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    async with stage.outage():
        await stage.succeed(pod)
    await stage.until(has("Complete"))


@scenario("Q4; TestJobFailedWithInterrupts", has_outage=True)
async def pods_fail_meanwhile(stage: Stage) -> None:
    """All failures are found; the limit is exceeded."""
    await stage.create(job(completions=3, parallelism=3, backoffLimit=1))
    first, second, third = await stage.pods(3)
    async with stage.outage():
        await stage.fail(first, second)
        await stage.succeed(third)
    await stage.until(has("Failed"))


@scenario("Q4, F6; TestJobPodFailurePolicyWithFailedPodDeletedDuringControllerRestart", has_outage=True)
async def a_fatal_pod_is_deleted_meanwhile(stage: Stage) -> None:
    """The finalizer keeps it, so the verdict is found."""
    await stage.create(job(podFailurePolicy=rules(exit_code_rule("FailJob", 42))))
    (pod,) = await stage.pods(1)
    async with stage.outage():
        await stage.fail(pod, exit_code=42)
        await stage.gone(pod)
    await stage.until(has("Failed"))


@scenario("Q7; TestOrphanPodsFinalizersClearedOnRestart", has_outage=True)
async def a_job_is_deleted_meanwhile(stage: Stage) -> None:
    """Its pods lose their finalizers though nobody saw it go."""
    await stage.create(job(completions=2, parallelism=2))
    pods = await stage.pods(2)
    await stage.run(*pods)
    async with stage.outage():
        await stage.delete()
    await stage.gone(*pods)


@scenario("TestSuspendJobControllerRestart", has_outage=True)
async def suspended_meanwhile(stage: Stage) -> None:
    """Pods go after the restart, and come back after resuming."""
    await stage.create(job(completions=2, parallelism=2))
    pods = await stage.pods(2)
    async with stage.outage():
        await stage.suspend()
    await stage.gone(*pods)
    await stage.resume()
    await stage.pods(2)


@scenario("suspended and resumed meanwhile", has_outage=True)
async def suspended_and_resumed_meanwhile(stage: Stage) -> None:
    """Nobody saw it: nothing happens."""
    await stage.create(job())
    await stage.pods(1)
    async with stage.outage():
        await stage.suspend()
        await stage.resume()
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("H1: Jobs that come meanwhile, O2: orphans too", has_outage=True)
async def jobs_come_meanwhile(stage: Stage) -> None:
    """One is started, one adopts, an orphan is cleaned up."""
    await stage.create(job("before", parallelism=0, completions=1))
    async with stage.outage():
        await stage.create(job("new"))
        await stage.create_pod(lone_pod("waif", labels={"app": "manual"}), {"phase": "Running"})
        await stage.create(manual(name="adopts"))
        await stage.create_pod(lone_pod("orphan", finalizers=[TRACKING]))
    await stage.pods(1, "new")


@scenario("B3: a deadline passes meanwhile", has_outage=True)
async def a_deadline_passes_meanwhile(stage: Stage) -> None:
    """It fires after the restart."""
    await stage.create(job(node=None))
    await stage.pods(1)
    async with stage.outage():
        await stage.change(activeDeadlineSeconds=1)
    await stage.until(has("Failed"))


@scenario("R4, Q4: a Job is recreated meanwhile; Q6", has_outage=True)
async def recreated_meanwhile(stage: Stage) -> None:
    """The old one's pods are cleaned up, the new one is run."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    async with stage.outage():
        await stage.delete()
        await stage.until_gone()
        await stage.create(job())
    await stage.gone(pod)
    await stage.pods(1)


@scenario("L5, L7: an index fails meanwhile; Q17", has_outage=True)
async def an_index_fails_meanwhile(stage: Stage) -> None:
    """The count on the pod survives, the replacement has one more."""
    await stage.create(indexed(2, backoffLimitPerIndex=1))
    zero, one = await stage.pods(2)
    async with stage.outage():
        await stage.fail(zero, seconds_ago=60)  # else whether its backoff is over depends on how long a start takes
        await stage.succeed(one)
    await stage.until(counts(active=1))
    await stage.fail(*await stage.pods(1))
    await stage.until(has("Failed"))


@scenario("U3: an Indexed Job is scaled meanwhile", has_outage=True)
async def scaled_meanwhile(stage: Stage) -> None:
    """Both directions in one, the restart sees the last."""
    await stage.create(indexed(3))
    pods = await stage.pods(3)
    await stage.succeed(pods[2])
    async with stage.outage():
        await stage.change(completions=2, parallelism=2)
        await stage.succeed(pods[0])
    await stage.succeed(pods[1])
    await stage.until(has("Complete"))
