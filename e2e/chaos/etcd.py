"""etcd as a campaign sees it: every version of an object, whether or not an API server is there to tell.

By etcd's JSON gateway over its socket. The API servers must store JSON (``world``).
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

_AT_ONCE = 32
_WAIT_SECONDS = 0.05
_READY_SECONDS = 60.0
_PIECE_BYTES, _MOST_PIECES = 512 * 1024, 16


class Compacted(RuntimeError):
    """The versions that were asked for are forgotten."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One version of a key; ``value`` is None where it was deleted."""

    key: str
    revision: int
    value: bytes | None


class Etcd:
    """One server. Its connections last as long as the block of ``connected``."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    @classmethod
    @asynccontextmanager
    async def connected(cls, socket: Path) -> AsyncIterator[Etcd]:
        """A client of the server behind this socket, which need not be there at once."""
        connector = aiohttp.UnixConnector(path=str(socket), limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession("http://etcd", connector=connector, timeout=timeout) as session:
            yield cls(session)

    async def read(self, prefix: str) -> tuple[int, list[Stored]]:
        """The revision now, and all keys below a prefix."""
        answer = await self._call("/v3/kv/range", _below(prefix))
        return int(answer["header"]["revision"]), [_stored(one) for one in answer.get("kvs", ())]

    async def watch(self, prefix: str, revision: int) -> AsyncGenerator[Stored, None]:
        """Every version of keys below a prefix from a revision on, until the server is gone.

        Raises:
            Compacted: it does not know that revision any more.
            aiohttp.ClientError: it is gone.
        """
        wanted = {"create_request": {**_below(prefix), "start_revision": revision}}
        async with self._session.post("/v3/watch", json=wanted) as answer:
            answer.raise_for_status()
            rest = b""
            async for piece in answer.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    result = msgspec.json.decode(line).get("result", {})
                    if result.get("canceled"):
                        raise Compacted(str(result))
                    for event in result.get("events", ()):
                        yield _stored(event["kv"], is_deletion=event.get("type") == "DELETE")

    async def size(self) -> int:
        """Of its database's file, in bytes, which is what a quota is compared with."""
        return int((await self._call("/v3/maintenance/status", {}))["dbSize"])

    async def fill(self) -> None:
        """Write until it refuses, since its quota is used up: from then on it serves reads and deletions alone.

        Raises:
            RuntimeError: it takes whatever comes.
        """
        much = {"key": _encoded("/chaos/fill"), "value": _encoded("x" * _PIECE_BYTES)}
        for _ in range(_MOST_PIECES):
            try:
                await self._call("/v3/kv/put", much)
            except aiohttp.ClientResponseError:
                return
        raise RuntimeError(f"etcd took {_MOST_PIECES} times {_PIECE_BYTES} bytes")

    async def disarm(self) -> None:
        """It takes writes again, if it has space for them."""
        path = "/v3/maintenance/alarm"
        for alarm in (await self._call(path, {"action": "GET"})).get("alarms", ()):
            await self._call(path, {"action": "DEACTIVATE", **alarm})

    async def forget_versions_until(self, revision: int) -> None:
        """Go on above a revision and know none before it, as after ``etcdutl snapshot restore --bump-revision``."""
        now = await self.until_ready()
        while now < revision:
            turns = min(_AT_ONCE, revision - now)
            key = {"key": _encoded("/chaos/bump"), "value": _encoded("x")}
            answers = await asyncio.gather(*(self._call("/v3/kv/put", key) for _ in range(turns)))
            now = max(int(answer["header"]["revision"]) for answer in answers)
        await self._call("/v3/kv/compaction", {"revision": now})

    async def until_ready(self) -> int:
        """Wait until it answers, and give its revision.

        Raises:
            TimeoutError: it does not in a minute.
        """
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                try:
                    return (await self.read("/chaos/"))[0]
                except aiohttp.ClientError:
                    await asyncio.sleep(_WAIT_SECONDS)

    async def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self._session.post(path, json=body) as answer:
            answer.raise_for_status()
            found: dict[str, Any] = msgspec.json.decode(await answer.read())
            return found


def _below(prefix: str) -> dict[str, str]:
    return {"key": _encoded(prefix), "range_end": _encoded(prefix[:-1] + chr(ord(prefix[-1]) + 1))}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _stored(kv: dict[str, Any], *, is_deletion: bool = False) -> Stored:
    value = None if is_deletion else base64.b64decode(kv.get("value", ""))
    return Stored(base64.b64decode(kv["key"]).decode(), int(kv["mod_revision"]), value)
