"""JobSets and MPIJobs, run by their real controllers: whole lives, as their users see them (D1, D3, D8-D11).

The controllers run on the management cluster, too, where they leave what is ours alone. Further kinds live the same
lives where a run asks for them (``kind_choice``; ``make kinds``), and those of their own in ``test_further_lives``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from e2e import kind_choice, operators
from e2e.controlplane.client import Json, StatusError
from e2e.controlplane.components import NODE_NAME
from e2e.controlplane.plane import ControlPlane
from e2e.further_lives import APP_WRAPPER, FURTHER, PADDLE_JOB, PYTORCH_JOB, TASK_RUN, TF_JOB, XGBOOST_JOB
from e2e.jobs import Scene, annotation, job, until
from e2e.lives import JOB_SET, MPI_JOB, Kind, Lives, directed, end
from e2e.manager import ManagerProcess
from e2e.people import Person, may_read, person
from e2e.played_statuses import said, status_of
from e2e.ray_lives import RAY, RAY_CLUSTER, RAY_JOB, RAY_SERVICE
from e2e.serving import serving_manager
from mirror.kinds.report import PENDING
from mirror.model import names

SCALED_AT_MOST = 5
"""Objects, until there is one that its operator has not failed for being scaled down."""
HANDED_OVER_SECONDS = 30.0
"""Nothing but load makes it take more than one or two; a sweep would take minutes."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """One for all, as nobody here harms it; it serves users."""
    settings: Json = {"kinds": kind_choice.settings(), "workers": {"watchPods": "labelled"}}
    async with (
        operators.running(management, east, west, operators=kind_choice.operators()),
        serving_manager(management, {"east": east, "west": west}, settings=settings) as running,
    ):
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def lives(kind: Kind, manager: ManagerProcess, scene: Scene) -> Lives:
    """Of the kind that the test is about."""
    one = Lives(scene, kind, manager.managed_by)
    await one.prepare()
    return one


@pytest_asyncio.fixture(loop_scope="session")
async def ann(lives: Lives, manager: ManagerProcess, management: ControlPlane) -> Person:
    """Who may view the namespace, and objects of the kind."""
    one = await person(management, lives.scene.namespace, "ann", manager, may_view=True)
    await may_read(lives.scene.client, one, "ann", lives.kind.resource)
    return one


async def stranger(lives: Lives, labels: Json) -> None:
    """Let the pod of a Job of the worker's own have these labels, but those of a Job alone; it runs then."""
    of_a_job = ("controller-uid", "job-name", "batch.kubernetes.io/", "apps.kubernetes.io/")
    taken = {key: value for key, value in labels.items() if not key.startswith(of_a_job)}
    body, client = job("stranger", run_for="never"), lives.scene.client_of("east")
    body["spec"]["template"]["metadata"]["labels"] = taken
    await client.create(lives.scene.jobs("east"), body)

    async def are_running() -> bool:
        found = await client.list(f"/api/v1/namespaces/{lives.scene.namespace}/pods", labelSelector="job-name=stranger")
        return [one["status"].get("phase") for one in found] == ["Running"]

    await until(are_running)


def theirs(found: Json) -> Json:
    """A status without our conditions, and without what counts generations."""
    status: Json = {key: value for key, value in found["status"].items() if key != "observedGeneration"}
    listed = [one for one in status.get("conditions") or () if not one["type"].startswith(names.PREFIX)]
    status["conditions"] = [{key: value for key, value in one.items() if key != "observedGeneration"} for one in listed]
    return status


async def children(lives: Lives, worker: str = "") -> list[str]:
    """The Jobs, Services and pods of the test's namespace on a worker; without one, on the management cluster."""
    client = lives.scene.client_of(worker) if worker else lives.scene.client
    namespace = lives.scene.namespace
    core = f"/api/v1/namespaces/{namespace}"
    collections = (f"/apis/batch/v1/namespaces/{namespace}/jobs", f"{core}/services", f"{core}/pods")
    return [one["metadata"]["name"] for path in collections for one in await client.list(path)]


