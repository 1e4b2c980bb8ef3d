"""A cluster whose Jobs are run by our Job controller, in virtual time.

``async with job_world() as world:`` runs what the process runs, but for leader election, metrics server and events.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from doubles.jobs import job
from doubles.pods import Body, Node, collect_garbage
from doubles.transport import Wire, client_of, wire_to
from doubles.world import one_error
from mirror.jobcontroller.controller import ControllerSettings, JobController
from mirror.kube.client import Client
from mirror.runtime.events import Regarding
from mirror.telemetry.logs import get_log


class Told:
    """``ports.Events`` and ``ports.Metrics``: keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []
        """Type, reason and message."""
        self.counts: Counter[tuple[object, ...]] = Counter()
        """By metric and labels."""

    def event(self, regarding: Regarding, type_name: str, reason: str, message: str, /) -> None:
        self.events.append((type_name, reason, message))

    def reasons(self) -> Counter[str]:
        return Counter(reason for _, reason, _ in self.events)

    def on_synced(self, mode: str, result: str, action: str, seconds: float) -> None:
        self.counts["synced", mode, result, action] += 1

    def on_finished(self, mode: str, result: str, reason: str) -> None:
        self.counts["finished", mode, result, reason] += 1

    def on_pods_finished(self, mode: str, result: str, count: int) -> None:
        self.counts["pods finished", mode, result] += count

    def on_indexes_finished(self, status: str, backoff_limit: str, count: int) -> None:
        self.counts["indexes finished", status, backoff_limit] += count

    def on_policy_action(self, action: str, count: int) -> None:
        self.counts["policy action", action] += count

    def on_tracking_finalizer(self, event: str) -> None:
        self.counts["tracking finalizer", event] += 1

    def on_pods_created(self, reason: str, status: str, count: int) -> None:
        self.counts["pods created", reason, status] += count

    def on_external_job(self, controller_name: str) -> None:
        self.counts["external", controller_name] += 1

    def on_stale_skip(self, group: str, resource: str) -> None:
        self.counts["stale", group, resource] += 1

    def queue_observer(self, name: str) -> Told:
        return self

    def on_taken(self, waited_seconds: float) -> None:
        """Not interesting here."""

    def on_worked(self, seconds: float) -> None:
        """Not interesting here."""

    def on_retry(self) -> None:
        self.counts["retry",] += 1


class JobWorld:
    """One cluster, its node, and a Job controller that may be started and killed."""

    def __init__(self, settings: ControllerSettings) -> None:
        self.wire: Wire = wire_to("cluster")
        self.node = Node(self.wire)
        self.told = Told()
        self.controller: JobController
        self._settings = settings

    @asynccontextmanager
    async def running(self, client: Client | None = None) -> AsyncIterator[JobController]:
        """Run a controller; leaving kills it, as a crash would."""
        client = client or client_of(self.wire)
        told, clock = self.told, self.wire.clock
        self.controller = JobController(
            client, self._settings, events=told, metrics=told, clock=clock, log=get_log("mirror")
        )
        async with one_error(), asyncio.TaskGroup() as scope:
            works = (self.controller.watch, self.controller.lead)
            tasks = [scope.create_task(work(), name=work.__qualname__) for work in works]
            try:
                await asyncio.sleep(0.05)
                yield self.controller
            finally:
                for task in tasks:
                    task.cancel()
        await client.close()

    async def settle(self, seconds: float = 3.0) -> None:
        """Let (virtual) time pass; three seconds are enough for everything that no backoff delays."""
        await asyncio.sleep(seconds)

    # -- what users do ------------------------------------------------------------------------------------------------

    def create(self, name: str = "train", **spec: Any) -> Body:
        """A Job of ours, with the defaults that the double leaves out (DF5)."""
        policy = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
        spec = {"managedBy": None, "podReplacementPolicy": policy} | spec
        body = job(name, managed_by=None, **spec)
        if spec["managedBy"] is None:
            del body["spec"]["managedBy"]
        return self.wire.server.put("jobs", body)

    def edit(self, change: Callable[[Body], None], name: str = "train") -> None:
        self.wire.server.edit("jobs", name, change)

    def set_spec(self, name: str = "train", **changes: Any) -> None:
        self.edit(lambda body: body["spec"].update(changes), name)

    def delete(self, name: str = "train") -> None:
        """In the background: the Job is gone at once, its pods follow."""
        self.wire.server.remove("jobs", name)
        collect_garbage(self.wire)

    # -- what tests see -----------------------------------------------------------------------------------------------

    def job(self, name: str = "train") -> Body:
        return self.wire.server.get("jobs", name)

    def status(self, name: str = "train") -> Body:
        found: Body = self.job(name)["status"]
        return found

    def conditions(self, name: str = "train") -> dict[str, str]:
        """Type → reason of the True conditions."""
        listed = self.status(name).get("conditions") or ()
        return {one["type"]: one.get("reason", "") for one in listed if one["status"] == "True"}

    def pods(self, name: str = "train", *, tracked: bool | None = None, phase: str = "") -> list[str]:
        """The names of a Job's pods, oldest first."""
        return [pod["metadata"]["name"] for pod in self.bodies(name) if _suits(pod, tracked, phase)]

    def bodies(self, name: str = "train") -> list[Body]:
        """The pods that a Job controls, oldest first."""
        return [pod for pod in self.wire.server.all("pods") if _controller(pod).get("name") == name]

    def active(self, name: str = "train") -> list[str]:
        """The names of pods that neither ended nor are being deleted."""
        return [
            pod["metadata"]["name"]
            for pod in self.bodies(name)
            if pod["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]
        ]

    def writes(self, since: int = 0) -> list[str]:
        """What was written, as ``verb plural[/subresource]``."""
        return [f"{one.verb} {_what(one.path)}" for one in self.wire.writes()[since:]]


def _suits(pod: Body, tracked: bool | None, phase: str) -> bool:
    is_tracked = bool(pod["metadata"].get("finalizers"))
    return tracked in (None, is_tracked) and phase in ("", pod["status"]["phase"])


def _controller(pod: Body) -> Body:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def _what(path: str) -> str:
    parts = path.strip("/").split("/")
    plural = "jobs" if "jobs" in parts else "pods"
    return f"{plural}/status" if parts[-1] == "status" else plural


@asynccontextmanager
async def job_world(settings: ControllerSettings | None = None, *, qps: float = 0) -> AsyncIterator[JobWorld]:
    """A world whose controller is at work; it may ask so many times a second, 0 for no limit."""
    world = JobWorld(settings or ControllerSettings())
    async with world.running(client_of(world.wire, qps=qps)):
        yield world
