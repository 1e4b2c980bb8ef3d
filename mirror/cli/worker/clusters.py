"""The clusters of a command line: found as kubectl finds them, asked with the operator's own rights.

The requests are made by ``operations``, whose ``ClusterError`` becomes one line on stderr and exit code 1 here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import click

from mirror.cli.user import kubeconfig, running
from mirror.cli.user.completion import PATIENCE_SECONDS
from mirror.cli.user.failures import Failure
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster, Site
from mirror.kube.auth import management_credentials, personal_credentials
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.kubeconfig import Cluster, KubeconfigRefused, Policy, check_kubeconfig, read_document
from mirror.kube.limits import Limiter
from mirror.kube.resources import SECRETS
from mirror.model.failures import file_words
from mirror.workers.spec import BadSecret, WorkerSpec, read_kubeconfig

MANAGEMENT = "the management cluster"
_QPS, _BURST = 50.0, 100


@dataclass(frozen=True, slots=True)
class Where:
    """What the command line says of clusters; empty: as kubectl would choose."""

    kubeconfig: str = ""
    management_kubeconfig: str = ""
    management_context: str = ""
    namespace: str = "jobmirror-system"


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a command to its end.

    Raises:
        Failure: it could not go on.
    """

    async def told() -> None:
        try:
            await work()
        except ClusterError as trouble:
            raise Failure(str(trouble)) from None
        except kubeconfig.NoKubeconfig as error:
            raise Failure(str(error)) from None

    running.run(told)


@asynccontextmanager
async def home(where: Where) -> AsyncIterator[ManagementCluster]:
    """The manager's namespace on the management cluster; in a pod without a kubeconfig, the cluster of that pod."""
    file, context = where.management_kubeconfig or where.kubeconfig, where.management_context
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ and not context and not file
    async with _site(file, context, MANAGEMENT, may_be_pod=in_pod) as site:
        yield ManagementCluster(site, where.namespace)


@asynccontextmanager
async def worker(where: Where, context: str) -> AsyncIterator[Site]:
    """A worker, with the operator's rights there."""
    async with _site(where.kubeconfig, context, f"the worker (context {context})" if context else "the worker") as site:
        yield site


@asynccontextmanager
async def worker_by_secret(management: Site, secret: str, key: str, allow: Mapping[str, bool]) -> AsyncIterator[Site]:
    """A worker, with the rights of the kubeconfig in a Secret on the management cluster.

    The manager's policy judges it as well: who writes that Secret may not have a command run on this machine.

    Raises:
        ClusterError: there is none, or none that may be used.
    """
    namespace, _, name = secret.partition("/")
    if not namespace or not name or "/" in name:
        raise ClusterError(f"--from-secret {secret}: expected NAMESPACE/NAME")
    found = await management.find(SECRETS, name, namespace=namespace)
    if found is None:
        raise ClusterError(f"secret {secret} not found on {management.title}")
    try:
        checked = check_kubeconfig(read_kubeconfig(found, key), allow)
    except (KubeconfigRefused, BadSecret) as error:
        raise ClusterError(f"secret {secret} on {management.title}: {error}") from error
    title = f"the worker (secret {secret})"
    limiter = Limiter(_QPS, _BURST, asyncio.get_running_loop().time)
    client = Client(title, personal_credentials(checked), limiter)
    try:
        yield Site(client, title, cluster=checked.cluster)
    finally:
        await client.close()


@asynccontextmanager
async def _site(file: str, context: str, title: str, *, may_be_pod: bool = False) -> AsyncIterator[Site]:
    files = kubeconfig.paths(file, os.environ)
    merged = kubeconfig.read(files, context, must_exist=not may_be_pod)
    hints = (f" --kubeconfig {file}" if file else "") + (f" --context {context}" if context else "")
    try:
        if merged is None:
            credentials, cluster = await management_credentials(""), Cluster("")
        else:
            found = read_document(merged.document, Policy({}, trusted=True))
            credentials, cluster = personal_credentials(found), with_authorities(found.cluster)
    except KubeError as error:
        raise ClusterError(f"the kubeconfig of {title}: {error}") from error
    limiter = Limiter(_QPS, _BURST, asyncio.get_running_loop().time)
    client = Client(title, credentials, limiter)
    try:
        yield Site(client, title, hints, cluster)
    finally:
        await client.close()


def with_authorities(cluster: Cluster) -> Cluster:
    """Read the CA file that a cluster names into it: a Secret has no files beside it.

    Raises:
        ClusterError: the file cannot be read.
    """
    if not cluster.ca_file:
        return cluster
    try:
        with open(cluster.ca_file, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ClusterError(f"certificate authority {cluster.ca_file}: {file_words(error)}") from None
    return Cluster(cluster.server, cluster.tls_server_name, cluster.verify, content, "", cluster.proxy)


def accepts(spec: WorkerSpec, namespace: str, *, own: str) -> bool:
    """Whether a worker gets Jobs of this namespace (D18)."""
    from mirror.placement.candidates import NamespaceRules, reserved_namespaces
    from mirror.workers.tokens import token_of

    closed = ("kube-*", own)
    rules = NamespaceRules(
        globs=spec.namespaces,
        closed=closed,
        prefix=spec.namespace_prefix,
        reserved=reserved_namespaces(closed, token_of(spec.kubeconfig).namespace),
    )
    return rules.accepts(namespace)


def worker_names(ctx: click.Context, incomplete: str) -> list[str]:
    """Workers to offer after TAB: quick, or silent."""
    keys = ("kubeconfig", "management_kubeconfig", "management_context", "namespace")
    where = Where(**{key: ctx.params[key] for key in keys if ctx.params.get(key)})

    async def names() -> list[str]:
        async with asyncio.timeout(PATIENCE_SECONDS), home(where) as management:
            return await management.worker_names()

    with contextlib.suppress(ClusterError, kubeconfig.NoKubeconfig, TimeoutError, OSError):
        return [name for name in asyncio.run(names()) if name.startswith(incomplete)]
    return []