def check_what_is_played(lives: Lives, source: Json, phase: str) -> None:
    """Tests without this kind's controller play what it says (``test_played_kinds``): does it?"""
    if lives.kind in (*FURTHER, *RAY):
        told, played = said(theirs(source)), said(status_of(str(lives.kind), phase))
        assert {one for one in told ^ played if one[0] not in lives.kind.passing} == set()


@kind_choice.each(lambda kind: kind.ends)
async def test_one_succeeds_on_a_worker_and_goes_with_its_source(lives: Lives) -> None:
    """Its status is the worker's, whole; nothing of it ever runs beside the source, and nothing stays of it."""
    await lives.create()
    source = await lives.until_over()
    ((worker, mirror),) = (await lives.mirrors()).items()
    told = [end(source, name)["message"] for name in (names.PLACED, names.MIRRORED)]
    assert told == [worker, mirror["metadata"]["uid"]]
    assert await children(lives, worker)
    assert not await children(lives)
    assert not await lives.pods()

    async def same() -> bool:
        source, mirrors = await lives.source(), await lives.mirrors()
        return bool(source) and theirs(source or {}) == theirs(mirrors[worker])

    await until(same, describe=lives.describe)
    check_what_is_played(lives, source, "succeeded")
    await lives.delete()
    await lives.until_no_mirror()
    await until(lambda: children(lives, worker), lambda found: not found)


@kind_choice.each(lambda kind: kind.ends)
async def test_one_whose_pods_fail_has_failed(lives: Lives) -> None:
    """With the worker's reason; mpi-operator's ends with a slash where the pod has none, which no reason may."""
    await lives.create(exit_code=3)
    source = await lives.until_over(succeeded=False)
    (mirror,) = (await lives.mirrors()).values()
    reason = end(mirror, lives.kind.failed)["reason"]
    assert end(source, lives.kind.failed)["reason"] == reason.rstrip("/")
    assert reason.rstrip("/") == lives.kind.fails_because
    check_what_is_played(lives, source, "failed")


@kind_choice.each(lambda kind: kind.is_held_again)
async def test_one_is_suspended_and_goes_on_as_it_was_changed_meanwhile(lives: Lives) -> None:
    """D3, D9: its pods end, its mirror stays; on resume the controller starts them by the changed template."""
    await lives.create(run_for="never")
    worker, before = await lives.until_running()
    await lives.set_policy(lives.kind.held or {})
    await lives.until(lives.kind.is_suspended)
    await lives.until_no_pods(worker)
    source = await lives.source() or {}

    quick = lives.kind.with_pod_annotations(source["spec"], {"e2e.jobmirror.io/run-for": "100ms"})
    await lives.scene.client.merge(lives.path(), {"spec": quick})
    await lives.set_policy(lives.kind.released)
    if not lives.kind.is_changed_while_held:
        await lives.until_running()
        if lives.kind.ends:
            await lives.end_pods(worker)
    source = await lives.until_well()
    (mirror,) = (await lives.mirrors()).values()
    assert mirror["metadata"]["uid"] == before["metadata"]["uid"]
    assert not lives.kind.is_suspended(source)


DIRECTIVES: Json = {
    "nodeSelector": {"kubernetes.io/hostname": NODE_NAME},
    "tolerations": [{"key": "e2e.jobmirror.io/any", "operator": "Exists"}],
}
"""What a user may say of pods later; they run where they did."""


async def direct(lives: Lives) -> None:
    """Be the user who says so, in all pod templates."""
    spec = (await lives.source() or {})["spec"]
    await lives.scene.client.merge(lives.path(), {"spec": directed(lives.kind, spec, **DIRECTIVES)})


def is_directed(spec: Json) -> bool:
    """Whether the spec of a pod, or of its template, says so, whatever else."""
    added = [one for one in spec.get("tolerations") or () if one in DIRECTIVES["tolerations"]]
    return spec.get("nodeSelector") == DIRECTIVES["nodeSelector"] and bool(added)


