"""The faults as values: error responses, and lost or late ones.

Some faults are answers (a Status with 429, 500, 503, 409), others are the lack of one: then ``Dropped`` is raised, and
the transport lets the client feel it. Clocks that are wrong are ``clocks.SkewedClock``; a server that is killed is
``planes.plane.ControlPlane.kill``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from mirror.embedded.apiserver.apimachinery.errors import MODIFIED, StatusError, failure


class Dropped(BaseException):
    """There is no connection (any more), and no answer.

    Not an ``Exception``: a server that answers whatever fails with a Status must not answer this.
    """

    def __init__(self, *, was_sent: bool) -> None:
        super().__init__("the connection broke" if was_sent else "connection refused")
        self.was_sent = was_sent
        """Whether the request, or a part of it, got to the server."""


class Loss(Enum):
    """How a response is lost."""

    NO_CONNECTION = "nothing is sent"
    LOSE_REQUEST = "the connection breaks before it is carried out"
    LOSE_ANSWER = "it is carried out, and the connection breaks then"
    HANG = "nothing ever comes back, and it is not carried out"
    HANG_AFTER = "it is carried out, and nothing ever comes back"


@dataclass(frozen=True, slots=True)
class Slow:
    """It is carried out after so long."""

    seconds: float


Fault: TypeAlias = Loss | Slow | StatusError


class Expiry(Enum):
    """The forms in which a server says that a version is too old."""

    BY_CODE = "an answer 410, when the next watch begins"
    BY_EVENT = "an ERROR event with code 410"
    BY_REASON = "an ERROR event with the reason alone"


def too_many_requests(retry_after_seconds: int | None = 1) -> StatusError:
    """429 of a server that has too much to do."""
    return _busy(429, "TooManyRequests", "Too many requests, please try again later.", retry_after_seconds)


def unavailable(retry_after_seconds: int | None = None) -> StatusError:
    """503 of a server that is just starting or stopping."""
    return _busy(503, "ServiceUnavailable", "apiserver not ready", retry_after_seconds)


def internal_error() -> StatusError:
    """500 of a server whose storage does not answer."""
    return StatusError(failure(500, "InternalError", "Internal error occurred: etcdserver: request timed out"))


def _busy(code: int, reason: str, message: str, retry_after_seconds: int | None) -> StatusError:
    if retry_after_seconds is None:
        return StatusError(failure(code, reason, message))
    details = {"retryAfterSeconds": retry_after_seconds}
    return StatusError(failure(code, reason, message, details), headers=(("Retry-After", str(retry_after_seconds)),))


def conflict() -> StatusError:
    """409, as if somebody else were faster."""
    return StatusError(failure(409, "Conflict", f"Operation cannot be fulfilled: {MODIFIED}"))
