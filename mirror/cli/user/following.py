"""The objects of one kind as they change: a list, then a watch, taken up again when it ends. Used by ``get -w`` and
``worker list -w``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace

from mirror.cli.user.cluster import Cluster, doing_with
from mirror.cli.user.failures import failure_of
from mirror.kube import requests
from mirror.kube.errors import Expired, KubeError, ServerFailure, TooManyRequests, Unreachable
from mirror.kube.objects import Object
from mirror.kube.requests import Request
from mirror.kube.resources import Resource
from mirror.kube.watch import watch

Key = tuple[str, str]

WATCH_SECONDS = 300
SILENT_SECONDS = 120.0
AGAIN_AFTER_SECONDS = 1.0


@dataclass(slots=True)
class Jobs:
    """All Jobs of one kind that are followed, and which of them changed last."""

    all: dict[Key, Object] = field(default_factory=dict)
    changed: list[Key] = field(default_factory=list)
    gone: dict[Key, Object] = field(default_factory=dict)
    """As they were last."""

    def replace(self, items: list[Object]) -> Jobs:
        """These are all that there are now."""
        fresh = {_key(item): item for item in items}
        self.gone = {key: job for key, job in self.all.items() if key not in fresh}
        self.changed = [key for key, job in fresh.items() if self.all.get(key) != job]
        self.all = fresh
        return self

    def apply(self, kind: str, found: Object) -> Jobs:
        """One event of a watch."""
        key = _key(found)
        self.changed, self.gone = [key], {}
        if kind == "DELETED":
            self.changed, self.gone = [], {key: found}
            self.all.pop(key, None)
        else:
            self.all[key] = found
        return self


async def follow(
    cluster: Cluster, resource: Resource, *, namespace: str | None, fields: str = "", labels: str = ""
) -> AsyncGenerator[Jobs, None]:
    """The objects, first all that there are, then after each change; without an end.

    What breaks is taken up again: a laptop may sleep.

    Raises:
        KindNotServed: the cluster does not know this kind.
        Failure: it may not be asked, or is refused.
    """
    jobs = Jobs()
    version = ""
    while True:
        if not version:
            items, version = await cluster.objects(resource, namespace=namespace, fields=fields, labels=labels)
            yield jobs.replace(items)
        try:
            request = _request(resource, namespace, version, fields=fields, labels=labels)
            async with contextlib.aclosing(_events(cluster, request)) as events:
                async for kind, found, at in events:
                    version = at or version
                    if found is not None:
                        yield jobs.apply(kind, found)
        except Expired:
            version = ""
        except (ServerFailure, TooManyRequests, Unreachable):
            await asyncio.sleep(AGAIN_AFTER_SECONDS)
        except KubeError as error:
            doing = doing_with("watch", resource, namespace or "", "", cluster=cluster.name)
            raise failure_of(error, doing) from error


def _request(resource: Resource, namespace: str | None, version: str, *, fields: str, labels: str) -> Request:
    request = requests.watch(
        resource,
        namespace=namespace,
        label_selector=labels,
        resource_version=version,
        timeout_seconds=WATCH_SECONDS,
    )
    return replace(request, query=(*request.query, ("fieldSelector", fields))) if fields else request


async def _events(cluster: Cluster, request: Request) -> AsyncGenerator[tuple[str, Object | None, str], None]:
    async with contextlib.aclosing(watch(cluster.client, request, silent_seconds=SILENT_SECONDS)) as events:
        async for event in events:
            job = None if event.type == "BOOKMARK" else event.object
            yield event.type, job, event.object.metadata.resource_version


def _key(job: Object) -> Key:
    return job.metadata.namespace, job.metadata.name