@kind_choice.each(lambda kind: kind.is_held_again and kind.is_changed_while_held)
async def test_where_pods_may_run_is_changed_while_it_is_suspended(lives: Lives) -> None:
    """D3, D9: resumed, its pods have the node selector and the toleration; of a RayJob's submitter KubeRay decides."""
    await lives.create(run_for="never")
    worker, before = await lives.until_running()
    await lives.set_policy(lives.kind.held or {})
    await lives.until(lives.kind.is_suspended)
    await lives.until_no_pods(worker)
    await direct(lives)
    await lives.set_policy(lives.kind.released)
    worker, mirror = await lives.until_running()
    assert mirror["metadata"]["uid"] == before["metadata"]["uid"]

    async def running() -> list[Json]:
        """What its status counts may be from before the suspension."""
        pods = [pod for pod in await lives.pods(worker) if pod["status"]["phase"] == "Running"]
        return [pod for pod in pods if lives.kind is not RAY_JOB or "ray.io/cluster" in pod["metadata"]["labels"]]

    pods = await until(running)
    assert all(is_directed(pod["spec"]) for pod in pods)
    await lives.delete()
    await lives.until_no_mirror()


@kind_choice.each(lambda kind: kind.held)
async def test_one_that_begins_suspended_waits_for_its_user(lives: Lives) -> None:
    """D3: no mirror before it may run, and the words of its kind meanwhile."""
    await lives.create(**(lives.kind.held or {}))
    await lives.until(lives.kind.is_suspended)
    assert not await lives.mirrors()
    await lives.set_policy(lives.kind.released)
    source = await lives.until_well()
    assert not lives.kind.is_suspended(source)


@kind_choice.each()
async def test_labels_follow_and_a_deletion_stops_what_runs(lives: Lives) -> None:
    """While it runs its metadata is kept up to date; deleted, its pods are gone, and it is not said to have failed."""
    await lives.create(run_for="never")
    worker, _ = await lives.until_running()
    await lives.scene.client.merge(lives.path(), {"metadata": {"labels": {"team": "a"}}})

    async def label() -> object:
        return (await lives.mirrors())[worker]["metadata"]["labels"].get("team")

    await until(label, lambda found: found == "a", describe=lives.describe)
    await lives.delete()
    await lives.until_no_mirror()
    await lives.until_no_pods(worker)
    await until(lambda: children(lives, worker), lambda found: not found)


@kind_choice.each()
async def test_its_pods_have_our_labels_where_they_are_watched(lives: Lives) -> None:
    """D22: whoever makes them; by these their trouble is found. KubeRay gives its submitter's pod none."""
    await lives.create(run_for="never")
    worker, mirror = await lives.until_running()
    found = [pod["metadata"]["labels"] for pod in await lives.pods(worker)]
    found = [labels for labels in found if lives.kind is not RAY_JOB or "ray.io/cluster" in labels]
    assert found
    ours = {name: mirror["metadata"]["labels"][name] for name in (names.ORIGIN, names.SOURCE_UID)}
    assert [labels for labels in found if not labels.items() >= ours.items()] == []
    await lives.delete()
    await lives.until_no_mirror()


@kind_choice.each()
async def test_a_namesake_that_comes_at_once_has_a_mirror_of_its_own(lives: Lives) -> None:
    """D1: what is left of the one before is not taken for the other's. By Tekton a pod is (docs/kinds.md, Tekton)."""
    await lives.create(run_for="never")
    worker, before = await lives.until_running()
    await lives.delete()
    if lives.kind is TASK_RUN:
        await until(partial(lives.pods, worker), lambda found: not found)
    await until(lives.create)
    source = await lives.until_well()
    (mirror,) = (await lives.mirrors()).values()
    assert mirror["metadata"]["uid"] != before["metadata"]["uid"]
    assert mirror["metadata"]["labels"][names.SOURCE_UID] == source["metadata"]["uid"]


