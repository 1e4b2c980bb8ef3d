"""Every answer that is not what was asked for, as a ``Status`` with the words of kube-apiserver (E1–E6).

Handlers raise ``StatusError``; ``server`` makes a response of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from mirror.batch.quoting import quoted
from mirror.batch.violations import TOO_MANY, Violation

Json: TypeAlias = dict[str, Any]


MOST_CAUSES = 100


class StatusError(Exception):
    """The request is answered with this ``Status``."""

    def __init__(self, status: Json, *, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(status.get("message", ""))
        self.status = status
        self.headers = headers

    @property
    def code(self) -> int:
        """The HTTP status."""
        return int(self.status["code"])

    @property
    def reason(self) -> str:
        """``Status.reason``: NotFound, Conflict, …"""
        return str(self.status.get("reason", ""))


def failure(code: int, reason: str, message: str, details: Json | None = None) -> Json:
    """The body of a Status."""
    body: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
    if reason:
        body["reason"] = reason
    if details is not None:
        body["details"] = {name: value for name, value in details.items() if value not in ("", None, [])}
    body["code"] = code
    return body


def qualified(plural: str, group: str) -> str:
    """``jobs.batch``, or ``pods`` in the core group; the same for kinds."""
    return f"{plural}.{group}" if group else plural


def not_found(plural: str, group: str, name: str) -> StatusError:
    """404: there is no such object."""
    details = {"name": name, "group": group, "kind": plural}
    return StatusError(failure(404, "NotFound", f"{qualified(plural, group)} {quoted(name)} not found", details))


def no_such_path() -> StatusError:
    """404: there is no such resource; a client library reads it as ``the server could not find …``."""
    return StatusError(failure(404, "NotFound", "the server could not find the requested resource", {}))


def already_exists(plural: str, group: str, name: str) -> StatusError:
    """409 on create."""
    details = {"name": name, "group": group, "kind": plural}
    message = f"{qualified(plural, group)} {quoted(name)} already exists"
    return StatusError(failure(409, "AlreadyExists", message, details))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(plural: str, group: str, name: str, why: str = MODIFIED) -> StatusError:
    """409 on a write that relied on something that is no longer so."""
    details = {"name": name, "group": group, "kind": plural}
    message = f"Operation cannot be fulfilled on {qualified(plural, group)} {quoted(name)}: {why}"
    return StatusError(failure(409, "Conflict", message, details))


def invalid(kind: str, group: str, name: str, violations: Sequence[Violation]) -> StatusError:
    """422: every cause with its repetitions, and a message without them (E1, E2).

    Of more than ``MOST_CAUSES`` only the first are reported, and how many more there are; kube-apiserver reports all,
    in responses of any size.
    """
    left_out = len(violations) - MOST_CAUSES
    if left_out > 0:
        violations = [
            *violations[:MOST_CAUSES],
            Violation("<nil>", TOO_MANY, f"Too many: {left_out} more are not told"),
        ]
    distinct = list(dict.fromkeys(f"{one.field}: {one.message}" for one in violations))
    listed = distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
    message = f"{qualified(kind, group)} {quoted(name)} is invalid" + (f": {listed}" if distinct else "")
    causes = [{"reason": one.reason, "message": one.message, "field": one.field} for one in violations]
    return StatusError(failure(422, "Invalid", message, {"name": name, "group": group, "kind": kind, "causes": causes}))


def bad_request(message: str) -> StatusError:
    """400."""
    return StatusError(failure(400, "BadRequest", message))


def forbidden(plural: str, group: str, name: str, why: str) -> StatusError:
    """403 of an admission step; ``why`` follows the colon."""
    what = qualified(plural, group)
    message = f"{what} {quoted(name)} is forbidden: {why}" if name else f"{what} is forbidden: {why}"
    return StatusError(failure(403, "Forbidden", message, {"name": name, "group": group, "kind": plural}))


def unauthorized() -> StatusError:
    """401."""
    return StatusError(failure(401, "Unauthorized", "Unauthorized"))


def method_not_allowed() -> StatusError:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(failure(405, "MethodNotAllowed", message, {}))


def gone(message: str) -> StatusError:
    """410: this version is no longer kept."""
    return StatusError(failure(410, "Expired", message))


def unsupported_media_type(message: str) -> StatusError:
    """415."""
    return StatusError(failure(415, "UnsupportedMediaType", message, _details(message)))


def not_acceptable(message: str) -> StatusError:
    """406."""
    return StatusError(failure(406, "NotAcceptable", message, _details(message)))


def _details(message: str) -> Json | None:
    """None, unless it was not upstream's handler that refused, but what finds one; it says the code, too."""
    return {} if message.startswith(("406: ", "415: ")) else None


def too_large(message: str) -> StatusError:
    """413."""
    return StatusError(failure(413, "RequestEntityTooLarge", message))


def too_many_requests(message: str) -> StatusError:
    """429; the client is to try again in a second."""
    return StatusError(failure(429, "TooManyRequests", message, {"retryAfterSeconds": 1}))


def internal(message: str) -> StatusError:
    """500; the message must not hold anything that a client may not see."""
    causes = [{"message": message}]
    return StatusError(failure(500, "InternalError", f"Internal error occurred: {message}", {"causes": causes}))
