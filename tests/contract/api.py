"""What cases talk to: requests in a namespace of their own, and answers that can be held against expectations.

Targets are short: ``configmaps/a?dryRun=All`` is in the case's namespace, of the group that the resource belongs to;
one that begins with ``/`` is a path as it is. The case's namespace is called ``OURS`` in everything that is sent and
received, so that expectations need not know it; cluster-wide objects are called ``OURS-…``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from tests.contract.answer import Answer
from tests.contract.events import Events
from tests.contract.server import Server
from tests.contract.wire import Asked

Json: TypeAlias = dict[str, Any]

JSON = "application/json"
YAML = "application/yaml"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

OURS = "OURS"
_LOOK_AGAIN_SECONDS = 0.05
_PREFIXES: Mapping[str, str] = {
    **dict.fromkeys(("pods", "configmaps", "secrets", "events", "serviceaccounts"), "/api/v1/namespaces/OURS"),
    **dict.fromkeys(("namespaces", "nodes"), "/api/v1"),
    **dict.fromkeys(("jobs", "cronjobs"), "/apis/batch/v1/namespaces/OURS"),
    "leases": "/apis/coordination.k8s.io/v1/namespaces/OURS",
    **dict.fromkeys(("roles", "rolebindings"), "/apis/rbac.authorization.k8s.io/v1/namespaces/OURS"),
    **dict.fromkeys(("clusterroles", "clusterrolebindings"), "/apis/rbac.authorization.k8s.io/v1"),
    "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    **dict.fromkeys(
        ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"), "/apis/admissionregistration.k8s.io/v1"
    ),
    "tokenreviews": "/apis/authentication.k8s.io/v1",
    "selfsubjectreviews": "/apis/authentication.k8s.io/v1",
    **dict.fromkeys(
        ("subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"), "/apis/authorization.k8s.io/v1"
    ),
    "localsubjectaccessreviews": "/apis/authorization.k8s.io/v1/namespaces/OURS",
}


@dataclass(frozen=True, slots=True)
class Api:
    """One server as one case sees it, and as one user (the administrator unless ``headers`` say otherwise)."""

    server: Server
    namespace: str
    headers: tuple[tuple[str, str], ...] = ()
    is_identified: bool = True

    def impersonating(self, user: str, *groups: str) -> Api:
        """The same as another user; several groups cannot be said by these headers, so at most one."""
        assert len(groups) <= 1
        headers = [("impersonate-user", user), *(("impersonate-group", group) for group in groups)]
        return Api(self.server, self.namespace, tuple(headers))

    def bearing(self, token: str) -> Api:
        """The same with this token."""
        return Api(self.server, self.namespace, (("authorization", f"Bearer {token}"),), is_identified=False)

    def anonymous(self) -> Api:
        """The same as nobody."""
        return Api(self.server, self.namespace, (), is_identified=False)

    async def get(self, target: str, **options: Any) -> Answer:
        """Read; see ``send``."""
        return await self.send("GET", target, **options)

    async def post(self, target: str, body: object = None, **options: Any) -> Answer:
        """Create; see ``send``."""
        return await self.send("POST", target, body, **options)

    async def put(self, target: str, body: object = None, **options: Any) -> Answer:
        """Replace; see ``send``."""
        return await self.send("PUT", target, body, **options)

    async def patch(self, target: str, body: object, content: str = MERGE, **options: Any) -> Answer:
        """Change; see ``send``."""
        return await self.send("PATCH", target, body, content=content, **options)

    async def delete(self, target: str, body: object = None, **options: Any) -> Answer:
        """Delete; see ``send``."""
        return await self.send("DELETE", target, body, **options)

    async def apply(self, target: str, body: object, *, manager: str = "ours", force: bool = False) -> Answer:
        """Server-side apply; the target may have a query already."""
        query = f"fieldManager={manager}" + ("&force=true" if force else "")
        return await self.patch(target + ("&" if "?" in target else "?") + query, body, APPLY)

    async def send(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        content: str = JSON,
        accept: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request. A body of bytes is sent as it is, anything else as JSON."""
        reply = await self.server.wire.send(self._asked(method, target, body, content, accept, headers))
        return Answer(f"{method} {target}", reply, self.namespace)

    async def repeat(self, ask: Callable[[], Awaitable[Answer]], until: Callable[[Answer], bool]) -> Answer:
        """Ask until the answer is as wished: a real server learns of rights, kinds and webhooks a moment later."""
        while True:
            answer = await ask()
            if until(answer):
                return answer
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def version(self) -> str:
        """The resourceVersion of now."""
        listed = await self.get("configmaps?limit=1")
        return str(listed.ok()["metadata"]["resourceVersion"])

    @asynccontextmanager
    async def watch(self, target: str, accept: str = "", **query: object) -> AsyncIterator[Events]:
        """A watch of a collection; see ``Events``."""
        encoded = urlencode({"watch": "true", **query})
        asked = self._asked("GET", f"{target}{'&' if '?' in target else '?'}{encoded}", None, JSON, accept, None)
        async with self.server.wire.stream(asked) as streaming:
            yield Events(streaming, self.namespace)

    def _asked(
        self, method: str, target: str, body: object, content: str, accept: str, more: Mapping[str, str] | None
    ) -> Asked:
        headers = {"user-agent": "contract/1", **dict(self.headers)}
        data = b""
        if body is not None:
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            data = text.replace(OURS.encode(), self.namespace.encode())
            if content:
                headers["content-type"] = content
        if accept:
            headers["accept"] = accept
        headers.update(more or {})
        headers = {name.lower(): value.replace(OURS, self.namespace) for name, value in headers.items()}
        return Asked(method, path(target).replace(OURS, self.namespace), headers, data, self.is_identified)


def path(target: str) -> str:
    """The path and query that a short target stands for."""
    if target.startswith("/"):
        return target
    resource = target.split("/")[0].split("?")[0]
    return f"{_PREFIXES[resource]}/{target}"


def selecting(target: str, *, labels: str = "", fields: str = "", **others: object) -> str:
    """A target with selectors, encoded."""
    query = {"labelSelector": labels, "fieldSelector": fields, **others}
    return f"{target}?{urlencode({name: value for name, value in query.items() if value != ''}, quote_via=quote)}"


def names(items: Sequence[Json]) -> list[str]:
    """The names of objects."""
    return [one["metadata"]["name"] for one in items]
