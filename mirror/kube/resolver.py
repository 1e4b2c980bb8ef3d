"""Looking up host names, each in a thread of its own. Used by ``transport`` only.

The loop's shared threads will not do: a name server that does not answer holds a thread for many seconds, and the names
of a few such workers would hold up the look-ups of all others (D12).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

from aiohttp.abc import AbstractResolver, ResolveResult

_Addresses = list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int]]]


class ThreadPerLookup(AbstractResolver):
    """``getaddrinfo`` in daemon threads. A connector asks for one name at a time, so there is one per pool at most."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found: asyncio.Future[_Addresses] = loop.create_future()

        def look_up() -> None:
            addresses: _Addresses | OSError
            try:
                # Other families than those of the internet are never asked for; its type speaks of them, too.
                addresses = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)  # type: ignore[assignment]  # see above
            except OSError as error:
                addresses = error
            except UnicodeError:
                addresses = OSError("not a host name")
            # The loop may be gone by now.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(deliver, addresses)

        def deliver(addresses: _Addresses | OSError) -> None:
            if found.done():
                return
            if isinstance(addresses, OSError):
                found.set_exception(addresses)
            else:
                found.set_result(addresses)

        threading.Thread(target=look_up, name=f"look up {host}", daemon=True).start()
        return [_result(host, *address) for address in await found]

    async def close(self) -> None:
        """Nothing is kept."""


def _result(
    host: str,
    family: socket.AddressFamily,
    kind: socket.SocketKind,
    protocol: int,
    canonical: str,
    address: tuple[str, int] | tuple[str, int, int, int],
) -> ResolveResult:
    numeric = str(address[0])
    if len(address) == 4 and address[3] and "%" not in numeric:
        numeric = f"{numeric}%{address[3]}"
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=numeric, port=address[1], family=family, proto=protocol, flags=flags)
