"""The ConfigMap that tells users where access is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from mirror.access import reporting
from mirror.access.reporting import LOOK_SECONDS, REWRITE_SECONDS, AddressPublisher
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.clocks import LoopClock
from mirror.model import names
from mirror.planes.plane import ControlPlane, control_plane
from mirror.planes.shape import NONE, Shape
from mirror.telemetry.logs import get_log

pytestmark = pytest.mark.looptime

URL = "https://mirror.example"
HOME = "jobmirror-system"
TOLD_AT = f"/api/v1/namespaces/{HOME}/configmaps/{names.ACCESS_CONFIGMAP}"


class Told:
    """A control plane with a ``AddressPublisher`` at work; what it asks can be changed."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.authority = b"CA one"
        self.kinds = "[]"
        self.is_leading = True

    async def data(self) -> dict[str, str] | None:
        try:
            return dict((await self.plane.api.get(TOLD_AT))["data"])
        except StatusError:
            return None


@asynccontextmanager
async def telling(url: str = URL) -> AsyncIterator[Told]:
    async with control_plane(Shape(controllers=NONE), clock=LoopClock()) as plane:
        await plane.api.create("/api/v1/namespaces", {"metadata": {"name": HOME}})
        told, client = Told(plane), plane.client()
        made = AddressPublisher(
            client,
            HOME,
            lambda: reporting.Told(url, told.authority, told.kinds),
            is_leading=lambda: told.is_leading,
            log=get_log("access"),
        )
        work = asyncio.create_task(made.run(), name="telling")
        try:
            yield told
        finally:
            work.cancel()
            with suppress(asyncio.CancelledError):
                await work
            await client.close()


async def test_url_and_authority_are_told_and_follow_changes() -> None:
    """A renewed authority is there with the next look; without one of ours the key goes."""
    async with telling() as told:
        await asyncio.sleep(1)
        assert await told.data() == {"url": URL, "ca.crt": "CA one", "kinds": "[]"}
        told.authority, told.kinds = b"CA two", '["JobSet"]'
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert await told.data() == {"url": URL, "ca.crt": "CA two", "kinds": '["JobSet"]'}
        told.authority = b""
        await asyncio.sleep(LOOK_SECONDS + 1)
        assert await told.data() == {"url": URL, "kinds": '["JobSet"]'}


async def test_only_the_leader_tells() -> None:
    """From when it leads."""
    async with telling() as told:
        told.is_leading = False  # before it has had its first turn
        await asyncio.sleep(60)
        assert await told.data() is None
        told.is_leading = True
        await asyncio.sleep(2)
        assert await told.data() is not None


async def test_what_somebody_deleted_is_told_again() -> None:
    """In ten minutes at most."""
    async with telling() as told:
        await asyncio.sleep(1)
        await told.plane.api.delete(TOLD_AT)
        await asyncio.sleep(REWRITE_SECONDS + LOOK_SECONDS)
        assert await told.data() is not None


async def test_without_a_url_nothing_is_told() -> None:
    """We do not know how users reach us."""
    async with telling(url="") as told:
        await asyncio.sleep(60)
        assert await told.data() is None
