"""Whose pods are whose, and what becomes of pods whose Job is gone, finished, deleted or somebody else's."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from cached import cached_job
from doubles.jobworld import JobWorld, job_world
from doubles.pods import TRACKING
from doubles.transport import Fault

from mirror.batch.feature_gates import FeatureGates
from mirror.jobcontroller.controller import ControllerSettings
from mirror.jobcontroller.jobview import keep_job
from mirror.jobcontroller.syncing import Behaviour
from mirror.kube.objects import Object

pytestmark = pytest.mark.looptime

LABELS = {"app": "mine"}
TEMPLATE = {
    "metadata": {"labels": LABELS},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
}
MANUAL = {"manualSelector": True, "selector": {"matchLabels": LABELS}, "template": TEMPLATE}


def orphan(world: JobWorld, name: str, labels: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    """A pod that no controller owns."""
    spec = {"containers": [{"name": "main", "image": "busybox"}]}
    found = {"name": name, "namespace": "default", "labels": labels or LABELS, **metadata}
    return world.wire.server.put("pods", {"metadata": found, "spec": spec})


async def test_a_job_adopts_the_pods_that_its_selector_matches() -> None:
    """§5.11, O3, O4: after one live look at the Job; owner and finalizer come in one patch."""
    async with job_world() as world:
        for name in ("one", "two"):
            orphan(world, name)
        orphan(world, "other", {"app": "other"})
        world.create(parallelism=2, completions=2, **MANUAL)
        await world.settle()
        assert world.pods(tracked=True) == ["one", "two"]
        assert "create pods" not in world.writes()
        assert [one.verb for one in world.wire.sent].count("get") == 1
        owner = world.bodies()[0]["metadata"]["ownerReferences"][0]
        assert (owner["controller"], owner["blockOwnerDeletion"], owner["apiVersion"]) == (True, True, "batch/v1")
        world.node.succeed("one")
        world.node.succeed("two")
        await world.settle()
        assert "Complete" in world.conditions()


@pytest.mark.parametrize("changes", [{"namespace": "elsewhere"}, {"owner": "other"}], ids=["namespace", "name"])
async def test_a_pod_that_names_the_uid_of_a_job_is_not_the_jobs_by_that(changes: dict[str, str]) -> None:
    """O1: who may write pods somewhere must not be able to complete somebody's Job."""
    async with job_world() as world:
        world.wire.server.put("namespaces", {"metadata": {"name": "elsewhere"}})
        world.create(completions=1, parallelism=1, **MANUAL)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True, "uid": world.job()["metadata"]["uid"]}
        owner["name"] = changes.get("owner", "train")
        foreign = {"namespace": changes.get("namespace", "default"), "ownerReferences": [owner]}
        pod = orphan(world, "foreign", finalizers=[TRACKING], **foreign)["metadata"]
        world.node.succeed(pod["name"], namespace=pod["namespace"])
        await world.settle()
        assert world.conditions() == {}
        assert world.status()["active"] == 1


@pytest.mark.parametrize("start", ["0000-01-01T00:00:00Z", "soon"])
def test_a_status_that_cannot_be_read_says_nothing_of_the_spec(start: str) -> None:
    """Who manages a Job, and which pods it wants, must not change by it."""
    found = cached_job(managedBy="example.com/other", status={"startTime": start, "conditions": []}).brief
    assert (found.managed_by, found.is_broken, found.selector.is_missing) == ("example.com/other", False, False)
    assert found.started_at is not None
    junk = cached_job(managedBy="example.com/other", status={"conditions": 7}).brief
    assert (junk.managed_by, junk.started_at) == ("example.com/other", None)


def test_a_spec_that_cannot_be_read_is_known_to_be() -> None:
    """Whose it is, nobody knows."""
    assert cached_job(managedBy=7).brief.is_broken


async def test_a_job_whose_spec_cannot_be_read_is_left_alone() -> None:
    """Its pods keep their owner and their finalizers."""
    async with job_world() as world:
        world.create()
        await world.settle()
        (pod,) = world.pods(tracked=True)
        controller = world.controller
        (seen,) = controller.jobs
        broken = keep_job(Object(seen.metadata, msgspec.Raw(b'{"managedBy":7}'), seen.status))
        controller.jobs.store.put(broken)
        controller.queue.add(broken.key)
        written = len(world.writes())
        world.node.succeed(pod)
        await world.settle()
        assert world.writes(written) == []
        assert world.pods(tracked=True) == [pod]


async def test_an_orphan_that_is_going_is_not_adopted() -> None:
    """O2: though it succeeded and is in nobody's way; the API would refuse, and the Job's syncs would all end there."""
    async with job_world() as world:
        orphan(world, "going", finalizers=["example.com/mine"])
        world.wire.server.edit("pods", "going", lambda pod: pod["status"].update(phase="Succeeded"))
        world.wire.server.remove("pods", "going")
        world.create(parallelism=1, completions=1, **MANUAL)
        await world.settle()
        assert "patch pods" not in world.writes()
        assert len(world.active()) == 1


