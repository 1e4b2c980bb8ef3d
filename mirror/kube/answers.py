"""Reading answers: a Status becomes an error by its meaning. Pure; used by ``client`` and ``watch``."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from mirror.kube.amounts import MOST_ERROR_BYTES, exceeds
from mirror.kube.errors import (
    LONGEST_REASON,
    NO_STATUS,
    AlreadyExists,
    ApiError,
    BadAnswer,
    BadRequest,
    Cause,
    Conflict,
    EntityTooLarge,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    NotServed,
    PageNotFound,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
)
from mirror.model.text import clean

LONGEST_RETRY_AFTER_SECONDS = 60.0
"""No server may send us away for longer: a worker that answers with days would otherwise be lost for days."""

_MOST_CAUSES = 64
_LONGEST_MESSAGE = 4096


class _StatusCause(msgspec.Struct, gc=False):
    field: str = ""
    reason: str = ""
    message: str = ""


class _StatusDetails(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    kind: str = ""
    causes: list[_StatusCause] | None = None
    retry_after_seconds: float = 0.0


class Status(msgspec.Struct, gc=False):
    """The fields of a ``v1.Status`` that carry meaning."""

    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _StatusDetails | None = None


_decode_status = msgspec.json.Decoder(Status).decode

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: EntityTooLarge,
    422: Invalid,
    429: TooManyRequests,
}
# These say something about an object or a version, and people's Jobs are failed or deleted by it (D10, D11). A proxy
# that knows no such page must not be taken for an API server that knows no such object, hence only with a Status.
_NEED_STATUS = frozenset({404, 409, 410, 422})


def error_from_answer(code: int, headers: Mapping[str, str], body: bytes) -> KubeError:
    """What an answer with a code of 400 or more means."""
    retry_after = _retry_after(headers.get("Retry-After", ""))
    status = _status(body)
    if status is not None and status.kind == "Status":
        return error_from_status(status, code=code, retry_after_seconds=retry_after)
    if code in _NEED_STATUS:
        kind_of_answer = PageNotFound if code == 404 else BadAnswer
        return kind_of_answer(f"{code} without a Status: this does not come from a Kubernetes API server")
    kind = _BY_CODE.get(code) or (ServerFailure if code >= 500 else ApiError)
    return kind(code, "", f"{_phrase(code)}{NO_STATUS}", retry_after_seconds=retry_after)


def _phrase(code: int) -> str:
    """``Bad Gateway``, and the like."""
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return "an answer"


def _status(body: bytes) -> Status | None:
    """None for what is no Status, or holds more than one ever does (D29)."""
    if len(body) > MOST_ERROR_BYTES or exceeds(body):
        return None
    try:
        return _decode_status(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def error_from_status(status: Status, *, code: int = 0, retry_after_seconds: float | None = None) -> ApiError:
    """What a Status means; ``code`` and ``retry_after_seconds`` are those of HTTP, which win over its own."""
    code = code or status.code
    details = status.details or _StatusDetails()
    if retry_after_seconds is None and details.retry_after_seconds > 0:
        retry_after_seconds = min(details.retry_after_seconds, LONGEST_RETRY_AFTER_SECONDS)
    return _class_of(code, status.reason, about_name=details.name)(
        code,
        clean(status.reason, longest=LONGEST_REASON),
        status.message[:_LONGEST_MESSAGE],
        tuple(
            # What is shown of them is cleaned here; messages where they are shown, since some look for words in them.
            Cause(clean(cause.field), clean(cause.reason, longest=LONGEST_REASON), cause.message[:_LONGEST_MESSAGE])
            for cause in (details.causes or ())[:_MOST_CAUSES]
        ),
        retry_after_seconds,
        about_kind=clean(details.kind),
        about_name=clean(details.name),
    )


def _class_of(code: int, reason: str, *, about_name: str) -> type[ApiError]:
    if code == 404 and not about_name:
        return NotServed
    if code == 409 and reason == "AlreadyExists":
        return AlreadyExists
    # An ERROR event may carry the reason alone.
    if reason in ("Expired", "Gone") and code in (0, 410):
        return Expired
    return _BY_CODE.get(code) or (ServerFailure if code >= 500 else ApiError)


def _retry_after(header: str) -> float | None:
    """The header's seconds within bounds; None when it is missing or a date, which no API server sends."""
    header = header.strip()
    if not (header.isascii() and header.isdigit()):
        return None
    return min(float(header[:9]), LONGEST_RETRY_AFTER_SECONDS)
