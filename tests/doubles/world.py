"""A management cluster, two workers and managers on them, in virtual time.

For flows: `async with manager_of(world)` runs what the app runs, without leader election, metrics server and logs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from doubles import managers
from doubles.clock import LoopClock
from doubles.crashes import until_killed
from doubles.jobs import Body, JobController
from doubles.managers import HOME, settings_of, worker_secret
from doubles.transport import Wire, client_of, wire_to
from mirror.controllers.mirroring import Mirroring
from mirror.controllers.tracing import Traces
from mirror.kube.client import Client
from mirror.kube.errors import Unreachable
from mirror.model import names
from mirror.runtime.environment import Environment
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.wiring import build_mirroring
from mirror.workers.registry import Registry

T = TypeVar("T")
WAITING, ASSIGNED = names.WAITING_BECAUSE, names.ASSIGNED_WORKER


@dataclass
class World:
    """All clusters. Make it in the running loop."""

    management: Wire = field(default_factory=lambda: wire_to("management"))
    workers: dict[str, Wire] = field(default_factory=dict)
    users: dict[str, Body] = field(default_factory=dict)
    """Of the kubeconfigs that were put together of profiles, by worker."""

    @property
    def origin(self) -> str:
        return self.management.server.uid

    def add_cluster(self, name: str, **more: Any) -> Wire:
        """A new cluster that nothing declares."""
        wire = self.workers[name] = wire_to(name, **more)
        return wire

    def add_worker(self, name: str, *, annotations: Mapping[str, str] | None = None, **more: Any) -> Wire:
        """A new cluster, registered."""
        wire = self.add_cluster(name, **more)
        self.register(name, annotations=annotations)
        return wire

    def register(
        self, name: str, *, annotations: Mapping[str, str] | None = None, leads_to: str = "", labels: Any = None
    ) -> None:
        """Write a worker's Secret."""
        secret = worker_secret(name, leads_to or name, annotations or {}, labels)
        self.management.server.put("secrets", secret)

    def annotate_worker(self, name: str, **annotations: str | None) -> None:
        def change(body: Body) -> None:
            found = body["metadata"].setdefault("annotations", {})
            for key, value in annotations.items():
                found[names.PREFIX + key] = value
                if value is None:
                    del found[names.PREFIX + key]

        self.management.server.edit("secrets", name, change, HOME)

    async def connect(self, name: str, kubeconfig: bytes, **who: Any) -> Client:
        """``workers.registry.Connector``: a kubeconfig is the name of the cluster that it leads to, or a real one."""
        leads_to = kubeconfig.decode()
        if leads_to.startswith("{"):
            document = json.loads(leads_to)
            self.users[name] = document["users"][0]["user"]
            leads_to = document["clusters"][0]["cluster"]["server"].removeprefix("https://")
        if leads_to == "management":
            return client_of(self.management, name, **who)
        if leads_to not in self.workers:
            raise Unreachable("no such host")
        return client_of(self.workers[leads_to], name, **who)

    # -- what tests do and see ---------------------------------------------------------------------------------------

    def create(self, body: Body) -> Body:
        return self.management.server.put("jobs", body)

    def source(self, name: str = "train", namespace: str = "default") -> Body:
        return self.management.server.get("jobs", name, namespace)

    def mirror(self, worker: str, name: str = "train", namespace: str = "default") -> Body | None:
        return self.workers[worker].server.find("jobs", name, namespace)

    def mirrors(self, name: str = "train", namespace: str = "default") -> list[str]:
        """The workers that have it."""
        return [worker for worker in self.workers if self.mirror(worker, name, namespace) is not None]

    def edit(self, change: Callable[[Body], None], name: str = "train", namespace: str = "default") -> None:
        self.management.server.edit("jobs", name, change, namespace)

    def delete(self, name: str = "train", namespace: str = "default") -> None:
        self.management.server.remove("jobs", name, namespace)

    def annotation(self, key: str, name: str = "train", namespace: str = "default") -> str | None:
        found: str | None = (self.source(name, namespace)["metadata"].get("annotations") or {}).get(key)
        return found

    def conditions(self, name: str = "train", namespace: str = "default") -> dict[str, str]:
        """Type → reason of the True conditions."""
        return managers.conditions(self.source(name, namespace))

    def placed(self, name: str = "train", namespace: str = "default") -> str | None:
        return managers.placed(self.source(name, namespace))

    def events(self) -> list[str]:
        """The reasons of all events."""
        return [event["reason"] for event in self.management.server.all("events")]

    def texts(self, reason: str) -> list[str]:
        return [event["message"] for event in self.management.server.all("events") if event["reason"] == reason]

    def controller(self, worker: str) -> JobController:
        return JobController(self.workers[worker])

    def record(self) -> dict[str, str]:
        """The ConfigMap of workers."""
        found = self.management.server.find("configmaps", names.WORKERS_CONFIGMAP, HOME)
        return dict(found.get("data") or {}) if found else {}

    def writes(self) -> int:
        return sum(len(wire.writes()) for wire in (self.management, *self.workers.values()))


@dataclass
class RunningManager:
    """One manager at work."""

    registry: Registry
    mirroring: Mirroring
    metrics: Metrics
    management: Client
    _scope: asyncio.TaskGroup
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """A task that ends with the manager."""
        task = self._scope.create_task(work, name=name)
        self._tasks.append(task)
        return task

    def end(self) -> None:
        """As a crash would."""
        for task in self._tasks:
            task.cancel()

    async def settle(self, seconds: float = 1.0) -> None:
        """Let (virtual) time pass."""
        await asyncio.sleep(seconds)


@asynccontextmanager
async def one_error() -> AsyncIterator[None]:
    """A failed assertion is shown as itself, not as a group of one."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None


@asynccontextmanager
async def standby_of(
    world: World,
    clock: LoopClock,
    *,
    traces: Traces | None = None,
    metrics: Metrics | None = None,
    who: Mapping[str, Any] = MappingProxyType({}),
    **changes: Any,
) -> AsyncIterator[RunningManager]:
    """A manager that watches; ``metrics``: of its process; ``who``: as what its clients send (``client_of``)."""
    environment = Environment(clock, get_log("mirror"), metrics or Metrics())
    management = client_of(world.management, **who)
    mirroring = build_mirroring(
        management,
        settings_of(world.origin, **changes),
        connector=partial(world.connect, **who),
        environment=environment,
        traces=traces,
    )
    async with one_error(), asyncio.TaskGroup() as scope:
        manager = RunningManager(mirroring.registry, mirroring, environment.metrics, management, scope)
        for work in (mirroring.watch, mirroring.registry.run):
            manager.start(work(), work.__qualname__)
        try:
            yield manager
        finally:
            manager.end()
    await management.close()


@asynccontextmanager
async def manager_of(world: World, **changes: Any) -> AsyncIterator[RunningManager]:
    """Run a manager; leaving kills it, as a crash would."""
    async with standby_of(world, LoopClock(), **changes) as manager:
        manager.start(until_killed(manager.mirroring.lead), "lead")
        await asyncio.sleep(0.5)
        yield manager


@asynccontextmanager
async def two_workers(**changes: Any) -> AsyncIterator[tuple[World, RunningManager]]:
    """The usual world: workers east and west, and a manager."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world, **changes) as manager:
        yield world, manager
