"""What a failed write to a cluster means: in words for people, and whether it may have happened.

Called by ``writing_mirrors`` and ``releasing``. Not here: what is done about it.
"""

from __future__ import annotations

from mirror.kube.errors import (
    ApiError,
    Forbidden,
    KubeError,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from mirror.model.text import clean


def refusal_text(error: ApiError) -> str:
    """The kind of a refusal, for people: a server's text is kept out where it may quote the object (D18)."""
    match error:
        case NotFound():
            return "the namespace does not exist"
        case Forbidden():
            return "not allowed (403 Forbidden)" if "quota" not in error.message else "quota exceeded (403 Forbidden)"
        case _:
            return clean(f"{error.code} {error.reason}: {error.brief}", longest=300)


def was_certainly_not_done(error: KubeError) -> bool:
    """Whether a request that failed like this had no effect."""
    return isinstance(error, Unreachable | Unauthorized | TooManyRequests)
