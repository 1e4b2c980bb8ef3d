"""Statuses that somebody else wrote: uncounted pods, conditions, counters (T2, Y13, Q14, Q15)."""

from __future__ import annotations

from e2e.controlplane.client import Json
from e2e.job_scenarios.bodies import indexed, job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has

_LONG_GONE = "11111111-2222-3333-4444-555555555555"


def _condition(kind: str, status: str, reason: str = "Mine", message: str = "because") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


@scenario("T2: uids of pods that are gone; past and new finished pods")
async def uncounted_pods_that_are_gone(stage: Stage) -> None:
    """They are added to the counters in the next sync."""
    await stage.create(job(completions=3, parallelism=1))
    await stage.pods(1)
    await stage.write_status({"uncountedTerminatedPods": {"succeeded": [_LONG_GONE]}})
    await stage.succeed(*await stage.pods(1))
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("T2: failed uids of pods that are gone")
async def uncounted_failures_that_are_gone(stage: Stage) -> None:
    """They count against the limit."""
    await stage.create(job(backoffLimit=0, node=None))
    await stage.pods(1)
    await stage.write_status({"uncountedTerminatedPods": {"failed": [_LONG_GONE]}})
    await stage.until(has("Failed"))


@scenario("T4, Q16; pod flips from failed to succeeded")
async def a_pod_that_was_counted_as_failed_succeeds(stage: Stage) -> None:
    """Its uid is in uncounted.failed already: it stays failed, and the Job is complete nevertheless."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    uid = stage.place.pods[pod]["metadata"]["uid"]
    async with stage.stimulus("listed as failed, and succeeds"):
        await stage.write_status({"uncountedTerminatedPods": {"failed": [uid]}})
        await stage.succeed(pod)


@scenario("Q15: a FailureTarget that somebody wrote")
async def somebody_fails_the_job(stage: Stage) -> None:
    """Active pods are deleted, Failed has the same reason and message, the event too."""
    await stage.create(job(completions=2, parallelism=2))
    pods = await stage.pods(2)
    await stage.run(*pods)
    await stage.write_status({"conditions": [_condition("FailureTarget", "True")]})
    await stage.gone(*pods)
    await stage.until(has("Failed"))


@scenario("Y13-1: a SuccessCriteriaMet that somebody wrote")
async def somebody_ends_the_job_well(stage: Stage) -> None:
    """It completes with that reason."""
    await stage.create(job(completions=2, parallelism=2))
    pods = await stage.pods(2)
    await stage.run(*pods)
    await stage.write_status({"conditions": [_condition("SuccessCriteriaMet", "True")]})
    await stage.gone(*pods)
    await stage.until(has("Complete"))


@scenario("Q14; FailureTarget=False condition added manually is ignored")
async def a_failure_target_that_is_false(stage: Stage) -> None:
    """It neither ends the Job nor stops it from failing; two entries of the type in the end."""
    await stage.create(job(backoffLimit=0))
    await stage.pods(1)
    await stage.write_status({"conditions": [_condition("FailureTarget", "False")]})
    await stage.fail(*await stage.pods(1))
    await stage.until(has("Failed"))


@scenario("Q14; SuccessCriteriaMet=False condition added manually is ignored")
async def success_criteria_that_are_not_met(stage: Stage) -> None:
    """The Job completes all the same."""
    await stage.create(job())
    await stage.pods(1)
    await stage.write_status({"conditions": [_condition("SuccessCriteriaMet", "False")]})
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("TestSingleJobFailedCondition; N1")
async def a_failed_condition_that_is_false(stage: Stage) -> None:
    """Failed=False becomes Failed=True: one entry."""
    await stage.create(job(backoffLimit=0))
    await stage.pods(1)
    await stage.write_status({"conditions": [_condition("Failed", "False")]})
    await stage.fail(*await stage.pods(1))
    await stage.until(has("Failed"))


@scenario("Y17: somebody writes other counters")
async def counters_are_overwritten(stage: Stage) -> None:
    """active, ready and terminating are computed anew; succeeded and failed are believed."""
    await stage.create(job(completions=3, parallelism=1))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.write_status({"active": 5, "ready": 3, "terminating": 2, "succeeded": 1, "failed": 4})
    await stage.succeed(pod)


@scenario("T7, I1: somebody writes indexes in another form")
async def index_text_is_rewritten(stage: Stage) -> None:
    """A text that is not canonical is read leniently and written canonically."""
    await stage.create(indexed(6, 1))
    await stage.pods(1)
    await stage.write_status({"completedIndexes": "1,2,3,5", "succeeded": 4})
    await stage.succeed(*await stage.pods(1))
    await stage.until(counts(succeeded=5))


@scenario("T7: completedIndexes and succeeded disagree")
async def succeeded_follows_the_indexes(stage: Stage) -> None:
    """The number is that of the indexes."""
    await stage.create(indexed(4, 1))
    await stage.pods(1)
    await stage.write_status({"completedIndexes": "2"})
    await stage.succeed(*await stage.pods(1))
    await stage.until(counts(succeeded=2))


@scenario("Y12: somebody wrote a startTime; W3")
async def a_start_time_is_there_already(stage: Stage) -> None:
    """It is kept."""
    await stage.create(job(suspend=True))
    await stage.write_status({"startTime": "2020-01-01T00:00:00Z"})
    await stage.resume()
    await stage.pods(1)


@scenario("W1, TestEnsureJobConditions: a Suspended condition that is not true")
async def a_suspended_condition_of_somebody(stage: Stage) -> None:
    """Another reason is overwritten with the next change only."""
    await stage.create(job(parallelism=0, completions=1))
    await stage.write_status({"conditions": [_condition("Suspended", "False"), _condition("Other", "True")]})
    await stage.suspend()
    await stage.resume()


@scenario("Y4: a one-shot terminal status, M1")
async def somebody_completes_the_job(stage: Stage) -> None:
    """The pod loses its finalizer by the orphan scan; nothing else happens."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    time = stage.job()["status"]["startTime"]
    ends = [_condition("FailureTarget", "True"), _condition("Failed", "True")]
    for one in ends:
        one["lastTransitionTime"] = time
    done: Json = {"active": 0, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "conditions": ends}
    await stage.write_status(done)
    await stage.gone(pod)
