"""Which fields a server stores, by what it says of itself: its OpenAPI document.

Asked once by whoever connects and has to know; real API servers drop what they do not know without a word.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from mirror.kube.errors import KubeError
from mirror.kube.objects import JUNK
from mirror.kube.requests import Request
from mirror.kube.resources import JOBS
from mirror.telemetry.logs import Log

DEADLINE_SECONDS = 10.0
_RULE = "io.k8s.api.batch.v1.PodFailurePolicyRule"


class Sender(Protocol):
    """Sends a request and returns the answer's body."""

    async def send(self, request: Request) -> bytes: ...


class _Schema(msgspec.Struct, frozen=True):
    properties: dict[str, msgspec.Raw] = {}


class _Schemas(msgspec.Struct, frozen=True, rename={"rule": _RULE}):
    rule: _Schema = _Schema()


class _Components(msgspec.Struct, frozen=True):
    schemas: _Schemas = _Schemas()


class _Document(msgspec.Struct, frozen=True):
    components: _Components = _Components()


_decode = msgspec.json.Decoder(_Document).decode


async def knows_rule_names(sender: Sender, *, log: Log) -> bool:
    """Whether a server stores ``podFailurePolicy.rules[].name`` (KEP-4443, D17); False when it does not say."""
    path = f"/openapi/v3/apis/{JOBS.api_version}"
    ask = Request("get", "GET", path, urgent=True, deadline_seconds=DEADLINE_SECONDS)
    try:
        document = _decode(await sender.send(ask))
    except KubeError as error:
        log.debug("fields unknown", error=error)
        return False
    except JUNK:
        log.debug("fields unknown", error="the response is not an OpenAPI document")
        return False
    return "name" in document.components.schemas.rule.properties
