"""OpenAPI v3: an index, and a document for each version of each group, as far as kubectl reads them.

That is: paths with the kind they are about and the parameters of writes (``--validate``), and schemas (``explain``,
``apply``, ``diff``). Answers are made when they are first asked for; a document says nothing of other groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.apimachinery.schemas import components
from mirror.embedded.apiserver.messages import JSON_TYPE, Request, Response

Json: TypeAlias = dict[str, Any]

_ROOT = "/openapi/v3"
_MOST_DOCUMENTS = 32
_FAILURE_RULE = components.name_of("PodFailurePolicyRule")
_OPTIONS = components.META + "DeleteOptions"
_STATUS = components.META + "Status"
_PATCHES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = (
    *("allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion"),
    *("resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"),
)
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES = {
    **dict.fromkeys(("allowWatchBookmarks", "sendInitialEvents", "watch", "orphanDependents", "force"), "boolean"),
    **dict.fromkeys(("limit", "timeoutSeconds", "gracePeriodSeconds"), "integer"),
}
_ENCODER = msgspec.json.Encoder()


def answer(request: Request, registry: Registry, gates: FeatureGates = DEFAULT_GATES) -> Response | None:
    """The answer on these paths, whatever the method; None on others."""
    found: bytes | None
    path, content_type = request.path, JSON_TYPE
    if path == _ROOT:
        # As kube-apiserver says it, whatever is accepted.
        found, content_type = _index(registry, gates), "text/plain; charset=utf-8"
    elif path.startswith(_ROOT + "/"):
        kinds = _versions(registry).get(path.removeprefix(_ROOT + "/"))
        found = None if kinds is None else _document(kinds, gates)
    else:
        return None
    if found is None:
        return None
    etag = f'"{hashlib.sha256(found).hexdigest().upper()}"'
    if request.headers.get("if-none-match") == etag:
        return Response(304, headers=(("ETag", etag),))
    return Response(200, found, content_type, headers=(("ETag", etag),))


def _versions(registry: Registry) -> dict[str, tuple[Kind, ...]]:
    """``api/v1`` and others, with their kinds."""
    found: dict[str, list[Kind]] = {}
    for kind in registry:
        found.setdefault(_root_of(kind).removeprefix("/"), []).append(kind)
    return {root: tuple(kinds) for root, kinds in sorted(found.items())}


def _root_of(kind: Kind) -> str:
    return f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"


def _index(registry: Registry, gates: FeatureGates) -> bytes:
    paths = {
        root: {"serverRelativeURL": f"{_ROOT}/{root}?hash={_fingerprint(kinds, gates)}"}
        for root, kinds in _versions(registry).items()
    }
    return _ENCODER.encode({"paths": paths})


def _fingerprint(kinds: tuple[Kind, ...], gates: FeatureGates) -> str:
    """Another one whenever the document is another one; does not make the document."""
    facts = [
        [kind.plural, kind.kind, kind.verbs, kind.is_namespaced, kind.strategy.struct, _ways(kind), _schema(kind)]
        for kind in kinds
    ]
    data = _ENCODER.encode([_root_of(kinds[0]), gates.pod_failure_policy_name, facts])
    return hashlib.sha256(data).hexdigest()[:32].upper()


def _ways(kind: Kind) -> dict[str, list[str]]:
    """Subresources that are forms of their object, or of its scale, with their verbs."""
    found = {name: list(update.verbs) for name, update in kind.strategy.subresources.items()}
    if getattr(kind.strategy, "scale", None):
        found["scale"] = ["get", "patch", "update"]
    return found


_documents: dict[str, bytes] = {}
"""Documents by fingerprint, the latest ones: servers of one process share them, since they cost much to make."""


def _document(kinds: tuple[Kind, ...], gates: FeatureGates) -> bytes:
    fingerprint = _fingerprint(kinds, gates)
    found = _documents.get(fingerprint)
    if found is None:
        if len(_documents) >= _MOST_DOCUMENTS:
            del _documents[next(iter(_documents))]
        found = _documents[fingerprint] = _made(kinds, gates)
    return found


def _made(kinds: tuple[Kind, ...], gates: FeatureGates) -> bytes:
    structs = {kind.strategy.struct for kind in kinds if kind.strategy.struct}
    if any("scale" in _ways(kind) for kind in kinds):
        structs.add("Scale")
    schemas = components.of_structs(sorted(structs | {"ObjectMeta", "ListMeta", "DeleteOptions", "Status"}))
    rule = schemas.get(_FAILURE_RULE)
    if rule is not None and not gates.pod_failure_policy_name:
        properties = {name: one for name, one in rule["properties"].items() if name != "name"}
        schemas[_FAILURE_RULE] = {**rule, "properties": properties}
    paths: Json = {}
    for kind in kinds:
        name = schema_name(kind)
        if kind.strategy.struct:
            schemas[name] = {**schemas[name], "x-kubernetes-group-version-kind": [_identity(kind)]}
        else:
            schemas[name] = _custom(kind)
        schemas[name + "List"] = _list_schema(kind, name)
        paths.update(_paths(kind, name))
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }
    return _ENCODER.encode(document)


def schema_name(kind: Kind) -> str:
    """What OpenAPI calls a kind; those of definitions are called after their reversed group."""
    if kind.strategy.struct:
        return components.name_of(kind.strategy.struct)
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _schema(kind: Kind) -> Mapping[str, Any]:
    found = getattr(kind.strategy, "schema", None)
    return found if isinstance(found, Mapping) else {}


def _custom(kind: Kind) -> Json:
    """The schema of a custom resource, with what all objects have."""
    found: Json = {"type": "object", **_schema(kind)}
    if "x-kubernetes-preserve-unknown-fields" not in found or "properties" in found:
        found["properties"] = {
            **(found.get("properties") or {}),
            "apiVersion": {"type": "string", "description": "The version of the schema of this object."},
            "kind": {"type": "string", "description": "What this object is."},
            "metadata": {"allOf": [{"$ref": f"{components.REFERENCE}{components.META}ObjectMeta"}]},
        }
    found["x-kubernetes-group-version-kind"] = [_identity(kind)]
    return found


def _list_schema(kind: Kind, name: str) -> Json:
    return {
        "type": "object",
        "description": f"{kind.list_kind or kind.kind + 'List'} is a list of {kind.kind}.",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": f"{components.REFERENCE}{components.META}ListMeta"}]},
            "items": {"type": "array", "items": {"allOf": [{"$ref": components.REFERENCE + name}]}},
        },
        "x-kubernetes-group-version-kind": [{**_identity(kind), "kind": kind.list_kind or kind.kind + "List"}],
    }


def _identity(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _paths(kind: Kind, name: str) -> Json:
    root = _root_of(kind)
    place = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.is_namespaced else f"{root}/{kind.plural}"
    found = {place: _collection(kind, name)}
    if kind.is_namespaced and "list" in kind.verbs:
        found[f"{root}/{kind.plural}"] = {"get": _operation(kind, "list", name + "List", _LIST)}
    one = _object(kind, name, kind.verbs)
    if one:
        found[place + "/{name}"] = one
    for subresource, verbs in _ways(kind).items():
        spoken = components.name_of("Scale") if subresource == "scale" else name
        found[f"{place}/{{name}}/{subresource}"] = _object(kind, spoken, verbs)
    return {path: operations for path, operations in found.items() if operations}


def _collection(kind: Kind, name: str) -> Json:
    found: Json = {}
    if "list" in kind.verbs:
        found["get"] = _operation(kind, "list", name + "List", _LIST)
    if "create" in kind.verbs:
        found["post"] = _operation(kind, "post", name, _WRITE, body=name)
    if "deletecollection" in kind.verbs:
        found["delete"] = _operation(kind, "deletecollection", _STATUS, (*_LIST, *_DELETE), body=_OPTIONS)
    return found


def _object(kind: Kind, name: str, verbs: Iterable[str]) -> Json:
    found: Json = {}
    if "get" in verbs:
        found["get"] = _operation(kind, "get", name, ())
    if "update" in verbs:
        found["put"] = _operation(kind, "put", name, _WRITE, body=name)
    if "patch" in verbs:
        types = _PATCHES if kind.strategy.struct else _PATCHES[:-1]
        found["patch"] = _operation(kind, "patch", name, (*_WRITE, "force"), body=name, types=types)
    if "delete" in verbs:
        found["delete"] = _operation(kind, "delete", _STATUS, _DELETE, body=_OPTIONS)
    if found:
        found["parameters"] = [_parameter(one, "path") for one in ("name", "namespace")[: 1 + kind.is_namespaced]]
    return found


def _operation(
    kind: Kind,
    action: str,
    answer: str,
    parameters: Iterable[str],
    *,
    body: str = "",
    types: Iterable[str] = ("*/*",),
) -> Json:
    found: Json = {
        "operationId": f"{action}{kind.kind}",
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _identity(kind),
        "parameters": [_parameter(one, "query") for one in parameters],
        "responses": {"200": {"description": "OK", "content": _content(("application/json",), answer)}},
    }
    if body:
        found["requestBody"] = {"content": _content(types, body)}
    return found


def _content(types: Iterable[str], name: str) -> Json:
    return {one: {"schema": {"$ref": components.REFERENCE + name}} for one in types}


def _parameter(name: str, place: str) -> Json:
    found: Json = {"name": name, "in": place, "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}
    return {**found, "required": True} if place == "path" else found
