"""A cluster as an operator's command sees it: requests with the operator's permissions, errors that say what to do.

Used by ``registration``, ``overview``, ``draining`` and ``checking``. Not here: how the cluster was found
(``cli.worker.clusters``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import msgspec

from mirror.cli.advice import fix_of
from mirror.kinds import registry
from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.discovery import is_served
from mirror.kube.errors import ApiError, Forbidden, Invalid, KubeError, NotFound, NotServed, Unauthorized, describe
from mirror.kube.kubeconfig import Cluster
from mirror.kube.objects import JUNK, Object, decode_object
from mirror.kube.requests import Request
from mirror.kube.resources import CONFIGMAPS, NAMESPACES, SECRETS, Resource
from mirror.model import names
from mirror.model.text import clean
from mirror.workers.inventory import WorkerInventory
from mirror.workers.spec import SECRET_SELECTOR

MOST_PAGES = 2000


class ClusterError(Exception):
    """An operator's command cannot go on; one line that says why, and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(clean(text, longest=1500))


class _ListMeta(msgspec.Struct):
    continue_: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[Object] = msgspec.field(default_factory=list)


_decode_page = msgspec.json.Decoder(_Page).decode


@dataclass(frozen=True, slots=True)
class Site:
    """One cluster."""

    client: Client
    title: str
    """As texts name it: ``the management cluster``, ``worker east``."""
    kubectl: str = ""
    """What kubectl needs to ask the same cluster, for hints."""
    cluster: Cluster = field(default_factory=lambda: Cluster(""))
    """Where it is, as the operator's kubeconfig says."""

    async def send(self, request: Request, resource: Resource, *, name: str = "", namespace: str = "") -> bytes:
        """One request.

        Raises:
            NotFound: as it is; whether that is bad depends.
            ClusterError: everything else, in words.
        """
        try:
            return await self.client.send(request)
        except NotFound:
            raise
        except KubeError as error:
            raise self.trouble(error, request.verb, resource, name=name, namespace=namespace) from error

    async def find(self, resource: Resource, name: str, *, namespace: str | None = None) -> Object | None:
        """Read one object; None if it is not there.

        Raises:
            ClusterError: it may not be read, or the cluster cannot be asked.
        """
        try:
            wanted = requests.get(resource, name, namespace=namespace)
            return decode_object(await self.send(wanted, resource, name=name, namespace=namespace or ""))
        except NotFound:
            return None

    async def each(
        self, resource: Resource, *, namespace: str | None = None, labels: str = ""
    ) -> AsyncIterator[Object]:
        """A collection, page by page; nothing where the cluster does not serve its kind.

        Raises:
            ClusterError: it may not be listed, or the cluster cannot be asked.
        """
        token = ""
        for _ in range(MOST_PAGES):
            wanted = requests.list_page(resource, namespace=namespace, label_selector=labels, continue_token=token)
            try:
                page = _decode_page(await self.send(wanted, resource, namespace=namespace or ""))
            except NotFound:
                return
            except ClusterError as trouble:
                if await self._lacks(resource, trouble):
                    return
                raise
            except JUNK:
                raise ClusterError(f"{self.title} sent a response that cannot be decoded") from None
            for found in page.items:
                yield found
            token = page.metadata.continue_
            if not token:
                return
        raise ClusterError(f"{self.title} does not end the list of {resource.plural}")

    async def _lacks(self, resource: Resource, trouble: ClusterError) -> bool:
        """Whether a kind is not served; a refusal (403) does not say it, so discovery is asked."""
        match trouble.__cause__:
            case NotServed():
                return True
            case Forbidden():
                with suppress(KubeError):
                    return not await is_served(self.client, resource)
        return False

    async def uid(self) -> str:
        """Read which cluster this is: the uid of its ``kube-system`` (D19).

        Raises:
            ClusterError: it may not be read, or the cluster cannot be asked.
        """
        found = await self.find(NAMESPACES, "kube-system")
        if found is None:
            raise ClusterError(f"{self.title} has no namespace kube-system")
        return found.metadata.uid

    def trouble(
        self, error: KubeError, verb: str, resource: Resource, *, name: str = "", namespace: str = ""
    ) -> ClusterError:
        """Say in words why a request failed."""
        what = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        where = f" in namespace {namespace}" if namespace else ""
        match error:
            case Forbidden():
                ask = f"kubectl{self.kubectl} auth can-i {verb} {what}{f' -n {namespace}' if namespace else ''}"
                named = f" {name}" if name else ""
                return ClusterError(
                    f"missing permission: {verb} {what}{named}{where} on {self.title}; see: {ask} ({error.brief})"
                )
            case Unauthorized():
                return ClusterError(f"{self.title} rejected your credentials (401): log in again, or renew your token")
            case Invalid():
                return ClusterError(f"{self.title} rejected {resource.kind} {name}{where}: {error.brief}")
            case ApiError():
                return ClusterError(f"{self.title} answered {error.code} to {verb} {what}{where}: {error.brief}")
        why = describe(error)
        return ClusterError(f"{self.title} ({self.client.server}) is unreachable: {why}; {fix_of(why)}")


