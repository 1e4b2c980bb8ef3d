"""A small client for tests: paths and JSON, nothing in between.

It shares nothing with ``mirror.kube``, so that what is tested is not also what looks. Not for the product.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import aiohttp
import msgspec

from e2e.controlplane.kubeconfigs import read_kubeconfig

Json = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_CALL_TIMEOUT_SECONDS = 120.0
_CONNECTIONS = 64


class StatusError(RuntimeError):
    """The API server answered with an error; ``status`` is the HTTP status, ``body`` its Status object."""

    def __init__(self, request: str, status: int, body: Json) -> None:
        super().__init__(f"{request}: {status} {body.get('reason', '')}: {body.get('message', '')}")
        self.status = status
        self.reason = str(body.get("reason", ""))
        self.message = str(body.get("message", ""))
        self.body = body


class Client:
    """Talks to one API server as the user of a kubeconfig. Bound to the event loop of its first request."""

    def __init__(self, kubeconfig: Path, *, user_agent: str = "e2e") -> None:
        self._access = read_kubeconfig(kubeconfig)
        self._headers = {**self._access.headers, "user-agent": user_agent}
        self._opened: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection. A later request opens new ones."""
        if self._opened is not None:
            session, self._opened = self._opened, None
            await session.close()

    async def call(
        self, method: str, path: str, body: object = None, content: str = "application/json", *, accept: str = "*/*"
    ) -> Json:
        """Send one request and return the decoded answer; an answer that is not JSON comes as ``{"text": …}``.

        Raises:
            StatusError: the status is 400 or more.
            aiohttp.ClientError, TimeoutError: no answer came.
        """
        data = None if body is None else msgspec.json.encode(body)
        url = self._access.server + path
        async with (
            asyncio.timeout(_CALL_TIMEOUT_SECONDS),
            self._session.request(
                method, url, data=data, headers={"content-type": content, "accept": accept}
            ) as response,
        ):
            answer = _decode(await response.read())
        if response.status >= 400:
            raise StatusError(f"{method} {path}", response.status, answer)
        return answer

    async def get(self, path: str) -> Json:
        """Read one object or one list."""
        return await self.call("GET", path)

    async def create(self, path: str, body: Json) -> Json:
        """Create an object in the collection at this path."""
        return await self.call("POST", path, body)

    async def merge(self, path: str, body: Json) -> Json:
        """Change an object by a JSON merge patch."""
        return await self.call("PATCH", path, body, MERGE_PATCH)

    async def delete(self, path: str, *, propagation: str = "Background") -> Json:
        """Delete an object, and by default what it owns."""
        return await self.call("DELETE", path, {"propagationPolicy": propagation})

    async def list(self, path: str, **query: str) -> list[Json]:
        """The items of a collection; keywords are query parameters such as ``labelSelector``."""
        items: list[Json] = (await self.get(f"{path}?{urlencode(query)}"))["items"]
        return items

    async def watch(self, path: str, version: str, **query: str) -> AsyncGenerator[Json, None]:
        """Events of a collection after a version, until the server ends the watch; bookmarks are left out.

        Raises:
            StatusError: the watch was refused, or an ERROR event ended it.
        """
        parameters = {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": version, **query}
        url = f"{self._access.server}{path}?{urlencode(parameters)}"
        async with self._session.get(url) as response:
            if response.status >= 400:
                raise StatusError(f"WATCH {path}", response.status, _decode(await response.read()))
            rest = b""
            async for chunk in response.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = _decode(line)
                    if event["type"] == "ERROR":
                        raise StatusError(f"WATCH {path}", int(event["object"].get("code", 0)), event["object"])
                    if event["type"] != "BOOKMARK":
                        yield event

    async def wait_until(self, path: str, condition: Callable[[Json | None], object], *, seconds: float = 180) -> Json:
        """Wait until the object at this path fulfils a condition, which sees None while there is no object.

        Returns the object, or ``{}`` if the condition was that there is none.

        Raises:
            TimeoutError: it did not in time; the text holds the object as last seen.
        """
        seen: Json | None = None
        try:
            async with asyncio.timeout(seconds), aclosing(self._sightings(path)) as sightings:
                async for seen in sightings:
                    if condition(seen):
                        break
        except TimeoutError:
            raise TimeoutError(f"{path} after {seconds} s: {seen}") from None
        return seen or {}

    async def _sightings(self, path: str) -> AsyncGenerator[Json | None, None]:
        """The object at this path, now and at each change, for ever."""
        collection, _, name = path.rpartition("/")
        one = f"metadata.name={name}"
        while True:
            found = await self.get(f"{collection}?{urlencode({'fieldSelector': one})}")
            yield found["items"][0] if found["items"] else None
            version = found["metadata"]["resourceVersion"]
            async with aclosing(self.watch(collection, version, fieldSelector=one)) as events:
                async for event in events:
                    yield None if event["type"] == "DELETED" else event["object"]

    @property
    def _session(self) -> aiohttp.ClientSession:
        if self._opened is None:
            self._opened = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._access.tls or False, limit=_CONNECTIONS),
                timeout=aiohttp.ClientTimeout(total=None),
                headers=self._headers,
            )
        return self._opened


def _decode(answer: bytes) -> Json:
    if answer[:1] == b"{":
        decoded: Json = msgspec.json.decode(answer)
        return decoded
    return {"text": answer.decode(errors="replace")}
