"""One worker cluster, live: its connection, its watches, its mirrors; everything of it ends with its scope (D12).

Started and kept by ``registry``. Not here: what is done with mirrors (``controllers``).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import msgspec

from mirror.adapters import job
from mirror.kube import requests
from mirror.kube.amounts import MOST_SMALL_BYTES
from mirror.kube.client import Client
from mirror.kube.errors import Forbidden, KubeError, NotFound, TooLarge, Unauthorized, Unreachable
from mirror.kube.kubeconfig import KubeconfigRefused
from mirror.kube.objects import Object, Partial
from mirror.kube.resources import NAMESPACES, Resource
from mirror.model.text import clean
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change, Informer, Scope
from mirror.runtime.supervise import supervise
from mirror.telemetry.logs import Log
from mirror.workers.book import IdentityRefused
from mirror.workers.connection import Connection, State
from mirror.workers.mirrors import MirrorStore
from mirror.workers.spec import WorkerSpec
from mirror.workers.tokens import NO_TOKEN, Token, token_of

HEARTBEAT_SECONDS = 10.0
PROBE_DEADLINE_SECONDS = 5.0
OLDEST_MINOR = 29
SECRET_GONE = "its Secret is gone"


class Unsupported(Exception):
    """The worker's Kubernetes is too old."""


class Surroundings(Protocol):
    """What a worker needs of the registry."""

    clock: Clock
    log: Log
    kinds: tuple[Resource, ...]
    mirror_selector: str

    async def connect(self, spec: WorkerSpec) -> Client: ...

    async def accept_identity(self, worker: Worker, uid: str) -> None:
        """Raises IdentityRefused, or KubeError when it could not be recorded."""
        ...

    async def wait_until_sources_known(self) -> None: ...

    def source_size(self, worker: Worker, found: Object) -> int | None: ...

    def has_sources_on(self, worker: str) -> bool: ...

    def on_mirror_change(self, worker: Worker, old: Object | None, new: Object | None, change: Change) -> None: ...

    def on_transition(self, worker: Worker) -> None: ...

    def on_unknown_dropped(self, worker: Worker) -> None: ...

    def on_too_large(self, worker: Worker) -> None: ...


@dataclass(frozen=True, slots=True)
class Described:
    """A snapshot for health pages and tests."""

    name: str
    state: str
    because: str
    mirrors: int
    is_synced: bool


