"""A webhook of a case's own: an HTTPS server on loopback that answers admission reviews, and remembers them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias

from aiohttp import web

from mirror.serving.x509 import Authority, server_context
from tests.contract.api import Api

Json: TypeAlias = dict[str, Any]
Decide: TypeAlias = Callable[[Json], Json]
"""From the review's ``request`` to its ``response`` without uid; status or no answer: ``WebhookServer``."""

NAME = "hook.contract.example.com"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
PROBE = "hook-probe"
_AUTHORITY = Authority.new("contract webhooks", now=datetime.now(UTC))
_PAIR = _AUTHORITY.issue_server(["127.0.0.1"])


@dataclass(slots=True)
class WebhookServer:
    """What is served at ``url``."""

    decide: Decide
    url: str = ""
    http_status: int = 200
    delay_seconds: float = 0.0
    raw: bytes | None = None
    """Sent instead of a review."""
    requests: list[Json] = field(default_factory=list)
    """Of every review, but those of the probe."""
    probed: int = 0

    @property
    def client(self) -> Json:
        """``clientConfig`` of a configuration."""
        return {"url": self.url, "caBundle": base64.b64encode(_AUTHORITY.certificate).decode()}

    async def answer(self, request: web.Request) -> web.Response:
        """One review."""
        review = json.loads(await request.read())
        asked = review["request"]
        if asked.get("name") == PROBE:
            self.probed += 1
            return web.json_response(_review(asked, {"allowed": True}))
        self.requests.append(asked)
        await asyncio.sleep(self.delay_seconds)
        if self.raw is not None:
            return web.Response(status=self.http_status, body=self.raw)
        if self.http_status != 200:
            return web.Response(status=self.http_status, text="no")
        return web.json_response(_review(asked, self.decide(asked)))


def allow(request: Json) -> Json:
    """Whatever it is."""
    return {"allowed": True}


def patching(*operations: Json) -> Decide:
    """Allows, and changes the object by these operations of a JSON patch."""
    patch = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": patch}


@asynccontextmanager
async def serving(decide: Decide = allow) -> AsyncIterator[WebhookServer]:
    """A webhook that listens until the block is left."""
    hook = WebhookServer(decide)
    application = web.Application()
    application.router.add_post("/{tail:.*}", hook.answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_context(_PAIR))
        await site.start()
        host, port = runner.addresses[0]
        hook.url = f"https://{host}:{port}/hook"
        yield hook
    finally:
        await runner.cleanup()


async def configure(api: Api, hook: WebhookServer, resource: str = VALIDATING, **fields: object) -> str:
    """Make a configuration for config maps of the case's namespace, and wait until it works. Its name."""
    name = f"OURS-{resource[:1]}{fields.pop('named', '')}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}
    webhook = {
        "name": NAME,
        "clientConfig": hook.client,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 30,  # the most that there is: a busy machine is no failure
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "OURS"}},
        **fields,
    }
    (await api.post(resource, {"metadata": {"name": name}, "webhooks": [webhook]})).ok(201)
    if "objectSelector" not in fields and "rules" not in fields:
        await probe(api, hook)
    return name


async def probe(api: Api, hook: WebhookServer) -> None:
    """Wait until the server asks the webhook: a real one learns of configurations a moment later."""
    before = hook.probed
    body = {"metadata": {"name": PROBE}}
    await api.repeat(lambda: api.post("configmaps?dryRun=All", body), lambda answer: hook.probed > before)


def _review(request: Json, response: Json) -> Json:
    kind = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return {**kind, "response": {"uid": request["uid"], **response}}
