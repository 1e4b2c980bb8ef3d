"""Jobs of one pod, what their pods look like, and Jobs that have nothing to do (4.3, A10)."""

from __future__ import annotations

from e2e.controlplane.client import Json
from e2e.job_scenarios.bodies import job
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, has


@scenario("chain 1; Y12, Y16, Y18, T8-T13; TestNonParallelJob, TestSyncJobComplete")
async def a_job_of_one_pod_completes(stage: Stage) -> None:
    """Pod, ready, succeeded, complete: five status writes at most."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.succeed(pod)
    await stage.until(has("Complete"))


@scenario("chain 1, without Ready in between")
async def a_pod_that_succeeds_at_once(stage: Stage) -> None:
    """No status with ready=1 is ever written."""
    await stage.create(job())
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("Y9, Y17; e2e: should update the status ready field")
async def readiness_comes_and_goes(stage: Stage) -> None:
    """ready follows the pod's condition."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.run(pod, is_ready=False)
    await stage.run(pod)


@scenario("Y9; TestControllerSyncJob: pending pods")
async def an_unscheduled_pod_counts_as_active(stage: Stage) -> None:
    """A node makes no difference to the status."""
    await stage.create(job(node=None))
    (pod,) = await stage.pods(1)
    await stage.bind(pod)
    await stage.run(pod)


@scenario("chain 13; A2; TestSetDefaultJob: WQ with parallelism 0")
async def parallelism_zero(stage: Stage) -> None:
    """Only startTime is written; with parallelism the pods come."""
    await stage.create(job(parallelism=0, completions=1))
    await stage.change(parallelism=1)
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("A2; work queue with parallelism 0")
async def a_work_queue_of_parallelism_zero(stage: Stage) -> None:
    """completions null and nobody at work: it does not complete."""
    await stage.create(job(parallelism=0))
    await stage.change(parallelism=2)
    await stage.pods(2)


@scenario("chain 13; Y16, T8, T12")
async def completions_zero(stage: Stage) -> None:
    """Complete in two writes of one sync, without pods."""
    await stage.create(job(completions=0))
    await stage.until(has("Complete"))


@scenario("W6, V21; TestSuspendJobWithZeroCompletions")
async def completions_zero_while_suspended(stage: Stage) -> None:
    """Complete without startTime and without ever being Suspended."""
    await stage.create(job(completions=0, suspend=True))
    await stage.until(has("Complete"))


@scenario("A10: labels, annotations, finalizers of the template")
async def the_template_is_copied_whole(stage: Stage) -> None:
    """Everything a template may hold is on the pod, plus finalizer and owner."""
    template = {
        "labels": {"team": "red"},
        "annotations": {"note": "as it is"},
        "finalizers": ["example.com/keep"],
    }
    pod = {
        "terminationGracePeriodSeconds": 5,
        "priority": 0,
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "containers": [
            {"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}], "command": ["run", "$(A)"]},
            {"name": "d", "image": "i", "resources": {"requests": {"cpu": "10m"}}},
        ],
        "initContainers": [{"name": "init", "image": "i"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    await stage.create(job(template=template, pod=pod, metadata={"labels": {"on": "job"}}))
    (made,) = await stage.pods(1)
    await stage.run(made)
    await stage.succeed(made)
    await stage.until(has("Complete"))


@scenario("A10: a template that asks for the tracking finalizer itself")
async def a_template_with_the_tracking_finalizer(stage: Stage) -> None:
    """The finalizer is there once, or twice, as upstream has it."""
    await stage.create(job(template={"finalizers": ["batch.kubernetes.io/job-tracking"]}))
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("A10: generateName is cut to 58 characters; DF9")
async def a_job_with_a_very_long_name(stage: Stage) -> None:
    """A name of 63 characters leaves room for a random end."""
    name = "a-job-with-a-name-that-is-as-long-as-any-name-of-a-job-may-be-x"
    assert len(name) == 63
    await stage.create(job(name))
    await stage.succeed(*await stage.pods(1, name))
    await stage.until(has("Complete"), name)


@scenario("A10: a name with dots, DF17")
async def a_job_with_dots_in_its_name(stage: Stage) -> None:
    """The pod's name starts with the Job's, dots included."""
    await stage.create(job("my.job.v1"))
    await stage.succeed(*await stage.pods(1, "my.job.v1"))
    await stage.until(has("Complete"), "my.job.v1")


@scenario("H2, Q25: same generation")
async def labels_of_the_job_change(stage: Stage) -> None:
    """Metadata alone causes no write."""
    await stage.create(job())
    await stage.patch({"metadata": {"labels": {"x": "y"}, "annotations": {"a": "b"}}})
    await stage.succeed(*await stage.pods(1))
    await stage.patch({"metadata": {"labels": {"x": "z"}}})


@scenario("Q9, H3; TestImmediateJobRecreation", is_for_kills=False)
async def a_job_is_recreated_under_its_name(stage: Stage) -> None:
    """Neither backoff nor expectations of its predecessor delay it."""
    await stage.create(job())
    await stage.fail(*await stage.pods(1))
    async with stage.stimulus("recreate"):
        await stage.delete()
        await stage.until_gone()
        await stage.create(job())
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("Y4, H2: a finished Job is left alone")
async def a_finished_job_is_changed(stage: Stage) -> None:
    """Parallelism and labels of a finished Job cause nothing; nor does its pod's end."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.succeed(pod)
    await stage.until(has("Complete"))
    await stage.change(parallelism=3)
    await stage.gone(pod)


@scenario("T4, Q16: more pods succeed than are wanted; TooManySucceededPods", is_for_kills=False)
async def more_pods_succeed_than_completions(stage: Stage) -> None:
    """Three succeed in one batch where two were wanted."""
    await stage.create(job(completions=2, parallelism=2))
    first, second = await stage.pods(2)
    async with stage.stimulus("all succeed, and one more"):
        await stage.succeed(first, second)
        await stage.create_pod(_twin(stage, first), {"phase": "Succeeded"})
    await stage.until(has("Complete"))
    await stage.until_event("TooManySucceededPods")


def _twin(stage: Stage, pod: str) -> Json:
    """A pod like that one, with owner and finalizer, as if the controller had made one too many."""
    model = stage.place.pods[pod]
    metadata = {key: model["metadata"][key] for key in ("labels", "ownerReferences", "finalizers")}
    return {"metadata": {"name": "twin", **metadata}, "spec": {**model["spec"], "tolerations": []}}


@scenario("N3: events are combined; K3", tells_pods_apart=False)
async def a_job_of_many_pods(stage: Stage) -> None:
    """Thirty pods: their events are combined, and Completed must still be told (upstream loses it)."""
    await stage.create(job(completions=30, parallelism=30))
    pods = await stage.pods(30)
    for first in range(0, 30, 10):
        await stage.succeed(*pods[first : first + 10])
    await stage.until(has("Complete"))
