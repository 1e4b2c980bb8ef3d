"""An API server in memory, asked in few words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, TypeAlias

from mirror.embedded.apiserver.build import build
from mirror.embedded.apiserver.messages import ADMIN, Answer, Request, Response, Stream
from mirror.embedded.apiserver.server import ApiServer
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.clocks import LoopClock

Json: TypeAlias = dict[str, Any]
MAPS, JOBS, PODS = (
    "/api/v1/namespaces/default/configmaps",
    "/apis/batch/v1/namespaces/default/jobs",
    "/api/v1/namespaces/default/pods",
)
MERGE = "application/merge-patch+json"


class Asking:
    """Requests as an administrator; bodies are objects both ways."""

    def __init__(self, storage: Storage | None = None) -> None:
        self.server: ApiServer = build(clock=LoopClock(), random=Random(1), storage=storage)
        self.headers: list[tuple[str, str]] = []
        """Of the last answer."""

    async def raw(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
        """Any request; underscores in names of headers are dashes."""
        path, _, query = target.partition("?")
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.server.handle(Request(method, path, query, {"user-agent": "tests", **named}, body, ADMIN))

    async def ask(self, method: str, target: str, body: Json | None = None, **headers: str) -> tuple[int, Json]:
        """Status and decoded body."""
        data = b"" if body is None else json.dumps(body).encode()
        answer = await self.raw(
            method, target, data, **{"content_type": "application/json", "accept": "application/json", **headers}
        )
        assert isinstance(answer, Response)
        self.headers = list(answer.headers)
        found: Json = json.loads(answer.body)
        return answer.status, found

    async def ok(self, method: str, target: str, body: Json | None = None, **headers: str) -> Json:
        """The body of an answer that is no refusal."""
        status, found = await self.ask(method, target, body, **headers)
        assert status < 300, found
        return found

    async def refused(self, method: str, target: str, body: Json | None = None, **headers: str) -> tuple[int, str, str]:
        """Code, reason and message of a refusal."""
        status, found = await self.ask(method, target, body, **headers)
        assert found["kind"] == "Status"
        assert found["code"] == status
        return status, found.get("reason", ""), found["message"]

    async def map(self, name: str, **metadata: Any) -> Json:
        """A new ConfigMap."""
        return await self.ok("POST", MAPS, {"metadata": {"name": name, **metadata}})

    @asynccontextmanager
    async def watch(self, target: str, **headers: str) -> AsyncIterator[Watching]:
        """A watch that is open inside of the block."""
        answer = await self.raw("GET", target, **headers)
        assert isinstance(answer, Stream), answer
        try:
            yield Watching(answer)
        finally:
            await answer.pieces.aclose()


class Watching:
    """Events as they come."""

    def __init__(self, stream: Stream) -> None:
        self._pieces = stream.pieces
        self._lines: list[bytes] = []

    async def next(self) -> tuple[str, Json]:
        """Type and object of the next event."""
        while not self._lines:
            self._lines = (await anext(self._pieces)).splitlines()
        event = json.loads(self._lines.pop(0))
        return event["type"], event["object"]

    async def rest(self) -> list[tuple[str, str]]:
        """Type and name of all events until it ends."""
        found = []
        while True:
            try:
                type_, body = await self.next()
            except StopAsyncIteration:
                return found
            found.append((type_, body["metadata"].get("name", "")))


def job(name: str = "a", **spec: Any) -> Json:
    """A Job that is accepted."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": pod}, **spec}}
