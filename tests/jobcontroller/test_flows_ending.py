"""Jobs that are stopped: deadline, suspension, failure and success policies, limits per index."""

from __future__ import annotations

import pytest
from doubles.jobworld import job_world
from doubles.pods import Body
from doubles.refusals import Refused

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.controller import ControllerSettings
from mirror.jobcontroller.syncing import Behaviour

pytestmark = pytest.mark.looptime

FAIL_ON_42 = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
IGNORE_DISRUPTION = {
    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
}


async def test_at_its_deadline_a_job_deletes_its_pods_and_fails_when_they_are_gone() -> None:
    """§5.6: counted before they have ended; the terminal condition waits for them."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2, activeDeadlineSeconds=5)
        await world.settle(2)
        for pod in world.pods():
            world.node.run(pod)
        await world.settle(4.5)
        status = world.status()
        assert (status.get("active", 0), status["ready"], status["terminating"], status["failed"]) == (0, 0, 2, 2)
        assert world.conditions() == {"FailureTarget": "DeadlineExceeded"}
        assert world.told.reasons()["SuccessfulDelete"] == 2
        world.node.stop_all()
        await world.settle()
        assert world.conditions()["Failed"] == "DeadlineExceeded"
        assert world.status()["terminating"] == 0
        assert world.pods() == []


async def test_a_deadline_that_is_set_later_has_a_timer_of_its_own() -> None:
    """H2, Q22: nothing else would wake the Job."""
    async with job_world() as world:
        world.create()
        await world.settle(10)
        world.set_spec(activeDeadlineSeconds=60)
        await world.settle(40)
        assert world.conditions() == {}
        await world.settle(12)
        assert "FailureTarget" in world.conditions()


async def test_a_deadline_in_the_past_fires_at_once() -> None:
    """Q22."""
    async with job_world() as world:
        world.create()
        await world.settle(10)
        world.set_spec(activeDeadlineSeconds=1)
        await world.settle(0.5)
        assert "FailureTarget" in world.conditions()


async def test_suspended_resumed_suspended_resumed() -> None:
    """§5.7: pods lose the finalizer before they are deleted, so that they never count; startTime goes and comes."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2, suspend=True)
        await world.settle()
        assert world.writes() == ["update jobs/status"]
        assert world.conditions() == {"Suspended": "JobSuspended"}
        assert "startTime" not in world.status()
        world.set_spec(suspend=False)
        await world.settle()
        assert len(world.active()) == 2
        assert world.conditions() == {}
        assert "startTime" in world.status()
        for pod in world.pods():
            world.node.run(pod)
        await world.settle()
        written = len(world.writes())
        world.set_spec(suspend=True)
        await world.settle()
        assert sorted(world.writes(written)[:4]) == ["delete pods", "delete pods", "patch pods", "patch pods"]
        status = world.status()
        assert (status.get("active", 0), status["ready"], status["terminating"]) == (0, 0, 2)
        assert "startTime" not in status
        world.node.stop_all()
        await world.settle()
        assert world.status()["terminating"] == 0
        world.set_spec(suspend=False)
        await world.settle()
        for pod in world.active():
            world.node.succeed(pod)
        await world.settle()
        status = world.status()
        assert "Complete" in world.conditions()
        assert (status["succeeded"], status.get("failed", 0)) == (2, 0)
        assert [one for one in world.told.reasons() if one in ("Suspended", "Resumed")] == ["Suspended", "Resumed"]


async def test_a_fail_job_rule_is_on_record_before_any_finalizer_goes() -> None:
    """§5.8a, F6: the verdict with its message comes first, and the remaining pods count as failed."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2, podFailurePolicy=FAIL_ON_42)
        await world.settle()
        first, second = world.pods()
        world.node.run(second)
        await world.settle()
        written = len(world.writes())
        world.node.fail(first, exit_code=42)
        await world.settle()
        assert world.writes(written)[:3] == ["delete pods", "update jobs/status", "patch pods"]
        assert world.conditions() == {"FailureTarget": "PodFailurePolicy"}
        assert world.status()["failed"] == 2
        world.node.stop_all()
        await world.settle()
        assert world.conditions()["Failed"] == "PodFailurePolicy"
        message = f"Container main for pod default/{first} failed with exit code 42 matching FailJob rule at index 0"
        assert world.told.events[-1] == ("Warning", "PodFailurePolicy", message)
        assert world.told.counts["policy action", "FailJob"] == 1


async def test_a_verdict_can_come_from_a_pod_that_was_counted_already() -> None:
    """Y13-3: a failed pod without finalizer still says that the Job fails, also to a new process (Q4)."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2, podFailurePolicy=FAIL_ON_42)
        await world.settle()
        first, _ = world.pods()

    def strip(pod: Body) -> None:
        pod["metadata"].pop("finalizers")

    world.node.fail(first, exit_code=42)
    world.wire.server.edit("pods", first, strip)
    async with world.running():
        await world.settle()
        assert world.conditions()["FailureTarget"] == "PodFailurePolicy"


