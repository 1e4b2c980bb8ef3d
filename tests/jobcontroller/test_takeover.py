"""Who takes the lease lists anew, however busy its watches are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from doubles.clock import LoopClock
from doubles.jobworld import Told

from mirror.jobcontroller.controller import ControllerSettings, JobController
from mirror.kube.requests import Request
from mirror.telemetry.logs import get_log


class BusyServer:
    """Everything is listed at once; then something changes in each turn of the loop."""

    is_saturated = False

    def __init__(self) -> None:
        self.version = 100
        self.lists = 0

    @asynccontextmanager
    async def stream(self, request: Request, *, silent_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._lines(is_list="sendInitialEvents" in dict(request.query))

    async def _lines(self, *, is_list: bool) -> AsyncIterator[bytes]:
        if is_list:
            self.lists += 1
            yield self._line("BOOKMARK", annotations={"k8s.io/initial-events-end": "true"})
        while True:
            await asyncio.sleep(0)
            self.version += 1
            yield self._line("MODIFIED", name="it", namespace="default", uid="u")

    def _line(self, kind: str, **metadata: object) -> bytes:
        found = {"metadata": {"resourceVersion": str(self.version), **metadata}}
        return msgspec.json.encode({"type": kind, "object": found})


async def test_a_change_that_comes_meanwhile_does_not_keep_a_new_leader_from_listing() -> None:
    """A version taken between the wish and the end of the watch must not be gone on from."""
    server, told = BusyServer(), Told()
    controller = JobController(
        server,
        ControllerSettings(),
        events=told,
        metrics=told,
        clock=LoopClock(),
        log=get_log("test"),
    )
    async with asyncio.TaskGroup() as scope:
        watching = scope.create_task(controller.watch())
        await controller.wait_until_ready()
        before = server.lists
        leading = scope.create_task(controller.lead())
        await asyncio.sleep(0.01)  # it has wished for new lists
        async with asyncio.timeout(60):
            await controller.wait_until_ready()
        assert server.lists == before + len(controller.informers)
        leading.cancel()
        watching.cancel()
