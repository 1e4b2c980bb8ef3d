"""A cluster as the user may see it: connected by their own kubeconfig, and asked with failures in words.

Used by all commands, for the management cluster and, with ``--worker-context``, for a worker. Objects come as decoded
JSON. Not here: the manager's own server (``server``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import msgspec

from mirror.batch import views
from mirror.cli.user import kubeconfig
from mirror.cli.user.failures import MANAGEMENT, Doing, Failure, failure_of
from mirror.cli.user.proxies import proxy_for
from mirror.cli.user.where import Where
from mirror.kube import requests
from mirror.kube.auth import management_credentials, personal_credentials
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials
from mirror.kube.errors import KubeError
from mirror.kube.kubeconfig import Policy, read_document
from mirror.kube.limits import Limiter
from mirror.kube.requests import Request
from mirror.kube.resources import Resource

Json = Mapping[str, object]

QPS, BURST = 50.0, 100
DEFAULT_NAMESPACE = "default"
MOST_PAGES = 1_000


class Uncounted:
    """Nobody counts a command's requests."""

    def on_request(self, cluster: str, verb: str, code: str, seconds: float) -> None:
        """Nothing."""


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
        return views.mapping(await self._sent(requests.get(resource, name, namespace=namespace), doing))

    async def list(
        self, resource: Resource, *, namespace: str | None, labels: str = "", fields: str = ""
    ) -> tuple[list[Json], str]:
        """A whole collection, and its version.

        Raises:
            Failure: in words.
        """
        doing, found, token = self._doing("list", resource, namespace or "", ""), [], ""
        for _ in range(MOST_PAGES):
            request = requests.list_page(resource, namespace=namespace, label_selector=labels, continue_token=token)
            if fields:
                request = replace(request, query=(*request.query, ("fieldSelector", fields)))
            page = views.mapping(await self._sent(request, doing))
            found += [views.mapping(item) for item in views.items(page.get("items"))]
            metadata = views.mapping(page.get("metadata"))
            token = views.text(metadata.get("continue"))
            if not token:
                return found, views.text(metadata.get("resourceVersion"))
        raise Failure(f"{self.name} does not end the list of {doing.resource}")

    async def _sent(self, request: Request, doing: Doing) -> object:
        try:
            body = await self.client.send(request)
        except KubeError as error:
            raise failure_of(error, doing) from error
        return decode(body, self.name)

    def _doing(self, verb: str, resource: Resource, namespace: str, name: str) -> Doing:
        return doing_with(verb, resource, namespace, name, cluster=self.name)


def doing_with(verb: str, resource: Resource, namespace: str, name: str, *, cluster: str) -> Doing:
    """``Doing`` for a kind of object."""
    group = f".{resource.group}" if resource.group else ""
    return Doing(verb, resource.plural + group, namespace, name, cluster)


def decode(body: bytes, whose: str) -> object:
    """JSON that somebody answered.

    Raises:
        Failure: it is none.
    """
    try:
        found: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Failure(f"{whose} sent a response that cannot be decoded") from None
    return found


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
    """A client of its own limits, in the running loop; whoever asks closes it."""
    limiter = Limiter(QPS, BURST, asyncio.get_running_loop().time)
    return Client(name, credentials, limiter, Uncounted())
