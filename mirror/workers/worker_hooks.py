"""What a worker needs of the registry that keeps it, and whom it reports to. Used by ``worker``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.kube.objects import Meta, Object
from mirror.runtime.informer import Change
from mirror.telemetry.logs import Log
from mirror.workers.gone_record import GoneRecord
from mirror.workers.mirrors import StoreHost
from mirror.workers.spec import WorkerSpec

if TYPE_CHECKING:
    from mirror.workers.worker import Worker


class WorkerHost(StoreHost, Protocol):
    """What a worker needs of the registry."""

    log: Log
    kinds: Kinds
    mirror_selector: str
    watches_pods: bool
    gone: GoneRecord

    async def connect(self, spec: WorkerSpec) -> Client: ...

    async def accept_identity(self, worker: Worker, uid: str) -> None:
        """Raises IdentityRejected, or KubeError when it could not be recorded."""

    async def wait_until_sources_known(self) -> None: ...

    def prefix_in_use(self, worker: Worker) -> str: ...

    async def change_prefix(self, worker: Worker, prefix: str) -> bool:
        """Raises KubeError when it could not be recorded."""

    def on_transition(self, worker: Worker) -> None: ...

    def on_unknown_dropped(self, worker: Worker) -> None: ...

    def on_too_large(self, worker: Worker) -> None: ...


class WorkerListener(Protocol):
    """Who knows the sources; each change of a worker and its mirrors is reported to it."""

    def is_source(self, kind: Kind, found: Object) -> bool: ...

    def source_of(self, worker: Worker, kind: Kind, found: Object) -> Object | None: ...

    def has_source(self, worker: Worker, kind: Kind, found: Meta) -> bool: ...

    def has_sources_on(self, worker: str) -> bool: ...

    def on_mirror_change(
        self, worker: Worker, kind: Kind, old: Object | None, new: Object | None, change: Change
    ) -> None: ...

    def on_worker_transition(self, worker: Worker) -> None: ...

    def on_pods_change(self, source_uid: str) -> None:
        """The pods of a source have another trouble than before."""
