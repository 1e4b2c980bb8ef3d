"""JobSets on real control planes with their own CRD, mirrored by ``kinds: [JobSet]`` with its shipped permissions.

No controller of theirs runs: a player writes the statuses that it would. What is proved is what the API server does
with them, and what the manager does beside Jobs (D23-D25).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest_asyncio

from e2e import jobsets
from e2e.controlplane.client import Json, StatusError
from e2e.controlplane.plane import ControlPlane
from e2e.definitions import DEFINITIONS
from e2e.drills import has, true_conditions
from e2e.jobs import Scene, annotation, is_complete, job, until
from e2e.jobsets import JOBSETS, job_set
from e2e.manager import ManagerProcess
from mirror.model import names

SETTINGS: Json = {"kinds": ["JobSet"]}
DEFINITION = f"{DEFINITIONS}/{jobsets.NAME}"
WAVE = 12
STAYS_SECONDS = 8.0
"""Long enough for whatever would follow from what has gone."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def served(management: ControlPlane, east: ControlPlane, west: ControlPlane) -> AsyncIterator[None]:
    """JobSets are served everywhere, and played on the workers."""
    clients = [plane.client() for plane in (management, east, west)]
    try:
        async with jobsets.defined(*clients), jobsets.played(east, west):
            yield
    finally:
        for client in clients:
            await client.close()


@pytest_asyncio.fixture(loop_scope="session")
async def manager(
    served: None, management: ControlPlane, east: ControlPlane, west: ControlPlane
) -> AsyncIterator[ManagerProcess]:
    """One that mirrors them."""
    workers = {"east": east, "west": west}
    async with ManagerProcess.start(management, workers, settings=SETTINGS) as running:
        yield running


def path_of(scene: Scene, name: str = "train") -> str:
    return JOBSETS.path(scene.namespace, name) if name else JOBSETS.path(scene.namespace)


async def mirrors(scene: Scene, name: str = "train") -> dict[str, Json]:
    """The mirrors of a JobSet, by worker."""
    found: dict[str, Json] = {}
    for worker in scene.workers:
        try:
            found[worker] = await scene.client_of(worker).get(path_of(scene, name))
        except StatusError as error:
            if error.status != 404:
                raise
    return found


def counted(name: str, count: int) -> Callable[[Json | None], bool]:
    """Whether so many of its jobs are ``active``, ``suspended`` …"""

    def is_so(found: Json | None) -> bool:
        (listed, *_) = ((found or {}).get("status") or {}).get("replicatedJobsStatus") or [{}]
        return bool(listed.get(name) == count)

    return is_so


async def test_a_job_set_runs_on_a_worker_beside_a_job_of_its_name(manager: ManagerProcess, scene: Scene) -> None:
    """It is placed, mirrored, followed to its end, and taken away with its source; the Job stays."""
    await scene.create(job("train", manager.managed_by))
    spec = {"ttlSecondsAfterFinished": 600}  # honoured here, not on the worker
    await scene.client.create(path_of(scene, ""), job_set("train", manager.managed_by, ends="Completed", **spec))

    source = await scene.client.wait_until(path_of(scene), has("Completed"))
    await scene.source_until("train", is_complete)
    told = true_conditions(source)
    ((worker, mirror),) = (await mirrors(scene)).items()
    assert (told[names.PLACED], told[names.MIRRORED]) == (worker, mirror["metadata"]["uid"])
    assert [one["type"] for one in source["status"]["conditions"]][:2] == [names.PLACED, names.MIRRORED]
    assert source["status"]["terminalState"] == "Completed"
    assert source["status"]["replicatedJobsStatus"] == mirror["status"]["replicatedJobsStatus"]
    assert not mirror["spec"].keys() & {"managedBy", "ttlSecondsAfterFinished"}
    assert mirror["metadata"]["labels"][names.SOURCE_UID] == source["metadata"]["uid"]
    (completed,) = (one for one in source["status"]["conditions"] if one["type"] == "Completed")
    assert completed["observedGeneration"] == source["metadata"]["generation"]
    await scene.client.wait_until(path_of(scene), lambda found: annotation(found, "assigned-worker") == worker)

    await scene.client.delete(path_of(scene))
    await until(lambda: mirrors(scene), lambda found: not found)
    assert await scene.mirrors("train")


