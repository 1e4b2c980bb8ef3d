"""Whose pods are whose: adoption, release, orphans, other people's pods (4.4, H4-H7)."""

from __future__ import annotations

from e2e.controlplane.client import Json
from e2e.job_scenarios.bodies import TRACKING, controlled_by, job, lone_pod, manual
from e2e.job_scenarios.scenario import scenario
from e2e.job_scenarios.stage import Stage, counts, has

_APP = {"app": "manual"}


@scenario("chain 11; O2-O4; TestGetPodsForJob: adopt")
async def orphans_are_adopted(stage: Stage) -> None:
    """They get owner and finalizer; nothing is created."""
    for name in ("one", "two"):
        await stage.create_pod(lone_pod(name, labels=_APP), {"phase": "Running"})
    await stage.create(manual(completions=2, parallelism=2))
    await stage.succeed("one", "two")
    await stage.until(has("Complete"))


@scenario("O2: a pod appears that matches; TestAddPodOrphan")
async def an_orphan_comes_later(stage: Stage) -> None:
    """It is adopted and makes one too many: the surplus goes."""
    await stage.create(manual(completions=3, parallelism=1))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.create_pod(lone_pod("late", labels=_APP))


@scenario("H5; TestUpdatePodOrphanWithNewLabels")
async def an_orphan_gets_the_label_later(stage: Stage) -> None:
    """Only the new label makes it match."""
    await stage.create_pod(lone_pod("other", labels={"app": "no"}), {"phase": "Running"})
    await stage.create(manual(completions=2, parallelism=0))
    await stage.relabel("other", _APP)


@scenario("O2: finished pods are adopted and counted")
async def a_finished_orphan_is_counted(stage: Stage) -> None:
    """An orphan that succeeded long ago counts for the Job that adopts it."""
    await stage.create_pod(lone_pod("done", labels=_APP), {"phase": "Succeeded"})
    await stage.create(manual(completions=1))
    await stage.until(has("Complete"))


@scenario("O2: an orphan that is being deleted is not adopted")
async def a_deleted_orphan_is_left(stage: Stage) -> None:
    """The Job makes its own pod."""
    await stage.create_pod(lone_pod("going", labels=_APP), {"phase": "Running"})
    await stage.remove("going")
    await stage.create(manual())
    await stage.pods(1)
    await stage.gone("going")


