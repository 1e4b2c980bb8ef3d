"""JobSets and MPIJobs, run by their real controllers: whole lives, as their users see them (D1, D3, D8-D11).

The controllers run on the management cluster, too, where they leave what is ours alone. Further kinds live the same
lives where a run asks for them (``kind_choice``; ``make kinds``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio

from e2e import kind_choice, operators
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.further_lives import APP_WRAPPER, FURTHER, PADDLE_JOB, PYTORCH_JOB, TF_JOB, TRAIN_JOB, XGBOOST_JOB
from e2e.jobs import Scene, annotation, until
from e2e.lives import MPI_JOB, Kind, Lives, end
from e2e.manager import ManagerProcess
from e2e.operator_table import TRAINER
from e2e.played_statuses import said, status_of
from e2e.ray_lives import RAY, RAY_CLUSTER, RAY_JOB, RAY_SERVICE
from mirror.model import names


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """One for all, as nobody here harms it."""
    settings: Json = {"kinds": kind_choice.settings(), "workers": {"watchPods": "labelled"}}
    async with (
        operators.running(management, east, west, operators=kind_choice.operators()),
        ManagerProcess.start(management, {"east": east, "west": west}, settings=settings) as running,
    ):
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def lives(kind: Kind, manager: ManagerProcess, scene: Scene) -> Lives:
    """Of the kind that the test is about."""
    one = Lives(scene, kind, manager.managed_by)
    await one.prepare()
    return one


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
    """D1: what is left of the one before is not taken for the other's."""
    await lives.create(run_for="never")
    _, before = await lives.until_running()
    await lives.delete()
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
    """``carry`` of its entry: the worker's operator makes the further pods, and deletes them again."""
    await lives.create(run_for="never")
    worker, _ = await lives.until_running()
    (field,) = (name for name in (await lives.source() or {})["spec"] if name.endswith("ReplicaSpecs"))
    for replicas in (3, 1):
        await lives.scene.client.merge(lives.path(), {"spec": {field: {"Worker": {"replicas": replicas}}}})

        await lives.until(partial(has_workers, replicas))
        await until(lambda: lives.pods(worker), partial(are_so_many, replicas + 1))
    await lives.delete()
    await lives.until_no_pods(worker)


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


@kind_choice.each(of=[APP_WRAPPER])
async def test_an_app_wrapper_that_is_tried_again_has_not_failed_before_its_last_try(lives: Lives) -> None:
    """``done`` of its entry: between two tries, and while it cleans up, it is not over."""
    again = {"retryLimit": "1", "retryPausePeriodDuration": "1s"}
    prefixed = {f"workload.codeflare.dev.appwrapper/{key}": value for key, value in again.items()}
    await lives.create(exit_code=3, annotations=prefixed)
    source = await lives.until_over(succeeded=False, seconds=300.0)  # it looks at failed pods once a minute
    assert source["status"]["resettingCount"] == 1


@kind_choice.each(of=[TRAIN_JOB])
async def test_a_train_job_goes_to_the_worker_that_has_its_runtime(lives: Lives) -> None:
    """Its webhook refuses it where the runtime is missing, which is no reason to wait for that worker."""
    (given,) = TRAINER.named
    body = {**given.body, "metadata": {"name": "elsewhere"}}
    clients = [lives.scene.client, lives.scene.client_of("west")]
    try:
        for client in clients:
            await client.create(given.collection, body)
        for number in range(4):
            source = lives.body(f"train-{number}")
            source["spec"]["runtimeRef"]["name"] = "elsewhere"
            await lives.scene.client.create(lives.collection, source)
        for number in range(4):
            await lives.until_over(f"train-{number}")
            assert set(await lives.mirrors(f"train-{number}")) == {"west"}
    finally:
        for client in clients:
            await client.delete(f"{given.collection}/elsewhere")


@kind_choice.each(of=[RAY_JOB, RAY_CLUSTER, RAY_SERVICE])
async def test_one_of_ray_whose_managed_by_is_removed_is_handed_over(lives: Lives) -> None:
    """Its definition admits no other value, but none at all: the operator here takes it, and the mirror goes (D25)."""
    await lives.create(run_for="never")
    worker, _ = await lives.until_running()
    with pytest.raises(Exception, match="managedBy"):
        await lives.scene.client.merge(lives.path(), {"spec": {"managedBy": "ray.io/kuberay-operator"}})
    await lives.scene.client.merge(lives.path(), {"spec": {"managedBy": None}})
    await lives.until_no_mirror()
    await lives.until_no_pods(worker)
    await lives.scene.event("train", "ManagedByChanged")
    await until(lambda: lives.pods(), describe=lives.describe)
    await lives.delete()


@kind_choice.each(of=[RAY_CLUSTER, RAY_SERVICE])
@pytest.mark.parametrize("is_elastic", [False, True], ids=["scaled here", "scaled there"])
async def test_one_of_ray_is_scaled_by_whoever_it_says(lives: Lives, is_elastic: bool) -> None:
    """``autoscaling`` of its entry: what the worker's autoscaler writes is left alone, where one is asked for."""
    body = lives.body("train")
    of_cluster(lives, body["spec"])["enableInTreeAutoscaling"] = is_elastic
    await lives.scene.client.create(lives.collection, body)
    worker, _ = await lives.until_running()

    async def seen() -> tuple[int, int, object]:
        found = (await lives.mirrors())[worker]
        (group,) = of_cluster(lives, found["spec"])["workerGroupSpecs"]
        return group["replicas"], len(await lives.pods(worker)) - 1, found["metadata"]["labels"].get("team")

    if is_elastic:
        await scale(lives, 2, worker=worker)
        await until(seen, lambda found: found == (2, 2, None), describe=lives.describe)
    await scale(lives, 3)
    # What follows after it is there when the other would be.
    await lives.scene.client.merge(lives.path(), {"metadata": {"labels": {"team": "a"}}})
    wanted = 2 if is_elastic else 3
    await until(seen, lambda found: found == (wanted, wanted, "a"), describe=lives.describe)


def of_cluster(lives: Lives, spec: Json) -> Json:
    """The part of its spec that is a RayCluster's."""
    found: Json = spec["rayClusterConfig"] if lives.kind is RAY_SERVICE else spec
    return found


async def scale(lives: Lives, replicas: int, *, worker: str = "") -> None:
    """Change the replicas of its workers, as a user here or as an autoscaler there."""
    client = lives.scene.client_of(worker) if worker else lives.scene.client
    (group,) = of_cluster(lives, (await client.get(lives.path()))["spec"])["workerGroupSpecs"]
    changed = {"workerGroupSpecs": [{**group, "replicas": replicas}]}
    spec = {"rayClusterConfig": changed} if lives.kind is RAY_SERVICE else changed
    await client.merge(lives.path(), {"spec": spec})


@kind_choice.each(of=[RAY_SERVICE])
async def test_what_a_ray_service_serves_follows(lives: Lives) -> None:
    """``carry`` of its entry: on the worker the same RayCluster goes on."""
    await lives.create()
    worker, before = await lives.until_running()
    serves = "applications: [{name: other}]"
    await lives.scene.client.merge(lives.path(), {"spec": {"serveConfigV2": serves}})

    async def config() -> tuple[object, object]:
        found = (await lives.mirrors())[worker]
        return found["spec"]["serveConfigV2"], found["metadata"]["uid"]

    await until(config, lambda found: found == (serves, before["metadata"]["uid"]), describe=lives.describe)
