"""Suspend and resume, and what may be changed meanwhile (4.7, U4-U9)."""

from __future__ import annotations

from e2e.job_scenarios.bodies import HELD, indexed, job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has


@scenario("chain 7; W1-W4; TestSuspendJob")
async def suspended_from_the_start_and_again(stage: Stage) -> None:
    """Created suspended, resumed, suspended while running, resumed, completed."""
    await stage.create(job(completions=2, parallelism=2, suspend=True))
    await stage.resume()
    pods = await stage.pods(2)
    await stage.run(*pods)
    await stage.suspend()
    await stage.gone(*pods)
    await stage.resume()
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("W1: a Job that was not suspended first")
async def suspended_while_running(stage: Stage) -> None:
    """The condition comes with the first suspension; deleted pods do not count as failed."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.suspend()
    await stage.gone(pod)
    await stage.resume()
    await stage.pods(1)


@scenario("A1, W4: unscheduled pods go at once")
async def suspended_while_pods_wait_for_a_node(stage: Stage) -> None:
    """Nothing terminates."""
    await stage.create(job(completions=3, parallelism=3, node=None))
    await stage.pods(3)
    await stage.suspend()
    await stage.resume()
    await stage.pods(3)


@scenario("W7: completed indexes survive")
async def an_indexed_job_is_suspended_half_way(stage: Stage) -> None:
    """Only the missing indexes run after resuming."""
    await stage.create(indexed(3))
    zero, one, two = await stage.pods(3)
    await stage.succeed(one)
    await stage.suspend()
    await stage.gone(zero, two)
    await stage.resume()
    await stage.succeed(*await stage.pods(2))
    await stage.until(has("Complete"))


@scenario("W7: resume respects the backoff", is_for_kills=False)
async def suspended_during_a_backoff(stage: Stage) -> None:
    """The failed pod's delay goes on while suspended."""
    await stage.create(job())
    await stage.fail(*await stage.pods(1))
    await stage.suspend()
    await stage.resume()
    await stage.until(counts(failed=1, active=1))


@scenario("W1, W2: a Job without pods is suspended, resumed, suspended")
async def suspended_without_pods(stage: Stage) -> None:
    """Each change has its event and its condition; startTime goes and comes."""
    await stage.create(job(parallelism=0, completions=1))
    await stage.suspend()
    await stage.resume()
    await stage.suspend()


@scenario("Y13; a failure is judged while suspended", is_for_kills=False)
async def the_limit_is_lowered_while_suspended(stage: Stage) -> None:
    """BackoffLimitExceeded of a suspended Job: its startTime was cleared, so Failed cannot be stored (Q13)."""
    await stage.create(job(node=None))
    await stage.fail(*await stage.pods(1))
    await stage.suspend()
    await stage.change(backoffLimit=0)
    await stage.until(has("FailureTarget"))
    await stage.resume()
    await stage.until(has("Failed"))


@scenario("Q13: a terminating pod succeeds while suspended")
async def completions_are_reached_while_suspended(stage: Stage) -> None:
    """Upstream's terminal write is refused until the Job is resumed."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.succeed(pod)
    await stage.until(has("Complete"))
    await stage.suspend()


@scenario("Q13: pods that were counted but are not done; suspended with all indexes but one")
async def the_last_index_ends_while_suspended(stage: Stage) -> None:
    """The pod lost its finalizer with the suspension: its success is not counted."""
    await stage.create(indexed(2))
    zero, one = await stage.pods(2)
    await stage.succeed(zero)
    await stage.suspend()
    await stage.succeed(one)
    await stage.resume()
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("Q13: completions of a suspended elastic Job shrink to what is done")
async def a_suspended_job_shrinks_to_what_is_done(stage: Stage) -> None:
    """SuccessCriteriaMet while suspended, without startTime; upstream cannot store Complete until resumed."""
    await stage.create(indexed(2))
    zero, one = await stage.pods(2)
    await stage.succeed(zero)
    await stage.suspend()
    await stage.gone(one)
    await stage.change(completions=1, parallelism=1)
    await stage.until(has("SuccessCriteriaMet"))
    await stage.resume()
    await stage.until(has("Complete"))


@scenario("A12; suspending a deleted job")
async def suspended_while_being_deleted(stage: Stage) -> None:
    """A deleting Job's condition does not change any more."""
    await stage.create(job(metadata=HELD))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.delete_while_held(propagation="Foreground")
    await stage.suspend()
    await stage.gone(pod)
    await stage.until_gone()


@scenario("U6, KEP-2926; TestMutableSchedulingDirectivesForSuspendedJobs, TestNodeSelectorUpdate")
async def scheduling_directives_change_while_suspended(stage: Stage) -> None:
    """Pods after resuming carry the new ones."""
    await stage.create(job(node=None, pod={"nodeSelector": {"zone": "a"}}))
    await stage.pods(1)
    await stage.suspend()
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
            }
        }
    }
    spec = {
        "nodeSelector": {"zone": "b"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": affinity,
        "schedulingGates": [{"name": "example.com/gate"}],
    }
    template = {"metadata": {"labels": {"more": "x"}, "annotations": {"note": "new"}}, "spec": spec}
    await stage.change(template=template)
    await stage.resume()
    await stage.pods(1)


@scenario("U6; TestUpdateJobPodResources: started then suspended")
async def resources_change_while_suspended(stage: Stage) -> None:
    """Pods after resuming ask for the new amount."""
    await stage.create(job(node=None, suspend=True))
    containers = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]
    await stage.change(template={"spec": {"containers": containers}})
    await stage.resume()
    await stage.pods(1)


@scenario("A2: parallelism of a suspended Job")
async def parallelism_changes_while_suspended(stage: Stage) -> None:
    """It counts after resuming only."""
    await stage.create(job(completions=5, parallelism=1, suspend=True))
    await stage.change(parallelism=3)
    await stage.resume()
    await stage.pods(3)


@scenario("R1, W7: policy Failed waits; TestMutablePodResourcesWithPodReplacementPolicyFailed")
async def resumed_while_old_pods_terminate(stage: Stage) -> None:
    """No pod comes before the old ones are gone."""
    await stage.create(job(completions=2, parallelism=2, podReplacementPolicy="Failed"))
    pods = await stage.pods(2)
    await stage.run(*pods)
    await stage.suspend()
    await stage.resume()
    await stage.gone(pods[0])
    await stage.gone(pods[1])
    await stage.pods(2)


@scenario("R2, W7: with TerminatingOrFailed it does not wait")
async def resumed_beside_terminating_pods(stage: Stage) -> None:
    """New pods come at once, terminating counts the old ones."""
    await stage.create(job(completions=2, parallelism=2))
    pods = await stage.pods(2)
    await stage.run(*pods)
    await stage.suspend()
    await stage.resume()
    await stage.pods(2)
    await stage.gone(*pods)
