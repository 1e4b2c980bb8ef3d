"""A collector of traces on loopback, which keeps what it gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Receiver:
    """Answers each request with the same code, while ``hold`` is set."""

    def __init__(self, answers: int = 200) -> None:
        self.answers = answers
        self.got: asyncio.Queue[tuple[str, ExportTraceServiceRequest]] = asyncio.Queue()
        self.hold = asyncio.Event()
        self.hold.set()
        self.url = ""

    async def take(self, request: web.Request) -> web.Response:
        found = ExportTraceServiceRequest.FromString(await request.read())
        self.got.put_nowait((request.path, found))
        await self.hold.wait()
        return web.Response(status=self.answers)


@asynccontextmanager
async def receiver(answers: int = 200) -> AsyncIterator[Receiver]:
    taking = Receiver(answers)
    application = web.Application()
    application.router.add_post("/{path:.*}", taking.take)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        taking.url = f"http://{host}:{port}"
        yield taking
    finally:
        taking.hold.set()
        await runner.cleanup()
