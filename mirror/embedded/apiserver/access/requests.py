"""What a request wants, by its method and path alone, and how a refusal is worded. Pure.

A path need not be served to be judged: who may not see what is not there gets the same 403 as for what is.
"""

from __future__ import annotations

from urllib.parse import unquote

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.access.rules import Attributes
from mirror.embedded.apiserver.failures import Refused, failure, qualified
from mirror.embedded.apiserver.messages import Request, User

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_NOT = ("0", "false")
_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def attributes_of(request: Request) -> Attributes:
    """What the request wants."""
    verb = _VERBS.get(request.method, "")
    found = of_path(verb, request.path)
    if found.path:
        return Attributes(verb=request.method.lower(), path=found.path)
    if found.name:
        return found
    verb, name = found.verb, ""
    if verb == "delete":
        verb = "deletecollection"
    elif verb == "get":
        verb = "list" if request.parameters.get("watch", "0").lower() in _NOT else "watch"
        name = _selected_name(request.parameters.get("fieldSelector", ""))
    return Attributes(verb, found.group, found.resource, found.subresource, found.namespace, name)


def of_path(verb: str, path: str) -> Attributes:
    """The resource that a path names, whether or not it is served; or the path itself where it cannot be one."""
    plain = unquote(path) if "%" in path else path
    parts = plain.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, parts = "", parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, parts = parts[1], parts[3:]
    else:
        return Attributes(verb=verb, path=plain or "/")
    if parts[0] in ("watch", "proxy") and len(parts) > 1:
        verb = "watch" if parts[0] == "watch" else verb
        parts = parts[1:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 1:
        namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts = parts[2:]
    resource, name, subresource = (*parts, "", "")[:3]
    return Attributes(verb, group, resource, subresource, namespace, name)


def refusal(user: User, wanted: Attributes, reason: str = "") -> Refused:
    """403: this user may not do that."""
    told = _sentence(user, wanted).translate(_ESCAPED) + (f": {reason}" if reason else "")
    what = qualified(wanted.resource, wanted.group)
    if not wanted.resource:
        message = f"forbidden: {told}"
    elif wanted.name:
        message = f"{what} {quoted(wanted.name)} is forbidden: {told}"
    else:
        message = f"{what} is forbidden: {told}"
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    body = failure(403, "Forbidden", message, details)
    body.setdefault("details", {})
    return Refused(body)


def _sentence(user: User, wanted: Attributes) -> str:
    who = f"User {quoted(user.name)} cannot {wanted.verb}"
    if wanted.path:
        return f"{who} path {quoted(wanted.path)}"
    what = f"{who} resource {quoted(wanted.combined)} in API group {quoted(wanted.group)}"
    if wanted.namespace:
        return f"{what} in the namespace {quoted(wanted.namespace)}"
    return f"{what} at the cluster scope"


def _selected_name(selector: str) -> str:
    """The name to which a field selector narrows a collection; rules for names hold for it then."""
    for term in selector.split(","):
        name, equals, value = term.partition("=")
        if name.strip() == "metadata.name" and equals:
            return value.removeprefix("=").strip()
    return ""
