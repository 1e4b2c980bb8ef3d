"""Webhooks of a worker's own, which are asked about each Job that is created in one namespace."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from aiohttp import web

from e2e.controlplane.client import Json, StatusError
from e2e.jobs import job, until
from e2e.troubles.stage import Play
from mirror.serving.x509 import Authority, server_context

CREATED: list[Json] = [{"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}]
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Webhook:
    """One that denies everything until it ``allows``."""

    def __init__(self, code: int, message: str, authority: bytes) -> None:
        self.allows = False
        self.url = ""
        self.authority = authority
        self._status = {"code": code, "message": message}

    @classmethod
    @asynccontextmanager
    async def serving(cls, code: int, message: str) -> AsyncIterator[Webhook]:
        """It answers with this code and message."""
        authority = Authority.new("webhook", now=datetime.now(UTC))
        one = cls(code, message, authority.certificate)
        application = web.Application()
        application.router.add_post("/", one._answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        try:
            tls = server_context(authority.issue_server(["127.0.0.1"]))
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
            one.url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
            yield one
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        asked = (await request.json())["request"]
        response = {"uid": asked["uid"], "allowed": self.allows, "status": self._status}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response({**review, "response": response})


def here(play: Play) -> Json:
    """A selector of the story's namespace."""
    return {"matchLabels": {"kubernetes.io/metadata.name": play.namespace}}


async def add_webhook(play: Play, url: str, authority: bytes, *, worker: str = "east") -> None:
    """Have a worker ask this address."""
    hook: Json = {
        "name": "freeze.example.com",
        "clientConfig": {"url": url, "caBundle": base64.b64encode(authority).decode()},
        "rules": CREATED,
        "namespaceSelector": here(play),
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
    }
    await play.on(worker).create(_CONFIGURATIONS, {"metadata": {"name": play.namespace}, "webhooks": [hook]})


async def remove_webhook(play: Play) -> None:
    """Have the worker ask it no more."""
    await play.on().delete(f"{_CONFIGURATIONS}/{play.namespace}")


async def until_no_job_is_created(play: Play, worker: str = "east") -> None:
    """Wait until the worker's API server has heard of what refuses it: it takes a moment."""

    async def is_refused() -> bool:
        try:
            await play.on(worker).create(f"{play.scene.jobs(worker)}?dryRun=All", job("asked"))
        except StatusError:
            return True
        return False

    await until(is_refused)
