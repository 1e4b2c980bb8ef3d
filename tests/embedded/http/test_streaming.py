"""Pieces of a stream are taken as they are there, and the reader is told before a wait."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from mirror.embedded.http.streaming import next_piece, pause_seconds


async def collected(pieces: AsyncGenerator[bytes, None]) -> list[object]:
    """The pieces, and WAIT wherever one had to be waited for."""
    found: list[object] = []
    while (piece := await next_piece(pieces, lambda: found.append("WAIT"))) is not None:
        found.append(piece)
    return found


async def test_what_is_there_comes_without_a_wait() -> None:
    """Each wait is announced once, however often the generator goes on waiting within it."""

    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"a"
        yield b"b"
        await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        yield b"c"

    assert await collected(pieces()) == [b"a", b"b", "WAIT", b"c"]


async def test_what_fails_is_raised() -> None:
    """Before and after a wait."""

    async def pieces(waits: bool) -> AsyncGenerator[bytes, None]:
        if waits:
            await asyncio.sleep(0)
        raise ValueError("broken")
        yield b""

    for waits in (False, True):
        with pytest.raises(ValueError, match="broken"):
            await next_piece(pieces(waits), lambda: None)


async def test_a_cancelled_wait_reaches_the_generator() -> None:
    """So that it can clean up."""
    ended = []

    async def pieces() -> AsyncGenerator[bytes, None]:
        try:
            await asyncio.Event().wait()
            yield b""
        finally:
            ended.append(True)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await next_piece(pieces(), lambda: None)
    assert ended


def test_readers_are_left_alone_for_longer_when_there_are_many() -> None:
    """A few wait for nothing that could be measured, and nobody for long."""
    assert pause_seconds(1) < 0.001
    assert pause_seconds(10_000) == pytest.approx(0.02)
