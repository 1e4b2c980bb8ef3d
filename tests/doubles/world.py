"""A management cluster, two workers and managers on them, in virtual time.

For flows: `async with manager_of(world)` runs what the app runs, without leader election, metrics server and logs.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from doubles.clock import LoopClock
from doubles.jobs import Body, JobController
from doubles.transport import Wire, client_of, wire_to
from mirror.controllers.mirroring import Mirroring
from mirror.controllers.tracing import Traces
from mirror.decide.snapshot import Policy
from mirror.kinds.base import MirrorTransform
from mirror.kube.client import Client
from mirror.kube.errors import Unreachable
from mirror.model import names
from mirror.runtime.environment import Environment
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.wiring import MirroringSettings, build_mirroring
from mirror.workers.registry import Registry

HOME = "jobmirror-system"
WAITING, ASSIGNED = names.WAITING_BECAUSE, names.ASSIGNED_WORKER


def settings_of(origin: str, **changes: Any) -> MirroringSettings:
    """Default settings for a management cluster."""
    plain = MirroringSettings(
        namespace=HOME,
        management_uid=origin,
        managed_by=names.DEFAULT_MANAGED_BY,
        transform=MirrorTransform(origin),
        policy=Policy(),
        closed_namespaces=("kube-*", HOME),
    )
    return replace(plain, **changes)


@dataclass
class World:
    """All clusters. Make it in the running loop."""

    management: Wire = field(default_factory=lambda: wire_to("management"))
    workers: dict[str, Wire] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return self.management.server.uid

    def add_worker(self, name: str, *, annotations: Mapping[str, str] | None = None, **more: Any) -> Wire:
        """A new cluster, registered."""
        wire = self.workers[name] = wire_to(name, **more)
        self.register(name, annotations=annotations)
        return wire

    def register(
        self, name: str, *, annotations: Mapping[str, str] | None = None, leads_to: str = "", labels: Any = None
    ) -> None:
        """Write a worker's Secret."""
        kubeconfig = base64.b64encode((leads_to or name).encode()).decode()
        plain = {names.PREFIX + key: value for key, value in (annotations or {}).items()}
        metadata: Body = {"name": name, "namespace": HOME, "annotations": plain, "labels": {names.WORKER: "true"}}
        metadata["labels"] |= labels or {}
        self.management.server.put("secrets", {"metadata": metadata, "data": {"kubeconfig": kubeconfig}})

    def annotate_worker(self, name: str, **annotations: str | None) -> None:
        def change(body: Body) -> None:
            found = body["metadata"].setdefault("annotations", {})
            for key, value in annotations.items():
                found[names.PREFIX + key] = value
                if value is None:
                    del found[names.PREFIX + key]

        self.management.server.edit("secrets", name, change, HOME)

    async def connect(self, name: str, kubeconfig: bytes, **who: Any) -> Client:
        """``workers.registry.Connector``: a kubeconfig is the name of the cluster that it leads to."""
        leads_to = kubeconfig.decode()
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
        listed = self.source(name, namespace)["status"].get("conditions") or ()
        return {one["type"]: one.get("reason", "") for one in listed if one["status"] == "True"}

    def placed(self, name: str = "train", namespace: str = "default") -> str | None:
        listed = self.source(name, namespace)["status"].get("conditions") or ()
        return next((one["message"] for one in listed if (one["type"], one["status"]) == (names.PLACED, "True")), None)

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
        return dict(found["data"]) if found else {}

    def writes(self) -> int:
        return sum(len(wire.writes()) for wire in (self.management, *self.workers.values()))


@dataclass
class RunningManager:
    """One manager at work."""

    registry: Registry
    mirroring: Mirroring
    metrics: Metrics

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
async def manager_of(world: World, *, traces: Traces | None = None, **changes: Any) -> AsyncIterator[RunningManager]:
    """Run a manager; leaving kills it, as a crash would."""
    clock, log, metrics, management = LoopClock(), get_log("mirror"), Metrics(), client_of(world.management)
    settings = settings_of(world.origin, **changes)
    environment = Environment(clock, log, metrics)
    mirroring = build_mirroring(management, settings, connector=world.connect, environment=environment, traces=traces)
    registry = mirroring.registry
    async with one_error(), asyncio.TaskGroup() as scope:
        tasks = [scope.create_task(work(), name=work.__qualname__) for work in (mirroring.watch, registry.run)]
        tasks.append(scope.create_task(mirroring.lead(), name="lead"))
        try:
            await asyncio.sleep(0.5)
            yield RunningManager(registry, mirroring, metrics)
        finally:
            for task in tasks:
                task.cancel()
    await management.close()


@asynccontextmanager
async def two_workers(**changes: Any) -> AsyncIterator[tuple[World, RunningManager]]:
    """The usual world: workers east and west, and a manager."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    async with manager_of(world, **changes) as manager:
        yield world, manager
