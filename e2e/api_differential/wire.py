"""Requests to a real API server as they are compared: code, body and warnings. Nothing is stored, unless asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import aiohttp
import msgspec

from e2e.api_differential.cases import Case, Kind
from e2e.api_differential.steps import Json
from e2e.controlplane.kubeconfigs import read_kubeconfig

PANIC = 0
"""The code of an answer that never came, because the request made the server panic (C32)."""
_TIMEOUT_SECONDS = 60
_CONNECTIONS = 64
_WARNING = re.compile(r'299 \S+ "((?:\\.|[^"\\])*)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server says of a request, be it the real one or ours."""

    code: int
    body: Json = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def is_accepted(self) -> bool:
        return 200 <= self.code < 300

    @property
    def causes(self) -> list[tuple[str, str, str]]:
        """Field, reason and message of each cause of a refusal."""
        causes = (self.body.get("details") or {}).get("causes") or []
        return [(one.get("field", ""), one.get("reason", ""), one.get("message", "")) for one in causes]


class Wire:
    """Connections to one server, for Jobs of one namespace. Used by one event loop."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        access = read_kubeconfig(kubeconfig)
        self.namespace = namespace
        self._jobs = f"{access.server}/apis/batch/v1/namespaces/{namespace}/jobs"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=access.tls or False, limit=_CONNECTIONS),
            timeout=aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS),
            headers={**access.headers, "content-type": "application/json"},
        )

    async def __aenter__(self) -> Wire:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(self, case: Case) -> Answer:
        """What the server says of a case, which it does not store."""
        if case.kind is Kind.CREATE:
            return await self.send("POST", "?dryRun=All", case.body)
        return await self.send("PUT", f"{_path(case.kind, case.start)}?dryRun=All", case.body)

    async def store(self, kind: Kind, body: Json) -> Answer:
        """Create or change an object for good."""
        if kind is Kind.CREATE:
            return await self.send("POST", "", body)
        return await self.send("PUT", _path(kind, body), body)

    async def delete(self, job: Json) -> Answer:
        """Delete an object; with finalizers it stays, and is being deleted."""
        return await self.send("DELETE", _path(Kind.UPDATE, job), {"propagationPolicy": "Background"})

    async def get(self, name: str) -> Answer:
        """Read an object."""
        return await self.send("GET", f"/{name}", None)

    async def send(self, method: str, path: str, body: Json | None) -> Answer:
        """Send one request.

        Raises:
            aiohttp.ClientError, TimeoutError: no answer came, for other reasons than a panic.
        """
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._session.request(method, self._jobs + path, data=data) as response:
                answer = await response.read()
        except aiohttp.ServerDisconnectedError:
            return Answer(PANIC)
        warnings = [text for header in response.headers.getall("Warning", ()) for text in _WARNING.findall(header)]
        return Answer(response.status, msgspec.json.decode(answer), tuple(map(_unescaped, warnings)))


def _path(kind: Kind, job: Json) -> str:
    return f"/{job['metadata']['name']}" + ("/status" if kind is Kind.STATUS else "")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