@kind_choice.each()
async def test_a_foreign_object_in_the_way_is_left_alone(lives: Lives) -> None:
    """D1: the source waits and says for what; it runs when the other is gone, whose pods ran all the while."""
    client = lives.scene.client_of("east")
    foreign = await client.create(lives.collection, Lives(lives.scene, lives.kind).body("train", run_for="never"))
    await client.wait_until(lives.path(), lives.kind.is_running)

    await lives.create(annotations={"worker-selector": "name=east"})
    await lives.until(lambda found: annotation(found, "waiting-because"))
    there = await client.get(lives.path())
    assert there["metadata"]["uid"] == foreign["metadata"]["uid"]
    assert lives.kind.is_running(there)
    assert names.ORIGIN not in there["metadata"].get("labels", {})

    await client.delete(lives.path())
    await lives.until_well()


@kind_choice.each(lambda kind: kind.ends)
async def test_a_mirror_that_somebody_deletes_on_the_worker_has_failed(lives: Lives) -> None:
    """D11: in the words of its kind, with nothing that counts as active."""
    await lives.create(run_for="never")
    worker, _ = await lives.until_running()
    await lives.scene.client_of(worker).delete(lives.path())
    source = await lives.until_over(succeeded=False)
    assert end(source, lives.kind.failed)["reason"] == "MirrorLost"
    assert not lives.kind.is_running(source)
    await lives.until_no_pods(worker)


@kind_choice.each(lambda kind: not kind.ends)
async def test_a_mirror_of_what_never_ends_is_made_again_when_somebody_deletes_it(lives: Lives) -> None:
    """D11: it has not failed, since it has no end; it runs on, on its worker, and an event says what happened."""
    await lives.create()
    worker, before = await lives.until_running()
    await lives.scene.client_of(worker).delete(lives.path())

    async def again() -> bool:
        found = await lives.mirrors()
        return {at: one["metadata"]["uid"] != before["metadata"]["uid"] for at, one in found.items()} == {worker: True}

    await until(again, describe=lives.describe)
    await lives.scene.event("train", "MirrorLost")
    await lives.until_running()
    assert lives.kind.is_running((await lives.mirrors())[worker])


@kind_choice.each(lambda kind: kind.has_ttl)
async def test_a_mirror_that_its_own_time_to_live_deletes_has_ended_well(lives: Lives) -> None:
    """D8, D11: what a worker's policy sets there erases no result, and none is run again for it."""
    await lives.create(run_for="never")
    worker, _ = await lives.until_running()
    await lives.set_policy({"ttlSecondsAfterFinished": 0}, worker=worker)
    await lives.end_pods(worker)
    await lives.until_over()
    await lives.until_no_mirror()
    assert end(await lives.source(), lives.kind.succeeded)


@kind_choice.each(lambda kind: kind.fixed)
async def test_managed_by_cannot_be_changed_where_its_definition_or_webhook_sees_to_it(lives: Lives) -> None:
    """Refused on the management cluster; and what it may not change does not change here."""
    await lives.create(run_for="never")
    await lives.until_running()
    for fields in ({"managedBy": None}, {"managedBy": "example.com/other"}):
        with pytest.raises(Exception, match=lives.kind.fixed):
            await lives.set_policy(fields)
    await lives.delete()
    await lives.until_no_mirror()


@kind_choice.each(of=[MPI_JOB, PYTORCH_JOB, TF_JOB, XGBOOST_JOB, PADDLE_JOB])
async def test_workers_of_kubeflows_are_scaled_while_it_runs(lives: Lives) -> None:
    """``carry`` of its entry: the worker's operator makes the further pods, and deletes them again.

    Training-operator may count a pod that it deletes as failed, and the whole with it, which then keeps its other pods:
    such a one ends so here, too, and the next one is looked at.
    """
    for _ in range(SCALED_AT_MOST):
        if await is_scaled_to_the_end(lives):
            return
    pytest.fail(f"the operator has failed each of {SCALED_AT_MOST} that were scaled down")


