"""What every controller is made of: informers that fill caches, what caches keep, queues whose keys are worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from mirror.kube.client import Client
from mirror.kube.objects import Meta, Object
from mirror.kube.resources import Resource
from mirror.runtime.backoff import Backoff
from mirror.runtime.informer import Filter, Informer, InformerHooks, Listener, Scope
from mirror.runtime.loop import consume
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store
from mirror.runtime.supervise import supervise
from mirror.telemetry.logs import Log

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""
Task: TypeAlias = Callable[[], Awaitable[None]]

RELIST = Backoff(first=0.2, most=4.0, jitter=0.3)
RETRY = Backoff(first=0.005, most=60.0)
AT_ONCE = 16


class _Unobserved:
    """Nobody counts what controllers do."""

    def on_taken(self, waited_seconds: float) -> None:
        """Not interesting here."""

    def on_worked(self, seconds: float) -> None:
        """Not interesting here."""

    def on_retry(self) -> None:
        """Not interesting here."""


def informer(
    client: Client,
    resource: Resource,
    store: Store,
    on_change: Listener,
    *,
    accept: Callable[[Object], bool] = lambda _: True,
    keep: Callable[[Object], Object] = lambda found: found,
) -> Informer:
    """One that keeps ``store`` like a whole collection."""
    hooks, wanted = InformerHooks(on_change), Filter(accept=accept, keep=keep)
    return Informer(Scope(resource), store, client=lambda: client, hooks=hooks, wanted=wanted, relist=RELIST)


async def watch_all(informers: Sequence[Informer], *, log: Log, then: Sequence[Task] = ()) -> None:
    """Run informers, and once all are synced the rest, until cancelled."""
    async with asyncio.TaskGroup() as scope:
        for number, one in enumerate(informers):
            scope.create_task(supervise(f"watch {number}", one.run, log=log), name=f"watch {number}")
        for one in informers:
            await one.wait_until_synced()
        for number, task in enumerate(then):
            scope.create_task(_run(task), name=f"controller's task {number}")


async def _run(task: Task) -> None:
    await task()


async def work_on(queue: WorkQueue[Any], work: Callable[[Any], Awaitable[float | None]], *, log: Log) -> None:
    """Consume a queue until cancelled; it is closed then."""
    try:
        await consume(queue, work, log=log, observer=_Unobserved())
    finally:
        queue.close()


# What of an object's metadata a controller keeps in its caches; pure.


def identity(meta: Meta) -> Meta:
    """Who it is, in which version, whose it is, and whether and by what it is kept from going."""
    return Meta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        deletion_timestamp=meta.deletion_timestamp,
        finalizers=meta.finalizers,
        owner_references=meta.owner_references,
    )
