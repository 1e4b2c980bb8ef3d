"""Jobs that run: the chains of writes that were observed on a real cluster, on one in memory."""

from __future__ import annotations

import pytest
from doubles.jobworld import JobWorld, job_world

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.controller import ControllerSettings
from mirror.jobcontroller.syncing import Behaviour

pytestmark = pytest.mark.looptime

FIRST = ["create pods", "update jobs/status"]
END = ["update jobs/status", "patch pods", "update jobs/status"]


async def finish_all(world: JobWorld, name: str = "train") -> None:
    for pod in world.active(name):
        world.node.succeed(pod)
    await world.settle()


async def test_a_simple_job_completes_with_the_observed_writes() -> None:
    """§5.1: one create, a status, one when the pod is ready, and the end in two steps around the finalizer."""
    async with job_world() as world:
        world.create()
        await world.settle()
        assert world.writes() == FIRST
        status = world.status()
        assert (status["active"], status["ready"], status["terminating"]) == (1, 0, 0)
        assert "startTime" in status
        assert status["uncountedTerminatedPods"] == {}
        (pod,) = world.pods()
        world.node.run(pod)
        await world.settle()
        assert world.status()["ready"] == 1
        world.node.succeed(pod)
        await world.settle()
        assert world.writes() == [*FIRST, "update jobs/status", *END]
        status = world.status()
        assert status["succeeded"] == 1
        assert list(world.conditions().items()) == [
            ("SuccessCriteriaMet", "CompletionsReached"),
            ("Complete", "CompletionsReached"),
        ]
        assert "completionTime" in status
        assert world.pods(tracked=True) == []
        assert list(world.told.reasons()) == ["SuccessfulCreate", "Completed"]
        assert world.told.events[0][2] == f"Created pod: {pod}"


async def test_a_quiet_job_costs_no_write() -> None:
    """T14: a sync that finds nothing new writes nothing."""
    async with job_world() as world:
        world.create()
        await world.settle()
        written = len(world.writes())
        world.edit(lambda body: body["metadata"].setdefault("annotations", {}).update(note="1"))
        await world.settle()
        assert world.told.counts["synced", "NonIndexed", "success", "tracking"] >= 1
        assert len(world.writes()) == written


async def test_a_job_that_only_fails_shows_its_successes_as_none() -> None:
    """PM3: a counter that is there from the first status on can be asked for its increase."""
    async with job_world() as world:
        world.create(completionMode="Indexed")
        await world.settle()
        counts = world.told.counts
        for key in (("pods finished", "Indexed", "succeeded"), ("pods finished", "Indexed", "failed")):
            assert (key in counts, counts[key]) == (True, 0)
        key = ("indexes finished", "succeeded", "global")
        assert (key in counts, counts[key]) == (True, 0)


async def test_without_its_gate_a_backoff_limit_per_index_counts_as_a_global_one() -> None:
    """PM3: the label tells which limit was looked at."""
    gates = FeatureGates(job_backoff_limit_per_index=False)
    async with job_world(ControllerSettings(Behaviour(gates=gates))) as world:
        world.create(completionMode="Indexed", backoffLimitPerIndex=1)
        await world.settle()
        await finish_all(world)
        assert world.told.counts["indexes finished", "succeeded", "global"] == 1


async def test_a_work_queue_ends_with_the_pods_that_are_left() -> None:
    """§5.2: after the first success nothing is created any more, and a failure does not matter."""
    async with job_world() as world:
        world.create(parallelism=3, completions=None)
        await world.settle()
        first, second, third = world.pods()
        world.node.succeed(first)
        await world.settle()
        world.node.fail(second)
        await world.settle(30)
        assert len(world.pods()) == 3
        world.node.succeed(third)
        await world.settle()
        assert (world.status()["succeeded"], world.status()["failed"]) == (2, 1)
        assert "Complete" in world.conditions()


async def test_completions_are_reached_with_bounded_parallelism() -> None:
    """§5.3: the next pod is created before the status that counts the last one."""
    async with job_world() as world:
        world.create(completions=3, parallelism=2)
        await world.settle()
        written = len(world.writes())
        world.node.succeed(world.pods()[0])
        await world.settle()
        step = ["create pods", "update jobs/status", "patch pods", "update jobs/status"]
        assert world.writes(written) == step
        await finish_all(world)
        assert world.status()["succeeded"] == 3
        assert len(world.pods()) == 3


