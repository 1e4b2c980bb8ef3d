"""What ``access`` answers: values as JSON with every text cleaned, refusals as the API's Status. Pure.

Clients of Kubernetes understand a Status; so does ``mirror``. Text that comes from a worker is made safe here (D18),
but for logs, which are handed on as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mirror.kinds.base import Kind
from mirror.kinds.registry import resource_name
from mirror.model.text import clean

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"
LONGEST_TEXT = 2_000
MOST_DEPTH = 32

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    409: "Conflict",
    413: "RequestEntityTooLarge",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    502: "BadGateway",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class StatusError(Exception):
    """A request that is not carried out: the HTTP status, and for people what is wrong and what to do."""

    def __init__(
        self, code: int, message: str, *, details: Mapping[str, Any] | None = None, retry_after_seconds: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details = dict(details or {})
        self.retry_after_seconds = retry_after_seconds


def whole(value: Any) -> Answer:
    """A 200 response with this value as JSON, every text in it cleaned."""
    return Answer(200, _encode(cleaned(msgspec.to_builtins(value))))


def refusal(refused: StatusError) -> Answer:
    """A Status of this refusal."""
    details, headers = refused.details, []
    if refused.retry_after_seconds:
        details = details | {"retryAfterSeconds": refused.retry_after_seconds}
        headers.append(("Retry-After", str(refused.retry_after_seconds)))
    if refused.code == 401:
        headers.append(("WWW-Authenticate", "Bearer"))
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refused.message,
        "reason": _REASONS.get(refused.code, ""),
        **({"details": details} if details else {}),
        "code": refused.code,
    }
    return Answer(refused.code, _encode(cleaned(status)), tuple(headers))


def no_source(kind: Kind, namespace: str, name: str) -> StatusError:
    """404: there is no mirrored object of this kind and name."""
    what, resource = resource_name(kind), kind.resource
    text = f'{what} "{name}" not found in namespace {namespace} among the {kind.name}s that are mirrored'
    return StatusError(404, text, details={"name": name, "group": resource.group, "kind": resource.plural})


def no_pod(kind: Kind, name: str) -> StatusError:
    """404: the pod does not exist, or is not of this mirror; one answer, so that callers cannot tell which."""
    text = f'pods "{name}" not found among the pods of this {kind.name} on its worker'
    return StatusError(404, text, details={"name": name, "kind": "pods"})


def cleaned(value: Any, depth: int = 0) -> Any:
    """Clean a value: every text in it becomes one printable line of at most ``LONGEST_TEXT`` characters."""
    match value:
        case str():
            return clean(value, longest=LONGEST_TEXT)
        case dict() if depth < MOST_DEPTH:
            return {clean(str(key)): cleaned(one, depth + 1) for key, one in value.items()}
        case list() | tuple() if depth < MOST_DEPTH:
            return [cleaned(one, depth + 1) for one in value]
        case bool() | int() | float() | None:
            return value
        case _:
            return "…"