@scenario("chain 11; O4, O5; TestUpdatePodRelease")
async def a_pod_is_released(stage: Stage) -> None:
    """It loses owner and finalizer, and a replacement comes in the same sync."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.relabel(pod, {"batch.kubernetes.io/controller-uid": "x"})
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("O2, O5: released and taken back")
async def a_pod_is_released_and_adopted_again(stage: Stage) -> None:
    """The label comes back: two pods, so the surplus goes."""
    await stage.create(manual(completions=5, parallelism=1))
    (pod,) = await stage.pods(1)
    await stage.run(pod)
    await stage.relabel(pod, {"app": "no"})
    await stage.pods(1)
    await stage.relabel(pod, _APP)


@scenario("O2: a finished pod loses the label")
async def a_counted_pod_is_released(stage: Stage) -> None:
    """What was counted stays counted."""
    await stage.create(manual(completions=2, parallelism=1))
    (pod,) = await stage.pods(1)
    await stage.succeed(pod)
    await stage.relabel(pod, {"app": "no"})
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))


@scenario("O2: pods of another owner are not touched")
async def pods_of_another_owner(stage: Stage) -> None:
    """Matching labels are not enough."""
    owner = {"metadata": {"name": "thing", "uid": "2f7c1c0e-5a44-4a0f-8c55-0d6a2b1f9e11"}}
    reference = controlled_by(owner, api_version="example.com/v1", kind="Thing")
    async with stage.stimulus("foreign pod and Job"):
        await stage.create_pod(lone_pod("foreign", labels=_APP, finalizers=[TRACKING], owner=reference))
        await stage.create(manual())
    await stage.pods(1)


@scenario("H7; TestSyncOrphanPod: not_controlled; TestWatchOrphanPods: orphan")
async def a_pod_with_finalizer_and_no_owner(stage: Stage) -> None:
    """It loses the finalizer."""
    await stage.create_pod(lone_pod("orphan", finalizers=[TRACKING, "example.com/other"]))


@scenario("H7; TestSyncOrphanPod: controlled_by_non_existing_job; TestWatchOrphanPods: job_does_not_exist")
async def a_pod_of_a_job_that_never_was(stage: Stage) -> None:
    """Its finalizer goes; the garbage collector takes the pod."""
    owner = {"metadata": {"name": "ghost", "uid": "7d3c1f52-30a4-4c0f-8e55-9b1a6f2e7c33"}}
    await stage.create_pod(lone_pod("lost", finalizers=[TRACKING], owner=controlled_by(owner)))


@scenario("H7; TestSyncOrphanPod: controlled_by_existing_finished_job; TestWatchOrphanPods: job_finished")
async def a_pod_of_a_finished_job(stage: Stage) -> None:
    """A pod that appears under a finished Job loses the finalizer and is not counted."""
    made = await stage.create(job())
    await stage.succeed(*await stage.pods(1))
    await stage.until(has("Complete"))
    await stage.create_pod(_stray(stage, made, "stray"))
    await stage.gone("stray")


@scenario("H7; TestSyncOrphanPod: controlled_by_cronjob, Q7")
async def a_pod_of_another_kind_of_batch(stage: Stage) -> None:
    """A CronJob's own pod keeps the finalizer."""
    body = {"metadata": {"name": "cron"}, "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": _TEMPLATE}}
    path = f"/apis/batch/v1/namespaces/{stage.namespace}/cronjobs"
    async with stage.stimulus("a CronJob with a pod"):
        owner = await stage.client.create(path, body)
        await stage.create_pod(lone_pod("held", finalizers=[TRACKING], owner=controlled_by(owner, kind="CronJob")))


@scenario("H7: an owner that does not control; owned_by_existing_running_job")
async def a_pod_with_an_owner_that_does_not_control(stage: Stage) -> None:
    """It is an orphan with a finalizer: it loses it."""
    made = await stage.create(job(parallelism=0, completions=1))
    reference = controlled_by(made) | {"controller": False}
    await stage.create_pod(lone_pod("owned", finalizers=[TRACKING], owner=reference))


@scenario("H5; TestUpdatePodChangeControllerRef")
async def a_pod_changes_its_owner(stage: Stage) -> None:
    """The old owner makes a new pod, the new one has one too many."""
    await stage.create(manual(name="old", completions=3, parallelism=1))
    (pod,) = await stage.pods(1, "old")
    await stage.run(pod)
    new = await stage.create(manual(name="new", completions=3, parallelism=0))
    await stage.patch_pod(pod, {"metadata": {"ownerReferences": [controlled_by(new)]}})
    await stage.pods(1, "old")


@scenario("O2: two Jobs with one selector keep their own pods")
async def two_jobs_with_one_selector(stage: Stage) -> None:
    """Each has its pod, though both match."""
    await stage.create(manual(name="left"))
    await stage.create(manual(name="right"))
    await stage.succeed(*await stage.pods(1, "left"))
    await stage.until(has("Complete"), "left")
    await stage.succeed(*await stage.pods(1, "right"))
    await stage.until(has("Complete"), "right")


@scenario("O2, Y10: somebody takes the finalizer of a running pod")
async def a_finalizer_is_taken_from_a_running_pod(stage: Stage) -> None:
    """It is active still; its success cannot be counted and a replacement comes."""
    await stage.create(job())
    (pod,) = await stage.pods(1)
    await stage.patch_pod(pod, {"metadata": {"finalizers": None}})
    await stage.succeed(pod)
    await stage.until(counts(active=1))


def _stray(stage: Stage, owner: Json, name: str) -> Json:
    labels = stage.job()["spec"]["template"]["metadata"]["labels"]
    return lone_pod(name, labels=labels, finalizers=[TRACKING], owner=controlled_by(owner))


_TEMPLATE = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}
