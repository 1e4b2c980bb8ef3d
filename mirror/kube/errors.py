"""What can go wrong on the wire, by meaning.

Raised by ``client`` and ``watch``, handled where something can be done. Whether to try again is decided in
``runtime/loop``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mirror.model.text import clean

LONGEST_REASON = 128
NO_STATUS = " without a Status: a proxy or load balancer answers, not a Kubernetes API server"


class KubeError(Exception):
    """Any failure of a request."""


def describe(error: KubeError) -> str:
    """An error in one line: what was being done, by its notes (``add_note``), the last one first; what went wrong.

    No name of a class: every error is raised with words that stand alone.
    """
    return ": ".join((*reversed(getattr(error, "__notes__", ())), str(error)))


class Unreachable(KubeError):
    """No connection could be made: the request was certainly not carried out."""


class NotLeading(Unreachable):
    """A write that only the leader may send, and the Lease is not held (any more): it was certainly not carried out."""


class OutcomeUnknown(KubeError):
    """The request was sent and no answer came (deadline, lost connection): it may or may not have been carried out."""


class BadAnswer(KubeError):
    """The server answered with something that is not the Kubernetes API (an HTML page, cut JSON, a redirect)."""


class TooLarge(BadAnswer):
    """The answer is larger than what is read of this server (D29)."""


class PageNotFound(BadAnswer):
    """404 without a Status: what an API server answers for a group or version that it does not serve, or a proxy."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of a Status' ``details.causes``."""

    field: str
    reason: str
    message: str


class ApiError(KubeError):
    """The API server refused the request with a Status."""

    def __init__(  # noqa: PLR0913 - the fields of a Status
        self,
        code: int,
        reason: str = "",
        message: str = "",
        causes: tuple[Cause, ...] = (),
        retry_after_seconds: float | None = None,
        *,
        about_kind: str = "",
        about_name: str = "",
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message
        self.causes = causes
        self.retry_after_seconds = retry_after_seconds
        # What the server says it is about: a create that is answered with 404 lacks its namespace, kind "namespaces".
        self.about_kind = about_kind
        self.about_name = about_name

    def __str__(self) -> str:
        what = " ".join(filter(None, (str(self.code or ""), clean(self.reason, longest=LONGEST_REASON))))
        return ": ".join(filter(None, (what, self.brief))) or "no explanation"

    @property
    def is_of_proxy(self) -> bool:
        """Whether what answered is most likely none of Kubernetes: it gave no Status (``answers``)."""
        return self.message.endswith(NO_STATUS)

    @property
    def is_of_terminating_namespace(self) -> bool:
        """Whether nothing can be created since the namespace is being deleted (kube-apiserver's NamespaceLifecycle)."""
        return self.code == 403 and (
            any(cause.reason == "NamespaceTerminating" for cause in self.causes)
            or "because it is being terminated" in self.message
        )

    @property
    def brief(self) -> str:
        """What may be shown to people, in one line that holds nothing unprintable.

        For 422 the causes' fields and reasons only, since its message may quote the whole object (D18). A cause with
        neither is not the validation's: a policy or webhook rejected the object, and who did is named.
        """
        if self.code == 422:
            pairs = (": ".join(filter(None, (cause.field, cause.reason))) for cause in self.causes[:8])
            named = ", ".join(filter(None, pairs))
            return clean(named or _denied_by(self.message) or "the object is invalid")
        return clean(" ".join(self.message.split()), longest=256)


_POLICY = re.compile(r"(ValidatingAdmissionPolicy '[^']{1,253}')")
_WEBHOOK = re.compile(r'(admission webhook "[^"]{1,253}")')


def _denied_by(message: str) -> str:
    """The policy or webhook that rejected an object, of the server's text; empty where it names none."""
    found = _POLICY.search(message) or _WEBHOOK.search(message)
    return f"denied by {found[1]}" if found else ""


class BadRequest(ApiError):
    """400."""


class Unauthorized(ApiError):
    """401: who we are was not accepted."""


class Forbidden(ApiError):
    """403: we may not do this."""


class NotFound(ApiError):
    """404: what the Status names does not exist; ``about_kind`` tells a missing namespace from the object itself."""


class NotServed(ApiError):
    """404 that names no object: the server does not know this kind, which says nothing about any object of it.

    A page that merely was not found, without a Status, is a ``BadAnswer``.
    """


NOT_SERVED = (NotServed, PageNotFound)
"""The server does not know the resource, or a proxy the page."""


class Conflict(ApiError):
    """409: the object changed meanwhile, or a precondition failed."""


class AlreadyExists(Conflict):
    """409 on create: the name is taken."""


class Expired(ApiError):
    """410: the version is too old to continue from."""


class EntityTooLarge(ApiError):
    """413: the server takes no object of this size."""


class Invalid(ApiError):
    """422."""


class TooManyRequests(ApiError):
    """429."""


class ServerFailure(ApiError):
    """5xx: the server could not carry it out, or could not say that it did."""


def refusal_of(error: KubeError) -> str:
    """Why a server will go on rejecting what we ask for, and the way out; empty for what ends by itself."""
    if not isinstance(error, ApiError) or isinstance(error, Conflict | TooManyRequests | ServerFailure):
        return ""
    is_missing = isinstance(error, Forbidden) and not (error.is_of_proxy or error.is_of_terminating_namespace)
    return describe(error) + ("; the permissions to grant are in config/rbac" if is_missing else "")
