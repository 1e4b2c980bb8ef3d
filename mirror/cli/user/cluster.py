"""A cluster as the user may see it: connected by their own kubeconfig, and asked with failures in words.

Used by all commands, for the management cluster and, with ``--worker-context``, for a worker. Jobs come as objects,
for their kind to read, everything else as decoded JSON. Not here: the manager's own server (``server``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from mirror.batch import views
from mirror.cli.user import kubeconfig
from mirror.cli.user.failures import MANAGEMENT, Doing, Failure, KindNotServed, NotAllowed, Rejected, failure_of
from mirror.cli.user.options import Where
from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.auth import management_credentials, personal_credentials
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials
from mirror.kube.discovery import is_served
from mirror.kube.errors import ApiError, KubeError, NotFound
from mirror.kube.kubeconfig import Policy, read_document
from mirror.kube.limits import Limiter
from mirror.kube.objects import JUNK, Object
from mirror.kube.requests import Request
from mirror.kube.resources import NAMESPACES, Resource

T = TypeVar("T")
P = TypeVar("P", bound="_Head")

Json = Mapping[str, object]

QPS, BURST = 50.0, 100
DEFAULT_NAMESPACE = "default"
MOST_PAGES = 1_000
_AT_A_TIME = 25
"""Objects that are looked at without a pause: a millisecond or two."""


class _ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Head(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)


class _Page(_Head):
    items: list[object] = []


class _ObjectPage(_Head):
    items: list[Object] = []


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster, by the rights of the user."""

    client: Client
    credentials: Credentials
    namespace: str
    """The one that was asked for, else the context's."""
    name: str = MANAGEMENT
    """In texts."""

    async def get(self, resource: Resource, name: str, *, namespace: str) -> Json:
        """One object.

        Raises:
            Failure: in words.
        """
        doing = self._doing("get", resource, namespace, name)
        return decode(await self._sent(requests.get(resource, name, namespace=namespace), doing), self.name, dict)

    async def items(
        self, resource: Resource, *, namespace: str | None, labels: str = "", fields: str = ""
    ) -> tuple[list[Json], str]:
        """A whole collection, and its version.

        Raises:
            Failure: in words.
        """
        pages = [page async for page in self._pages(_Page, resource, namespace, labels, fields)]
        return [views.mapping(item) for page in pages for item in page.items], pages[-1].metadata.resource_version

    async def object(self, resource: Resource, name: str, *, namespace: str) -> Object:
        """One object of a mirrored kind.

        Raises:
            KindNotServed: the cluster does not know this kind.
            Failure: in words.
        """
        doing = self._doing("get", resource, namespace, name)
        return decode(await self._sent(requests.get(resource, name, namespace=namespace), doing), self.name, Object)

    async def objects(
        self, resource: Resource, *, namespace: str | None, labels: str = "", fields: str = ""
    ) -> tuple[list[Object], str]:
        """All objects of a mirrored kind, and the version of the collection.

        Raises:
            KindNotServed: the cluster does not know this kind.
            Failure: in words.
        """
        pages = self.object_pages(resource, namespace=namespace, labels=labels, fields=fields)
        some = [page async for page in pages]
        return [item for items, _ in some for item in items], some[-1][1]

    async def object_pages(
        self, resource: Resource, *, namespace: str | None, labels: str = "", fields: str = ""
    ) -> AsyncGenerator[tuple[list[Object], str], None]:
        """As ``objects``, some at a time: between them the loop has its turn, and the server works on the next page."""
        try:
            async with aclosing(self._pages(_ObjectPage, resource, namespace, labels, fields)) as pages:
                async for page in pages:
                    for begin in range(0, max(1, len(page.items)), _AT_A_TIME):
                        yield page.items[begin : begin + _AT_A_TIME], page.metadata.resource_version
                        await asyncio.sleep(0)
        except NotAllowed:
            if await self._serves(resource):
                raise
            doing = self._doing("list", resource, namespace or "", "")
            raise KindNotServed(f"{self.name} does not serve {doing.resource}") from None

    async def first_names(self, resource: Resource) -> list[str]:
        """The names of some objects of our namespace: of the first page.

        Raises:
            Failure: in words.
        """
        doing = self._doing("list", resource, self.namespace, "")
        raw = await self._sent(requests.list_page(resource, namespace=self.namespace), doing)
        return [item.metadata.name for item in decode(raw, self.name, _ObjectPage).items]

    async def check_namespace(self) -> None:
        """Whether our namespace exists, as far as it may be read.

        Raises:
            Failure: it does not.
        """
        try:
            await self.client.send(requests.get(NAMESPACES, self.namespace))
        except NotFound:
            raise Failure(f"namespace {self.namespace} not found on {self.name}") from None
        except KubeError:
            return

    async def _pages(
        self, page_type: type[P], resource: Resource, namespace: str | None, labels: str, fields: str
    ) -> AsyncGenerator[P, None]:
        """A collection as it comes: at least one page. Each is requested before the one before it is handed out."""
        doing = self._doing("list", resource, namespace or "", "")

        def ask(token: str) -> asyncio.Task[bytes]:
            request = requests.list_page(resource, namespace=namespace, label_selector=labels, continue_token=token)
            request = request.may_be_compressed()
            if fields:
                request = replace(request, query=(*request.query, ("fieldSelector", fields)))
            return asyncio.create_task(self._sent(request, doing), name=f"list {doing.resource}")

        asked = ask("")
        try:
            for _ in range(MOST_PAGES):
                page = decode(await asked, self.name, page_type)
                token = page.metadata.continue_
                if token:
                    asked = ask(token)
                    await asyncio.sleep(0)  # so that the server has it while this page is read
                yield page
                if not token:
                    return
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        raise Failure(f"{self.name} does not end the list of {doing.resource}")

    async def _serves(self, resource: Resource) -> bool:
        """Whether the cluster serves this kind, as far as its discovery shows; permissions are checked elsewhere."""
        try:
            return await is_served(self.client, resource)
        except KubeError:
            return True

    async def _sent(self, request: Request, doing: Doing) -> bytes:
        try:
            return await self.client.send(request)
        except KubeError as error:
            raise failure_of(error, replace(doing, server=self.client.server)) from error

    async def check_draft(self, kind: Kind, body: Json) -> None:
        """Ask whether the API server would take this object, unknown fields included; nothing is created (``dryRun``).

        Raises:
            Rejected: it would not; what it lacks permission for, or has already, is no concern of this.
        """
        resource, metadata = kind.resource, views.mapping(body.get("metadata"))
        namespace = views.text(metadata.get("namespace"))
        named = {"apiVersion": resource.api_version, "kind": kind.name, **body}
        request = requests.create(resource, msgspec.json.encode(named), namespace=namespace, strict=True)
        try:
            await self.client.send(replace(request, query=(*request.query, ("dryRun", "All"))))
        except NotFound as error:
            if error.about_kind == "namespaces":
                raise Rejected(f"namespace {namespace} not found on {self.name}") from None
        except ApiError as error:
            if error.code in (400, 422):
                name = views.text(metadata.get("name")) or views.text(metadata.get("generateName"))
                what = f"{kind.name} {name}".strip()
                raise Rejected(f"{self.name} would reject {what}: {error.message or error.reason}") from None
        except (KubeError, TypeError, ValueError):
            return  # what asks next says why

    def _doing(self, verb: str, resource: Resource, namespace: str, name: str) -> Doing:
        return doing_with(verb, resource, namespace, name, cluster=self.name)