@dataclass(frozen=True, slots=True)
class ManagementCluster:
    """The manager's namespace on the management cluster."""

    site: Site
    namespace: str

    async def secret(self, name: str) -> Object | None:
        """Read the Secret of this name, whoever's it is; None if it is not there.

        Raises:
            ClusterError: it may not be read, or the cluster cannot be asked.
        """
        return await self.site.find(SECRETS, name, namespace=self.namespace)

    async def check_namespace(self) -> None:
        """Whether the manager's namespace exists, as far as it may be read.

        Raises:
            ClusterError: it does not.
        """
        try:
            is_there = await self.site.find(NAMESPACES, self.namespace) is not None
        except ClusterError:
            return
        if not is_there:
            raise ClusterError(f"namespace {self.namespace} not found on {self.site.title}; use --namespace")

    async def worker_secrets(self) -> list[Object]:
        """Read the Secrets of workers, by name; those that something else declares are in ``inventory`` alone.

        Raises:
            ClusterError: it may not be read, or the cluster cannot be asked.
        """
        found = [one async for one in self.site.each(SECRETS, namespace=self.namespace, labels=SECRET_SELECTOR)]
        return sorted(found, key=lambda one: one.metadata.name)

    async def worker_names(self) -> list[str]:
        """The workers that Secrets register or others declare, by name, as far as they can be read."""
        found = set[str]()
        with suppress(ClusterError):
            found.update(secret.metadata.name for secret in await self.worker_secrets())
        with suppress(ClusterError):
            entries = (await self.inventory()).entries
            found.update(name for name, entry in entries.items() if entry.declared is not None)
        return sorted(found)

    async def inventory(self) -> WorkerInventory:
        """Read what the manager has recorded of workers.

        Raises:
            ClusterError: it may not be read, or the cluster cannot be asked.
        """
        return WorkerInventory.of(await self._record())

    async def origin(self) -> str:
        """The label value of the manager's mirrors: as it has recorded it, or else its default.

        Raises:
            ClusterError: it may not be read, or the cluster cannot be asked.
        """
        return await self._recorded(names.ORIGIN) or await self.site.uid()

    async def kinds(self) -> Kinds:
        """The kinds that the manager mirrors, as it has recorded them; Jobs alone where it has not.

        Raises:
            ClusterError: the record may not be read, or is that of another version.
        """
        text = await self._recorded(names.KINDS)
        if not text:
            return registry.BUILT_IN
        from mirror.kinds.declared.choosing import BadKinds  # half a second that commands for Jobs alone need not cost
        from mirror.kinds.declared.recorded import kinds_in

        try:
            return kinds_in(text)
        except BadKinds as error:
            where = f"ConfigMap {self.namespace}/{names.WORKERS_CONFIGMAP}, annotation {names.KINDS}"
            raise ClusterError(f"{where}: {error}; use the version of mirror that the manager has") from error

    async def _recorded(self, annotation: str) -> str:
        """What managers have written down of themselves; empty: nothing."""
        record = await self._record()
        return record.annotations.get(annotation, "") if record is not None else ""

    async def _record(self) -> Object | None:
        """The ConfigMap in which workers are written down.

        Raises:
            ClusterError: it may not be read, or the cluster cannot be asked.
        """
        return await self.site.find(CONFIGMAPS, names.WORKERS_CONFIGMAP, namespace=self.namespace)

    async def jobs(self) -> AsyncIterator[tuple[Kind, Object]]:
        """All Jobs of all namespaces, of every kind that the manager mirrors, whoever runs them.

        Raises:
            ClusterError: one kind is served and may not be listed, or the cluster cannot be asked.
        """
        for kind in await self.kinds():
            async for found in self.site.each(kind.resource):
                yield kind, found


def dry_run(request: Request) -> Request:
    """The same request with ``dryRun``: the server checks it, and stores nothing."""
    return replace(request, query=(*request.query, ("dryRun", "All")))
