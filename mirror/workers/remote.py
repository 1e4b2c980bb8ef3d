"""Workers of other replicas, as their records tell: known to whoever assigns workers, and asked nothing (S1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.kube.resources import CONFIGMAPS
from mirror.runtime.environment import Environment
from mirror.runtime.informer import Change, Filter, Informer, InformerHooks, Scope
from mirror.runtime.store import Store
from mirror.runtime.supervise import supervise
from mirror.telemetry.logs import Log
from mirror.workers.connection import Connection, State
from mirror.workers.fence_record import parse_time
from mirror.workers.inventory import FORMER, Entry, WorkerInventory
from mirror.workers.inventory_record import InventoryRecord
from mirror.workers.registry import Registry
from mirror.workers.spec import Problem
from mirror.workers.worker import Worker


class RemoteWorker(Worker):
    """A worker whose holder has written down how it is."""

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
        self.incomplete_kinds = entry.incomplete
        state = State(entry.state) if entry.state in tuple(State) else State.CONNECTING
        lost_since = parse_time(entry.lost_since) if state is State.LOST else None
        because = entry.reason if state is State.LOST else ""
        self.verdicts.refusal = entry.refusal
        self.verdicts.connection = Connection(state, parse_time(entry.since), because, lost_since)
        self._report_transition()


class OthersRecords(InventoryRecord):
    """The records of all slots, watched; what they say together, in place of a record of our own."""

    def __init__(
        self,
        management: Client,
        namespace: str,
        *,
        wanted: frozenset[str],
        on_entry: Callable[[str, Entry], None],
        log: Log,
    ) -> None:
        """``wanted``: the names of the ConfigMaps; ``on_entry``: told of each worker that one says something new of."""
        super().__init__(management, namespace, annotations={}, log=log)
        self._on_entry = on_entry
        self._by_record: dict[str, WorkerInventory] = {}
        wanted_only = Filter(accept=lambda found: found.metadata.name in wanted)
        hooks, scope = InformerHooks(self._on_change), Scope(CONFIGMAPS, namespace)
        self._informer = Informer(scope, Store(), client=lambda: management, hooks=hooks, wanted=wanted_only)

    def put(self, worker: str, entry: Entry) -> None:
        """Who assigns notes nothing of workers, and writes nothing."""

    def drop(self, worker: str) -> None:
        """As ``put``."""

    def forget(self, worker: str) -> None:
        """As ``put``."""

    def write_soon(self) -> None:
        """As ``put``."""

    async def write(self) -> None:
        """As ``put``."""

    async def read(self) -> None:
        """Return once all records are known that there are."""
        await self._informer.wait_until_synced()

    async def watch(self) -> None:
        """Keep them, until cancelled."""
        await self._informer.run()

    async def keep(self, *, is_leading: Callable[[], bool]) -> None:
        """There is nothing to write; until cancelled."""
        await asyncio.Event().wait()

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        found = new or old
        assert found is not None
        record = found.metadata.name
        before = self._by_record.pop(record, WorkerInventory({}))
        if new is not None:
            self._by_record[record] = WorkerInventory.of(new)
        after = self._by_record.get(record, WorkerInventory({}))
        self.known = WorkerInventory.merged(self._by_record.values())
        for name in _changed(before, after):
            self._on_entry(name, after.entry(name))


class RemoteRegistry(Registry):
    """All workers, each as whoever holds its slot has written it down."""

    _WORKER = RemoteWorker
    _record: OthersRecords

    def _record_of(self, management: Client, environment: Environment) -> InventoryRecord:
        settings = self._settings
        return OthersRecords(
            management,
            settings.namespace,
            wanted=settings.share.others_records,
            on_entry=self._on_entry,
            log=environment.log,
        )

    async def run(self) -> None:
        """Keep all workers, until cancelled."""
        async with asyncio.TaskGroup() as scope:
            watch = supervise("watch workers' records", self._record.watch, log=self.log)
            scope.create_task(watch, name="watch workers' records")
            await super().run()

    async def lead(self) -> None:
        """Who assigns asks no worker: what its holder says holds."""
        self._is_leading = True
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


def _changed(before: WorkerInventory, after: WorkerInventory) -> Iterator[str]:
    for name in before.entries.keys() | after.entries.keys():
        if before.entry(name) != after.entry(name) and not name.startswith(FORMER):
            yield name
