"""What a kubelet tells of its node: that it exists, its status, and a Lease that is renewed while the kubelet lives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mirror.batch import times
from mirror.embedded.controllers.client import NODES, Api, Json
from mirror.embedded.controllers.settings import Settings
from mirror.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from mirror.kube.objects import Object
from mirror.kube.resources import LEASES
from mirror.runtime.clock import Clock
from mirror.telemetry.logs import Log

LEASE_NAMESPACE = "kube-node-lease"
KUBELET_VERSION = "v1.36.3"
_REPORT_SECONDS = 300.0
"""How often a status that has not changed is reported again."""
_RENEWALS = 4
_ROOM = {"cpu": "100000", "memory": "100000Gi", "pods": "1000000", "ephemeral-storage": "100000Gi"}
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


@dataclass(frozen=True, slots=True)
class Machinery:
    """What a node is made of."""

    capacity: Mapping[str, str] = field(default_factory=lambda: dict(_ROOM))
    about: str = "simulated"
    """The message of its Ready condition."""
    runtime: str = "jobmirror://simulated"
    system: str = "simulated"
    architecture: str = "amd64"


class Node:
    """One node, as its kubelet tells of it."""

    def __init__(  # noqa: PLR0913 - clock and log beside what it is
        self, name: str, ip: str, api: Api, *, machinery: Machinery, settings: Settings, clock: Clock, log: Log
    ) -> None:
        self.name = name
        self.ip = ip
        self._api = api
        self._machinery = machinery
        self._settings = settings
        self._clock = clock
        self._log = log.bind(node=name)
        self._uid = ""
        self._lease: Json | None = None
        self._told_at: float | None = None
        self._seen: dict[str, Mapping[str, Any]] = {}
        self._is_unwell = asyncio.Event()

    async def run(self) -> None:
        """Register it, then renew its Lease and tell its status, until cancelled."""
        wait = self._settings.lease_seconds / _RENEWALS
        while True:
            try:
                await self._tell()
            except KubeError as error:
                self._log.debug("node not registered", error=error)
            self._is_unwell.clear()
            try:
                async with asyncio.timeout(wait):
                    await self._is_unwell.wait()
            except TimeoutError:
                continue

    def on_node(self, found: Object | None) -> None:
        """Somebody has changed it: what is said of our own conditions is put right again."""
        if found is None:
            self._uid = self._uid and "gone"
            return
        conditions = found.status_dict().get("conditions") or ()
        self._seen = {one.get("type", ""): one for one in conditions if isinstance(one, dict)}
        if self._told_at is not None and self._seen.get("Ready", {}).get("status") != "True":
            self._told_at = None
            self._is_unwell.set()

    async def _tell(self) -> None:
        if self._uid == "gone":
            return  # a node that was deleted stays so until its kubelet starts anew
        if not self._uid:
            await self._register()
        await self._renew()
        now = self._clock.monotonic()
        if self._told_at is None or now - self._told_at >= _REPORT_SECONDS:
            await self._api.strategic(NODES, self.name, {"status": self._status()}, subresource="status")
            self._told_at = now

    async def _register(self) -> None:
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": self._machinery.architecture,
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": self._machinery.architecture,
        }
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": labels}}
        try:
            made = await self._api.create(NODES, body | {"status": self._status()})
        except AlreadyExists:
            made = await self._api.get(NODES, self.name)
            conditions = (made.get("status") or {}).get("conditions") or ()
            self._seen = {one.get("type", ""): one for one in conditions}
        self._uid = made["metadata"]["uid"]
        self._log.info("the node is registered")

    async def _renew(self) -> None:
        """The Lease is taken as it was left; a change or deletion by others is overruled at the next renewal."""
        if self._lease is None:
            self._lease = await self._find_lease()
        spec = self._lease.setdefault("spec", {})
        spec |= {"holderIdentity": self.name, "leaseDurationSeconds": self._settings.lease_seconds}
        spec["renewTime"] = self._clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        lease, self._lease = self._lease, None
        try:
            self._lease = await self._api.update(LEASES, self.name, lease, namespace=LEASE_NAMESPACE)
        except (Conflict, NotFound):
            self._lease = await self._find_lease()

    async def _find_lease(self) -> Json:
        try:
            return await self._api.get(LEASES, self.name, namespace=LEASE_NAMESPACE)
        except NotFound:
            owner = {"apiVersion": "v1", "kind": "Node", "name": self.name, "uid": self._uid}
            body = {"metadata": {"name": self.name, "ownerReferences": [owner]}}
            return await self._api.create(LEASES, body, namespace=LEASE_NAMESPACE)

    def _status(self) -> Json:
        machinery, now = self._machinery, self._clock.now()
        ready = ("Ready", "True", "KubeletReady", machinery.about)
        return {
            "addresses": [{"type": "InternalIP", "address": self.ip}, {"type": "Hostname", "address": self.name}],
            "capacity": dict(machinery.capacity),
            "allocatable": dict(machinery.capacity),
            "conditions": [self._condition(one, now) for one in (*_CONDITIONS, ready)],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": self.name,
                "systemUUID": self.name,
                "bootID": self.name,
                "kernelVersion": "",
                "osImage": machinery.system,
                "containerRuntimeVersion": machinery.runtime,
                "kubeletVersion": KUBELET_VERSION,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": machinery.architecture,
            },
        }

    def _condition(self, said: tuple[str, str, str, str], now: datetime) -> Json:
        kind, status, reason, message = said
        old = self._seen.get(kind, {})
        is_same = old.get("status") == status and old.get("lastTransitionTime")
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": times.of(now),
            "lastTransitionTime": old["lastTransitionTime"] if is_same else times.of(now),
        }
