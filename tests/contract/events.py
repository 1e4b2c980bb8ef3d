"""What a watch says, event by event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import msgspec

from tests.contract.answer import Answer, Wrong
from tests.contract.wire import Reply, Streaming

Json: TypeAlias = dict[str, Any]
_PATIENCE_SECONDS = 60.0


class Events:
    """A watch that was begun; events are read in order."""

    def __init__(self, streaming: Streaming, namespace: str) -> None:
        self._streaming = streaming
        self._namespace = namespace
        self._lines: AsyncIterator[bytes] = aiter(streaming.lines)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._streaming.status

    def header(self, name: str) -> str:
        """The first header of this name, or nothing."""
        return next((value for one, value in self._streaming.headers if one == name), "")

    async def answer(self) -> Answer:
        """The whole answer, of a watch that was refused."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            body = b"\n".join([line async for line in self._lines])
        return Answer("WATCH", Reply(self.status, self._streaming.headers, body), self._namespace)

    async def next(self) -> Json:
        """The next event."""
        event = await self._next()
        if event is None:
            raise Wrong("the watch ended")
        return event

    async def expect(self, *said: str) -> list[Json]:
        """Exactly these events come next, each told as ``ADDED name``; their objects.

        Bookmarks come between them whenever the server likes.
        """
        objects = []
        for number, one in enumerate(said):
            try:
                event = await self.next()
                while event["type"] == "BOOKMARK" != one:
                    event = await self.next()
            except TimeoutError:
                raise Wrong(f"no event within {_PATIENCE_SECONDS} s, expected {list(said[number:])}") from None
            if told(event) != one:
                raise Wrong(f"{told(event)}, expected {list(said[number:])}: {event}")
            objects.append(event["object"])
        return objects

    async def rest(self) -> list[Json]:
        """Everything that comes until the watch ends by itself."""
        events = []
        while (event := await self._next()) is not None:
            events.append(event)
        return events

    async def _next(self) -> Json | None:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            async for line in self._lines:
                if line:
                    text = line.decode().replace(self._namespace, "OURS")
                    event: Json = msgspec.json.decode(text)
                    return event
        return None


def told(event: Json) -> str:
    """An event in short: ``MODIFIED name``; a bookmark or an error has no name."""
    name = event["object"].get("metadata", {}).get("name", "")
    return f"{event['type']} {name}".rstrip()
