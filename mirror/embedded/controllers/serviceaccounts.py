"""Gives each namespace its ``default`` service account, and gives it back when it is deleted."""

from __future__ import annotations

import functools

from mirror.embedded.controllers.client import SERVICEACCOUNTS, Api
from mirror.embedded.controllers.working import AT_ONCE, RETRY, informer, watch_all, work_on
from mirror.kube.client import Client
from mirror.kube.errors import AlreadyExists, Forbidden, NotFound
from mirror.kube.objects import Object
from mirror.kube.resources import NAMESPACES
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log

DEFAULT = "default"


class ServiceAccounts:
    """All namespaces and their default service accounts."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._api = Api(client, "kube-controller-manager")
        self._namespaces = Store()
        self._accounts = Store()
        self._queue: WorkQueue[str] = WorkQueue(lambda _: "", clock=clock, lane_limit=AT_ONCE, backoff=RETRY)

    async def run(self, log: Log) -> None:
        """Work until cancelled."""
        namespaces = informer(self._client, NAMESPACES, self._namespaces, self._on_namespace)
        accounts = informer(
            self._client,
            SERVICEACCOUNTS,
            self._accounts,
            self._on_account,
            accept=lambda one: one.metadata.name == DEFAULT,
        )
        work = functools.partial(work_on, self._queue, self._sync, log=log)
        await watch_all((namespaces, accounts), log=log, then=(work,))

    def _on_namespace(self, old: Object | None, new: Object | None, change: Change) -> None:
        if new is not None:
            self._queue.add(new.metadata.name)

    def _on_account(self, old: Object | None, new: Object | None, change: Change) -> None:
        if new is None and old is not None:
            self._queue.add(old.metadata.namespace)

    async def _sync(self, name: str) -> None:
        namespace = self._namespaces.get("", name)
        if namespace is None or namespace.metadata.deletion_timestamp is not None:
            return
        if self._accounts.get(name, DEFAULT) is not None:
            return
        try:
            await self._api.create(SERVICEACCOUNTS, {"metadata": {"name": DEFAULT}}, namespace=name)
        except (AlreadyExists, NotFound, Forbidden):
            return  # it exists, or its namespace is being deleted


async def run(client: Client, *, clock: Clock, log: Log) -> None:
    """Look after default service accounts until cancelled."""
    await ServiceAccounts(client, clock=clock).run(log)
