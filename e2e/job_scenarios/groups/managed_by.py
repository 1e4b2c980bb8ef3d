"""managedBy: whose Job it is (Y3, H1, J4)."""

from __future__ import annotations

from e2e.job_scenarios.bodies import TRACKING, controlled_by, job, lone_pod
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, has

_OTHER = "example.com/other"
_BUILT_IN = "kubernetes.io/job-controller"


@scenario("chain 12; TestManagedBy: custom value, unsuspended and suspended")
async def jobs_of_another_controller(stage: Stage) -> None:
    """No write at all, whether suspended or not, and none when it is deleted."""
    await stage.create(job("running", managedBy=_OTHER))
    await stage.create(job("held", managedBy=_OTHER, suspend=True))
    await stage.patch({"spec": {"suspend": False}}, "held")
    await stage.delete("running", propagation="Foreground")
    await stage.until_gone("running")


@scenario("TestManagedBy: the well known value")
async def the_well_known_value(stage: Stage) -> None:
    """It is run like any other."""
    await stage.create(job(managedBy=_BUILT_IN))
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("Q6; TestManagedBy_RecreatedJob: from external to built-in")
async def recreated_as_ours(stage: Stage) -> None:
    """The new Job of the name is run."""
    await stage.create(job(managedBy=_OTHER))
    async with stage.stimulus("recreate"):
        await stage.delete()
        await stage.until_gone()
        await stage.create(job())
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("Q6, Y3; TestManagedBy_RecreatedJob: from built-in to external")
async def recreated_as_anothers(stage: Stage) -> None:
    """The new Job of the name is left alone, though its predecessor's pods are still there."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    async with stage.stimulus("recreate"):
        await stage.delete()
        await stage.until_gone()
        await stage.create(job(managedBy=_OTHER))
    await stage.gone(pod)


@scenario("J4; TestManagedBy_UsingReservedJobFinalizers")
async def another_controller_uses_the_finalizer(stage: Stage) -> None:
    """Its pods keep the finalizer while the Job exists, and lose it once it is deleted."""
    made = await stage.create(job(managedBy=_OTHER))
    labels = stage.job()["spec"]["template"]["metadata"]["labels"]
    pod = lone_pod("theirs", labels=labels, finalizers=[TRACKING], owner=controlled_by(made))
    await stage.create_pod(pod, {"phase": "Running"})
    await stage.succeed("theirs")
    await stage.delete()
    await stage.until_gone()


@scenario("J4, H2: another controller finishes its Job")
async def another_controller_finishes_its_job(stage: Stage) -> None:
    """Even then the finalizer of its pod stays."""
    made = await stage.create(job(managedBy=_OTHER))
    labels = stage.job()["spec"]["template"]["metadata"]["labels"]
    pod = lone_pod("theirs", labels=labels, finalizers=[TRACKING], owner=controlled_by(made))
    await stage.create_pod(pod, {"phase": "Succeeded"})
    time = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": "True", "reason": "Theirs", "message": "", "lastTransitionTime": time}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    await stage.write_status({"startTime": time, "completionTime": time, "conditions": conditions, "succeeded": 1})
    await stage.gone("theirs")
