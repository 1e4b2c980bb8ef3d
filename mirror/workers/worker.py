"""One worker cluster, live: its connection, its watches, its mirrors; everything of it ends with its scope (D12).

Started and kept by ``registry``. Not here: what is done with mirrors (``controllers``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import ClassVar

from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import Forbidden, KubeError, NotFound, Unauthorized, Unreachable
from mirror.kube.kubeconfig import KubeconfigRefused
from mirror.kube.objects import Partial
from mirror.runtime.informer import Informer
from mirror.runtime.supervise import supervise
from mirror.workers.connection import Connection, Silence, State
from mirror.workers.fence_record import parse_time
from mirror.workers.gone_record import NOT_GONE
from mirror.workers.inventory import SECRET_GONE, Entry
from mirror.workers.mirrors import MirrorHooks, MirrorStore
from mirror.workers.pods import PodHost, PodWatches
from mirror.workers.probes import cluster_uid
from mirror.workers.session import ClientSession
from mirror.workers.spec import Problem, WorkerSpec
from mirror.workers.tokens import NO_TOKEN, Token, token_of
from mirror.workers.verdicts import REJECTIONS, Verdicts, summary_of
from mirror.workers.watching import MirrorWatches, WatchHooks, WatchSettings
from mirror.workers.worker_hooks import WorkerHost, WorkerListener

HEARTBEAT_SECONDS = 10.0


class _PrefixChanged(Exception):
    """Mirrors are to be watched in other namespaces."""


class Worker:
    """A worker cluster by its name, whether it is connected or not."""

    is_remote: ClassVar[bool] = False
    """Whether another manager follows it: there is no client of it here, and its mirrors are not known."""

    def __init__(
        self,
        name: str,
        *,
        host: WorkerHost,
        listener: WorkerListener,
        namespaces: tuple[str, ...],
        connection: Connection,
    ) -> None:
        self.name = name
        self.spec: WorkerSpec | None = None
        self._log = host.log.bind(worker=name)
        self.verdicts = Verdicts(connection, clock=host.clock, log=self._log, on_change=self._report_transition)
        stores = {
            kind.name: MirrorStore(
                kind,
                host,
                worker=name,
                hooks=MirrorHooks(
                    on_change=partial(listener.on_mirror_change, self, kind),
                    is_source=partial(listener.is_source, kind),
                    source_of=partial(listener.source_of, self, kind),
                    has_source=partial(listener.has_source, self, kind),
                    on_unknown_dropped=partial(host.on_unknown_dropped, self),
                    on_too_large=partial(host.on_too_large, self),
                ),
            )
            for kind in host.kinds
        }
        watched = WatchSettings(name, host.kinds, host.mirror_selector, namespaces)
        self.watches = MirrorWatches(watched, stores, log=self._log)
        self.pods: PodWatches | None = None
        """What keeps pods of mirrors from running; None where pods are not watched."""
        if host.watches_pods:
            pod_host = PodHost(name, host.clock, host.origin, listener.on_pods_change, self.watches, host.kinds)
            self.pods = PodWatches(pod_host, log=self._log)
        self.uid = ""
        self.token: Token = NO_TOKEN
        """What the token of its kubeconfig says."""
        self._host = host
        self._listener = listener
        self._session = ClientSession(name, host.connect)
        self._poke = asyncio.Event()
        self._silence = Silence()
        self._trouble = ""
        self._no_spec_because = SECRET_GONE
        self.declared_as = "Secret"
        """The kind of what declares it."""
        self.incomplete_kinds: Mapping[str, str] = {}
        self.kinds_run_here: Mapping[str, str] = {}
        """Of which an object that is placed here is run by another controller, too, and until when that holds."""
        """Kinds whose definition there lacks fields that nothing works without, and which: known since it was read."""

    @property
    def connection(self) -> Connection:
        return self.verdicts.connection

    @property
    def refusal(self) -> str:
        """Why what declares it is at fault, as an event's reason; empty when it is not."""
        return self.verdicts.refusal

    @property
    def client(self) -> Client:
        """The client in use.

        Raises:
            Unreachable: there is none.
        """
        return self._session.client

    @property
    def version(self) -> str:
        """Of its Kubernetes, as it says itself; empty before the first contact."""
        return self._session.version

    @property
    def is_reachable(self) -> bool:
        """Connected, and all its mirrors have been seen."""
        return self.connection.is_connected and self.is_synced

    @property
    def is_gone(self) -> bool:
        """Whether it is declared dead, by what declares it or by what did when it was removed (D14)."""
        return self._host.gone.holds(self.name, self.spec)

    @property
    def is_synced(self) -> bool:
        return self.watches.are_synced

    @property
    def has_settled(self) -> bool:
        """Whether it has had its chance, since the start or since we lead: it is known to be lost, or all is known."""
        return self.connection.state is State.LOST or self.is_reachable

    @property
    def unserved_kinds(self) -> frozenset[str]:
        """The kinds that it does not serve."""
        return self.watches.unserved_kinds

    def note_incomplete(self, kind: str, fields: str) -> None:
        """Its definition of a kind was read, and lacks these fields; empty: none."""
        if self.incomplete_kinds.get(kind, "") != fields:
            others = {name: lacks for name, lacks in self.incomplete_kinds.items() if name != kind}
            self.incomplete_kinds = {**others, kind: fields} if fields else others
            self._report_transition()

    def note_run_here(self, kind: str, until: str) -> None:
        """An object of a kind that is placed here is run by a controller on the management cluster, too."""
        if self.kinds_run_here.get(kind, "") != until:
            self.kinds_run_here = {**self.kinds_run_here, kind: until}
            self._report_transition()

    @property
    def informers(self) -> tuple[Informer, ...]:
        return tuple(self.watches)

    def mirrors_of(self, kind: Kind) -> MirrorStore:
        """Its objects of a kind with our labels."""
        return self.watches.of(kind)

    def namespace_of(self, source_namespace: str) -> str:
        """Where the mirrors of a namespace's sources live."""
        return self.watches.namespace_of(source_namespace)

    def source_namespace_of(self, namespace: str) -> str | None:
        """The inverse; None for a namespace that is not under the prefix."""
        return self.watches.source_namespace_of(namespace)

    def update(self, spec: WorkerSpec | None, *, because: str = SECRET_GONE) -> None:
        """Take what its declaration says now; None: there is none, or none that is of use."""
        before, self.spec, self._no_spec_because = self.spec, spec, because
        if spec is None or before is None or before.kubeconfig != spec.kubeconfig:
            self.token = token_of(spec.kubeconfig) if spec is not None else NO_TOKEN
        if spec is None or before is None or before.access != spec.access:
            self._poke.set()
        if before != spec:
            self._report_transition()

    def suspect(self, error: KubeError) -> None:
        """Something went wrong on the way to it: look at once whether it is still there."""
        self._log.debug("suspected", error=error)
        # One that is lost is probed anyway, at its own pace: what its watches meet meanwhile must not hurry it.
        if self.connection.is_connected:
            self._poke.set()

    async def run(self) -> None:
        """Keep the connection and the watches, until cancelled."""
        try:
            # Before the first contact there is nothing to watch, and its Secret may still say where its mirrors live.
            while not self.connection.is_connected:
                self._poke.clear()
                await self._look()
                if not self.connection.is_connected:
                    await self._wait_to_look_again()
            # A mirror is judged by whether its source is known.
            await self._host.wait_until_sources_known()
            # The recorded prefix: it follows the Secret only while nothing is there.
            prefix = self._host.prefix_in_use(self)
            while True:
                told = WatchHooks(self._on_trouble, self._on_healthy, self._report_transition)
                self.watches.begin(prefix, client=lambda: self.client, hooks=told)
                self._host.on_transition(self)  # nothing of it is seen until these have listed
                await self._watch_until_prefix_changes()
                prefix = self.watches.prefix
        finally:
            await self._session.close()

    async def _watch_until_prefix_changes(self) -> None:
        """Return when mirrors are to be watched in other namespaces."""
        try:
            async with asyncio.TaskGroup() as scope:
                scope.create_task(self.watches.run(), name=f"watch {self.name}")
                name = f"connect {self.name}"
                scope.create_task(supervise(name, self._keep_connected, log=self._log), name=name)
                if self.pods is not None:
                    pods = partial(self.pods.run, lambda: self.client, self.watches.namespaces)
                    name = f"pods {self.name}"
                    scope.create_task(supervise(name, pods, log=self._log), name=name)
                await self.watches.wait_until_prefix_changed()
                raise _PrefixChanged
        except* _PrefixChanged:
            self._log.debug("watching other namespaces", prefix=self.watches.prefix)

    def use_prefix(self, prefix: str) -> None:
        """Look for mirrors under this prefix from now on."""
        if self.watches.have_begun and prefix != self.watches.prefix:
            self.watches.use_prefix(prefix)
            self._report_transition()

    async def _settle_prefix(self) -> None:
        """Take the prefix that the Secret asks for once no Job and no mirror is left under the one in use (D19)."""
        in_use = self.watches.prefix
        wanted = self.spec.namespace_prefix if self.spec is not None else in_use
        if wanted == in_use or not self.is_synced or self._listener.has_sources_on(self.name):
            return
        if self.watches.has_any_of_a_source():
            return
        try:
            is_recorded = await self._host.change_prefix(self, wanted)
        except KubeError as error:
            self._log.warning("namespace prefix not recorded", error=error)
            return
        if is_recorded:
            self._log.info("namespace prefix changed", before=in_use, now=wanted)
            self.use_prefix(wanted)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with its Secret's annotations: no new Jobs until it is mended."""
        if self.spec is None:
            return ()
        found = self.spec.problems_with(self.watches.prefix) if self.watches.have_begun else self.spec.problems
        return (*found, NOT_GONE) if self.spec.is_gone and self.connection.is_connected else found

    async def _keep_connected(self) -> None:
        while True:
            self._poke.clear()
            await self._look()
            await self._wait_to_look_again()

    async def _wait_to_look_again(self) -> None:
        """Until the next heartbeat or probe, or until something happens."""
        wait = HEARTBEAT_SECONDS
        if not self.connection.is_connected:
            wait = self.connection.probe_delay_seconds(self._host.clock.now())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._poke.wait()

    async def _look(self) -> None:
        """One attempt to connect, or one heartbeat."""
        await self.verdicts.look(self._check, given=self.spec or self._no_spec_because)

    async def _check(self) -> None:
        try:
            await self._connect_or_probe()
        except Unauthorized as error:
            if self.token.has_ended(self._host.clock.now()):
                error.add_note("its token has expired")
            raise
        except REJECTIONS:
            await self._session.close()
            raise

    async def _connect_or_probe(self) -> None:
        spec = self.spec
        if spec is None:
            await self._session.close()
            raise Unreachable(self._no_spec_because)
        if spec.refused is not None:
            raise KubeconfigRefused(spec.refused.field, spec.refused.text, spec.refused.fix)
        is_new = await self._session.check(spec, partial(self._host.accept_identity, self))
        await self._settle_prefix()
        if is_new or not self.connection.is_connected:
            self.watches.nudge()
        self._check_watches()

    def _check_watches(self) -> None:
        """Probes alone prove nothing: a worker that does not tell of its mirrors is lost, too (D13).

        Raises:
            Unreachable: it has not for too long.
        """
        now, silent = self._host.clock.monotonic(), self.watches.silent_for_seconds
        if self._silence.is_too_long(silent, now, was_connected=self.connection.is_connected):
            raise Unreachable(f"it answers, but its mirrors cannot be watched: {self._trouble or 'no answer'}")

    def begin_anew(self, recorded: Entry) -> None:
        """We lead from now on: what we know of it may be of any age; ``check_again`` follows before anything is done.

        Since when it is lost, if it is, is what who led until now has recorded (D13), and so is what its definitions
        lack, until they are read, and which kinds another controller runs on the management cluster.
        """
        known = self._host.kinds.by_name
        self.incomplete_kinds = {kind: lacks for kind, lacks in recorded.incomplete.items() if kind in known}
        self.kinds_run_here = {kind: until for kind, until in recorded.run_here.items() if kind in known}
        self.verdicts.begin_anew(parse_time(recorded.lost_since))

    def check_again(self) -> None:
        """Find out anew how it is, and all that is there."""
        self.watches.list_anew()
        self._report_transition()
        self._poke.set()

    async def confirm_identity(self) -> None:
        """Ask the cluster who it is, now.

        Raises:
            Unreachable: it is not the one that it was; it counts as lost from the next look on (D19).
            KubeError: it does not say.
        """
        uid = await cluster_uid(self.client)
        if uid != self.uid:
            self._poke.set()
            raise Unreachable(f"worker {self.name} leads to another cluster")

    async def read_whole(self, kind: Kind, namespace: str, name: str) -> None:
        """Read a mirror of which only the metadata is kept, since it is needed now.

        Raises:
            KubeError: the worker does not give it; TooLarge: it is larger than what is kept of it.
        """
        mirrors = self.mirrors_of(kind)
        found = mirrors.get(namespace, name)
        if not isinstance(found, Partial) or not self.is_reachable:
            return
        try:
            whole = await self.client.send_object(requests.get(kind.resource, name, namespace=namespace))
        except NotFound:
            whole = None
        mirrors.take_whole(found, whole)

    def _on_trouble(self, error: KubeError) -> None:
        self._trouble = summary_of(error)
        if isinstance(error, Unauthorized | Forbidden):
            self.verdicts.watch_rejected = error
        self.suspect(error)

    def _on_healthy(self) -> None:
        self.verdicts.watch_rejected = None
        self._poke.set()
        self._report_transition()

    def _report_transition(self) -> None:
        self._host.on_transition(self)
        self._listener.on_worker_transition(self)
