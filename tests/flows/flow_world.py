"""A management cluster, workers and a manager, all real and all in this process, in virtual time.

Clusters are ``planes.ControlPlane``: API server, garbage collector, Job controller and simulated node. The manager is
what ``mirror.app`` runs, without leader election, metrics server and HTTP. Users of the clusters ask over
``ControlPlane.api``, which no fault meets; everybody else may meet some.
"""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, ClassVar

import structlog
from doubles.crashes import until_killed
from doubles.managers import HOME, conditions, settings_of, worker_secret

from mirror.controllers.mirroring import Mirroring
from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.decide.mirror_verdict import MirrorVerdict
from mirror.decide.snapshot import Policy
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.clocks import LoopClock
from mirror.embedded.controllers.settings import Settings
from mirror.kinds.base import Kind, MirrorTransform
from mirror.kube.client import Client
from mirror.kube.errors import KubeError, Unreachable
from mirror.kube.objects import Meta
from mirror.model import names
from mirror.planes.api import Api, Json
from mirror.planes.plane import ControlPlane
from mirror.planes.shape import Shape
from mirror.runtime import informer, leadership, supervise
from mirror.runtime.environment import Environment
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.wiring import build_mirroring
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker

MANAGER = "manager"
"""What faults and invariants know the manager's requests by."""
ANOTHER_CLUSTER = "another-cluster"
"""A management cluster that strangers' Jobs say they are of."""
SIMULATED = "e2e.jobmirror.io/"
LOST_AFTER_SECONDS = 60.0
LATENCY_SECONDS = 0.001
NEVER = 1e7
"""Seconds: no node is lost, whatever becomes of its kubelet."""


def hold_short_looks_to_whole_ones(mirroring: Mirroring) -> None:
    """What a sweep passes over by its metadata alone, it would keep if it looked at all of it."""
    sweeper = mirroring._parts.sweeper
    is_in_place = sweeper._is_in_place

    def checked(worker: Worker, kind: Kind, mirror: Meta) -> bool:
        if not is_in_place(worker, kind, mirror):
            return False
        found = worker.mirrors_of(kind).get(mirror.namespace, mirror.name)
        assert found is not None
        assert sweeper._judge(worker, kind, found) is MirrorVerdict.KEEP
        return True

    vars(sweeper)["_is_in_place"] = checked


