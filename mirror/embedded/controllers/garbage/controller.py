"""Garbage collection, put together: a watch of every kind → graph → queues → collector."""

from __future__ import annotations

import asyncio
import functools

import tenacity

from mirror.embedded.controllers.client import DEFINITIONS, Api
from mirror.embedded.controllers.discovering import Kinds
from mirror.embedded.controllers.garbage.collecting import Collector
from mirror.embedded.controllers.garbage.graph import Graph, Node, node_of
from mirror.embedded.controllers.recording import event_recorder
from mirror.embedded.controllers.settings import Settings
from mirror.embedded.controllers.working import AT_ONCE, RETRY, identity, informer, work_on
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object, OwnerReference
from mirror.kube.resources import Resource
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock
from mirror.runtime.events import WARNING, Regarding
from mirror.runtime.informer import Change, Informer
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store
from mirror.runtime.supervise import supervise
from mirror.telemetry.logs import Log

_IGNORED = frozenset(("", "events.k8s.io"))
_DISCOVER = Backoff(first=0.2, most=10.0)
_SETTLE_SECONDS = 0.2
"""How long after a change of definitions the kinds are looked up anew: then they are served."""


class GarbageCollector:
    """All kinds that can be listed, watched and deleted, or those of them that the settings name."""

    def __init__(self, client: Client, *, clock: Clock, log: Log, settings: Settings) -> None:
        self._client = client
        self._log = log
        self._collected = settings.collected
        self._api = Api(client, "kube-controller-manager")
        self._recorder = event_recorder(self._api, "garbage-collector-controller", clock=clock)
        self._queue: WorkQueue[str] = WorkQueue(lambda _: "", clock=clock, lane_limit=AT_ONCE, backoff=RETRY)
        self._orphans: WorkQueue[str] = WorkQueue(lambda _: "", clock=clock, lane_limit=AT_ONCE, backoff=RETRY)
        self._graph = Graph(self._queue.add, self._orphans.add, self._complain)
        self._kinds = Kinds()
        self._collector = Collector(self._api, self._graph, self._kinds)
        self._monitors: dict[Resource, tuple[Informer, asyncio.Task[None]]] = {}
        self._is_stale = asyncio.Event()

    async def run(self) -> None:
        """Collect until cancelled."""
        self._is_stale.set()
        async with asyncio.TaskGroup() as scope:
            scope.create_task(self._recorder.run(), name="send events")
            await self._follow_kinds_once(scope)
            for monitor, _ in list(self._monitors.values()):
                await monitor.wait_until_synced()
            collect = work_on(self._queue, self._collector.look_at, log=self._log)
            scope.create_task(collect, name="collect garbage")
            scope.create_task(work_on(self._orphans, self._orphan, log=self._log), name="make orphans")
            while True:
                await self._follow_kinds_once(scope)

    async def _orphan(self, uid: str) -> None:
        await self._collector.orphan(uid)

    async def _follow_kinds_once(self, scope: asyncio.TaskGroup) -> None:
        """Watch exactly the kinds that are served, the next time that they may have changed."""
        await self._is_stale.wait()
        await asyncio.sleep(_SETTLE_SECONDS if self._monitors else 0.0)
        self._is_stale.clear()
        await self._discovering()(self._kinds.refresh, self._api)
        wanted = {one for one in self._kinds.supporting("delete", "list", "watch") if self._is_wanted(one)}
        for resource in self._monitors.keys() - wanted:
            _, task = self._monitors.pop(resource)
            task.cancel()
            self._graph.forget(resource)
        for resource in sorted(wanted - self._monitors.keys(), key=lambda one: (one.group, one.plural)):
            monitor = informer(
                self._client, resource, Store(), functools.partial(self._on_object, resource), keep=_metadata_only
            )
            name = f"watch {resource.plural}"
            task = scope.create_task(supervise(name, monitor.run, log=self._log), name=name)
            self._monitors[resource] = monitor, task

    def _discovering(self) -> tenacity.AsyncRetrying:
        """Tries until it works: nothing can be collected by kinds that are not known."""

        def report(state: tenacity.RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome is not None else None
            self._log.debug("kinds could not be discovered", error=error)

        return tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(KubeError),
            wait=lambda state: _DISCOVER.delay(state.attempt_number),
            before_sleep=report,
        )

    def _is_wanted(self, resource: Resource) -> bool:
        is_event = resource.plural == "events" and resource.group in _IGNORED
        return not is_event and (self._collected is None or resource.plural in self._collected)

    def _on_object(self, resource: Resource, old: Object | None, new: Object | None, change: Change) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            gone = self._graph.get(old.metadata.uid)
            if gone is not None:
                self._collector.saw_end_of(gone)
            self._graph.remove(old.metadata.uid)
        if new is not None:
            self._graph.put(node_of(resource, new.metadata))
        if resource.plural == DEFINITIONS.plural and resource.group == DEFINITIONS.group:
            self._is_stale.set()

    def _complain(self, node: Node, reference: OwnerReference) -> None:
        """A namespaced owner in another namespace owns nothing."""
        about = Regarding(node.resource, node.namespace, node.name, node.uid)
        owner = (
            f"[{reference.api_version}/{reference.kind}, namespace: {node.namespace}, "
            f"name: {reference.name}, uid: {reference.uid}]"
        )
        message = f'ownerRef {owner} does not exist in namespace "{node.namespace}"'
        self._recorder.event(about, WARNING, "OwnerRefInvalidNamespace", message)


def _metadata_only(found: Object) -> Object:
    """What the informer keeps of an object: who it is, and its version."""
    return Object(identity(found.metadata))


async def run(client: Client, *, clock: Clock, log: Log, settings: Settings) -> None:
    """Collect garbage until cancelled."""
    await GarbageCollector(client, clock=clock, log=log, settings=settings).run()