class Worker:
    """A worker cluster by its name, whether it is connected or not."""

    def __init__(self, name: str, *, around: Surroundings, namespaces: tuple[str, ...], connection: Connection) -> None:
        self.name = name
        self.spec: WorkerSpec | None = None
        self.connection = connection
        self.mirrors = MirrorStore(
            around.clock,
            source_size=partial(around.source_size, self),
            on_unknown_dropped=partial(around.on_unknown_dropped, self),
            on_too_large=partial(around.on_too_large, self),
        )
        self.uid = ""
        self.version = ""
        """Of its Kubernetes, as it says itself; empty before the first contact."""
        self.token: Token = NO_TOKEN
        """What the token of its kubeconfig says."""
        self._around = around
        self._log = around.log.bind(worker=name)
        self._source_namespaces = namespaces
        self._client: Client | None = None
        self._connected_with: bytes | None = None
        self._refused: KubeError | None = None
        self._poke = asyncio.Event()
        self._no_spec_because = SECRET_GONE
        self._prefix = ""
        self.refusal = ""
        """Why its Secret is at fault, as an event's reason; empty when it is not."""
        self._logged: State | None = None
        self._lost_by = ""
        self._lost_with: WorkerSpec | None = None
        self._informers: tuple[Informer, ...] = ()

    @property
    def client(self) -> Client:
        """The client in use.

        Raises:
            Unreachable: there is none.
        """
        if self._client is None:
            raise Unreachable(f"worker {self.name} is not connected")
        return self._client

    @property
    def is_reachable(self) -> bool:
        """Connected, and all its mirrors have been seen."""
        return self.connection.is_connected and self.is_synced

    @property
    def is_synced(self) -> bool:
        return bool(self._informers) and all(informer.is_synced for informer in self._informers)

    @property
    def informers(self) -> tuple[Informer, ...]:
        return self._informers

    def namespace_of(self, source_namespace: str) -> str:
        """Where the mirrors of a namespace's sources live."""
        return self._prefix + source_namespace

    def source_namespace_of(self, namespace: str) -> str | None:
        """The inverse; None for a namespace that is not under the prefix."""
        return namespace[len(self._prefix) :] if namespace.startswith(self._prefix) else None

    def update(self, spec: WorkerSpec | None, *, because: str = SECRET_GONE) -> None:
        """Take what its Secret says now; None: there is none, or none that is of use."""
        before, self.spec, self._no_spec_because = self.spec, spec, because
        if spec is None:
            self.token = NO_TOKEN
        elif before is None or before.kubeconfig != spec.kubeconfig:
            self.token = token_of(spec.kubeconfig)
        # Where mirrors live cannot change under those that exist (``Registry.accept_identity`` refuses it).
        if spec is not None and not (self._informers and self._around.has_sources_on(self.name)):
            self._prefix = spec.namespace_prefix
        if spec is None or before is None or _access(before) != _access(spec):
            self._poke.set()
        if before != spec:
            self._around.on_transition(self)

    def suspect(self, error: KubeError) -> None:
        """Something went wrong on the way to it: look at once whether it is still there."""
        self._log.debug("suspected", error=error)
        # One that is lost is probed anyway, at its own pace: what its watches meet meanwhile must not hurry it.
        if self.connection.is_connected:
            self._poke.set()

    def describe(self) -> Described:
        connection = self.connection
        return Described(self.name, connection.state.value, connection.because, len(self.mirrors), self.is_synced)

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
            await self._around.wait_until_sources_known()
            self._informers = tuple(self._make_informers())
            async with asyncio.TaskGroup() as scope:
                for informer, label in zip(self._informers, self._labels(), strict=True):
                    scope.create_task(supervise(label, informer.run, log=self._log), name=label)
                name = f"connect {self.name}"
                scope.create_task(supervise(name, self._keep_connected, log=self._log), name=name)
        finally:
            await self._close_client()

    def _labels(self) -> list[str]:
        return [
            f"watch {kind.plural} of {self.name} in {ns or '*'}"
            for kind in self._around.kinds
            for ns in self._namespaces()
        ]

    def _namespaces(self) -> tuple[str | None, ...]:
        return tuple(self.namespace_of(namespace) for namespace in self._source_namespaces) or (None,)

    def _make_informers(self) -> list[Informer]:
        return [
            Informer(
                Scope(kind, namespace, self._around.mirror_selector),
                self.mirrors,
                client=lambda: self.client,
                on_change=self._on_change,
                accept=self.mirrors.accepts,
                keep_partial=self.mirrors.accepts_partial,
                on_trouble=self._on_trouble,
                on_healthy=self._on_healthy,
            )
            for kind in self._around.kinds
            for namespace in self._namespaces()
        ]

    async def _keep_connected(self) -> None:
        while True:
            self._poke.clear()
            await self._look()
            await self._wait_to_look_again()

    async def _wait_to_look_again(self) -> None:
        """Until the next heartbeat or probe, or until something happens."""
        wait = HEARTBEAT_SECONDS
        if not self.connection.is_connected:
            wait = self.connection.probe_delay_seconds(self._around.clock.now())
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._poke.wait()

    async def _look(self) -> None:
        """One attempt to connect, or one heartbeat; its verdict is the connection's new state."""
        self.refusal = ""
        try:
            await self._check()
        except (Unsupported, KubeconfigRefused, IdentityRefused) as error:
            await self._close_client()
            self.refusal = type(error).__name__
            self._lose(str(error))
        except KubeError as error:
            self._lose(_short(error))
        else:
            if self._refused is not None:
                self._lose(f"watching is refused: {_short(self._refused)}")
            else:
                self._move(self.connection.connected(self._around.clock.now()))

    async def _check(self) -> None:
        spec = self.spec
        if spec is None:
            await self._close_client()
            raise Unreachable(self._no_spec_because)
        client, is_new = self._client, False
        if client is None or self._connected_with != spec.kubeconfig:
            client, is_new = await self._around.connect(spec), True
        try:
            if is_new:
                self.version = await check_version(client, OLDEST_MINOR)
            await self._around.accept_identity(self, await cluster_uid(client))
        except BaseException:
            if is_new:
                await client.close()
            if is_new and self._client is not None:
                await self._close_client()
            raise
        if is_new:
            old, self._client, self._connected_with = self._client, client, spec.kubeconfig
            if old is not None:
                await old.close()
        if is_new or not self.connection.is_connected:
            for informer in self._informers:
                informer.nudge()

    def check_again(self) -> None:
        """What was accepted of it while somebody else led is to be accepted anew, before anything is done there."""
        if self.connection.is_connected:
            self.connection = Connection(lost_since=self.connection.lost_since)
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

    async def read_whole(self, namespace: str, name: str) -> None:
        """Read a mirror of which only the metadata is kept, since it is needed now.

        Raises:
            KubeError: the worker does not give it; TooLarge: it is larger than what is kept of it.
        """
        found = self.mirrors.get(namespace, name)
        if not isinstance(found, Partial) or not self.is_reachable:
            return
        try:
            whole = await self.client.send_object(requests.get(job.RESOURCE, name, namespace=namespace))
        except NotFound:
            whole = None
        if self.mirrors.get(namespace, name) is not found:
            return  # the watch was faster
        if whole is None or found.labels.items() - whole.labels.items():  # it is not, or not any more, what we watch
            self.mirrors.remove((namespace, name))
            self._on_change(found, None, Change.MISSING)
            return
        self.mirrors.put(whole)
        if isinstance(self.mirrors.get(namespace, name), Partial):
            raise TooLarge("mirrors take more bytes than are kept")

    async def _close_client(self) -> None:
        client, self._client, self._connected_with = self._client, None, None
        if client is not None:
            await client.close()

    def _lose(self, because: str) -> None:
        if self.connection.state is State.LOST and self._lost_by == self.refusal and self.spec is self._lost_with:
            because = self.connection.because  # the same loss in other words is no news
        self._lost_by, self._lost_with = self.refusal, self.spec
        self._move(self.connection.lost(self._around.clock.now(), because))

    def _move(self, connection: Connection) -> None:
        before, self.connection = self.connection, connection
        if (before.state, before.because) == (connection.state, connection.because):
            return
        if self._logged != connection.state:
            self._logged = connection.state
            level = self._log.info if connection.is_connected else self._log.warning
            level("worker connection", state=connection.state.value, because=connection.because)
        self._around.on_transition(self)

    def _on_trouble(self, error: KubeError) -> None:
        if isinstance(error, Unauthorized | Forbidden):
            self._refused = error
        self.suspect(error)

    def _on_healthy(self) -> None:
        self._refused = None
        self._poke.set()
        self._around.on_transition(self)

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        self._around.on_mirror_change(self, old, new, change)


