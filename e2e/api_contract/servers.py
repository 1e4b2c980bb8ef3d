"""The servers that the suite is played on: a real kube-apiserver with etcd, and ours in the same process over HTTPS."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from e2e.api_contract.over_http import OverHttp
from e2e.controlplane.cluster import Cluster
from e2e.controlplane.components import Shape
from e2e.controlplane.plane import CannotDo
from mirror.embedded import web
from mirror.embedded.apiserver import build as apiserver
from mirror.embedded.kubeconfigs import kubeconfig, url, write
from mirror.runtime.clock import SystemClock
from mirror.serving.x509 import Authority, server_context
from tests.contract.server import Server

REAL, EMBEDDED = "real", "embedded"
# As clusters are run; without it a server refuses privileged containers, whatever is in a Job. Without its snapshots
# it forgets at once what etcd was made to forget.
_SHAPE = Shape(apiserver_args=("--allow-privileged=true",), feature_gates={"ListFromCacheSnapshot": False})


def start(name: str) -> AbstractAsyncContextManager[Server]:
    """The server of this name, until the block is left."""
    return {REAL: real, EMBEDDED: embedded}[name]()


@asynccontextmanager
async def real() -> AsyncIterator[Server]:
    """kube-apiserver and etcd, without any controller.

    Raises:
        MissingBinaries, NotReady, ProgramEnded: there is none (``Cluster.start``).
    """
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(Cluster.start("contract", _SHAPE))
        wire = await stack.enter_async_context(OverHttp(cluster.kubeconfig))

        async def certified(user: str, groups: Sequence[str]) -> OverHttp:
            return await stack.enter_async_context(OverHttp(cluster.kubeconfig_for(user, groups=groups)))

        async def compact() -> None:
            await _compact(cluster)

        yield Server(REAL, wire, compact, certified)


@asynccontextmanager
async def existing(path: Path) -> AsyncIterator[Server]:
    """Any server, as the administrator of this kubeconfig; it cannot be made to forget, nor to know new users."""

    async def compact() -> None:
        raise CannotDo("its storage is not ours")

    async with OverHttp(path) as wire:
        yield Server(str(path), wire, compact)


async def _compact(cluster: Cluster) -> None:
    """Make etcd forget everything before now and note it, as kube-apiserver does every few minutes."""
    connector = aiohttp.UnixConnector(path=str(cluster.directory / "etcd.sock"))
    async with aiohttp.ClientSession(connector=connector, base_url="http://etcd") as etcd:
        key = base64.b64encode(b"compact_rev_key").decode()
        now = await _call(etcd, "range", {"key": key})
        revision = now["header"]["revision"]
        value = base64.b64encode(revision.encode()).decode()
        await _call(etcd, "put", {"key": key, "value": value})
        await _call(etcd, "compaction", {"revision": revision})


async def _call(etcd: aiohttp.ClientSession, what: str, body: dict[str, Any]) -> dict[str, Any]:
    async with etcd.post(f"/v3/kv/{what}", json=body) as response:
        answer: dict[str, Any] = await response.json()
        response.raise_for_status()
        return answer


@asynccontextmanager
async def embedded() -> AsyncIterator[Server]:
    """Ours, served over HTTPS by this process, with RBAC and without any neighbour."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory()))
        clock = SystemClock()
        authority = Authority.new("contract", now=clock.now())
        tls = server_context(authority.issue_server(["127.0.0.1"]), client_authority=authority.certificate)
        server = apiserver.build(clock=clock, random=Random(1), authorization="RBAC")
        address = await stack.enter_async_context(web.serve(server, listen=("127.0.0.1", 0), tls=tls))

        async def certified(user: str, groups: Sequence[str]) -> OverHttp:
            path = directory / f"{user}.kubeconfig"
            pair = authority.issue_client(user, groups)
            write(path, kubeconfig(url(*address), authority=authority.certificate, user=pair))
            return await stack.enter_async_context(OverHttp(path))

        async def compact() -> None:
            server.storage.compact(server.storage.version)

        wire = await certified("admin", ("system:masters",))
        yield Server(EMBEDDED, wire, compact, certified)