class FlowWorld:
    """All clusters, and the one manager, which may be killed and started again."""

    PLANE: ClassVar[type[ControlPlane]] = ControlPlane
    MANAGERS: ClassVar[Collection[str]] = (HOME,)
    """The namespaces that each source that is placed names one of."""
    EXPECTED_ERRORS: ClassVar[Collection[str]] = ()
    """Lines of the log that tell of what was done to this world, not of a mistake of ours."""

    def __init__(self, scope: asyncio.TaskGroup, workers: Sequence[str], *, seed: int = 0, **settings: Any) -> None:
        self.clock = LoopClock()
        chance = random.Random(seed)
        parts: dict[str, Any] = {"clock": self.clock, "chance": chance, "scope": scope}
        self.management = self.PLANE(shape_of("management"), **parts)
        self.workers = {name: self.PLANE(shape_of(name), **parts) for name in workers}
        self.planes = {"management": self.management, **self.workers}
        self.metrics = Metrics()
        self.mirroring: Mirroring | None = None
        self.registry: Registry | None = None
        self._scope = scope
        self._settings = settings
        self._manager: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Everything runs, and every worker is registered."""
        for plane in self.planes.values():
            plane.start()
            plane.faults.latency_seconds = LATENCY_SECONDS
        await self.management.api.create("/api/v1/namespaces", {"metadata": {"name": HOME}})
        self.origin = (await self.management.api.get("/api/v1/namespaces/kube-system"))["metadata"]["uid"]
        for name in self.workers:
            await self.register(name)
        await self.prepare()
        self.start_manager()
        await asyncio.sleep(0.5)

    async def prepare(self) -> None:
        """Do what has to be done before the manager starts."""

    async def stop(self) -> None:
        """Nothing runs any more."""
        await self.kill_manager()
        for plane in self.planes.values():
            await plane.stop()

    # -- the manager ---------------------------------------------------------------------------------------------------

    @property
    def has_manager(self) -> bool:
        return self._manager is not None

    def start_manager(self) -> None:
        """Start it, unless it runs, or has nothing to manage."""
        if self._manager is None and self.workers:
            self._manager = self._scope.create_task(self._run_manager(), name="manager")

    async def kill_manager(self) -> None:
        """End it in the middle of whatever it does."""
        manager, self._manager = self._manager, None
        if manager is not None:
            manager.cancel()
            await asyncio.wait({manager})

    async def _run_manager(self) -> None:
        await self._manage(self._mirroring_settings())

    async def _manage(self, settings: MirroringSettings) -> None:
        log = get_log("mirror")
        management = self.management.client(peer=MANAGER)
        environment = Environment(self.clock, log, self.metrics)
        mirroring = self.mirroring = build_mirroring(
            management, settings, connector=self._connect, environment=environment
        )
        hold_short_looks_to_whole_ones(mirroring)
        registry = self.registry = mirroring.registry
        try:
            async with asyncio.TaskGroup() as scope:
                lead = partial(until_killed, mirroring.lead)
                for name, work in (("sources", mirroring.watch), ("workers", registry.run), ("lead", lead)):
                    restarts = self.metrics.on_task_restart
                    scope.create_task(supervise.supervise(name, work, log=log, on_restart=restarts), name=name)
        finally:
            await management.close()

    def _mirroring_settings(self) -> MirroringSettings:
        # Said although it is the origin already: others may have the same one by mistake.
        transform = MirrorTransform(self.origin, management_uid=self.origin)
        own = {"policy": Policy(lost_after_seconds=LOST_AFTER_SECONDS), "transform": transform}
        return settings_of(self.origin, **{**own, **self._settings})

    async def _connect(self, name: str, kubeconfig: bytes) -> Client:
        """``workers.registry.Connector``: a kubeconfig is the name of the cluster that it leads to."""
        plane = self.planes.get(kubeconfig.decode())
        if plane is None:
            raise Unreachable("no such host")
        return plane.client(name, peer=MANAGER)

    # -- workers' Secrets ----------------------------------------------------------------------------------------------

    async def register(self, name: str, **annotations: str) -> None:
        """Write a worker's Secret anew, with these annotations and no others of ours."""
        await self._write_secret(name, name, annotations)

    async def _write_secret(self, name: str, leads_to: str, annotations: Mapping[str, str]) -> None:
        await self._put_secret(worker_secret(name, leads_to, annotations))

    async def _put_secret(self, body: Json) -> None:
        metadata, api = body["metadata"], self.management.api
        secrets = f"/api/v1/namespaces/{metadata['namespace']}/secrets"
        try:
            await api.replace(f"{secrets}/{metadata['name']}", body)
        except StatusError as refused:
            if refused.code != 404:
                raise
            await api.create(secrets, body)

    async def unregister(self, name: str) -> None:
        """Delete a worker's Secret, if it has one."""
        await tolerant(self.management.api.delete(f"/api/v1/namespaces/{HOME}/secrets/{name}"))

    def worker_name(self, cluster: str) -> str:
        """What its manager calls it."""
        return cluster

    # -- Jobs ----------------------------------------------------------------------------------------------------------

    async def create(self, name: str = "train", **spec: Any) -> Json:
        """A source, as a user creates it."""
        return await self.management.api.create(path(""), job(name, **spec))

    async def source(self, name: str = "train") -> Json | None:
        return await found(self.management.api, name)

    async def mirror(self, worker: str, name: str = "train") -> Json | None:
        """The Job of this name on a worker."""
        return await found(self.workers[worker].api, name)

    async def mirrors(self, name: str = "train") -> list[str]:
        """The workers that have it."""
        return [worker for worker in self.workers if await self.mirror(worker, name) is not None]

    async def change(self, name: str, patch: Json, *, cluster: str = "management") -> None:
        """A merge patch of a Job, as a user sends it; nothing happens where there is none or it is refused."""
        await tolerant(self.planes[cluster].api.merge(path(name), patch))

    async def delete(
        self, name: str = "train", *, cluster: str = "management", propagation: str = "Background"
    ) -> None:
        """Delete a Job, if it is there."""
        await tolerant(self.planes[cluster].api.delete(path(name), propagation=propagation))

    async def sources(self) -> list[Json]:
        return await self.management.api.list("/apis/batch/v1/jobs")

    async def events(self) -> list[str]:
        """The reasons of all events on the management cluster."""
        return [event["reason"] for event in await self.management.api.list("/api/v1/events")]

    async def until(self, is_so: Callable[[], Any], *, seconds: float = 60.0) -> None:
        """Wait until an asynchronous question is answered with something true.

        Raises:
            AssertionError: it is not so for that long.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        while not await is_so():
            assert loop.time() < ends_at, f"not so after {seconds:g} s"
            await asyncio.sleep(0.05)


def shape_of(name: str) -> Shape:
    """A cluster that runs Jobs, and says no more than that needs."""
    return Shape(
        name=name,
        controllers=("job", "gc", "scheduler", "kubelet", "node"),
        controller_settings=Settings(
            has_pod_events=False, lease_seconds=3600, node_grace_seconds=NEVER, collected=frozenset(("jobs", "pods"))
        ),
    )


def path(name: str, namespace: str = "default") -> str:
    """Of a Job; without a name of the collection."""
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


async def found(api: Api, name: str) -> Json | None:
    """The Job, if it is there."""
    try:
        return await api.get(path(name))
    except StatusError as refused:
        if refused.code == 404:
            return None
        raise


async def tolerant(request: Any) -> None:
    """Something that a user tries, and that may be refused."""
    try:
        await request
    except StatusError as refused:
        if refused.code not in (404, 409, 422):
            raise


def job(
    name: str,
    *,
    annotations: Mapping[str, str] | None = None,
    managed_by: str | None = names.DEFAULT_MANAGED_BY,
    run_for: str = "1s",
    exit_code: int = 0,
    **spec: Any,
) -> Json:
    """A Job whose pods end by themselves on a simulated node."""
    simulated = {f"{SIMULATED}run-for": run_for, f"{SIMULATED}exit-code": str(exit_code)}
    template = {
        "metadata": {"annotations": simulated},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    }
    body: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}
    body["spec"] |= spec
    if annotations:
        body["metadata"]["annotations"] = dict(annotations)
    if managed_by is not None:
        body["spec"]["managedBy"] = managed_by
    return body


def has_ended(body: Json | None) -> bool:
    """Whether a Job is complete or failed."""
    return bool({"Complete", "Failed"} & conditions(body).keys())


@contextmanager
def error_lines(expected: Collection[str] = ()) -> Iterator[list[str]]:
    """Collect error lines of our logs: none but these is expected, whatever happens, but that a server is unreachable.

    Nor is it a mistake of ours that a stranger's Job says it is of ``ANOTHER_CLUSTER``, which is reported as an error.
    """
    found: list[str] = []

    def take(_: object, level: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        error = fields.get("exc_info")
        is_expected = isinstance(fields.get("error"), KubeError) or fields.get("management_uids") == [ANOTHER_CLUSTER]
        if level == "error" and not is_expected and fields.get("event") not in expected:
            trace = traceback.format_exception(error) if isinstance(error, BaseException) else ()
            found.append(f"{fields} {''.join(trace)}")
        return fields

    processors = structlog.get_config()["processors"]
    processors.insert(0, take)
    try:
        yield found
    finally:
        processors.remove(take)


@contextmanager
def repeatable(seed: int) -> Iterator[None]:
    """Chance as of a seed where the code under test draws from the machine's, so that a run can be repeated."""
    chance = random.Random(seed)
    stand_in = SimpleNamespace(Random=lambda: random.Random(chance.random()))
    modules = (informer, leadership, supervise)
    before = [module.random for module in modules]
    for module in modules:
        module.random = stand_in
    try:
        yield
    finally:
        for module, kept in zip(modules, before, strict=True):
            module.random = kept


@asynccontextmanager
async def flow_world(
    *workers: str, seed: int = 0, form: type[FlowWorld] = FlowWorld, **settings: Any
) -> AsyncIterator[FlowWorld]:
    """A world that runs, with a manager that knows these workers; without any, there is no manager."""
    failure: BaseException | None = None
    with repeatable(seed), error_lines(form.EXPECTED_ERRORS) as errors:
        async with asyncio.TaskGroup() as scope:
            world = form(scope, workers, seed=seed, **settings)
            try:
                await world.start()
                yield world
            except Exception as error:  # noqa: BLE001 - raised below: out of the scope it would come as a group
                failure = error
            finally:
                await world.stop()
    if failure is not None:
        raise failure
    assert not errors, errors
