"""What goes on inside a mirror, whoever is asked: the manager's server, or the worker with the user's own permissions.

Used by ``logs``, ``pods``, ``events`` and ``diff``. Both give the same objects, and both are sure that they are of this
source's mirror: the manager checks it; on the worker it is found by the label with its source's uid, so an object that
merely has the name is never shown as the mirror, and its pods are those that it controls, itself or by what its kind
puts between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import msgspec

from mirror.batch import views
from mirror.cli.user.cluster import Cluster, management, worker
from mirror.cli.user.failures import Doing, Failure, NotThere, failure_of
from mirror.cli.user.logtexts import LogRequest, stream
from mirror.cli.user.naming import Named
from mirror.cli.user.options import Where
from mirror.cli.user.server import AccessEndpoint, manager
from mirror.kinds.base import Kind
from mirror.kube.objects import Meta, Object, OwnerReference
from mirror.kube.resources import EVENTS, PODS, Resource
from mirror.model import names
from mirror.workers.pod_owners import PodOwners

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class OnWorker:
    """``Mirror`` by the worker's API server."""

    cluster: Cluster
    kind: Kind
    namespace: str
    """There, which may have a prefix."""
    name: str
    uid: str
    selectors: tuple[str, ...]
    """Of its pods, that of most first; whose they are is looked at afterwards."""

    async def pods(self) -> list[Json]:
        """The pods that it controls."""
        found = list[Json]()
        for selector in self.selectors:
            found += (await self.cluster.items(PODS, namespace=self.namespace, labels=selector))[0]
        are_its = await self._owners().are_of_mirror([_owners_of(pod) for pod in found])
        return [pod for pod, is_its in zip(found, are_its, strict=True) if is_its]

    async def events(self) -> list[Json]:
        """Events about it, the pods that it has now, and what is between."""
        pods = await self.pods()
        kinds = {views.text(views.mapping(pod.get("metadata")).get("uid")): PODS.kind for pod in pods}
        kinds |= await self._owners().between([_owners_of(pod) for pod in pods], without_pods=True)
        found, _ = await self.cluster.items(EVENTS, namespace=self.namespace, fields=f"involvedObject.uid={self.uid}")
        for kind in dict.fromkeys((PODS.kind, *kinds.values())):
            of_kind, _ = await self.cluster.items(
                EVENTS, namespace=self.namespace, fields=f"involvedObject.kind={kind}"
            )
            found += [one for one in of_kind if views.mapping(one.get("involvedObject")).get("uid") in kinds]
        return found

    def _owners(self) -> PodOwners:
        return PodOwners(self.kind, self.uid, get=self._metadata, list_=self._metadata_of_many)

    def log(self, wanted: LogRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Text as it comes; of a pod that ``pods`` gave."""
        doing = Doing("get", "pods/log", self.namespace, cluster=self.cluster.name)
        path = PODS.path(self.namespace, wanted.pod, "log")
        return stream(
            self.cluster.client,
            path,
            wanted.query,
            follow=wanted.follow,
            describe=lambda error: failure_of(error, doing),
        )

    async def _metadata(self, resource: Resource, name: str) -> Meta | None:
        try:
            return (await self.cluster.object(resource, name, namespace=self.namespace)).metadata
        except NotThere:
            return None

    async def _metadata_of_many(self, resource: Resource) -> list[Meta]:
        try:
            found, _ = await self.cluster.objects(resource, namespace=self.namespace, labels=self.selectors[0])
        except Failure:
            return []  # each is asked for then
        return [one.metadata for one in found]


def _owners_of(pod: Json) -> list[OwnerReference]:
    listed = views.items(views.mapping(pod.get("metadata")).get("ownerReferences"))
    try:
        return msgspec.convert(listed, list[OwnerReference])
    except msgspec.ValidationError:  # a worker may send anything
        return []


async def find(cluster: Cluster, kind: Kind, source: Object) -> OnWorker:
    """Find the mirror of a source on its worker.

    Args:
        cluster: the worker.
        kind: of the source.
        source: the source.

    Raises:
        Failure: it is not there, or may not be looked for.
    """
    name, labels = source.metadata.name, f"{names.SOURCE_UID}={source.metadata.uid}"
    found, _ = await cluster.objects(kind.resource, namespace=source.metadata.namespace, labels=labels)
    if not found:
        # A worker may have a namespace prefix; without permission to list all namespaces that is not found out.
        try:
            found, _ = await cluster.objects(kind.resource, namespace=None, labels=labels)
        except Failure:
            found = []
    summary = kind.summary(source)
    for mirror in found:
        its = mirror.metadata
        if its.name == name and summary.mirror_uid in (None, its.uid):
            return OnWorker(cluster, kind, its.namespace, name, its.uid, kind.pod_selectors(mirror))
    where = summary.placed
    hint = f"it is placed on {where}; check that --worker-context is that worker" if where else "it is not placed yet"
    raise Failure(f"no mirror of {kind.name} {name} on {cluster.name}: {hint}")


class Mirror(Protocol):
    """A mirror that can be asked. Every method raises ``Failure`` in words."""

    async def pods(self) -> list[Json]:
        """Its pods."""
        ...

    async def events(self) -> list[Json]:
        """Events about it and its pods."""
        ...

    def log(self, wanted: LogRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a container's log; it is handed out as it comes.

        Raises:
            NotYet: the container has not begun.
        """
        ...


@dataclass(frozen=True, slots=True)
class OfManager:
    """``Mirror`` by the manager's server."""

    asked: AccessEndpoint
    namespace: str
    source: Named

    async def pods(self) -> list[Json]:
        """Its pods."""
        return await self.asked.pods(self.namespace, self.source)

    async def events(self) -> list[Json]:
        """Events about it and its pods."""
        return await self.asked.events(self.namespace, self.source)

    def log(self, wanted: LogRequest) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Text as it comes."""
        return self.asked.log(self.namespace, self.source, wanted)


@dataclass(frozen=True, slots=True)
class Mirrors:
    """Where mirrors can be asked for: the manager or, with ``--worker-context``, a worker."""

    cluster: Cluster
    """The management cluster."""
    asked: AccessEndpoint | None
    there: Cluster | None
    """The worker; exactly one of both is set."""

    async def of(self, wanted: Named) -> Mirror:
        """The mirror of a Job.

        Raises:
            Failure: there is none; the manager says so only once it is asked for something.
        """
        if self.asked is not None:
            return OfManager(self.asked, self.cluster.namespace, wanted)
        assert self.there is not None
        source = await self.cluster.object(wanted.kind.resource, wanted.name, namespace=self.cluster.namespace)
        return await find(self.there, wanted.kind, source)


@asynccontextmanager
async def mirrors(where: Where) -> AsyncIterator[Mirrors]:
    """Connected to the management cluster, and to who is asked about mirrors.

    Raises:
        Failure: nobody can be asked.
    """
    async with management(where) as cluster:
        if where.worker_context:
            async with worker(where) as there:
                yield Mirrors(cluster, None, there)
        else:
            async with manager(where, cluster) as asked:
                yield Mirrors(cluster, asked, None)


@asynccontextmanager
async def inside(where: Where, wanted: Named) -> AsyncIterator[Mirror]:
    """Open the mirror of one Job.

    Raises:
        Failure: nobody can be asked, or there is no mirror.
    """
    async with mirrors(where) as found:
        yield await found.of(wanted)