async def test_a_failure_before_the_success_of_an_adopted_pod_delays_nothing() -> None:
    """B5: when a pod succeeded counts, though it was nobody's and had no finalizer then."""
    async with job_world() as world:
        for name, end in (("bad", world.node.fail), ("good", world.node.succeed)):
            orphan(world, name)
            end(name)
            await world.settle(2)
        world.create(parallelism=1, completions=2, **MANUAL)
        await world.settle()
        assert world.status()["failed"] == world.status()["succeeded"] == len(world.active()) == 1


async def test_an_orphan_that_comes_later_is_adopted() -> None:
    """H4, H5: a new orphan, or one with new labels, wakes the Jobs that want it."""
    async with job_world() as world:
        world.create(parallelism=1, completions=None, **MANUAL)
        await world.settle()
        orphan(world, "late", {"app": "none"})
        await world.settle()
        assert "late" not in world.pods()
        world.wire.server.edit("pods", "late", lambda pod: pod["metadata"].update(labels=LABELS))
        await world.settle()
        assert len(world.active()) == 1  # one too many: the adopted one or the other had to go
        assert world.told.reasons()["SuccessfulDelete"] == 1


@pytest.mark.parametrize("race", ["deleted", "recreated"])
async def test_a_job_that_is_going_adopts_nothing(race: str) -> None:
    """O3, Q8: the cache may not know yet; the live look does."""
    async with job_world() as world:
        world.create(parallelism=1, completions=1, **MANUAL)
        await world.settle()
        world.wire.go_down()
        world.wire.restore()
        world.wire.is_hung = True
        await world.settle(1)
        orphan(world, "late")
        if race == "deleted":
            world.edit(lambda body: body["metadata"].update(finalizers=["x"]))
            world.wire.server.remove("jobs", "train")
        else:
            world.wire.server.remove("jobs", "train")
            world.create(parallelism=1, completions=1, **MANUAL)
        world.wire.is_hung = False
        await world.settle(10)
        adopted = world.wire.server.get("pods", "late")["metadata"].get("ownerReferences") or []
        uid = world.job()["metadata"]["uid"]
        assert race == "recreated" or not adopted
        assert all(owner["uid"] == uid for owner in adopted)


async def test_a_relabelled_pod_is_released_and_replaced() -> None:
    """§5.11, O4, O5: its owner and our finalizer go in one patch, and a new pod comes in the same sync."""
    async with job_world() as world:
        world.create()
        await world.settle()
        (pod,) = world.pods()
        written = len(world.writes())
        world.wire.server.edit("pods", pod, lambda body: body["metadata"].update(labels={"app": "free"}))
        await world.settle()
        assert world.writes(written)[:2] == ["patch pods", "create pods"]
        free = world.wire.server.get("pods", pod)["metadata"]
        assert "ownerReferences" not in free
        assert "finalizers" not in free
        assert len(world.active()) == 1


async def test_a_settled_pod_with_new_labels_is_released_all_the_same() -> None:
    """O2: pods that syncs do not walk any more come back to their attention when they change."""
    async with job_world() as world:
        world.create(completions=2)
        await world.settle()
        (pod,) = world.pods()
        world.node.succeed(pod)
        await world.settle()
        world.wire.server.edit("pods", pod, lambda body: body["metadata"].update(labels={"app": "free"}))
        await world.settle()
        assert "ownerReferences" not in world.wire.server.get("pods", pod)["metadata"]
        assert world.status()["succeeded"] == 1


