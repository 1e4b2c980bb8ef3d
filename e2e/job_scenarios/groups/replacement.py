"""podReplacementPolicy: when a pod that is being deleted is replaced and counted (4.11)."""

from __future__ import annotations

from e2e.job_scenarios.bodies import indexed, job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has


@scenario("chain 13; R2; TestJobPodReplacementPolicy: NonIndexed, TerminatingOrFailed")
async def replaced_while_terminating(stage: Stage) -> None:
    """Counted as failed at once, replaced after the backoff though the old one lingers."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.remove(pod)
    await stage.until(counts(failed=1, active=1, terminating=1))
    await stage.gone(pod)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("chain 13; R3; TestJobPodReplacementPolicy: NonIndexed, Failed", is_for_kills=False)
async def replaced_when_failed(stage: Stage) -> None:
    """Nothing is counted or created until it has failed."""
    await stage.create(job(podReplacementPolicy="Failed"))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.remove(pod)
    await stage.fail(pod, exit_code=143)
    await stage.gone(pod)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("R2; IndexedJob, TerminatingOrFailed")
async def an_index_is_replaced_while_terminating(stage: Stage) -> None:
    """Two pods of one index exist for a while; one lingers."""
    await stage.create(indexed(2, podReplacementPolicy="TerminatingOrFailed"))
    zero, one = await stage.pods(2)
    await stage.run(zero, one)
    await stage.remove(zero)
    await stage.until(counts(active=2))
    await stage.gone(zero)
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("R3; indexed job with some pods deleted, podReplacementPolicy Failed", is_for_kills=False)
async def an_index_is_replaced_when_failed(stage: Stage) -> None:
    """The other index is not touched."""
    await stage.create(indexed(2, podReplacementPolicy="Failed"))
    zero, one = await stage.pods(2)
    await stage.run(zero, one)
    await stage.remove(zero)
    await stage.fail(zero, exit_code=143)
    await stage.gone(zero)
    await stage.until(counts(active=2))


@scenario("R3: a terminating pod succeeds after all")
async def a_deleted_pod_succeeds(stage: Stage) -> None:
    """It counts as success under policy Failed."""
    await stage.create(job(podReplacementPolicy="Failed"))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.remove(pod)
    await stage.succeed(pod)
    await stage.until(has("Complete"))


@scenario("R4: an unscheduled deleted pod hangs without PodGC")
async def an_unscheduled_pod_hangs(stage: Stage) -> None:
    """terminating stays 1: only a terminal phase unblocks it."""
    await stage.create(job(node=None, podReplacementPolicy="Failed"))
    (pod,) = await stage.pods(1)
    await stage.remove(pod)
    await stage.fail(pod)
    await stage.until(counts(active=1))


@scenario("R3: a pod vanishes without an end: replaced, never counted")
async def a_pod_vanishes(stage: Stage) -> None:
    """Somebody takes finalizer and pod away."""
    await stage.create(job(podReplacementPolicy="Failed"))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    async with stage.stimulus(f"{pod} vanishes"):
        await stage.patch_pod(pod, {"metadata": {"finalizers": None}})
        await stage.gone(pod)
    await stage.pods(1)


@scenario("R3; a pod vanishes under TerminatingOrFailed")
async def a_pod_vanishes_under_the_other_policy(stage: Stage) -> None:
    """Without finalizer it cannot be counted."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    async with stage.stimulus(f"{pod} vanishes"):
        await stage.patch_pod(pod, {"metadata": {"finalizers": None}})
        await stage.gone(pod)
    await stage.pods(1)


@scenario("A5; more terminating pods than parallelism", is_for_kills=False)
async def more_pods_terminate_than_may_run(stage: Stage) -> None:
    """Under policy Failed nobody comes until enough are gone."""
    await stage.create(job(completions=3, parallelism=3, podReplacementPolicy="Failed"))
    pods = await stage.pods(3)
    await stage.run(*pods)
    await stage.remove(*pods)
    await stage.change(parallelism=1)
    await stage.fail(*pods, exit_code=143)
    await stage.gone(*pods)
    await stage.pods(1)


@scenario("U1: the policy changes on a running Job; TestJobPodReplacementPolicyFeatureToggling")
async def the_policy_changes(stage: Stage) -> None:
    """A pod that terminates is judged by the new policy."""
    await stage.create(job(podReplacementPolicy="Failed"))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.remove(pod)
    await stage.change(podReplacementPolicy="TerminatingOrFailed")
    await stage.until(counts(failed=1, active=1))
    await stage.gone(pod)


@scenario("T12; job scale down to meet completions, TestDelayTerminalPhaseCondition")
async def complete_waits_for_what_terminates(stage: Stage) -> None:
    """The last index is scaled away while it runs: SuccessCriteriaMet at once, Complete when it is gone."""
    await stage.create(indexed(2))
    zero, one = await stage.pods(2)
    await stage.run(zero, one)
    await stage.succeed(zero)
    await stage.change(completions=1, parallelism=1)
    await stage.gone(one)
    await stage.until(has("Complete"))
