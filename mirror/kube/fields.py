"""Which fields a server stores, by what it says of itself: its OpenAPI document.

Asked once by whoever connects and has to know; real API servers drop what they do not know without a word.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from mirror.kube.errors import KubeError
from mirror.kube.objects import JUNK
from mirror.kube.requests import Request
from mirror.telemetry.logs import Log

DEADLINE_SECONDS = 10.0


class Sender(Protocol):
    """Sends a request and returns the answer's body."""

    async def send(self, request: Request) -> bytes: ...


class _Schema(msgspec.Struct, frozen=True):
    properties: dict[str, msgspec.Raw] = {}


class _Components(msgspec.Struct, frozen=True):
    schemas: dict[str, msgspec.Raw] = {}


class _Document(msgspec.Struct, frozen=True):
    components: _Components = _Components()


_decode = msgspec.json.Decoder(_Document).decode
_decode_schema = msgspec.json.Decoder(_Schema).decode


async def stores_field(sender: Sender, api_version: str, schema: str, name: str, *, log: Log) -> bool:
    """Whether a server stores a field; False when it does not say.

    Args:
        sender: sends to that server.
        api_version: of a group, as in objects: ``batch/v1``.
        schema: what the document calls the structure that has the field.
        name: of the field.
        log: what is not found out is logged at level debug.
    """
    path = f"/openapi/v3/apis/{api_version}"
    ask = Request("get", "GET", path, urgent=True, deadline_seconds=DEADLINE_SECONDS)
    try:
        raw = _decode(await sender.send(ask)).components.schemas.get(schema)
        return raw is not None and name in _decode_schema(raw).properties
    except KubeError as error:
        log.debug("fields unknown", error=error)
    except JUNK:
        log.debug("fields unknown", error="the response is not an OpenAPI document")
    return False
