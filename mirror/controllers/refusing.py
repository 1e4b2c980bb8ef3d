"""What a failed write to a cluster means: in words for people, and whether it may have happened.

Called by ``writing_mirrors`` and ``applying``. Not here: what is done about it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from mirror.decide.snapshot import Snapshot
from mirror.kube.errors import (
    ApiError,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    describe,
)
from mirror.model.reasons import Obstruction, Reason
from mirror.model.text import clean


@dataclass(frozen=True, slots=True)
class WorkerRefusal:
    """A worker does not take what goes along with a mirror, or has something else under its name (D27)."""

    text: str
    reason: Reason
    error: ApiError | None = None


NO_STATUS_SUBRESOURCE = "its CustomResourceDefinition has no status subresource (subresources: {status: {}})"
NOT_CREATED_SHOWN_SECONDS = 30.0
"""What a create meets for less, an overloaded worker's 429 most often, is no news."""
LONGEST_PART = 120
"""Characters of a name, or of what a policy says, in a text for people."""
_NUMBERS = re.compile(r"\d+")
# Texts of kube-apiserver's admission plugins.
_QUOTA = re.compile(r"exceeded quota: (?P<name>[^,]+), requested: (?P<what>.+?), used: ")
_POLICY = re.compile(
    r"ValidatingAdmissionPolicy '(?P<name>[^']+)' with binding '[^']+' denied request: (?P<why>.*)", re.DOTALL
)
_GOING = "create not allowed while custom resource definition is terminating"
_LACKS = re.compile(r'cannot (?P<verb>[a-z]+) resource "(?P<resource>[a-z./]+)"')
_FAILING = re.compile(r'failed calling webhook "(?P<name>[^"]+)"')
_WHY_FAILING = (
    ("context deadline exceeded", "no response in time"),
    ("Client.Timeout", "no response in time"),
    ("connection refused", "connection refused"),
    ("no endpoints available", "its Service has no endpoints"),
    ("no such host", "no such host"),
    ("no route to host", "no route to host"),
    ("x509: ", "its certificate is not accepted"),
    ('" not found', "its Service does not exist"),
)
"""What kube-apiserver says of a call that failed, without the address."""
_STRICTLY = "strict decoding error: "
_UNKNOWN_FIELD = re.compile(r'unknown field "(?P<path>[^"\\]{1,200})"')
MOST_FIELDS = 3
_WEBHOOK = re.compile(r'admission webhook "(?P<name>[^"]+)" denied the request(?:: (?P<why>.*)| without)?', re.DOTALL)


def refusal_text(error: ApiError) -> str:
    """Why a server refused, for people, with the policy, webhook or quota that did.

    Of the server's own text nothing else is kept: it may quote the object (D18).
    """
    if isinstance(error, NotFound):
        return "the namespace does not exist"
    if error.is_of_terminating_namespace:
        return "the namespace is being deleted"
    if by := _refused_by(error.message):
        return f"{by} ({error.code} {clean(error.reason, longest=LONGEST_PART) or 'refused'})"
    if isinstance(error, Invalid) and (fields := _unknown_fields(error.message)):
        return f"{fields} (422 Invalid)"
    if isinstance(error, Forbidden):
        if _GOING in error.message:
            return "its CustomResourceDefinition is being deleted"
        lacks = _LACKS.search(error.message)
        what = f" to {_part(lacks['verb'])} {_part(lacks['resource'])}" if lacks else ""
        return f"not allowed{what} (403 Forbidden)"
    return clean(str(error), longest=300)


def _refused_by(message: str) -> str:
    """What of the server's admission refused it, in words of ours; empty where that is not told."""
    if found := _QUOTA.search(message):
        return f"quota exceeded: ResourceQuota {_part(found['name'])}, requested {_part(found['what'])}"
    if "exceeded quota" in message:
        return "quota exceeded"
    if found := _POLICY.search(message):
        return f"denied by ValidatingAdmissionPolicy {_part(found['name'])}: {_part(found['why'])}"
    if found := _WEBHOOK.search(message):
        why = _part(found["why"] or "")
        return f"denied by admission webhook {_part(found['name'])}{': ' if why else ''}{why}"
    if found := _FAILING.search(message):
        cause = next((text for said, text in _WHY_FAILING if said in message), "")
        return f"its admission webhook {_part(found['name'])} fails{': ' if cause else ''}{cause}"
    return ""


def _unknown_fields(message: str) -> str:
    """What of a patch the definition there does not know: the server's text quotes the whole patch before that."""
    _, is_so, complaints = message.rpartition(_STRICTLY)
    found = _UNKNOWN_FIELD.findall(complaints) if is_so else []
    return ", ".join(f'unknown field "{_part(path)}"' for path in found[:MOST_FIELDS])


def _part(text: str) -> str:
    return clean(text.strip(), longest=LONGEST_PART)


def is_refusal(error: ApiError) -> bool:
    """Whether the same request would be answered the same for as long as nobody changes anything."""
    return error.code in (400, 403, 413, 422)


def is_same_text(one: str, other: str) -> bool:
    """Whether two texts of refusals differ at most in numbers: a count or a time in them is no other reason (D21)."""
    return without_numbers(one) == without_numbers(other)


def is_same_reason(one: Obstruction | None, other: Obstruction) -> bool:
    """The same of what keeps a mirror from being made."""
    return one is not None and one.reason == other.reason and is_same_text(one.text, other.text)


def without_numbers(text: str) -> str:
    return _NUMBERS.sub("0", text)


def was_certainly_not_done(error: KubeError) -> bool:
    """Whether a request that failed like this had no effect."""
    return isinstance(error, Unreachable | Unauthorized | TooManyRequests)


def why_not_created(seen: Snapshot, worker: str, error: KubeError) -> Obstruction | None:
    """What is said of a create that is tried again: of a server's own failure at once, else once it has lasted."""
    if isinstance(error, ServerFailure):
        return Obstruction(Reason.MIRROR_REFUSED, f"worker {worker}: {refusal_text(error)}")
    placed_at = seen.source.kind.progress(seen.source.found).placed_at
    if not placed_at or (seen.now - datetime.fromisoformat(placed_at)).total_seconds() < NOT_CREATED_SHOWN_SECONDS:
        return None
    text = clean(" ".join(describe(error).split()), longest=200)
    return Obstruction(Reason.MIRROR_NOT_CREATED, f"worker {worker}: the copy cannot be created: {text}")