async def test_one_that_fails_has_failed(manager: ManagerProcess, scene: Scene) -> None:
    """With the worker's reason."""
    await scene.client.create(path_of(scene, ""), job_set("train", manager.managed_by, ends="Failed"))
    source = await scene.client.wait_until(path_of(scene), has("Failed"))
    assert true_conditions(source)["Failed"] == "FailedJobs"


async def test_a_suspension_and_a_changed_template_follow(manager: ManagerProcess, scene: Scene) -> None:
    """D3: no mirror before it may run; suspended later it keeps it, and goes on with what was changed meanwhile."""
    await scene.client.create(path_of(scene, ""), job_set("train", manager.managed_by, suspend=True))
    source = await scene.client.wait_until(path_of(scene), has("Suspended"))
    assert not await mirrors(scene)
    (suspended,) = source["status"]["conditions"]
    assert suspended["reason"] == "SuspendedJobs"

    await scene.client.merge(path_of(scene), {"spec": {"suspend": False}})
    await scene.client.wait_until(path_of(scene), counted("active", 1))
    await scene.client.merge(path_of(scene), {"spec": {"suspend": True}})
    source = await scene.client.wait_until(path_of(scene), counted("suspended", 1))
    ((worker, mirror),) = (await mirrors(scene)).items()

    jobs = source["spec"]["replicatedJobs"]
    jobs[0]["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "b"}
    await scene.client.merge(path_of(scene), {"spec": {"suspend": False, "replicatedJobs": jobs}})
    await scene.client.wait_until(path_of(scene), counted("active", 1))
    after = (await mirrors(scene))[worker]
    assert after["metadata"]["uid"] == mirror["metadata"]["uid"]
    pod = after["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert (after["spec"]["suspend"], pod["nodeSelector"]) == (False, {"zone": "b"})

    await scene.client.delete(path_of(scene))
    await until(lambda: mirrors(scene), lambda found: not found)


async def test_one_that_names_another_manager_is_left_alone(manager: ManagerProcess, scene: Scene) -> None:
    """D1: exactly our value; and the source of one that comes later is not held up by it."""
    await scene.client.create(path_of(scene, ""), job_set("other", "example.com/other"))
    await scene.client.create(path_of(scene, ""), job_set("train", manager.managed_by, ends="Completed"))
    await scene.client.wait_until(path_of(scene), has("Completed"))
    assert not await mirrors(scene, "other")
    assert "status" not in await scene.client.get(path_of(scene, "other"))


async def test_a_mirror_that_vanishes_while_it_runs_has_failed(manager: ManagerProcess, scene: Scene) -> None:
    """D11: in the kind's own words, and nothing of it counts as active."""
    await scene.client.create(path_of(scene, ""), job_set("train", manager.managed_by))
    source = await scene.client.wait_until(path_of(scene), counted("active", 1))
    await scene.client_of(true_conditions(source)[names.PLACED]).delete(path_of(scene))
    source = await scene.client.wait_until(path_of(scene), has("Failed"))
    (failed,) = (one for one in source["status"]["conditions"] if one["type"] == "Failed")
    assert failed["reason"] == "MirrorLost"
    assert source["status"]["terminalState"] == "Failed"
    assert counted("active", 0)(source)


async def test_a_definition_that_goes_takes_no_mirror_along(manager: ManagerProcess, scene: Scene) -> None:
    """D23: its JobSets go with it, each with an event; mirrors stay until it is served again, and then go.

    A worker's that goes fails nothing. Jobs run all the while.
    """
    every = [f"train-{number}" for number in range(WAVE)]
    for name in every:
        await scene.client.create(path_of(scene, ""), job_set(name, manager.managed_by))
    for name in every:
        await scene.client.wait_until(path_of(scene, name), counted("active", 1))
    placed = {name: next(iter(await mirrors(scene, name))) for name in every}

    await jobsets.undefine(scene.client)
    await scene.create(job("meanwhile", manager.managed_by))
    await scene.source_until("meanwhile", is_complete)
    await asyncio.sleep(STAYS_SECONDS)
    assert {name: next(iter(await mirrors(scene, name)), "") for name in every} == placed

    await jobsets.define(scene.client)
    for name in every:
        await until(partial(mirrors, scene, name), lambda found: not found, seconds=300)


async def test_a_workers_definition_that_goes_fails_nothing(manager: ManagerProcess, scene: Scene) -> None:
    """D23: what is missing on a cluster that does not serve the kind proves nothing; new ones go elsewhere."""
    await scene.client.create(path_of(scene, ""), job_set("train", manager.managed_by))
    source = await scene.client.wait_until(path_of(scene), counted("active", 1))
    worker = true_conditions(source)[names.PLACED]
    await jobsets.undefine(scene.client_of(worker))
    try:
        await asyncio.sleep(STAYS_SECONDS)
        source = await scene.client.get(path_of(scene))
        assert "Failed" not in true_conditions(source)
        assert true_conditions(source)[names.PLACED] == worker
        await scene.client.create(path_of(scene, ""), job_set("other", manager.managed_by, ends="Completed"))
        other = await scene.client.wait_until(path_of(scene, "other"), has("Completed"))
        assert true_conditions(other)[names.PLACED] != worker
    finally:
        await jobsets.define(scene.client_of(worker))
    source = await scene.client.wait_until(path_of(scene), has("Failed"))
    assert [one["reason"] for one in source["status"]["conditions"] if one["type"] == "Failed"] == ["MirrorLost"]


async def knows_less(scene: Scene, worker: str, body: Json) -> bool:
    """Whether a worker refuses this for a field that it does not know."""
    try:
        await scene.client_of(worker).create(f"{path_of(scene, '')}?fieldValidation=Strict&dryRun=All", body)
    except StatusError as error:
        return error.status == 400
    return False


async def test_a_worker_with_an_older_definition_refuses_what_it_does_not_know(
    manager: ManagerProcess, scene: Scene
) -> None:
    """A field that would silently be left out there is a refusal, which names it; what has none of it runs."""
    field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/coordinator"
    whole = {worker: await scene.client_of(worker).get(DEFINITION) for worker in scene.workers}
    for worker in scene.workers:
        operations = [{"op": "remove", "path": field}]
        await scene.client_of(worker).call("PATCH", DEFINITION, operations, "application/json-patch+json")
    try:
        older = job_set("train", manager.managed_by, coordinator={"replicatedJob": "main"})
        for worker in scene.workers:
            await until(partial(knows_less, scene, worker, older))

        def is_refused(found: Json | None) -> bool:
            listed = ((found or {}).get("status") or {}).get("conditions") or ()
            return any(one["reason"] == "RefusedByWorkers" for one in listed)

        await scene.client.create(path_of(scene, ""), older)
        await scene.client.wait_until(path_of(scene), is_refused)

        def names_the_field(found: Json | None) -> bool:
            return 'unknown field "spec.coordinator"' in annotation(found, "waiting-because")

        await scene.client.wait_until(path_of(scene), names_the_field)
        assert not await mirrors(scene)
        await scene.client.create(path_of(scene, ""), job_set("other", manager.managed_by, ends="Completed"))
        await scene.client.wait_until(path_of(scene, "other"), has("Completed"))
    finally:
        for worker, definition in whole.items():
            spec = {"spec": {"versions": definition["spec"]["versions"]}}
            await scene.client_of(worker).merge(DEFINITION, spec)
    await scene.client.delete(path_of(scene))
