"""Workers that Secrets declare: our own ones in the manager's namespace, and those of ``workers.secretSources``.

Each is watched with its selector, in its namespaces, and nothing else of them is read. Used by ``registry``. What a
Secret says is ``spec``'s and ``declared_secrets``'.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from mirror.kube.client import Client
from mirror.kube.errors import KubeError, refusal_of
from mirror.kube.objects import Object
from mirror.kube.resources import SECRETS
from mirror.runtime.informer import EVERYTHING, Change, Filter, Informer, InformerHooks, Scope
from mirror.runtime.informers import Informers
from mirror.runtime.store import Store
from mirror.settings.schema import SecretSource
from mirror.telemetry.logs import Log
from mirror.workers import declared_secrets
from mirror.workers.declarations import Declaration, Key, Origin, Report
from mirror.workers.gone_record import only_takes_back
from mirror.workers.spec import RESERVED_NAMES, SECRET_SELECTOR, BadSecret, read_spec, spec_of

MOST_OF_A_SOURCE = 1000
"""Each is a connection and some watches, and who makes them is not always an operator."""
_KUBECONFIG_WEIGHT = 20
"""To read a Secret's kubeconfig takes about a millisecond."""


@dataclass(frozen=True, slots=True)
class Declaring:
    """Secrets that declare workers: which they are, and what they say."""

    title: str
    scopes: list[Scope]
    declared_by: Callable[[Object], Declaration]
    store: Store = field(default_factory=Store)
    wanted: Filter = EVERYTHING


class SecretProvider:
    """Some Secrets, in some namespaces. Made by ``own_secrets`` and ``secrets_of_source``."""

    def __init__(self, management: Client, secrets: Declaring, *, rank: int, report: Report, log: Log) -> None:
        self.title = title = secrets.title
        self._rank = rank
        self._declared_by = secrets.declared_by
        self._report = report
        self._log = log
        scopes = secrets.scopes
        self._tried = {scope.name: asyncio.Event() for scope in scopes}
        self._refused: dict[str, str] = {}
        informers = {
            " ".join((title, scope.name) if len(scopes) > 1 else (title,)): Informer(
                scope,
                secrets.store,
                client=lambda: management,
                hooks=InformerHooks(
                    self._on_change,
                    on_trouble=partial(self._on_trouble, scope.name),
                    on_healthy=partial(self._on_listed, scope.name),
                    weight=_KUBECONFIG_WEIGHT,
                ),
                wanted=secrets.wanted,
            )
            for scope in scopes
        }
        self._informers = Informers(informers, log=log)

    @property
    def refused_because(self) -> str:
        return "; ".join(self._refused.values())

    @property
    def is_synced(self) -> bool:
        return self._informers.is_synced

    async def run(self) -> None:
        await self._informers.run()

    async def wait_until_synced(self) -> None:
        await self._informers.wait_until_synced()

    async def wait_until_tried(self) -> None:
        for tried in self._tried.values():
            await tried.wait()

    def list_anew(self) -> None:
        for tried in self._tried.values():
            tried.clear()
        self._informers.list_anew()
        for informer, tried in zip(self._informers, self._tried.values(), strict=True):
            if informer.is_synced:
                tried.set()

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        found = new or old
        if found is not None:
            key = Key(self._rank, found.metadata.namespace, found.metadata.name)
            self._report(key, self._declared_by(new) if new is not None else None)

    def _on_trouble(self, namespace: str, error: KubeError) -> None:
        because = refusal_of(error)
        if because and because != self._refused.get(namespace):
            self._refused[namespace] = because
            self._log.warning("workers not listed", source=self.title, namespace=namespace, because=because)
        self._tried[namespace].set()

    def _on_listed(self, namespace: str) -> None:
        self._refused.pop(namespace, None)
        self._tried[namespace].set()


def own_secrets(management: Client, namespace: str, *, rank: int, report: Report, log: Log) -> SecretProvider:
    """Those with the label ``jobmirror.io/worker``."""
    secrets = Declaring("secrets", [Scope(SECRETS, namespace, SECRET_SELECTOR)], _own)
    return SecretProvider(management, secrets, rank=rank, report=report, log=log)


def secrets_of_source(
    management: Client, source: SecretSource, *, rank: int, report: Report, log: Log
) -> SecretProvider:
    """Those of one of ``workers.secretSources``."""
    title = f"secrets with {source.label_selector}"
    selected_by = f"type={source.type}" if source.type else ""
    store = Store()

    def accept(found: Object) -> bool:
        metadata = found.metadata
        is_one = declared_secrets.declares(found, source)
        if is_one and len(store) >= MOST_OF_A_SOURCE and store.get(metadata.namespace, metadata.name) is None:
            where = f"{metadata.namespace}/{metadata.name}"
            log.warning("too many workers of one source", source=title, left_out=where, most=MOST_OF_A_SOURCE)
            return False
        return is_one

    secrets = Declaring(
        title,
        [Scope(SECRETS, namespace, source.label_selector, selected_by) for namespace in source.namespaces],
        partial(declared_secrets.declared_by, source=source),
        store,
        Filter(accept=accept, keep=partial(declared_secrets.reduced, source=source)),
    )
    return SecretProvider(management, secrets, rank=rank, report=report, log=log)


def _own(secret: Object) -> Declaration:
    name, origin = secret.metadata.name, Origin(SECRETS, secret)
    try:
        return Declaration(name, origin, read_spec(secret), is_own=True)
    except BadSecret as error:
        if name in RESERVED_NAMES:
            return Declaration(name, origin, None, str(error), is_own=True)
        spec = spec_of(secret, name=name, kubeconfig=b"", labels=secret.labels, refused=error.problem)
        return Declaration(name, origin, spec, is_own=True, makes_way=only_takes_back(secret))
