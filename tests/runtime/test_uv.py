"""The event loop that `mirror run` prefers: what breaks while it is being connected takes nothing else along."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import stat
import struct
from contextlib import suppress

import pytest

from mirror.runtime.uv import Loop

RESET = struct.pack("ii", 1, 0)


def broken_connection() -> socket.socket:
    """A socket whose other end has just been reset, as those of a killed API server are."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        theirs.close()
    return ours


@pytest.mark.parametrize("tls", [None, ssl.create_default_context()], ids=["plain", "TLS"])
def test_a_connection_that_breaks_while_it_is_made_closes_its_own_descriptor_only(tls: ssl.SSLContext | None) -> None:
    """Not whatever has got that number by the time its socket is collected."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        ours: socket.socket | None = broken_connection()
        assert ours is not None
        number = ours.fileno()
        name = "localhost" if tls is not None else None
        transport: asyncio.Transport | None = None
        with suppress(OSError):
            transport, _ = await loop.create_connection(asyncio.Protocol, sock=ours, ssl=tls, server_hostname=name)
        assert transport is None or transport.is_closing()
        await until_closed(number)
        others = [os.open(os.devnull, os.O_RDONLY) for _ in range(64)]
        assert number in others  # it is closed, and somebody else's by now
        ours = transport = None
        gc.collect()
        await asyncio.sleep(0)
        gc.collect()
        for one in others:
            os.fstat(one)  # raises OSError if it was closed
            os.close(one)

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(scenario())


def test_a_connection_that_is_given_up_closes_its_own_descriptor_only() -> None:
    """While its server says nothing to the TLS handshake."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            ours: socket.socket | None = socket.create_connection(listener.getsockname())
            assert ours is not None
            number = ours.fileno()
            connecting = loop.create_task(
                loop.create_connection(
                    asyncio.Protocol, sock=ours, ssl=ssl.create_default_context(), server_hostname="localhost"
                ),
                name="connect",
            )
            theirs, _ = listener.accept()
            await asyncio.sleep(0)
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            theirs.close()
            await until_closed(number)
        del connecting
        ours = None
        other = os.open(os.devnull, os.O_RDONLY)
        os.dup2(other, number)
        gc.collect()
        os.fstat(number)
        os.close(number)

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(scenario())


async def until_closed(number: int) -> None:
    """Until this descriptor is no socket any more: the loop closes it in one of its next turns."""
    with suppress(OSError):
        while stat.S_ISSOCK(os.fstat(number).st_mode):  # noqa: ASYNC110 - the loop says nothing of it
            await asyncio.sleep(0)