async def is_scaled_to_the_end(lives: Lives) -> bool:
    """Up and down again; false where the operator has failed it when it was scaled down."""
    await lives.create(run_for="never")
    worker, _ = await lives.until_running()
    (field,) = (name for name in (await lives.source() or {})["spec"] if name.endswith("ReplicaSpecs"))

    async def scale(replicas: int) -> None:
        await lives.scene.client.merge(lives.path(), {"spec": {field: {"Worker": {"replicas": replicas}}}})

    async def of_mirror() -> int:
        found: int = (await lives.mirrors())[worker]["spec"][field]["Worker"]["replicas"]
        return found

    async def of_end() -> tuple[bool, int]:
        return bool(end(await lives.source(), lives.kind.failed)), len(await lives.pods(worker))

    await scale(3)
    await lives.until(partial(has_workers, 3))
    await until(lambda: lives.pods(worker), partial(are_so_many, 4))
    await scale(1)
    await until(of_mirror, lambda found: found == 1)
    has_failed, _ = await until(of_end, lambda found: found[1] == 2 or (found[0] and found[1] < 4))
    await lives.delete()
    await lives.until_no_mirror()
    await lives.until_no_pods(worker)
    return not has_failed


def has_workers(count: int, found: Json | None) -> bool:
    """Whether so many of its workers' pods run, by its status."""
    return bool((found or {})["status"]["replicaStatuses"]["Worker"].get("active") == count)


def are_so_many(count: int, found: list[Json]) -> bool:
    return len(found) == count


@kind_choice.each(lambda kind: kind.cancelled)
async def test_one_is_cancelled_while_it_runs_and_while_it_waits(lives: Lives) -> None:
    """D9: its pods end, and it ends in the words of its controller; held until then, it runs nothing."""
    (reason,) = lives.kind.cancelled.values()
    await lives.create(run_for="never")
    worker, _ = await lives.until_running()
    await lives.set_policy(lives.kind.cancelled)
    source = await lives.until_over(succeeded=False)
    assert end(source, lives.kind.failed)["reason"] == reason
    await lives.until_no_pods(worker)
    if lives.kind.held:
        await lives.create("held", **lives.kind.held)
        await lives.until(lives.kind.is_suspended, "held")
        await lives.set_policy(lives.kind.cancelled, "held")
        source = await lives.until_over("held", succeeded=False)
        assert end(source, lives.kind.failed)["reason"] == reason
        assert not [pod for worker in lives.scene.workers for pod in await lives.pods(worker, "held")]


@kind_choice.each()
async def test_a_user_sees_the_pods_of_the_mirror_and_no_others(lives: Lives, ann: Person) -> None:
    """By the owners of each up to the recorded mirror, whoever labels alike; and the logs of the first part."""
    await lives.create(run_for="never")
    worker, _ = await lives.until_running()
    named, parts = f"{lives.kind}/train".lower(), lives.kind.parts
    found = await until(partial(lives.pods, worker), partial(are_so_many, len(parts)), describe=lives.describe)
    await stranger(lives, max((one["metadata"]["labels"] for one in found), key=len))

    listed = json.loads(await ann.mirror("pods", named, "-o", "json"))["items"]
    assert {one["name"] for one in listed} == {one["metadata"]["name"] for one in found}
    assert tuple(one["role"].partition("/")[0] for one in listed) == parts
    said = await ann.says("logs", named, "-n", ann.namespace)
    assert (said.code, "worker east" in said.errors) == (1, True), said  # no kubelet answers; it was let that far
    first = [one["name"] for one in listed if one["role"].partition("/")[0] == parts[0]]
    assert len(found) == 1 or any(f"showing {name} " in said.errors for name in first), said
    await lives.delete()


@kind_choice.each(of=[APP_WRAPPER])
@pytest.mark.parametrize("held", [JOB_SET, PYTORCH_JOB], ids=str)
async def test_pods_of_what_an_app_wrapper_holds_are_found_and_their_logs(
    lives: Lives, ann: Person, held: Kind
) -> None:
    """By what stands between them; its webhook lets the manager create what that may create by itself (D18)."""
    if held not in kind_choice.CHOSEN:
        pytest.skip(f"{kind_choice.VARIABLE} does not ask for {held}")
    body = lives.body("train")
    body["spec"]["components"] = [{"template": Lives(lives.scene, held).body("held", run_for="never")}]
    await lives.scene.client.create(lives.collection, body)
    worker, _ = await lives.until_running()
    found = await until(partial(lives.pods, worker), partial(are_so_many, len(held.parts)), describe=lives.describe)
    listed = json.loads(await ann.mirror("pods", "appwrapper/train", "-o", "json"))["items"]
    assert {one["name"] for one in listed} == {one["metadata"]["name"] for one in found}
    said = await ann.says("logs", "appwrapper/train", "-n", ann.namespace)
    assert (said.code, f"worker {worker}" in said.errors) == (1, True), said  # no kubelet answers; it was let that far
    await lives.delete()
    await lives.until_no_mirror()


