"""Long bodies that strangers send to the webhook: so many bytes are kept at once, of one address fewer."""

import asyncio
import contextlib

import pytest
from aiohttp import web

from mirror.webhook.bodies import Bodies

PEER, OTHER = "10.0.0.1", "10.0.0.2"


class Sent:
    """A body whose pieces a test hands out; it ends with an empty one."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes] = asyncio.Queue()

    async def readany(self) -> bytes:
        return await self.pieces.get()

    def send(self, *pieces: bytes) -> "Sent":
        for piece in pieces:
            self.pieces.put_nowait(piece)
        return self


async def reading(bodies: Bodies, sent: Sent, peer: str) -> bytes:
    async with bodies.read(sent, peer, most=100) as body:
        return body


async def test_a_body_is_read_whole_and_its_room_is_given_back() -> None:
    """As often as one likes."""
    bodies = Bodies(most=10, most_of_peer=10)
    for _ in range(3):
        assert await reading(bodies, Sent().send(b"12345", b"6789", b""), PEER) == b"123456789"


async def test_bodies_of_one_address_are_bounded_together() -> None:
    """Others have room all the while, also for those that a slow one keeps."""
    bodies = Bodies(most=100, most_of_peer=10)
    async with asyncio.TaskGroup() as scope:
        slow = Sent().send(b"1234567")
        held = scope.create_task(reading(bodies, slow, PEER), name="slow")
        await asyncio.sleep(0)  # it has begun, and kept the first piece
        with pytest.raises(web.HTTPServiceUnavailable):
            await reading(bodies, Sent().send(b"1234", b""), PEER)
        assert await reading(bodies, Sent().send(b"1234", b""), OTHER) == b"1234"
        slow.send(b"")
        assert await held == b"1234567"
    assert await reading(bodies, Sent().send(b"1234567890", b""), PEER) == b"1234567890"


async def test_all_bodies_are_bounded() -> None:
    """However many send."""
    bodies = Bodies(most=10, most_of_peer=10)
    async with bodies.read(Sent().send(b"12345678", b""), PEER, most=100):
        with pytest.raises(web.HTTPServiceUnavailable):
            await reading(bodies, Sent().send(b"123", b""), OTHER)


async def test_one_body_is_bounded() -> None:
    """And leaves nothing behind, nor does one that is broken off."""
    bodies = Bodies(most=1000, most_of_peer=200)
    for _ in range(3):
        with pytest.raises(web.HTTPRequestEntityTooLarge):
            await reading(bodies, Sent().send(b"x" * 101), PEER)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await reading(bodies, Sent().send(b"x" * 99), PEER)
    assert not bodies.kept
