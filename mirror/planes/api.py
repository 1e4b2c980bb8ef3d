"""Requests to an API server in this process with dicts in and out, for tests and scripts.

They reach the server without transport and faults, as the administrator's or another user's. Where nothing has to be
waited for (webhooks), the ``_nowait`` twin of ``call`` does without a loop.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlencode

import msgspec

from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.messages import ADMIN, JSON_TYPE, Answer, Request, Response, User
from mirror.embedded.faults.targets import INSIDER
from mirror.embedded.memory import Server

Json: TypeAlias = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Api:
    """One user's view of one server. Every method raises ``failures.StatusError`` for an answer that is a refusal."""

    server: Server
    user: User = ADMIN

    async def call(
        self, method: str, path: str, body: Any = None, *, content_type: str = JSON_TYPE, **query: str | int
    ) -> Json:
        """Any request that is answered with one object."""
        return _object(await self.server.handle(self._request(method, path, body, content_type, query)))

    def call_nowait(
        self, method: str, path: str, body: Any = None, *, content_type: str = JSON_TYPE, **query: str | int
    ) -> Json:
        """Send any request that is answered with one object, without a loop; only where no webhook has to be asked.

        Raises:
            StatusError: it is refused.
            RuntimeError: it has to wait.
        """
        return _object(finished(self.server.handle(self._request(method, path, body, content_type, query))))

    async def get(self, path: str) -> Json:
        """Read one object."""
        return await self.call("GET", path)

    async def list(self, path: str, **query: str | int) -> list[Json]:
        """The items of a collection."""
        found: list[Json] = _object(await self.server.handle(self._request("GET", path, None, JSON_TYPE, query)))[
            "items"
        ]
        return found

    async def create(self, path: str, body: Json) -> Json:
        """Into the collection ``path``."""
        return await self.call("POST", path, body)

    async def replace(self, path: str, body: Json) -> Json:
        """Replace one object (PUT)."""
        return await self.call("PUT", path, body)

    async def merge(self, path: str, patch: Json) -> Json:
        """A merge patch."""
        return await self.call("PATCH", path, patch, content_type=MERGE_PATCH)

    async def delete(self, path: str, *, propagation: str = "Background") -> Json:
        """Delete one object."""
        return await self.call("DELETE", path, {"propagationPolicy": propagation})

    def _request(self, method: str, path: str, body: Any, content_type: str, query: Mapping[str, str | int]) -> Request:
        data = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        headers = {"content-type": content_type, "accept": JSON_TYPE} if data else {"accept": JSON_TYPE}
        return Request(method, path, urlencode(query), headers, data, user=self.user, peer=INSIDER)


def finished(work: Coroutine[Any, Any, Answer]) -> Answer:
    """What a coroutine gives that never waits for anything.

    Raises:
        RuntimeError: it does wait.
    """
    try:
        work.send(None)
    except StopIteration as end:
        answer: Answer = end.value
        return answer
    work.close()
    raise RuntimeError("this request has to wait for something")


def _object(answer: Answer) -> Json:
    if not isinstance(answer, Response):
        raise TypeError("a stream is no object")
    body: Json = msgspec.json.decode(answer.body or b"{}")
    if answer.status >= 400:
        raise StatusError(body, headers=answer.headers)
    return body