async def test_an_indexed_job_needs_one_status_for_a_success() -> None:
    """§5.4, T14: an index on record is enough; its pods have an index everywhere they should (A11)."""
    async with job_world() as world:
        world.create(completions=3, parallelism=3, completionMode="Indexed")
        await world.settle()
        pods = world.bodies()
        assert [pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in pods] == [
            "0",
            "1",
            "2",
        ]
        assert [pod["spec"]["hostname"] for pod in pods] == ["train-0", "train-1", "train-2"]
        written = len(world.writes())
        world.node.succeed(world.pods()[2])
        await world.settle()
        assert world.writes(written) == ["update jobs/status", "patch pods"]
        assert world.status()["completedIndexes"] == "2"
        await finish_all(world)
        assert world.status()["completedIndexes"] == "0-2"
        assert "Complete" in world.conditions()
        assert world.told.counts["indexes finished", "succeeded", "global"] == 3
        assert world.told.counts["pods finished", "Indexed", "succeeded"] == 3


async def test_a_failed_pod_is_replaced_after_the_backoff_and_fails_the_job_at_the_limit() -> None:
    """§5.5: ten seconds from the first failure to the second pod; then the limit of one is exceeded."""
    async with job_world() as world:
        world.create(backoffLimit=1)
        await world.settle()
        world.node.fail(world.pods()[0])
        await world.settle(9)
        assert len(world.pods()) == 1
        assert world.status()["failed"] == 1
        await world.settle(4)
        assert len(world.pods()) == 2
        world.node.fail(world.pods()[1])
        await world.settle()
        assert world.status()["failed"] == 2
        assert world.conditions() == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
        assert world.told.events[-1] == (
            "Warning",
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
        )
        assert world.told.counts["finished", "NonIndexed", "failed", "BackoffLimitExceeded"] == 1


async def test_a_job_without_completions_to_reach_ends_at_once() -> None:
    """§5.13: completions 0: two statuses in one sync, no pods."""
    async with job_world() as world:
        world.create(completions=0)
        await world.settle()
        assert world.writes() == ["update jobs/status", "update jobs/status"]
        assert "Complete" in world.conditions()


async def test_without_parallelism_only_the_start_is_written() -> None:
    """§5.13: parallelism 0."""
    async with job_world() as world:
        world.create(parallelism=0)
        await world.settle()
        assert world.writes() == ["update jobs/status"]
        assert "startTime" in world.status()


async def test_an_elastic_job_shrinks_and_grows() -> None:
    """§5.13, I2: indexes beyond the new size are forgotten, their pods deleted and never counted as failed."""
    async with job_world() as world:
        world.create(completions=4, parallelism=4, completionMode="Indexed")
        await world.settle()
        for pod in world.pods():
            world.node.run(pod)
        await world.settle()
        by_index = {pod["spec"]["hostname"]: pod["metadata"]["name"] for pod in world.bodies()}
        world.node.succeed(by_index["train-0"])
        world.node.succeed(by_index["train-3"])
        await world.settle()
        assert world.status()["completedIndexes"] == "0,3"
        written = len(world.writes())
        world.set_spec(completions=2, parallelism=2)
        await world.settle()
        assert world.writes(written)[:3] == ["patch pods", "delete pods", "update jobs/status"]
        world.node.stop_all()
        await world.settle()
        status = world.status()
        assert (status["completedIndexes"], status["succeeded"], status["active"]) == ("0", 1, 1)
        assert "failed" not in status
        world.set_spec(completions=4, parallelism=4)
        await world.settle()
        assert sorted(pod["spec"]["hostname"] for pod in world.bodies() if pod["status"]["phase"] == "Pending") == [
            "train-2",
            "train-3",
        ]


async def test_surplus_pods_lose_the_finalizer_and_go() -> None:
    """A3: per pod a patch and then a delete; in the same status they are not active any more."""
    async with job_world() as world:
        world.create(completions=5, parallelism=3)
        await world.settle()
        written = len(world.writes())
        world.set_spec(parallelism=1)
        await world.settle(0.5)
        assert sorted(world.writes(written)[:4]) == ["delete pods", "delete pods", "patch pods", "patch pods"]
        assert world.writes(written)[4:] == ["update jobs/status"]
        assert world.status()["active"] == 1
        assert world.told.reasons()["SuccessfulDelete"] == 2
        assert world.told.counts["synced", "NonIndexed", "success", "pods_deleted"] >= 1


async def test_pods_are_created_in_growing_batches() -> None:
    """A8: 1, 2, 4: who would be refused is refused once."""
    async with job_world() as world:
        world.create(completions=7, parallelism=7)
        await world.settle(0.5)
        times = [one.at for one in world.wire.writes() if one.verb == "create"]
        batches = [times.count(at) for at in sorted(set(times))]
        assert batches == [1, 2, 4]
        assert world.told.counts["pods created", "new", "succeeded"] == 7
