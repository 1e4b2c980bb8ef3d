"""What a request wants, as rules have it, and how a refusal is worded. Pure.

``request.info`` has read the request. What it wants need not be served to be judged: who may not see what is not there gets
the same 403 as for what is.
"""

from __future__ import annotations

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery.errors import StatusError, failure, qualified
from mirror.embedded.apiserver.authz.rules import Attributes
from mirror.embedded.apiserver.messages import User
from mirror.embedded.apiserver.request.info import RequestInfo

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def attributes_of(info: RequestInfo) -> Attributes:
    """What the request wants, as rules have it."""
    if not info.parts:
        return Attributes(info.verb, path=info.path or "/")
    name = info.name or info.selected_name
    return Attributes(info.verb, info.group, info.parts[0], info.subresource, info.namespace, name)


def refusal(user: User, wanted: Attributes, reason: str = "") -> StatusError:
    """403: this user may not do that."""
    told = _sentence(user, wanted).translate(_ESCAPED) + (f": {reason}" if reason else "")
    what = qualified(wanted.resource, wanted.group)
    if not what:
        message = f"forbidden: {told}"
    elif wanted.name:
        message = f"{what} {quoted(wanted.name)} is forbidden: {told}"
    else:
        message = f"{what} is forbidden: {told}"
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    body = failure(403, "Forbidden", message, details)
    body.setdefault("details", {})
    return StatusError(body)


def _sentence(user: User, wanted: Attributes) -> str:
    who = f"User {quoted(user.name)} cannot {wanted.verb}"
    if wanted.path:
        return f"{who} path {quoted(wanted.path)}"
    what = f"{who} resource {quoted(wanted.combined)} in API group {quoted(wanted.group)}"
    if wanted.namespace:
        return f"{what} in the namespace {quoted(wanted.namespace)}"
    return f"{what} at the cluster scope"
