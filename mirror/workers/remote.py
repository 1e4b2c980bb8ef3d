"""Workers of other replicas, as the record has them: known to whoever assigns workers, and asked nothing (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime

from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.kube.resources import CONFIGMAPS
from mirror.model import names
from mirror.runtime.environment import Environment
from mirror.runtime.informer import Change, Informer, InformerHooks, Scope
from mirror.runtime.store import Store
from mirror.runtime.supervise import supervise
from mirror.sharding.share import Share
from mirror.telemetry.logs import Log
from mirror.workers.connection import Connection, State
from mirror.workers.fence_record import parse_time
from mirror.workers.inventory import FORMER, Entry, WorkerInventory, entry_in
from mirror.workers.inventory_record import InventoryRecord
from mirror.workers.registry import Registry
from mirror.workers.spec import Problem
from mirror.workers.worker import Worker


class RemoteWorker(Worker):
    """A worker whose holder has written down how it is."""

    is_remote = True
    _entry = Entry()

    async def run(self) -> None:
        """There is nothing to keep; until cancelled."""
        await asyncio.Event().wait()

    @property
    def is_synced(self) -> bool:
        return self._entry.state == State.CONNECTED

    @property
    def unserved_kinds(self) -> frozenset[str]:
        return frozenset(self._entry.unserved)

    @property
    def problems(self) -> tuple[Problem, ...]:
        if self.spec is None:
            return ()
        return self.spec.problems_with(self._entry.namespace_prefix) if self._entry.uid else self.spec.problems

    def namespace_of(self, source_namespace: str) -> str:
        return self._entry.namespace_prefix + source_namespace

    def take(self, entry: Entry) -> None:
        """This is written of it now."""
        if entry == self._entry:
            return
        self._entry = entry
        self.uid = entry.uid
        self.incomplete_kinds, self.kinds_run_here = entry.incomplete, entry.run_here
        state = State(entry.state) if entry.state in tuple(State) else State.CONNECTING
        lost_since = parse_time(entry.lost_since) if state is State.LOST else None
        because = entry.reason if state is State.LOST else ""
        self.verdicts.refusal = entry.refusal
        self.verdicts.connection = Connection(state, parse_time(entry.since), because, lost_since)
        self._report_transition()


class OthersRecord(InventoryRecord):
    """The record, watched: who assigns writes nothing of workers in it, but which number of slots is in force."""

    def __init__(
        self,
        management: Client,
        namespace: str,
        *,
        share: Share,
        lease_seconds: float,
        on_entry: Callable[[str, Entry], None],
        log: Log,
    ) -> None:
        """``on_entry``: called for each worker of which it says something new."""
        super().__init__(management, namespace, annotations={}, log=log, share=share, lease_seconds=lease_seconds)
        self._on_entry = on_entry
        self._shown: Mapping[str, str] = {}
        hooks = InformerHooks(self._on_change)
        scope = Scope(CONFIGMAPS, namespace, field_selector=f"metadata.name={names.WORKERS_CONFIGMAP}")
        self._informer = Informer(scope, Store(), client=lambda: management, hooks=hooks)

    def put(self, worker: str, entry: Entry) -> None:
        """Who assigns notes nothing of workers, and writes nothing."""

    def drop(self, worker: str) -> None:
        """As ``put``."""

    def forget(self, worker: str, *, at: datetime) -> None:
        """As ``put``."""

    def write_soon(self) -> None:
        """As ``put``."""

    async def write(self) -> None:
        """As ``put``."""

    def _merge(self, found: WorkerInventory) -> None:
        """The watch shows entries; read is only which number of slots is in force."""

    async def read(self) -> None:
        """Return once it is known, or that there is none."""
        await self._informer.wait_until_synced()

    async def watch(self) -> None:
        """Keep them, until cancelled."""
        await self._informer.run()

    async def keep(self, *, is_leading: Callable[[], bool]) -> None:
        """There is nothing to write; until cancelled."""
        await asyncio.Event().wait()

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        # Holders write it often where leases are renewed: only what has changed is decoded.
        before, self._shown = self._shown, new.data_dict() if new is not None else {}
        every = before.keys() | self._shown.keys()
        changed = {name for name in every if before.get(name) != self._shown.get(name)}
        entries = {name: entry for name, entry in self.known.entries.items() if name not in changed}
        found = {name: entry_in(self._shown[name]) for name in changed if name in self._shown}
        self.known = WorkerInventory(entries | {name: entry for name, entry in found.items() if entry is not None})
        for name in changed:
            if not name.startswith(FORMER):
                self._on_entry(name, self.known.entry(name))


class RemoteRegistry(Registry):
    """All workers, each as whoever holds its slot has written it down."""

    _WORKER = RemoteWorker
    _record: OthersRecord

    def _record_of(self, management: Client, environment: Environment) -> InventoryRecord:
        settings = self._settings
        return OthersRecord(
            management,
            settings.namespace,
            share=settings.share,
            lease_seconds=settings.lease_seconds,
            on_entry=self._on_entry,
            log=environment.log,
        )

    async def run(self) -> None:
        """Keep all workers, until cancelled."""
        async with asyncio.TaskGroup() as scope:
            watch = supervise("watch workers' record", self._record.watch, log=self.log)
            scope.create_task(watch, name="watch workers' record")
            await super().run()

    async def lead(self) -> None:
        """Who assigns asks no worker: what its holder says holds."""
        self.is_leading = True
        self._settling_since = self.clock.monotonic()
        self._add_lost()

    def ensure_registered(self, name: str) -> None:
        """Whose sources are on an unknown worker sees to it."""

    def _add(self, name: str) -> Worker:
        worker = super()._add(name)
        self._on_entry(name, self._record.known.entry(name))
        return worker

    def _on_entry(self, name: str, entry: Entry) -> None:
        worker = self.workers.get(name)
        if isinstance(worker, RemoteWorker):
            worker.take(entry)
        elif entry.lost_since:
            self._add(name)
