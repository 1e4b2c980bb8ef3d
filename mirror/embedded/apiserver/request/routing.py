"""What a method does to a path, and whether that is served at all. Pure.

Custom resources have a router of their own upstream, which is a little more generous and has other words.
"""

from __future__ import annotations

from collections.abc import Container
from typing import TypeAlias

from mirror.batch.quoting import quoted
from mirror.batch.syntax import segment_problems
from mirror.embedded.apiserver.apimachinery.errors import (
    StatusError,
    bad_request,
    failure,
    method_not_allowed,
    no_such_path,
    not_found,
    qualified,
)
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.messages import Request, Response
from mirror.embedded.apiserver.patch import patching
from mirror.embedded.apiserver.request.info import OF_ALL_NAMESPACES, RequestScope

ActionKey: TypeAlias = tuple[str, str, str]
"""The plural with its group, the subresource (empty: the object itself), and the HTTP method."""

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_OF_OBJECTS = frozenset(("get", "update", "patch", "delete"))


def resource_of(kind: Kind) -> str:
    """``jobs.batch``, or ``pods``."""
    return qualified(kind.plural, kind.group)


def served_verb(scope: RequestScope) -> str:
    """The verb that is served: the one that was allowed, or none (empty) where the method is not served there."""
    allowed, method = scope.verb, scope.request.method
    if _is_custom(scope.kind):
        return allowed  # their router looks at nothing else, not even at the method
    if method == "HEAD" or (scope.is_watch_path and method != "GET"):
        return ""
    if scope.name:
        return "" if allowed == "create" and not scope.subresource else allowed
    return "" if allowed in ("update", "patch") else allowed


def action_of(scope: RequestScope, actions: Container[ActionKey]) -> ActionKey | None:
    """The action that takes the request in place of a verb, if there is one. Raises: StatusError 400."""
    method = scope.request.method
    method = "GET" if method == "HEAD" and _is_custom(scope.kind) else method
    key = resource_of(scope.kind), scope.subresource, method
    if key not in actions or scope.is_watch_path or (scope.name and not scope.subresource):
        return None
    if scope.subresource and not scope.name:
        raise bad_request("name must be provided")
    return key if scope.namespace or not scope.kind.is_namespaced else None


def check_served(scope: RequestScope, actions: Container[ActionKey], *, selected_name: str = "") -> None:
    """Whether there is such a request; ``selected_name`` is that of a field selector.

    Raises:
        StatusError: 400, 404, 405; 415 for a patch of a built-in kind, which upstream's routing tells by its type.
    """
    kind, verb = scope.kind, scope.verb
    if scope.subresource:
        _check_subresource(scope, verb, actions, selected_name)
    elif _is_custom(kind):
        if verb in ("update", "patch") and not scope.name:
            raise bad_request("name must be provided")
        if verb not in kind.verbs:
            raise _not_supported(kind, verb)
    else:
        _check_built_in(scope, verb)
    if verb == "patch" and not _is_custom(kind):
        patching.type_of(scope.request.headers.get("content-type", ""), kind)
    _check_names(scope, verb)


def _check_built_in(scope: RequestScope, verb: str) -> None:
    kind = scope.kind
    is_wide = kind.is_namespaced and not scope.namespace
    if scope.name and not _OF_OBJECTS.intersection(kind.verbs):
        raise no_such_path()
    if (scope.is_watch_path and "watch" not in kind.verbs) or (is_wide and "list" not in kind.verbs):
        raise no_such_path()
    if verb not in kind.verbs or (is_wide and not scope.name and verb not in OF_ALL_NAMESPACES):
        raise method_not_allowed()


def _check_names(scope: RequestScope, verb: str) -> None:
    """A name or a namespace that is empty, or that storage could not have."""
    if scope.subresource and not scope.name:
        raise bad_request("name must be provided")
    if scope.kind.is_namespaced and not scope.namespace and verb not in OF_ALL_NAMESPACES:
        raise bad_request("Namespace parameter required.")
    if verb in ("get", "patch", "delete"):
        check_segment(scope.name)
    if scope.namespace in (".", "..") and verb not in ("create", "update", "patch"):
        group = scope.kind.group if _is_custom(scope.kind) else ""
        key = "/" + "/".join(filter(None, (group, scope.kind.plural, scope.namespace, scope.name)))
        raise StatusError(failure(500, "", f"invalid key: {quoted(key)}"))


def check_segment(name: str) -> None:
    """Whether storage could have an object of that name. Raises: StatusError 400."""
    if problems := segment_problems(name):
        raise bad_request(f"Name parameter invalid: {quoted(name)}: {';'.join(problems)}")


def nowhere(request: Request, registry: Registry) -> Response:
    """404 for a path that names nothing that is served.

    Below a built-in version upstream says it with a Status, elsewhere in plain text; ours gives a Status there, too, to
    those who ask for JSON by name, as all client libraries do.

    Raises:
        StatusError: 404, that Status.
    """
    parts = request.path.strip("/").split("/")
    has_group = parts[0] == "apis" and all(parts[1:2])
    place = ("", parts[1]) if parts[0] == "api" and len(parts) > 1 else tuple(parts[1:3]) if has_group else ()
    is_built_in = any((one.group, one.version) == place and not _is_custom(one) for one in registry)
    if is_built_in or "json" in request.headers.get("accept", ""):
        raise no_such_path()
    return Response(404, b"404 page not found\n", "text/plain; charset=utf-8", (("X-Content-Type-Options", "nosniff"),))


def _check_subresource(scope: RequestScope, verb: str, actions: Container[ActionKey], selected_name: str) -> None:
    kind, resource = scope.kind, resource_of(scope.kind)
    strategy = kind.strategy.subresources.get(scope.subresource)
    if not _is_custom(kind):
        if scope.is_watch_path:
            raise no_such_path()
        if not scope.name:
            verb = {"list": "get", "watch": "get", "deletecollection": "delete"}.get(verb, verb)
    if strategy is None:
        if any((resource, scope.subresource, method) in actions for method in _METHODS):
            raise _not_supported(kind, verb) if _is_custom(kind) else method_not_allowed()
        if _is_custom(kind):
            raise not_found(kind.plural, kind.group, scope.name or selected_name)
        raise no_such_path()
    if verb in strategy.verbs:
        return
    raise _not_supported(kind, verb) if _is_custom(kind) else method_not_allowed()


def _not_supported(kind: Kind, verb: str) -> StatusError:
    message = f"{verb} is not supported on resources of kind {quoted(resource_of(kind))}"
    return StatusError(failure(405, "MethodNotAllowed", message, {"group": kind.group, "kind": kind.plural}))


def _is_custom(kind: Kind) -> bool:
    return not kind.strategy.struct
