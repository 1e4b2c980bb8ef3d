"""What a request is: what its method, path and query ask for, of which kind, and the form of its response.

``request_info`` is the only reader of paths: ``authz`` judges what it says, ``scope_of`` adds the kind, and ``routing``
serves the verb that was judged. So nothing is served as anything else than what was allowed. The grammar is
that of kube-apiserver's ``RequestInfo``: ``/api/v1`` and ``/apis/GROUP/VERSION``, then resources, with or without a
namespace; ``watch`` or ``proxy`` may stand before them, as in old clients, and are the verb then, whatever the method.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

from mirror.batch.syntax import segment_problems
from mirror.embedded.apiserver import side_thread
from mirror.embedded.apiserver.apimachinery import selectors
from mirror.embedded.apiserver.apimachinery.errors import StatusError, bad_request, failure, not_acceptable
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.apimachinery.strategy import Update
from mirror.embedded.apiserver.messages import Request, User, malformed_escape
from mirror.embedded.apiserver.request import options
from mirror.embedded.apiserver.side_thread import SideThread

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


# The form of a response: the ``Accept`` header, as kube-apiserver reads it.

YAML_TYPE = "application/yaml"
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_TARGETS = (TABLE, PARTIAL, PARTIAL_LIST)
_HUMAN = ("curl", "Wget", "Mozilla/5.0")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_OFFERED = (("application", "json"), ("application", "yaml"))
_LISTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
"""What upstream says it has; ours cannot speak the last, and says so only by refusing it."""


class Format(NamedTuple):
    """The form of an answer; ``target`` is empty for the object itself."""

    target: str = ""
    version: str = "v1"
    """Of ``meta.k8s.io``, for targets."""
    is_yaml: bool = False
    is_pretty: bool = False

    @property
    def is_as_stored(self) -> bool:
        """Whether objects are sent as they are stored."""
        return not (self.target or self.is_yaml or self.is_pretty)


PLAIN = Format()
_PRETTY = Format(is_pretty=True)


def format_of(request: Request) -> Format:
    """Raises: StatusError 406."""
    accept = request.headers.get("accept", "")
    if accept in ("", "application/json", "*/*"):
        found: Format | None = PLAIN
    elif len(accept) <= _LONGEST_REMEMBERED:
        found = _remembered(accept)
    else:
        found = _negotiated(accept)
    if found is None:
        raise not_acceptable(_refusal(accept))
    return found._replace(is_pretty=True) if _is_pretty(request) else found


def format_of_errors(request: Request) -> Format:
    """Errors come in the accepted encoding, if it is supported; else as JSON."""
    try:
        found = format_of(request)
    except StatusError:
        return _PRETTY if _is_pretty(request) else PLAIN
    return found._replace(target="") if found.target else found


def _is_pretty(request: Request) -> bool:
    if "pretty" in request.query:
        wanted = request.parameters.get("pretty")
        if wanted:
            return wanted in _TRUE
    return request.headers.get("user-agent", "").startswith(_HUMAN)


def _refusal(accept: str) -> str:
    """Upstream looks at the types first, and then whether it can convert."""
    types = {(one.type, one.subtype) for one in filter(None, map(_clause, accept.split(",")))}
    known = {*_OFFERED, ("application", "*"), ("*", "*"), ("application", "vnd.kubernetes.protobuf")}
    if types & known:
        return f"only the following media types are accepted: {_LISTED}"
    return f"406: Not Acceptable\n\nAvailable representations: {_LISTED}"


class _Clause(NamedTuple):
    type: str
    subtype: str
    quality: float
    parameters: tuple[tuple[str, str], ...]


def _negotiated(accept: str) -> Format | None:
    clauses = sorted(filter(None, map(_clause, accept.split(","))), key=lambda one: -one.quality)
    for clause in clauses:
        for type_, subtype in _OFFERED:
            if (clause.type, clause.subtype) in ((type_, subtype), (type_, "*"), ("*", "*")):
                found = _accepted(clause, is_yaml=subtype == "yaml")
                if found is not None:
                    return found
    return None


_LONGEST_REMEMBERED = 1024
_remembered = lru_cache(maxsize=256)(_negotiated)


def _clause(text: str) -> _Clause | None:
    name, *parameters = (part.strip() for part in text.split(";"))
    type_, _, subtype = name.partition("/")
    if not name:
        return None
    pairs = [(key.strip(), value.strip().strip('"')) for key, _, value in (one.partition("=") for one in parameters)]
    quality = next((value for key, value in pairs if key == "q"), "1")
    number = float(quality) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,9})?", quality) else 1.0
    return _Clause(type_, subtype or "*", number, tuple(pair for pair in pairs if pair[0] != "q"))


def _accepted(clause: _Clause, *, is_yaml: bool) -> Format | None:
    found = dict(clause.parameters)
    if found.get("stream") not in (None, "", "watch") or found.get("sv"):
        return None
    is_pretty = found.get("pretty") == "1"
    if not {"as", "g", "v"} & found.keys():
        return Format(is_yaml=is_yaml, is_pretty=is_pretty)
    target, group, version = found.get("as", ""), found.get("g", ""), found.get("v", "")
    if target not in _TARGETS or group != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    return Format(target, version, is_yaml, is_pretty)


# A request for objects of one kind.

T = TypeVar("T")


@dataclass(slots=True)
class RequestScope:
    """One request about objects of one kind."""

    request: Request
    user: User
    verb: str
    """As it was allowed; ``routing.served_verb`` says whether it is served."""
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

    async def pure(self, step: Callable[[], T], *more: bytes) -> T:
        """What a step gives that looks at nothing but what belongs to this call alone, and may take long.

        Args:
            more: bytes that the step looks at beside the request.
        """
        if self.thread is None:
            return step()
        return await side_thread.pure(self.thread, side_thread.size_of(self.request) + sum(map(len, more)), step)

    @property
    def user_agent(self) -> str:
        """What the client calls itself."""
        return self.request.headers.get("user-agent", "")

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
        info.verb,
        kind,
        namespace,
        info.name,
        info.subresource,
        thread=thread,
        is_watch_path=info.is_special,
    )


def _is_built_in_route(info: RequestInfo, kind: Kind) -> bool:
    """Whether there is a route; those of custom kinds know nothing but what ``RequestInfo`` says."""
    if len(info.parts) > _LONGEST or info.verb == "proxy":
        return False
    return kind.is_namespaced == info.is_below_namespace or not (
        info.is_below_namespace or info.name or info.subresource
    )
