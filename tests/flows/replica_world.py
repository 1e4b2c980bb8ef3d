"""A flow world in which managers come and go under a Lease, and workers get other names, prefixes and kubeconfigs."""

from __future__ import annotations

import asyncio
import contextvars
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import msgspec
from admission import AdmittingPlane
from doubles.managers import placed
from flow_world import HOME, MANAGER, FlowWorld, has_ended, hold_short_looks_to_whole_ones, path, tolerant
from replicas import Observer, Replica, Way, context_of

from mirror.embedded.apiserver.messages import Answer, Request
from mirror.embedded.memory import client_of
from mirror.kube.client import Client
from mirror.kube.errors import Unreachable
from mirror.kube.permits import WritePermit
from mirror.model import names
from mirror.planes.api import Json
from mirror.runtime import supervise
from mirror.runtime.environment import Environment
from mirror.runtime.leadership import Leadership, LeadershipLost, LeaseSettings
from mirror.telemetry.logs import get_log
from mirror.wiring import build_mirroring

PREFIXES = ("", "a-", "b-")
"""Of namespaces on workers."""
MANAGEMENT_PREFIX = "m-"
"""Where the management cluster's own mirrors are, when it is a worker of itself."""
RESTART_SECONDS = 1.0
STOPPED_SECONDS = 20.0
"""A process that is to end has ended within, unless it hangs."""
LEASE = {"duration_seconds": 15.0, "renew_deadline_seconds": 10.0, "retry_period_seconds": 4.0}


@dataclass(frozen=True)
class Registration:
    """A worker's Secret as it was written last."""

    leads_to: str
    prefix: str = ""


class _Nobody:
    """``replicas.Observer`` that does not look."""

    def on_sent(self, replica: Replica, cluster: str, request: Request) -> None: ...

    def on_received(self, replica: Replica, cluster: str, request: Request, body: bytes) -> None: ...


