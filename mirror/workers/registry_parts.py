"""What the registry of workers is given: settings, whom it tells, how it connects, and who else declares workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.model import names
from mirror.runtime.rest import Rest
from mirror.settings.schema import ClusterProfiles, SecretSource
from mirror.sharding.share import EVERYTHING, Share
from mirror.telemetry.logs import Log
from mirror.workers.declarations import Origin, Provider, Report
from mirror.workers.inventory_record import LEASE_SECONDS, InventoryRecord
from mirror.workers.profile_provider import ProfileProvider
from mirror.workers.secret_provider import secrets_of_source
from mirror.workers.worker_hooks import WorkerListener


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Where Secrets and the ConfigMap are, who else declares workers, and what all workers share."""

    namespace: str
    origin: str
    management_uid: str
    kinds: Kinds
    source_namespaces: tuple[str, ...] = ()
    secret_sources: tuple[SecretSource, ...] = ()
    cluster_profiles: ClusterProfiles = field(default_factory=ClusterProfiles)
    watch_pods: bool = False
    recorded_kinds: str = ""
    """The kinds beside Jobs, as operators' commands read them (``kinds.declared.recorded``)."""
    share: Share = EVERYTHING
    """Which workers these are; others are not even known (S1)."""
    lease_seconds: float = LEASE_SECONDS
    """How long a Lease of ours lasts (S10)."""

    def record_in(self, management: Client, *, log: Log) -> InventoryRecord:
        """What is written down of these workers, by who is connected to them."""
        return InventoryRecord(
            management,
            self.namespace,
            annotations={names.ORIGIN: self.origin, names.KINDS: self.recorded_kinds},
            log=log,
            share=self.share,
            lease_seconds=self.lease_seconds,
        )


class RegistryListener(WorkerListener, Protocol):
    """Where changes of workers and their mirrors are reported."""

    def on_worker_forgotten(self, worker: str) -> None: ...


@dataclass(frozen=True, slots=True)
class RegistryHooks:
    """What the registry needs of the controllers."""

    listener: RegistryListener
    wait_until_sources_known: Callable[[], Awaitable[None]]
    warn: Callable[[Origin, str, str], None]
    """Called with what declares a worker and has a problem, a reason and a message."""


class Connector(Protocol):
    """Makes a client of a worker's kubeconfig; raises KubeconfigRefused or KubeError."""

    async def __call__(self, name: str, kubeconfig: bytes) -> Client: ...


def other_providers(
    management: Client, settings: RegistrySettings, *, report: Report, log: Log
) -> tuple[Provider, ...]:
    """Those beside our own Secrets that the settings want."""
    found: list[Provider] = [
        secrets_of_source(management, source, rank=rank, report=report, log=log)
        for rank, source in enumerate(settings.secret_sources, start=1)
    ]
    if (profiles := settings.cluster_profiles).enabled:
        rank = len(found) + 1
        found.append(ProfileProvider(management, profiles, settings.namespace, rank=rank, report=report, log=log))
    return tuple(found)


def rests_of(kinds: Kinds) -> Mapping[str, Rest]:
    """What the mirrors of each kind share, whichever worker they are on."""
    return {kind.name: Rest() for kind in kinds}
