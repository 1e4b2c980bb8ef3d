"""What a request is: what its method, path and query ask for, of which kind, and whether that is served at all.

``request_info`` is the only reader of paths: ``authz`` judges what it says, ``scope_of`` adds the kind, and what is
served is the verb that was judged. So nothing is served as anything else than what was allowed. The grammar is
that of kube-apiserver's ``RequestInfo``: ``/api/v1`` and ``/apis/GROUP/VERSION``, then resources, with or without a
namespace; ``watch`` or ``proxy`` may stand before them, as in old clients, and are the verb then, whatever the method.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeVar
from urllib.parse import unquote

from mirror.batch.quoting import quoted
from mirror.batch.syntax import segment_problems
from mirror.embedded.apiserver import side_thread
from mirror.embedded.apiserver.apimachinery import selectors
from mirror.embedded.apiserver.apimachinery.errors import (
    StatusError,
    bad_request,
    failure,
    method_not_allowed,
    no_such_path,
    not_found,
)
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.apimachinery.strategy import Update
from mirror.embedded.apiserver.messages import Request, Response, User, malformed_escape
from mirror.embedded.apiserver.patch import patching
from mirror.embedded.apiserver.request import options
from mirror.embedded.apiserver.request.options import PLAIN, Format
from mirror.embedded.apiserver.side_thread import SideThread

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
OF_ALL_NAMESPACES = ("list", "watch")
"""Verbs that need no namespace."""
_SPECIAL_VERBS = ("proxy", "watch")
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_NOT_ROUTED = ("//", "/apis//")
"""How paths begin that name a resource, and no route."""
_ENDLESS_VERBS = ("watch", "proxy")
_ENDLESS_SUBRESOURCES = ("attach", "exec", "proxy", "log", "portforward")
_LONGEST = 3
"""Parts from the resource on of what is served: resource, name, subresource."""


class RequestInfo(NamedTuple):
    """What a request wants, whether or not it is served."""

    verb: str
    """As rules have it; of a path that names no resource, the method in lower case."""
    path: str
    """Decoded."""
    group: str = ""
    version: str = ""
    namespace: str = ""
    """Of a namespace itself it is its name."""
    parts: tuple[str, ...] = ()
    """From the resource on. Empty: the path names no resource."""
    is_below_namespace: bool = False
    """The path names a namespace, and then a resource in it."""
    is_special: bool = False
    """The path names the verb. Of built-in kinds only GET of ``watch`` is served so."""
    selected_name: str = ""
    """The one name to which a field selector narrows a collection; rules for names hold for it then."""

    @property
    def name(self) -> str:
        """Of the object, if the path names one."""
        return self.parts[1] if len(self.parts) > 1 else ""

    @property
    def subresource(self) -> str:
        """Of the object, if the path names one."""
        return self.parts[2] if len(self.parts) > 2 and self.verb != "proxy" else ""

    @property
    def is_long_running(self) -> bool:
        """Whether upstream knows no time limit for it."""
        return bool(self.parts) and (self.verb in _ENDLESS_VERBS or self.subresource in _ENDLESS_SUBRESOURCES)


def request_info(request: Request) -> RequestInfo:
    """What the request wants.

    Raises:
        StatusError: 400, the path is no text; 500, it names a verb and nothing else, in the words of kube-apiserver.
    """
    path = request.path
    if "%" in path:
        if malformed_escape(path):
            raise bad_request("malformed percent-encoding in the path")
        path = unquote(path)
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return RequestInfo(request.method.lower(), path)
    is_special = rest[0] in _SPECIAL_VERBS
    if is_special:
        verb, rest = rest[0], rest[1:]
        if not rest:
            raise _no_kind(request)
    else:
        verb = _VERBS.get(request.method, "")
    namespace = rest[1] if rest[0] == "namespaces" and len(rest) > 1 else ""
    is_below = rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES
    if is_below:
        rest = rest[2:]
    found = RequestInfo(verb, path, group, version, namespace, tuple(rest), is_below, is_special)
    if found.name:
        return found
    if verb == "get":
        return _of_collection(found, request)
    return found._replace(verb="deletecollection") if verb == "delete" else found


def _of_collection(info: RequestInfo, request: Request) -> RequestInfo:
    """List or watch; what of the query does not fit is refused later, where it is served."""
    if not request.query:
        return info._replace(verb="list")
    verb = "watch" if options.flag(request.parameters, "watch") else "list"
    return info._replace(verb=verb, selected_name=_selected_name(request))


def _selected_name(request: Request) -> str:
    """The name that the served selector will narrow the collection to; none if the options cannot be read."""
    if "fieldSelector" not in request.parameters:
        return ""
    try:
        fields = options.decoded_list_options(request).fields
    except StatusError:
        return ""
    name = selectors.exact(fields, "metadata.name") or ""
    return "" if segment_problems(name) else name


def _no_kind(request: Request) -> StatusError:
    target = f"{request.path}?{request.query}" if request.query else request.path
    told = f"failed to create RequestInfo: unable to determine kind and namespace from url, {target}"
    return StatusError(
        failure(500, "InternalError", f"Internal error occurred: {told}", {"causes": [{"message": told}]})
    )


# A request for objects of one kind.

T = TypeVar("T")


@dataclass(slots=True)
class RequestScope:
    """One request about objects of one kind."""

    request: Request
    user: User
    verb: str
    """As it was allowed; empty where the method is not served."""
    kind: Kind
    namespace: str
    """Empty for kinds without, and for all namespaces together."""
    name: str
    subresource: str
    format: Format = PLAIN
    warnings: list[str] = field(default_factory=list)
    """Become ``Warning`` headers of the response, each text once."""
    thread: SideThread | None = None
    """Where steps run that take long; None: here."""
    is_watch_path: bool = False
    """The path says that it is a watch."""

    async def pure(self, step: Callable[[], T], *more: bytes, takes_long: bool = False) -> T:
        """What a step gives that looks at nothing but what belongs to this call alone, and may take long.

        Args:
            more: bytes that the step looks at beside the request.
            takes_long: it may take long whatever the sizes are.
        """
        if self.thread is None:
            return step()
        size = side_thread.LARGE_BYTES if takes_long else side_thread.size_of(self.request) + sum(map(len, more))
        return await side_thread.pure(self.thread, size, step)

    @property
    def subresource_strategy(self) -> Update | None:
        """How the subresource is changed; None for the object itself."""
        return self.kind.strategy.subresources[self.subresource] if self.subresource else None


def scope_of(
    request: Request, info: RequestInfo, user: User, registry: Registry, *, thread: SideThread | None = None
) -> RequestScope | None:
    """The request that was judged, with the kind that it is about; None: nothing that is served as objects are.

    Args:
        info: what ``request_info`` has read in this request, and what the authorizer has judged.
    """
    if not info.parts or info.path.startswith(_NOT_ROUTED):
        return None
    kind = registry.find(info.group, info.version, info.parts[0])
    if kind is None:
        return None
    namespace = info.namespace
    if kind.strategy.struct:
        if not _is_built_in_route(info, kind):
            return None
        # That of a namespace is itself what is asked for, not where it is.
        namespace = info.namespace if info.is_below_namespace else ""
    elif kind.is_namespaced != bool(namespace) and (namespace or info.verb not in OF_ALL_NAMESPACES):
        return None
    return RequestScope(
        request,
        user,
        _served_verb(request.method, info, kind),
        kind,
        namespace,
        info.name,
        info.subresource,
        thread=thread,
        is_watch_path=info.is_special,
    )


def _served_verb(method: str, info: RequestInfo, kind: Kind) -> str:
    """The verb that is served: the one that was allowed, or none (empty) where the method is not served there."""
    if _is_custom(kind):
        return info.verb  # their router looks at nothing else, not even at the method
    if method == "HEAD" or (info.is_special and method != "GET"):
        return ""
    if info.name:
        return "" if info.verb == "create" and not info.subresource else info.verb
    return "" if info.verb in ("update", "patch") else info.verb


def _is_built_in_route(info: RequestInfo, kind: Kind) -> bool:
    """Whether there is a route; those of custom kinds know nothing but what ``RequestInfo`` says."""
    if len(info.parts) > _LONGEST or info.verb == "proxy":
        return False
    return kind.is_namespaced == info.is_below_namespace or not (
        info.is_below_namespace or info.name or info.subresource
    )


# Whether a request is served. Custom resources have a router of their own upstream, which is a little more generous and
# has other words.

ActionKey: TypeAlias = tuple[str, str, str]
"""The plural with its group, the subresource (empty: the object itself), and the HTTP method."""
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_OF_OBJECTS = frozenset(("get", "update", "patch", "delete"))


def action_of(scope: RequestScope, actions: Container[ActionKey]) -> ActionKey | None:
    """The action that takes the request in place of a verb, if there is one. Raises: StatusError 400."""
    method = scope.request.method
    method = "GET" if method == "HEAD" and _is_custom(scope.kind) else method
    key = scope.kind.resource, scope.subresource, method
    if key not in actions or scope.is_watch_path or (scope.name and not scope.subresource):
        return None
    if scope.subresource and not scope.name:
        raise bad_request("name must be provided")
    return key if scope.namespace or not scope.kind.is_namespaced else None


_LOGS = f"text/plain, {options.OBJECTS}"


def check_representation(scope: RequestScope) -> None:
    """Whether there is an accepted one, as upstream's router sees it. Raises: StatusError 406."""
    if _is_custom(scope.kind):
        return
    if scope.verb in OF_ALL_NAMESPACES:
        options.check_routed(scope.request, f"{options.OBJECTS}, {options.STREAMS}")
    else:
        options.check_routed(scope.request, _LOGS if scope.subresource == "log" else options.OBJECTS)


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
    kind, resource = scope.kind, scope.kind.resource
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
    message = f"{verb} is not supported on resources of kind {quoted(kind.resource)}"
    return StatusError(failure(405, "MethodNotAllowed", message, {"group": kind.group, "kind": kind.plural}))


def _is_custom(kind: Kind) -> bool:
    return not kind.strategy.struct