class ReplicaWorld(FlowWorld):
    """All clusters, and up to ``MOST`` managers."""

    PLANE = AdmittingPlane
    MOST: ClassVar[int] = 3
    """Processes at a time."""

    def __init__(self, scope: asyncio.TaskGroup, workers: Sequence[str], **settings: Any) -> None:
        super().__init__(scope, workers, **settings)
        self.observer: Observer = _Nobody()
        self.replicas: list[Replica] = []
        self.registrations: dict[str, Registration] = {}
        """By the worker's name; one without a Secret is not here."""
        self.led_to: dict[str, set[str]] = {}
        """All clusters that a worker of this name ever led to."""
        self.prefixes: dict[str, set[str]] = {}
        """All prefixes that ever led to a cluster."""
        self.replaced: set[str] = set()
        """Clusters that lost their data."""
        self._numbers = 0
        self._under_way: set[asyncio.Task[Answer]] = set()
        self._outside = contextvars.copy_context()

    async def start(self) -> None:
        for plane in self.planes.values():
            plane.start()
            await self.create_namespaces(plane.name)
        await super().start()

    async def create_namespaces(self, cluster: str) -> None:
        for prefix in {*PREFIXES, MANAGEMENT_PREFIX} - {""}:
            body = {"metadata": {"name": f"{prefix}default"}}
            await tolerant(self.planes[cluster].api.create("/api/v1/namespaces", body))

    async def stop(self) -> None:
        for replica in tuple(self.replicas):
            await self.kill(replica)
        for task in tuple(self._under_way):
            task.cancel()
        await super().stop()

    # -- managers ------------------------------------------------------------------------------------------------------

    @property
    def has_manager(self) -> bool:
        return bool(self.replicas)

    @property
    def leader(self) -> Replica | None:
        """Who thinks that it leads; of several, whom the Lease names."""
        leaders = [replica for replica in self.replicas if replica.is_leader]
        holder = self.lease_holder()
        return next((one for one in leaders if one.identity == holder), leaders[0] if leaders else None)

    def lease(self, name: str) -> Json | None:
        """A Lease as it is stored."""
        record = self.management.storage.get("leases.coordination.k8s.io", HOME, name)
        found: Json | None = msgspec.json.decode(record.raw) if record else None
        return found

    def lease_holder(self, name: str = names.LEASE) -> str:
        """Whom the stored Lease names."""
        return str(((self.lease(name) or {}).get("spec") or {}).get("holderIdentity") or "")

    def start_manager(self) -> None:
        """Start one, unless there is one."""
        if not self.replicas:
            self.start_replica()

    def start_replica(self) -> None:
        """One more, if there are not too many."""
        if len(self.replicas) < self.MOST:
            replica = self._new_replica()
            self.replicas.append(replica)
            context = context_of(replica)
            replica.task = asyncio.get_running_loop().create_task(self._run_replica(replica), context=context)
            replica.task.add_done_callback(partial(self._on_end, replica))

    async def kill_manager(self) -> None:
        """End the leader in the middle of whatever it does; without one, the eldest."""
        if self.replicas:
            await self.kill(self.leader or self.replicas[0])

    async def kill(self, replica: Replica) -> None:
        """As ``kill -9`` does: nothing is said goodbye to."""
        replica.is_dead = True
        if replica in self.replicas:
            self.replicas.remove(replica)
        replica.wake()
        if replica.task is not None:
            replica.task.cancel()
            await asyncio.wait({replica.task})

    async def end_well(self, replica: Replica) -> None:
        """It is stopped, and may say goodbye, as long as that does not take too long."""
        self.replicas.remove(replica)
        assert replica.task is not None
        replica.task.cancel()
        await asyncio.wait({replica.task}, timeout=STOPPED_SECONDS)
        await self.kill(replica)

    def _new_replica(self) -> Replica:
        self._numbers += 1
        return Replica(self._numbers, began_at=asyncio.get_running_loop().time())

    def _on_end(self, replica: Replica, task: asyncio.Task[None]) -> None:
        """One that lost its lease is started again as a new process; what else ends it is a defect."""
        if replica.is_dead or task.cancelled():
            return
        replica.is_dead = True
        self.replicas.remove(replica)
        error = task.exception()
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, LeadershipLost):
            asyncio.get_running_loop().call_later(RESTART_SECONDS, self.start_replica)
        elif error is not None:
            self._scope.create_task(_raise(error), name="replica has failed")

    async def _run_replica(self, replica: Replica) -> None:
        log, metrics = get_log("mirror"), self.metrics
        replica.permit = WritePermit(self.clock.boottime)
        management = self._client("management", replica, replica.permit)

        async def connect(name: str, kubeconfig: bytes) -> Client:
            cluster = kubeconfig.decode()
            if cluster not in self.planes:
                raise Unreachable("no such host")
            return self._client(cluster, replica, replica.permit)

        environment = Environment(self.clock, log, metrics)
        mirroring = replica.mirroring = build_mirroring(
            management, self._mirroring_settings(), connector=connect, environment=environment
        )
        hold_short_looks_to_whole_ones(mirroring)
        lease = LeaseSettings(HOME, names.LEASE, identity=replica.identity, **LEASE)
        leadership = Leadership(management, lease, clock=self.clock, log=log, permit=replica.permit)
        replica.leadership = leadership
        try:
            async with asyncio.TaskGroup() as scope:
                for name, work in (("sources", mirroring.watch), ("workers", mirroring.registry.run)):
                    restarts = metrics.on_task_restart
                    scope.create_task(supervise.supervise(name, work, log=log, on_restart=restarts), name=name)
                scope.create_task(leadership.run(mirroring.lead), name="lead")
        finally:
            await management.close()

    def _client(self, cluster: str, replica: Replica, permit: WritePermit | None, lease: str = names.LEASE) -> Client:
        """What looks at the permit that this Lease gives; without one, what writes Leases."""
        way: Any = Way(self.planes[cluster].wire, replica, self, self._under_way, self._outside, permit)
        return client_of(way, cluster, user=replica.user(lease), peer=MANAGER, clock=self.clock, permit=permit)

    # ``replicas.Observer``: whoever observes now, since managers run before anybody does.

    def on_sent(self, replica: Replica, cluster: str, request: Request) -> None:
        self.observer.on_sent(replica, cluster, request)

    def on_received(self, replica: Replica, cluster: str, request: Request, body: bytes) -> None:
        self.observer.on_received(replica, cluster, request, body)

    # -- workers' Secrets ----------------------------------------------------------------------------------------------

    async def register(self, name: str, *, leads_to: str = "", prefix: str | None = None, **annotations: str) -> None:
        """Write a worker's Secret anew; where it leads to and the prefix stay what they were unless they are given."""
        before = self.registrations.get(name, Registration(name))
        wanted = Registration(leads_to or before.leads_to, before.prefix if prefix is None else prefix)
        self.registrations[name] = wanted
        self.led_to.setdefault(name, set()).add(wanted.leads_to)
        self.prefixes.setdefault(wanted.leads_to, set()).add(wanted.prefix)
        if wanted.prefix:
            annotations["namespace-prefix"] = wanted.prefix
        await self._write_secret(name, wanted.leads_to, annotations)

    async def unregister(self, name: str) -> None:
        self.registrations.pop(name, None)
        await super().unregister(name)

    async def replace_cluster(self, cluster: str) -> None:
        """All data of it are lost; another cluster answers at its address."""
        plane = self.planes[cluster]
        await plane.restart(keeps_data=False)
        self.replaced.add(cluster)
        await self.create_namespaces(cluster)

    # -- Jobs ----------------------------------------------------------------------------------------------------------

    def jobs_on(self, cluster: str) -> list[Json]:
        """All Jobs of a cluster that are no sources."""
        plane = self.planes[cluster]
        if not plane.is_running:
            return []
        found = [msgspec.json.decode(record.raw) for record in plane.storage.records("jobs.batch", None)]
        is_management = cluster == self.management.name
        return [job for job in found if not (is_management and job["metadata"]["namespace"] == "default")]

    def namespaces_of(self, name: str, cluster: str) -> list[str]:
        """The namespaces of a worker that have a Job of this name."""
        return [job["metadata"]["namespace"] for job in self.jobs_on(cluster) if job["metadata"]["name"] == name] or [
            "default"
        ]

    async def change(self, name: str, patch: Json, *, cluster: str = "management") -> None:
        for namespace in self._meant(name, cluster):
            await tolerant(self.planes[cluster].api.merge(path(name, namespace), patch))

    async def delete(
        self, name: str = "train", *, cluster: str = "management", propagation: str = "Background"
    ) -> None:
        for namespace in self._meant(name, cluster):
            await tolerant(self.planes[cluster].api.delete(path(name, namespace), propagation=propagation))

    def _meant(self, name: str, cluster: str) -> list[str]:
        """Sources on the management cluster, though it be its own worker; mirrors on another."""
        return ["default"] if cluster == "management" else self.namespaces_of(name, cluster)

    def cluster_of(self, worker: str) -> str | None:
        """Where the Secret of this worker leads to; None: there is none."""
        found = self.registrations.get(worker)
        return found.leads_to if found else None

    def restore_stored(self, body: Json) -> None:
        """Put a Job of the management cluster back as it was stored: the same uid and status, as a restore of etcd."""
        storage, metadata = self.management.storage, body["metadata"]
        namespace, name = metadata["namespace"], metadata["name"]
        if storage.get("jobs.batch", namespace, name) is not None:
            return

        def build(version: int) -> bytes:
            return msgspec.json.encode(body | {"metadata": metadata | {"resourceVersion": str(version)}})

        storage.write("jobs.batch", namespace, name, build, replacing=None, labels=metadata.get("labels") or {})

    def load(self) -> Counter[str]:
        """How many unfinished sources are recorded on each worker."""
        records = self.management.storage.records("jobs.batch", "default")
        jobs = [msgspec.json.decode(record.raw) for record in records]
        return Counter(worker for job in jobs if not has_ended(job) and (worker := placed(job)))


async def _raise(error: BaseException) -> None:
    raise error
