"""A kubelet that answers for logs: simulated nodes have none. Used where users read what a pod has printed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from aiohttp import web

from e2e.controlplane.client import Client
from e2e.controlplane.components import NODE_NAME
from e2e.controlplane.plane import ControlPlane
from mirror.serving.x509 import Authority, server_context


@dataclass
class StubKubelet:
    """Answers for the logs of all containers of a node."""

    port: int = 0
    asked: list[str] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        await response.write(f"log of {request.match_info['pod']}\n".encode())
        if request.query.get("follow") == "true":
            await self.go_on.wait()
            await response.write(b"\xff the end\n")
        return response


@asynccontextmanager
async def stub_kubelet() -> AsyncIterator[StubKubelet]:
    """On a free port of this machine, with a certificate that nobody signed but itself, as kubelets have it."""
    stub = StubKubelet()
    pair = Authority.new("kubelet", now=datetime.now(UTC)).issue_server(["127.0.0.1"])
    app = web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", stub.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context(pair)).start()
        stub.port = runner.addresses[0][1]
        yield stub
    finally:
        stub.go_on.set()
        await runner.cleanup()


async def with_kubelet(plane: ControlPlane, stub: StubKubelet) -> None:
    """The simulated node says that its kubelet is this one."""
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": stub.port}},
    }
    async with Client(plane.kubeconfig) as client:
        await client.merge(f"/api/v1/nodes/{NODE_NAME}/status", {"status": status})
