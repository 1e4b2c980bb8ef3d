"""All workers: started by declarations, kept while a source is on them, written down in a ConfigMap (D13, D15, D19).

Who declares them, ``declarations`` says: Secrets in the manager's namespace, and what the settings add to those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar

import msgspec

from mirror.kube.client import Client
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.reasons import Reason
from mirror.runtime.environment import Environment
from mirror.runtime.supervise import supervise
from mirror.workers.connection import Connection, State
from mirror.workers.declarations import Declaration, Declarations, Key, Origin
from mirror.workers.fence_record import FenceRecord, parse_time
from mirror.workers.gone_record import GoneRecord
from mirror.workers.inventory import FORMER
from mirror.workers.inventory_record import InventoryRecord
from mirror.workers.known_workers import Holders, Workers
from mirror.workers.registry_parts import Connector, RegistryHooks, RegistrySettings, other_providers, rests_of
from mirror.workers.secret_provider import own_secrets
from mirror.workers.spec import WorkerSpec
from mirror.workers.worker import Worker
from mirror.workers.worker_entries import entry_of, left_over

SETTLED_AFTER_SECONDS = 10.0
FORGET_SECONDS = 60.0


class Registry:
    """The workers by name. Invariant: each has exactly one running task, in ``_tasks``, once ``run`` has begun."""

    _WORKER: ClassVar[type[Worker]] = Worker

    def __init__(
        self,
        management: Client,
        settings: RegistrySettings,
        workers: Workers,
        *,
        hooks: RegistryHooks,
        connector: Connector,
        environment: Environment,
    ) -> None:
        """``workers`` is filled here; others may read it."""
        self.workers = workers
        self.clock, self.log = environment.clock, environment.log
        self.kinds = settings.kinds
        self.origin = settings.origin
        self.rests = rests_of(settings.kinds)
        self.holders: Mapping[str, Holders] = workers.holders
        self.watches_pods = settings.watch_pods
        self.mirror_selector = f"{names.ORIGIN}={settings.origin}"
        self._management = management
        self._settings = settings
        self._hooks = hooks
        self._connector = connector
        self._metrics = environment.metrics
        self._declarations = Declarations()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._to_start: asyncio.Queue[Worker] = asyncio.Queue()
        self._record = self._record_of(management, environment)
        self.fences = FenceRecord(self._record)  # until when leases on workers may last (D14)
        self.gone = GoneRecord(self._record)  # which workers are declared dead (D14)
        self._moved = asyncio.Event()
        self.is_leading = False  # whether we have begun to; whether we still may, the permit says
        # Since when workers have their first chance: since the start, and again since we lead.
        self._settling_since = float("inf")
        self._own = own_secrets(management, settings.namespace, rank=0, report=self._on_declared, log=environment.log)
        self._others = other_providers(management, settings, report=self._on_declared, log=environment.log)

    def _record_of(self, management: Client, environment: Environment) -> InventoryRecord:
        return self._settings.record_in(management, log=environment.log)

    @property
    def refused_because(self) -> str:
        """What we may not do with the Secrets that register workers, or with the record; empty for an outage."""
        where = f"Secrets in namespace {self._settings.namespace} (setting namespace)"
        return f"{where} not listed: {why}" if (why := self._own.refused_because) else self._record.refused_because

    @property
    def others_refused_because(self) -> str:
        """The same of what else declares workers."""
        return "; ".join(f"{one.title}: {one.refused_because}" for one in self._others if one.refused_because)

    # -- life -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep all workers running, until cancelled."""
        self._settling_since = self.clock.monotonic()
        await self._record.read()
        self._to_start = asyncio.Queue()
        for worker in self.workers.values():
            self._to_start.put_nowait(worker)
        async with asyncio.TaskGroup() as scope:
            scope.create_task(self._remember_lost(), name="remember lost workers")
            for provider in (self._own, *self._others):
                name = f"watch {provider.title}"
                scope.create_task(supervise(name, provider.run, log=self.log), name=name)
            scope.create_task(self._forget_while_standing_by(), name="forget workers")
            scope.create_task(supervise("write workers", self._keep_record, log=self.log), name="write workers")
            while True:
                worker = await self._to_start.get()
                # A worker's failure is its own: it is restarted, and does not cancel its siblings.
                contained = supervise(f"worker {worker.name}", worker.run, log=self.log)
                task = scope.create_task(contained, name=f"worker {worker.name}")
                self._tasks[worker.name] = task

    async def _remember_lost(self) -> None:
        """Those that were lost before we started and that nothing declares go on being lost (D13)."""
        await self.wait_until_secrets_synced()
        self._add_lost()

    def _add_lost(self) -> None:
        for name, entry in self._record.known.entries.items():
            if entry.lost_since and name not in self.workers and self._settings.share.has(name):
                self._add(name)

    async def take_over(self) -> bool:
        """Return once as many slots as ours are in force (S10), and whether others have worked until then."""
        return await self._record.take_over()

    async def lead(self) -> None:
        """We are the leader now: the record holds, and each worker has its first chance again.

        None of a standby's own verdicts counts, of whatever age: it may have been cut off from a worker that the leader
        reached, or the other way round.
        """
        # A failure is no reason to give the lead away: the next leader would meet the same.
        await self._record.read()
        self.is_leading = True
        self._settling_since = self.clock.monotonic()
        self._add_lost()
        await self.workers.check_again(self._record.known.entry, self.prefix_in_use)
        self._record.write_soon()
        for name in self._declarations.names():
            self._report_refused(name)
        for declaration in self._declarations.without_name():
            self._report_nameless(declaration)

    async def _keep_record(self) -> None:
        await self._record.keep(is_leading=lambda: self.is_leading)

    def list_secrets_anew(self) -> None:
        """See ``Informers.list_anew``."""
        for provider in (self._own, *self._others):
            provider.list_anew()

    async def wait_until_secrets_synced(self) -> None:
        """Until the Secrets that register workers are known, and the other declarations, if they can be."""
        await self._own.wait_until_synced()
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLED_AFTER_SECONDS):
                for provider in self._others:
                    await provider.wait_until_tried()

    @property
    def _are_declarations_known(self) -> bool:
        return all(provider.is_synced for provider in (self._own, *self._others))

    async def wait_until_settled(self) -> None:
        """Until ``have_settled``."""
        left = self._settling_since + SETTLED_AFTER_SECONDS - self.clock.monotonic()
        try:
            async with asyncio.timeout(max(left, 0.0)):
                while not self.have_settled():
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            return

    def have_settled(self) -> bool:
        """Whether every worker has had its first chance, so that waiting is not blamed on one that is just starting."""
        if self.clock.monotonic() - self._settling_since >= SETTLED_AFTER_SECONDS:
            return True
        return self._are_declarations_known and not self.workers.unsettled

    def ensure_registered(self, name: str) -> None:
        """A source is recorded on this worker: one that nobody knows is a lost one, from now on (D13)."""
        if name not in self.workers:
            worker = self._add(name)
            worker.verdicts.connection = worker.connection.lost(self.clock.now(), "no Secret registers it")
            self._note(worker)

    def forget_unused(self) -> None:
        """Drop workers whose declaration is gone and that no source is on (D15)."""
        for name, worker in list(self.workers.items()):
            if self._is_declared(name) or worker.spec is not None:
                continue
            if not self._hooks.listener.has_sources_on(name):
                self.workers.remove(name)
                if task := self._tasks.pop(name, None):
                    task.cancel()
                self._record.forget(name, at=self.clock.now())
                self._metrics.forget_worker(name)
                self._hooks.listener.on_worker_forgotten(name)
                self.log.info("worker forgotten", worker=name)
        share, has_sources_on = self._settings.share, self._hooks.listener.has_sources_on
        of_record = left_over(self._record.known.entries, self.workers) if share.follows else ()
        for name in [
            one for one in of_record if share.has(one) and not (self._is_declared(one) or has_sources_on(one))
        ]:
            self._record.forget(name, at=self.clock.now())
            self.log.info("worker forgotten", worker=name, because="its declaration went while nobody led")

    def _is_declared(self, name: str) -> bool:
        """Whether something declares a worker, or may do so as long as not all that could is known."""
        if self._declarations.holder(name) is not None:
            return True
        return self._record.known.entry(name).declared is not None and not self._are_declarations_known

    async def _forget_while_standing_by(self) -> None:
        """The leader forgets with its sweeps; who stands by for weeks must not keep all that there ever were."""
        while True:
            await asyncio.sleep(FORGET_SECONDS)
            if not self.is_leading and self._are_declarations_known:
                await self.wait_until_sources_known()
                self.forget_unused()
                for worker in list(self.workers.values()):
                    await worker.watches.shrink()

    # -- declarations ---------------------------------------------------------------------------------------------

    def _make(self, name: str) -> Worker:
        lost_since = parse_time(self._record.known.entry(name).lost_since)
        return self._WORKER(
            name,
            host=self,
            listener=self._hooks.listener,
            namespaces=self._settings.source_namespaces,
            connection=Connection(lost_since=lost_since),
        )

    def _add(self, name: str) -> Worker:
        worker = self._make(name)
        self.workers.add(worker)
        self._to_start.put_nowait(worker)
        return worker

    def _on_declared(self, key: Key, declaration: Declaration | None) -> None:
        """Something declares a worker, or does no more: who counts for that name may be another one since."""
        if declaration is not None and declaration.name and not self._settings.share.has(declaration.name):
            declaration = None  # another slot's; it may have been one of ours by another name
        for name in self._declarations.put(key, declaration):
            self._take(name)
        if declaration is not None and not declaration.name:
            self._report_nameless(declaration)

    def _take(self, name: str) -> None:
        """Let a worker be what is declared by its name now."""
        holder, worker = self._declarations.holder(name), self.workers.get(name)
        if holder is None and worker is None:
            return
        worker = worker or self._add(name)
        if holder is None:
            # One that was refused until now would hold the name.
            self.log.warning("worker declaration gone", worker=name)
            worker.update(None, because=f"its {worker.declared_as} was deleted")
        else:
            worker.declared_as = holder.origin.resource.kind
            worker.update(holder.spec, because=holder.problem)
        token = worker.token
        ends = token.expires.timestamp() if token.expires is not None else None
        self._metrics.set_worker_token(name, expires=ends, lifetime_seconds=token.lifetime_seconds)
        self._note(worker)
        # An object that is of no use may say that the worker is dead, which is no change of what it declares.
        self._hooks.listener.on_worker_transition(worker)
        self._report_refused(name)

    def _report_refused(self, name: str) -> None:
        """Those who declare a name that is taken learn it where they look."""
        holder = self._declarations.holder(name)
        for refused in self._declarations.refused(name) if holder is not None and self.is_leading else ():
            text = f"worker {name} is declared by {holder.origin} already; this one is ignored" if holder else ""
            more = ", since it has no kubeconfig; it may be deleted" if refused.makes_way else ""
            self._hooks.warn(refused.origin, "WorkerNameTaken", text + more)

    def _report_nameless(self, declaration: Declaration) -> None:
        if self.is_leading:
            self._hooks.warn(declaration.origin, "WorkerNameInvalid", declaration.problem)

    def secret_of(self, worker: str) -> Object | None:
        """The Secret of ours that registers a worker; None for one that something else declares."""
        holder = self._declarations.holder(worker)
        return holder.origin.found if holder is not None and holder.is_own else None

    def origin_of(self, worker: str) -> Origin | None:
        """What declares a worker."""
        holder = self._declarations.holder(worker)
        return None if holder is None else holder.origin

    def _warn(self, worker: Worker, reason: str, message: str) -> None:
        origin = self.origin_of(worker.name)
        if origin is not None and self.is_leading:
            self._hooks.warn(origin, reason, message)

    # -- what workers need (``worker_hooks.WorkerHost``) -------------------------------------------------------

    async def connect(self, spec: WorkerSpec) -> Client:
        return await self.connect_with(spec.name, spec.kubeconfig)

    async def connect_with(self, worker: str, kubeconfig: bytes) -> Client:
        """A client of a worker by this kubeconfig, which need not be the one in use; raises as ``Connector``."""
        return await self._connector(worker, kubeconfig)

    async def accept_identity(self, worker: Worker, uid: str) -> None:
        renamed = await self._renamed_from(worker.name, uid)
        # The prefix in use is the recorded one, whatever the Secret says meanwhile; the first contact records it. It
        # stays that of a cluster which gets another name: its mirrors are still there.
        known = self._record.known
        recorded = known.prefix_on(worker.name, uid)
        wanted = worker.spec.namespace_prefix if worker.spec else ""
        prefix = wanted if recorded is None else recorded
        management_uid, has_prefix = self._settings.management_uid, bool(prefix)
        known.check_identity(worker.name, uid, management_uid=management_uid, has_prefix=has_prefix, former=renamed)
        worker.uid = uid
        self._record.drop(FORMER + uid if renamed is None else renamed)
        await self._record_contact(worker, uid, prefix)
        worker.use_prefix(prefix)
        if renamed is not None:
            self.log.info("worker forgotten", worker=renamed, because=f"its cluster is worker {worker.name} now")

    async def _renamed_from(self, worker: str, uid: str) -> str | None:
        """The name under which a cluster was registered before, if no Secret and no Job has that name any more."""
        other = self._record.known.registered_as(worker, uid)
        if other is None or other in self.workers or not self._settings.share.has(other):
            return None  # of another slot: its holder forgets it
        await self.wait_until_secrets_synced()
        await self.wait_until_sources_known()
        return other if other not in self.workers and not self._hooks.listener.has_sources_on(other) else None

    async def _record_contact(self, worker: Worker, uid: str, prefix: str) -> None:
        """Write down who a worker is and where its mirrors live, before anything is done there."""
        entry = self._record.known.entry(worker.name)
        changed = msgspec.structs.replace(entry, uid=uid, namespace_prefix=prefix, version=worker.version)
        if entry != changed:
            self._record.put(worker.name, changed)
        # An earlier attempt may have failed: what counts is what is written.
        if self.is_leading and not self._record.has_written(worker.name, uid, prefix):
            await self._record.write()

    def prefix_in_use(self, worker: Worker) -> str:
        """The recorded prefix; before anything is recorded, what the worker's Secret says."""
        recorded = self._record.known.prefix_on(worker.name, worker.uid)
        return (worker.spec.namespace_prefix if worker.spec else "") if recorded is None else recorded

    async def change_prefix(self, worker: Worker, prefix: str) -> bool:
        """Record another prefix; False for a standby, which follows what the leader recorded.

        Raises:
            KubeError: it could not be written.
        """
        if not self.is_leading:
            return False
        await self._record_contact(worker, worker.uid, prefix)
        return True

    async def wait_until_sources_known(self) -> None:
        await self._hooks.wait_until_sources_known()

    def on_transition(self, worker: Worker) -> None:
        self._moved.set()
        if self.workers.get(worker.name) is not worker:
            return  # it is registered no more
        self._metrics.worker(worker.name).up.set(1 if worker.is_reachable else 0)
        self._note(worker)

    def on_unknown_dropped(self, worker: Worker) -> None:
        self._metrics.worker(worker.name).unknown_objects_dropped.inc()

    def on_too_large(self, worker: Worker) -> None:
        self._metrics.worker(worker.name).mirrors_too_large.inc()
        self._note(worker)

    # -- the record -----------------------------------------------------------------------------------------------

    def _note(self, worker: Worker) -> None:
        """Bring the record up to date; only transitions are written, and reported where they are a problem."""
        holder = self._declarations.holder(worker.name)
        said_by, connection = holder.origin.found if holder is not None else None, worker.connection
        before = self.gone.note(worker.name, said_by, is_connected=connection.is_connected)
        self.workers.note(worker)
        entry = entry_of(worker, before, self._declarations, has_slot=self._settings.share.slot is not None)
        if entry is before:
            return
        self._record.put(worker.name, entry)
        if entry.reason and entry.reason != before.reason:
            usual = "BadAnnotation" if worker.problems else "MirrorsTooLarge"
            because = worker.refusal or "WorkerLost" if connection.state is State.LOST else usual
            self._warn(worker, because, entry.reason)
        if (mistakes := self._declarations.mistakes(worker.name)) and mistakes not in before.remark:
            self._warn(worker, Reason.UNKNOWN_ANNOTATION, mistakes)