async def test_an_ignored_failure_costs_time_and_no_count() -> None:
    """§5.8b, Q18: replaced after the backoff; nothing is counted."""
    async with job_world() as world:
        world.create(backoffLimit=0, podFailurePolicy=IGNORE_DISRUPTION)
        await world.settle()
        world.node.fail(world.pods()[0], condition="DisruptionTarget")
        await world.settle(8)
        assert len(world.pods()) == 1
        assert "failed" not in world.status()
        assert world.pods(tracked=True) == []
        await world.settle(5)
        assert len(world.pods()) == 2
        assert world.told.counts["policy action", "Ignore"] == 1


async def test_an_index_keeps_its_failed_pod_until_the_replacement_runs() -> None:
    """§5.8c, L5, Q17: the held-back pod carries the counter to its replacement."""
    async with job_world() as world:
        world.create(
            completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1, backoffLimit=2**31 - 1
        )
        await world.settle()
        assert world.status()["failedIndexes"] == ""
        first, second = world.pods()
        world.node.fail(first)
        await world.settle(8)
        assert first in world.pods(tracked=True)
        await world.settle(6)
        replacement = world.bodies()[-1]["metadata"]
        assert replacement["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"
        assert first not in world.pods(tracked=True)
        world.node.fail(replacement["name"])
        world.node.succeed(second)
        await world.settle()
        assert world.status()["failedIndexes"] == "0"
        assert world.conditions()["Failed"] == "FailedIndexes"
        assert world.told.counts["indexes finished", "failed", "perIndex"] == 1


async def test_a_success_policy_deletes_what_still_runs() -> None:
    """§5.9: lingering pods are not counted, and Complete waits for them."""
    async with job_world() as world:
        policy = {"rules": [{"succeededIndexes": "0"}]}
        world.create(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy)
        await world.settle()
        for pod in world.pods():
            world.node.run(pod)
        await world.settle()
        world.node.succeed(world.pods()[0])
        await world.settle()
        assert world.conditions() == {"SuccessCriteriaMet": "SuccessPolicy"}
        assert world.status()["terminating"] == 2
        world.node.stop_all()
        await world.settle()
        status = world.status()
        assert world.conditions()["Complete"] == "SuccessPolicy"
        assert (status["succeeded"], status.get("failed", 0)) == (1, 0)


@pytest.mark.parametrize(
    ("policy", "is_counted_while_ending"),
    [("TerminatingOrFailed", True), ("Failed", False)],
)
async def test_when_a_deleted_pod_is_replaced_is_the_policys_matter(policy: str, is_counted_while_ending: bool) -> None:
    """R2, R3: at once after the backoff, or only when it has ended."""
    async with job_world() as world:
        world.create(podReplacementPolicy=policy)
        await world.settle()
        (pod,) = world.pods()
        world.node.run(pod)
        await world.settle()
        world.wire.server.remove("pods", pod)
        await world.settle(14)
        status = world.status()
        assert (status.get("failed", 0), status["terminating"]) == (int(is_counted_while_ending), 1)
        assert len(world.active()) == int(is_counted_while_ending)
        world.node.stop_all()
        await world.settle(14)
        assert world.status()["failed"] == 1
        assert len(world.active()) == 1


async def test_a_server_that_wants_interim_conditions_is_given_them_whatever_the_gates() -> None:
    """V18, V19: one refusal teaches it, for all Jobs."""
    gates = FeatureGates(job_pod_replacement_policy=False, job_managed_by=False)
    async with job_world(ControllerSettings(Behaviour(gates=gates))) as world:
        for name in ("first", "second"):
            world.create(name, backoffLimit=0)
            await world.settle()
            world.node.fail(world.active(name)[0])
            await world.settle(5)
            assert world.conditions(name) == dict.fromkeys(("FailureTarget", "Failed"), "BackoffLimitExceeded")
        assert world.told.counts["retry",] == 1


@pytest.mark.parametrize(
    "change",
    [pytest.param({"suspend": True}, id="suspended"), pytest.param({"parallelism": 1}, id="scaled down")],
)
async def test_a_pod_that_has_ended_unseen_is_counted_though_the_job_would_delete_it(change: dict[str, object]) -> None:
    """A1, A3, beyond upstream, where such a success is lost: the finalizer goes only as long as the pod is active."""
    async with job_world() as world:
        world.create(completions=3, parallelism=3, completionMode="Indexed")
        await world.settle()
        for pod in world.pods():
            world.node.run(pod)
        await world.settle()
        world.wire.mute_watches("pods")
        for pod in world.pods()[:2]:
            world.node.succeed(pod)
        world.set_spec(**change)
        await world.settle(20)
        assert len(world.pods(phase="Succeeded", tracked=True)) == 2
        await world.settle(180)  # the watch is found silent, and begins anew
        assert (world.status()["succeeded"], world.status()["completedIndexes"]) == (2, "0,1")


async def test_a_pod_that_has_only_started_is_deleted_in_the_same_sync() -> None:
    """A1: a change that does not matter costs a look at the server, and no waiting for the watch."""
    async with job_world() as world:
        world.create()
        await world.settle()
        world.wire.mute_watches("pods")
        world.node.run(world.pods()[0])
        world.set_spec(suspend=True)
        await world.settle()
        assert world.active() == []
        assert world.conditions() == {"Suspended": "JobSuspended"}


async def test_a_pod_that_somebody_deletes_while_its_job_is_suspended_keeps_its_finalizer_until_it_has_ended() -> None:
    """A1, beyond upstream: it may yet succeed, and is counted when it does."""
    async with job_world() as world:
        world.create(podReplacementPolicy="Failed")
        await world.settle()
        (pod,) = world.pods()
        world.node.run(pod)
        await world.settle()
        world.wire.mute_watches("pods")
        world.wire.server.remove("pods", pod)
        world.set_spec(suspend=True)
        await world.settle(180)
        assert world.pods(tracked=True) == [pod]
        world.node.succeed(pod)
        await world.settle()
        assert (world.pods(), world.status()["succeeded"]) == ([], 1)


async def test_who_has_the_name_of_a_pod_that_is_gone_is_not_deleted() -> None:
    """A1: only what the Job controls is deleted, however late the watch is."""
    async with job_world() as world:
        world.create()
        await world.settle()
        (pod,) = world.pods()
        world.wire.mute_watches("pods")
        server = world.wire.server
        server.edit("pods", pod, lambda body: body["metadata"].pop("finalizers"))
        server.remove("pods", pod)
        server.put("pods", {"metadata": {"name": pod}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        world.set_spec(suspend=True)
        await world.settle()
        assert (world.status().get("active", 0), world.conditions()) == (0, {"Suspended": "JobSuspended"})
        assert "deletionTimestamp" not in server.get("pods", pod)["metadata"]


async def test_a_pod_with_other_finalizers_loses_ours_only() -> None:
    """A1: wherever it stands."""
    async with job_world() as world:
        world.create()
        await world.settle()
        (pod,) = world.pods()
        world.wire.mute_watches("pods")
        world.wire.server.edit("pods", pod, lambda body: body["metadata"]["finalizers"].insert(0, "example.com/theirs"))
        world.set_spec(suspend=True)
        await world.settle()
        assert world.wire.server.get("pods", pod)["metadata"]["finalizers"] == ["example.com/theirs"]
        assert world.active() == []


async def test_a_server_that_refuses_every_removal_is_asked_again_later_and_the_status_stays_true() -> None:
    """A1: one request a pod and sync, in upstream's growing intervals."""
    async with job_world() as world:
        world.create(completions=5, parallelism=5)
        await world.settle()
        world.wire.arrange("patch", "pods", Refused(409, "Conflict"), times=1000)
        before = len(world.wire.sent)
        world.set_spec(suspend=True)
        await world.settle(60)
        assert world.status()["active"] == 5
        assert len(world.wire.sent) - before < 60
        world.wire.restore()
        await world.settle(60)
        assert (world.status().get("active", 0), world.pods()) == (0, [])


@pytest.mark.slow
async def test_pods_that_are_written_all_the_time_are_deleted_though_requests_wait_for_the_limit() -> None:
    """A1: a suspension takes two requests a pod, whatever kubelets, or whoever wants to evade it, write meanwhile."""
    async with job_world(qps=5) as world:
        world.create(completions=10, parallelism=10)
        await world.settle(10)
        for pod in world.pods():
            world.node.run(pod)
        await world.settle(10)
        world.set_spec(suspend=True)
        for count in range(50):
            for pod in world.active():
                world.node.restart(pod, count)
            await world.settle(0.1)
        assert world.active() == []
        assert world.conditions() == {"Suspended": "JobSuspended"}