async def test_pods_of_a_deleted_job_lose_the_finalizer() -> None:
    """§5.10, O6: no status is written, and nothing keeps the pods from going."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2)
        await world.settle()
        written = len(world.writes())
        world.delete()
        await world.settle()
        assert world.wire.server.all("pods") == []
        assert set(world.writes(written)) == {"patch pods"}


async def test_pods_of_a_job_that_was_deleted_while_nobody_watched_lose_the_finalizer() -> None:
    """Q7: a new process finds them by their own coming."""
    async with job_world() as world:
        world.create(completions=2, parallelism=2)
        await world.settle()
    world.delete()
    async with world.running():
        await world.settle()
        assert world.wire.server.all("pods") == []


async def test_a_job_that_is_being_deleted_creates_nothing_and_strips_its_pods() -> None:
    """A12, J2 (Foreground): the pods go, the Job shows them ending."""
    async with job_world() as world:
        world.create(completions=3, parallelism=2)
        await world.settle()
        for pod in world.pods():
            world.node.run(pod)
        await world.settle()
        world.wire.server.remove("jobs", "train", propagation="Foreground")
        await world.settle()
        assert world.pods(tracked=True) == []
        assert len(world.pods()) == 2
        for pod in world.pods():
            world.wire.server.remove("pods", pod)
        await world.settle()
        status = world.status()
        assert (status.get("active", 0), status["terminating"]) == (0, 2)
        assert len(world.bodies()) == 2


async def test_a_pod_that_comes_after_its_jobs_end_loses_the_finalizer() -> None:
    """Q24: so that it can be deleted by anybody, and is not counted."""
    async with job_world() as world:
        world.create()
        await world.settle()
        world.node.succeed(world.pods()[0])
        await world.settle()
        status = world.status()
        owner = world.bodies()[0]["metadata"]["ownerReferences"]
        labels = world.bodies()[0]["metadata"]["labels"]
        orphan(world, "late", labels, ownerReferences=owner, finalizers=[TRACKING])
        await world.settle()
        assert "late" in world.pods()
        assert "late" not in world.pods(tracked=True)
        assert world.status() == status


async def test_a_foreign_controllers_pod_keeps_the_finalizer() -> None:
    """Q7: named like ours or not."""
    async with job_world() as world:
        owner = {"apiVersion": "example.com/v1", "kind": "Job", "name": "train", "uid": "x", "controller": True}
        orphan(world, "foreign", ownerReferences=[owner], finalizers=[TRACKING])
        orphan(world, "bare", finalizers=[TRACKING])
        await world.settle()
        world.wire.server.remove("pods", "foreign")
        await world.settle()
        assert world.wire.server.get("pods", "foreign")["metadata"]["finalizers"] == [TRACKING]
        assert "finalizers" not in world.wire.server.get("pods", "bare")["metadata"]


async def test_another_controllers_job_is_left_alone() -> None:
    """§5.12, J4, Q6: no write, one count on ADDED; its pods are cleaned once it is gone."""
    async with job_world() as world:
        external = world.create(managedBy="example.com/other")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": external["metadata"]["uid"]}
        labels = external["spec"]["template"]["metadata"]["labels"]
        orphan(world, "pod", labels, ownerReferences=[{**owner, "controller": True}], finalizers=[TRACKING])
        await world.settle()
        world.set_spec(parallelism=2)
        world.wire.server.remove("pods", "pod")
        await world.settle()
        assert world.writes() == []
        assert world.told.counts["external", "example.com/other"] == 1
        world.wire.server.remove("jobs", "train")
        await world.settle()
        assert world.wire.server.find("pods", "pod") is None


async def test_with_the_gate_off_managed_by_is_not_looked_at() -> None:
    """Gate JobManagedBy: the field means nothing."""
    async with job_world(ControllerSettings(Behaviour(gates=FeatureGates(job_managed_by=False)))) as world:
        world.create(managedBy="example.com/other")
        await world.settle()
        assert len(world.pods()) == 1
        assert not [key for key in world.told.counts if key[0] == "external"]


async def test_a_job_that_is_created_again_inherits_nothing() -> None:
    """Q9: neither the backoff of its namesake nor what that one waited for."""
    async with job_world() as world:
        world.create()
        await world.settle()
        world.node.fail(world.pods()[0])
        await world.settle()
        world.delete()
        world.create()
        await world.settle(1)
        assert len(world.active()) == 1
        assert len(world.controller.memories) == 1


async def test_a_queued_job_that_became_another_managers_is_not_synced() -> None:
    """Q6: a key names a Job, not what it was when it was queued."""
    async with job_world() as world:
        world.create()
        await world.settle()
        world.delete()
        world.create(managedBy="example.com/other")
        await world.settle()
        assert world.status() == {}
        assert world.pods() == []


async def test_what_is_on_the_jobs_metadata_survives_our_status_writes() -> None:
    """DF12: a status write replaces the metadata, too; owners, finalizers and annotations come back as they were."""
    async with job_world() as world:
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": "u", "controller": True}
        body = world.create(suspend=True)
        more = {"ownerReferences": [{**owner, "blockOwnerDeletion": False}], "finalizers": ["example.com/x"]}
        world.edit(lambda found: found["metadata"].update(more | {"annotations": {"a": "1"}, "generateName": "tr"}))
        before = world.job()["metadata"]
        world.set_spec(suspend=False)
        await world.settle()
        after = world.job()["metadata"]
        changed = {"resourceVersion", "generation", "managedFields"}
        assert {name for name in before | after if before.get(name) != after.get(name)} == changed
        assert body["metadata"]["uid"] == after["uid"]


async def test_an_adoption_that_fails_ends_the_sync() -> None:
    """Y8: nothing is decided on half of the pods; the next try sees all of them."""
    async with job_world() as world:
        orphan(world, "one")
        world.wire.arrange("patch", "pods", Fault.BREAK)
        world.create(parallelism=1, completions=1, **MANUAL)
        await world.settle(0.5)
        assert world.writes() == ["patch pods"]
        await world.settle()
        assert world.pods(tracked=True) == ["one"]
