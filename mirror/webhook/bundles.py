"""Tells API servers whom to trust: keeps ``caBundle`` of the webhook's configurations like our own authority.

Only for certificates that we make ourselves; cert-manager has its own way. ``app`` runs it on every replica, since they
share the authority and write the same. The configurations are the operator's: one that is missing is told and waited
for, and nothing else of them is ever written.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import BadAnswer, Conflict, KubeError, NotFound, describe
from mirror.kube.objects import JUNK, Meta
from mirror.kube.requests import Rank
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.serving.certificates import Certificates
from mirror.telemetry.logs import Log

LOOK_SECONDS = 30.0
_GROUP = "admissionregistration.k8s.io"
CONFIGURATIONS = (
    Resource(_GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False),
    Resource(_GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False),
)
_OURS = "." + names.PREFIX.rstrip("/")


class _ClientConfig(msgspec.Struct, rename={"ca_bundle": "caBundle"}):
    ca_bundle: str | None = None


class _Webhook(msgspec.Struct, rename="camel"):
    name: str
    client_config: _ClientConfig


class _Configuration(msgspec.Struct):
    metadata: Meta
    webhooks: list[_Webhook] = []


_decode = msgspec.json.Decoder(_Configuration).decode


class Bundles:
    """The ``caBundle`` of every webhook of ours."""

    def __init__(self, client: Client, certificates: Certificates, *, log: Log) -> None:
        self._client = client
        self._certificates = certificates
        self._log = log
        self._told: dict[str, str] = {}
        self._look_again = asyncio.Event()
        certificates.when_changed(self._look_again.set)

    async def keep(self) -> None:
        """Look at both configurations whenever our authority changes, and twice a minute, until cancelled."""
        while True:
            self._look_again.clear()
            await self.look()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._look_again.wait()

    async def look(self) -> None:
        """Look at both once."""
        for resource in CONFIGURATIONS:
            await self._look(resource)

    async def _look(self, resource: Resource) -> None:
        """What goes wrong is told once, and tried again with the next look."""
        try:
            await self._update(resource)
            self._told.pop(resource.kind, None)
        except Conflict:
            pass  # somebody else wrote it: the next look sees what
        except KubeError as error:
            text = "there is none; apply config/webhook.yaml" if isinstance(error, NotFound) else describe(error)
            if self._told.get(resource.kind) != text:
                self._log.warning("caBundle not kept", kind=resource.kind, name=names.WEBHOOKS, because=text)
            self._told[resource.kind] = text

    async def _update(self, resource: Resource) -> None:
        raw = await self._client.send(requests.get(resource, names.WEBHOOKS).in_line(Rank.LAST))
        try:
            found = _decode(raw)
        except JUNK as error:
            raise BadAnswer(f"the response is not a {resource.kind}") from error
        operations = _operations(found, base64.b64encode(self._certificates.authority).decode())
        if operations:
            await self._client.send(requests.json_patch(resource, names.WEBHOOKS, operations).by_any_replica())
            self._log.info("caBundle written", kind=resource.kind, name=names.WEBHOOKS)


def _operations(found: _Configuration, bundle: str) -> list[Mapping[str, Any]]:
    """What to change; nothing when every webhook of ours has it already."""
    changes: list[Mapping[str, Any]] = [
        {"op": "add", "path": f"/webhooks/{number}/clientConfig/caBundle", "value": bundle}
        for number, webhook in enumerate(found.webhooks)
        if webhook.name.endswith(_OURS) and webhook.client_config.ca_bundle != bundle
    ]
    version = {"op": "replace", "path": "/metadata/resourceVersion", "value": found.metadata.resource_version}
    return [version, *changes] if changes else []