def _access(spec: WorkerSpec) -> tuple[bytes, str]:
    """What a connection depends on."""
    return spec.kubeconfig, spec.namespace_prefix


async def cluster_uid(client: Client) -> str:
    """Who a cluster is (D19): one small request that proves network, TLS and our rights, too."""
    probe = replace(
        requests.get(NAMESPACES, "kube-system"),
        urgent=True,
        deadline_seconds=PROBE_DEADLINE_SECONDS,
        most_bytes=MOST_SMALL_BYTES,
    )
    return (await client.send_object(probe)).metadata.uid


class _Version(msgspec.Struct):
    major: str = ""
    minor: str = ""
    git_version: str = msgspec.field(name="gitVersion", default="")


async def check_version(client: Client, oldest_minor: int) -> str:
    """The version of the cluster's Kubernetes in its own words, such as ``v1.33.1``.

    Raises:
        Unsupported: it is older than 1.``oldest_minor`` (D20).
    """
    probe = requests.Request(
        "get", "GET", "/version", urgent=True, deadline_seconds=PROBE_DEADLINE_SECONDS, most_bytes=MOST_SMALL_BYTES
    )
    try:
        version = msgspec.json.decode(await client.send(probe), type=_Version)
        found = int(version.major), int(version.minor.rstrip("+"))
    except (msgspec.DecodeError, ValueError):
        raise Unsupported("its version cannot be read") from None
    if found < (1, oldest_minor):
        raise Unsupported(f"Kubernetes {found[0]}.{found[1]} is too old; 1.{oldest_minor} or newer is needed")
    return clean(version.git_version, longest=64) or f"v{found[0]}.{found[1]}"


def _short(error: KubeError) -> str:
    """A text without numbers that vary, so that a repeated loss is not news."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