def doing_with(verb: str, resource: Resource, namespace: str, name: str, *, cluster: str) -> Doing:
    """``Doing`` for a kind of object."""
    group = f".{resource.group}" if resource.group else ""
    return Doing(verb, resource.plural + group, namespace, name, cluster)


def decode(body: bytes, whose: str, kind: type[T]) -> T:
    """A response of this type.

    Raises:
        Failure: it is another one.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except JUNK:
        raise Failure(f"{whose} sent a response that cannot be decoded; its version may differ") from None


@asynccontextmanager
async def management(where: Where) -> AsyncIterator[Cluster]:
    """The management cluster: of the kubeconfig, or of the pod that we run in where there is none.

    Raises:
        Failure: nothing says where it is.
    """
    async with _opened(where, where.context, MANAGEMENT) as found:
        yield found


@asynccontextmanager
async def worker(where: Where) -> AsyncIterator[Cluster]:
    """The worker of ``--worker-context``.

    Raises:
        Failure: there is no such context.
    """
    async with _opened(where, where.worker_context, f"the worker of context {where.worker_context}") as found:
        yield found


@asynccontextmanager
async def _opened(where: Where, context: str, name: str) -> AsyncIterator[Cluster]:
    try:
        credentials, namespace = await _credentials(where, context)
    except kubeconfig.NoKubeconfig as error:
        raise Failure(str(error)) from None
    except KubeError as error:
        raise failure_of(error, Doing("", "", cluster=name)) from None
    client = client_for(name, credentials)
    try:
        yield Cluster(client, credentials, where.namespace or namespace or DEFAULT_NAMESPACE, name)
    finally:
        await client.close()


async def _credentials(where: Where, context: str) -> tuple[Credentials, str]:
    """Who we are, and the context's namespace."""
    files = kubeconfig.paths(where.kubeconfig, os.environ)
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ and not context
    merged = kubeconfig.read(files, context, must_exist=bool(where.kubeconfig) or not in_pod)
    if merged is not None:
        found = read_document(merged.document, Policy({}, trusted=True))
        if not found.cluster.proxy:
            found = replace(found, cluster=replace(found.cluster, proxy=proxy_for(found.cluster.server)))
        return personal_credentials(found), merged.namespace
    return await management_credentials(""), kubeconfig.pod_namespace()


def client_for(name: str, credentials: Credentials) -> Client:
    """A client with its own limits, in the running loop; the caller closes it."""
    limiter = Limiter(QPS, BURST, asyncio.get_running_loop().time)
    return Client(name, credentials, limiter)


def proxy_for(url: str) -> str:
    """The proxy that ``HTTPS_PROXY`` and ``NO_PROXY`` name for this URL, as for kubectl; empty for none."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not any(name.lower().endswith("_proxy") for name in os.environ) or _is_here(host):
        return ""
    from urllib.request import getproxies_environment, proxy_bypass

    if proxy_bypass(f"{host}:{parts.port}" if parts.port else host):
        return ""
    return getproxies_environment().get(parts.scheme, "")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
