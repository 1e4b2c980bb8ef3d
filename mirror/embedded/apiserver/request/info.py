"""What the method, path and query of a request ask for, and which kind that is. Pure.

``request_info`` is the only reader of paths: ``access`` judges what it says, ``target_of`` finds the kind for it, and
``routing`` serves the verb that was judged. So nothing is served as anything else than what was allowed. The grammar is
that of kube-apiserver's ``RequestInfo``: ``/api/v1`` and ``/apis/GROUP/VERSION``, then resources, with or without a
namespace; ``watch`` or ``proxy`` may stand before them, as in old clients, and are the verb then, whatever the method.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from mirror.batch.syntax import segment_problems
from mirror.embedded.apiserver.apimachinery import selectors
from mirror.embedded.apiserver.apimachinery.errors import StatusError, bad_request, failure
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.messages import Request, malformed_escape
from mirror.embedded.apiserver.request import options

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
OF_ALL_NAMESPACES = ("list", "watch")
"""Verbs that need no namespace."""
_SPECIAL_VERBS = ("proxy", "watch")
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_NOT_ROUTED = ("//", "/apis//")
"""How paths begin that name a resource, and no route."""
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


class Target(NamedTuple):
    """What a path is about. ``namespace`` is empty for kinds without, and for all namespaces together."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False
    """The path says that it is a watch."""


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


def target_of(info: RequestInfo, registry: Registry) -> Target | None:
    """What is asked for, as it is served; None: nothing that is served as objects are."""
    if not info.parts or info.path.startswith(_NOT_ROUTED):
        return None
    kind = registry.find(info.group, info.version, info.parts[0])
    if kind is None:
        return None
    if kind.strategy.struct:
        return _of_built_in(info, kind)
    if kind.is_namespaced != bool(info.namespace) and (info.namespace or info.verb not in OF_ALL_NAMESPACES):
        return None
    return Target(kind, info.namespace, info.name, info.subresource, info.is_special)


def _of_built_in(info: RequestInfo, kind: Kind) -> Target | None:
    """Of the routes of built-in kinds; those of custom ones know nothing but what ``RequestInfo`` says."""
    if len(info.parts) > _LONGEST or info.verb == "proxy":
        return None
    if kind.is_namespaced != info.is_below_namespace and (info.is_below_namespace or info.name or info.subresource):
        return None
    # That of a namespace is itself what is asked for, not where it is.
    namespace = info.namespace if info.is_below_namespace else ""
    return Target(kind, namespace, info.name, info.subresource, info.is_special)


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