@kind_choice.each()
async def test_an_image_that_is_changed_while_it_runs_stays_without_effect(lives: Lives, ann: Person) -> None:
    """D9: refused where the kind's definition or webhook sees to it; else ``diff`` says what the mirror has not."""
    await lives.create(run_for="never")
    worker, before = await lives.until_running()
    source = await lives.source() or {}
    edit = {"spec": lives.kind.edited(source["spec"])}
    assert edit["spec"] != source["spec"]
    if lives.kind.edit_refused:
        with pytest.raises(StatusError, match=lives.kind.edit_refused):
            await lives.scene.client.merge(lives.path(), edit)
    else:
        await lives.scene.client.merge(lives.path(), edit)
    # What follows after it is there when the other would be.
    changed = await lives.scene.client.merge(lives.path(), {"metadata": {"labels": {"team": "a"}}})

    async def mirror() -> Json:
        return (await lives.mirrors())[worker]

    found = await until(mirror, lambda one: one["metadata"]["labels"].get("team") == "a", describe=lives.describe)
    identities = [[one["metadata"][key] for key in ("uid", "generation")] for one in (before, found)]
    assert identities[0] == identities[1]
    source = await lives.source() or {}
    assert lives.kind.is_running(source)
    if not lives.kind.edit_refused:
        assert source["status"].get("observedGeneration", 0) < changed["metadata"]["generation"]
        report = json.loads(await ann.mirror("diff", f"{lives.kind}/train".lower(), "-o", "json"))["items"][0]["report"]
        pending = [one["path"] for one in report["differences"] if one["kind"] == PENDING]
        assert pending
        assert {path.rpartition(".")[2] for path in pending} == {"image"}
    await lives.delete()


@kind_choice.each(of=[MPI_JOB, PYTORCH_JOB, RAY_JOB, RAY_CLUSTER, RAY_SERVICE])
async def test_one_whose_managed_by_is_removed_is_handed_over(lives: Lives) -> None:
    """D25: the operator of the management cluster takes it at once, the mirror goes, and the status is that one's.

    Ray's definitions admit no other value, but none at all.
    """
    await lives.create(run_for="never")
    worker, mirror = await lives.until_running()
    if lives.kind in RAY:
        with pytest.raises(StatusError, match="managedBy"):
            await lives.set_manager("ray.io/kuberay-operator")
    await lives.set_manager(None)
    async with asyncio.timeout(HANDED_OVER_SECONDS):
        await lives.until_no_mirror()
    await lives.until_no_pods(worker)
    event = await lives.scene.event("train", "ManagedByChanged")
    text = f"is not set now, so that another controller runs it; its mirror on worker {worker} is deleted"
    assert text in event["message"]
    await until(lambda: lives.pods(), describe=lives.describe)
    if lives.kind not in RAY:
        await end_here(lives)
        source = await lives.until_over()
        assert source["metadata"]["uid"] == mirror["metadata"]["labels"][names.SOURCE_UID]
    await lives.delete()


async def end_here(lives: Lives) -> None:
    """Be the kubelet of the management cluster, which has no node: its pods end well, but an MPIJob's workers."""

    async def ending() -> list[Json]:
        role = "training.kubeflow.org/job-role"
        return [one for one in await lives.pods() if one["metadata"]["labels"].get(role) != "worker"]

    expected = 1 if lives.kind is MPI_JOB else 2
    pods = f"/api/v1/namespaces/{lives.scene.namespace}/pods"
    for pod in await until(ending, partial(are_so_many, expected), describe=lives.describe):
        await lives.scene.client.merge(f"{pods}/{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})
