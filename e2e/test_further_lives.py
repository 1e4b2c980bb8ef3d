"""What only further kinds do while they live, run by their real controllers, or played, where a run asks for them.

The lives that all kinds have are ``test_kind_lives``'.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from e2e import kind_choice, operators
from e2e.controlplane.client import Json
from e2e.controlplane.plane import ControlPlane
from e2e.further_lives import APP_WRAPPER, TRAIN_JOB
from e2e.jobs import Scene, read_or_none, uid, until
from e2e.lives import Kind, Lives, end
from e2e.manager import ManagerProcess
from e2e.operator_table import JOBSETS, TRAINER
from e2e.ray_lives import RAY_CLUSTER, RAY_SERVICE


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def manager(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[ManagerProcess]:
    """One for all, as nobody here harms it."""
    async with (
        operators.running(management, east, west, operators=kind_choice.operators()),
        ManagerProcess.start(
            management, {"east": east, "west": west}, settings={"kinds": kind_choice.settings()}
        ) as running,
    ):
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def lives(kind: Kind, manager: ManagerProcess, scene: Scene) -> Lives:
    """Of the kind that the test is about."""
    one = Lives(scene, kind, manager.managed_by)
    await one.prepare()
    return one


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


@kind_choice.each(of=[TRAIN_JOB])
async def test_a_train_job_that_has_failed_is_not_trained_again(lives: Lives) -> None:
    """``done.withdrawable`` of its entry: without its JobSet the Trainer takes the failure back, and makes another."""
    await lives.create(exit_code=3)
    await lives.until_over(succeeded=False)
    ((worker, mirror),) = (await lives.mirrors()).items()
    assert mirror["spec"]["suspend"] is True
    client, path = lives.scene.client_of(worker), JOBSETS.path(lives.scene.namespace, "train")
    before = await client.get(path)
    await client.delete(path)

    async def job_set() -> Json | None:
        return await read_or_none(client, path)

    made = await until(job_set, lambda found: found and uid(found) != uid(before), describe=lives.describe)
    assert made
    assert made["spec"]["suspend"] is True
    await until(lives.mirrors, lambda found: not end(found[worker], "Failed"), describe=lives.describe)
    await lives.until_no_pods(worker)
    source = await lives.source()
    assert end(source, "Failed")["reason"] == "FailedJobs"
    assert not end(source, "Suspended")


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
