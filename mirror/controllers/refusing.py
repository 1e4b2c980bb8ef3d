"""What a failed write to a cluster means: in words for people, and whether it may have happened.

Called by ``writing_mirrors`` and ``releasing``. Not here: what is done about it.
"""

from __future__ import annotations

import re

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

_NUMBERS = re.compile(r"\d+")


def refusal_text(error: ApiError) -> str:
    """The kind of a refusal, for people: a server's text is kept out where it may quote the object (D18)."""
    match error:
        case NotFound():
            return "the namespace does not exist"
        case Forbidden():
            return "not allowed (403 Forbidden)" if "quota" not in error.message else "quota exceeded (403 Forbidden)"
        case _:
            return clean(f"{error.code} {error.reason}: {error.brief}", longest=300)


def is_refusal(error: ApiError) -> bool:
    """Whether the same request would be answered the same for as long as nobody changes anything."""
    return error.code in (400, 403, 413, 422)


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts of refusals differ at most in numbers: a count or a time in them is no other reason (D21)."""
    return _NUMBERS.sub("0", one) == _NUMBERS.sub("0", other)


def was_certainly_not_done(error: KubeError) -> bool:
    """Whether a request that failed like this had no effect."""
    return isinstance(error, Unreachable | Unauthorized | TooManyRequests)
