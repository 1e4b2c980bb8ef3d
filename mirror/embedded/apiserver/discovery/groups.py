"""Discovery: groups and resources, in the old form and in the aggregated one; the version; health.

Made of the registry for each request, since definitions come and go; OpenAPI is in ``openapi``.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates
from mirror.embedded.apiserver.apimachinery.errors import method_not_allowed
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.discovery import openapi
from mirror.embedded.apiserver.messages import JSON_TYPE, Request, Response
from mirror.embedded.apiserver.request import responses
from mirror.embedded.apiserver.request.options import OBJECTS, check_routed, format_of_discovery

Json: TypeAlias = dict[str, Any]

AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION: Mapping[str, str] = {
    "major": "1",
    "minor": "36",
    "emulationMajor": "1",
    "emulationMinor": "36",
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": "35",
    "gitVersion": "v1.36.3",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.26.8",
    "compiler": "gc",
    "platform": "linux/amd64",
}
"""The version whose behaviour is served."""

_GROUPS = (
    *("", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch", "policy"),
    *("rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io"),
    "coordination.k8s.io",
)
"""Built-in groups, the preferred ones first."""
_ADDRESSES = [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}]
_ACTIONS: Mapping[str, tuple[tuple[str, str, str, str, tuple[str, ...]], ...]] = {
    "pods": (
        ("binding", "", "", "Binding", ("create",)),
        ("eviction", "policy", "v1", "Eviction", ("create",)),
        ("log", "", "", "Pod", ("get",)),
    ),
    "serviceaccounts": (("token", "authentication.k8s.io", "v1", "TokenRequest", ("create",)),),
}
"""Subresources that are no form of their object: name, group, version and kind of what they speak, verbs."""
_SCALE = ("autoscaling", "v1", "Scale")
_STABLE = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_ENCODER = msgspec.json.Encoder()

_Groups: TypeAlias = dict[str, dict[str, list[Kind]]]


def answer(request: Request, registry: Registry, gates: FeatureGates = DEFAULT_GATES) -> Response | None:
    """The answer to a question about what there is; None: the path is about something else.

    Raises:
        StatusError: 405, 406.
    """
    path = request.path.rstrip("/")
    if path.startswith("/openapi"):
        return openapi.answer(request, registry, gates)
    has_slashes = request.path.endswith("//")
    if has_slashes and path in ("", "/apis"):
        return None
    parts = path.split("/")[1:]
    found = _found(parts, request, registry)
    if found is not None and _is_routed(parts, registry, has_slashes=has_slashes):
        if request.method != "GET":
            raise method_not_allowed()
        check_routed(request, JSON_TYPE if parts == ["version"] else OBJECTS)
    if found is None or isinstance(found, Response):
        return found
    return responses.written(_ENCODER.encode(found), format_of_discovery(request))


def _is_routed(parts: list[str], registry: Registry, *, has_slashes: bool) -> bool:
    """Whether upstream's router answers, which knows methods; others answer to any.

    Args:
        has_slashes: more than one at the end, with which a group is a path of the router.
    """
    match parts:
        case ["api", *_] | ["version"]:
            return True
        case ["apis", group]:
            return has_slashes and any(one.strategy.struct for one in registry if one.group == group)
        case ["apis", group, version]:
            return any(one.strategy.struct for one in registry if (one.group, one.version) == (group, version))
    return False


def _found(parts: list[str], request: Request, registry: Registry) -> Response | Json | None:
    match parts:
        case ["version"]:
            return _json(VERSION)
        case ["api"]:
            if _accepts_aggregated(request):
                return _aggregated(request, {"": _versions(registry).get("", {})})
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": _ADDRESSES}
        case ["apis"]:
            groups = {group: versions for group, versions in _versions(registry).items() if group}
            if _accepts_aggregated(request):
                return _aggregated(request, groups)
            listed = [_group(group, versions) for group, versions in groups.items()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        case ["apis", "", *_]:
            return None  # the group without a name is below /api only
        case ["apis", group]:
            versions = _versions(registry).get(group)
            return None if not versions else {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}
        case ["api", version]:
            return _resources(registry, "", version)
        case ["apis", group, version]:
            return _resources(registry, group, version)
        case []:
            return _json({"paths": _paths(registry)})
        case _:
            return None


def _json(body: object) -> Response:
    return Response(200, _ENCODER.encode(body) + b"\n")


def _versions(registry: Registry) -> _Groups:
    """Groups in the order of preference, each with its versions in that order, and their kinds by name."""
    found = registry.versions()
    known = [group for group in _GROUPS if group in found]
    others = sorted(group for group in found if group not in _GROUPS)
    return {
        group: {version: _by_name(found[group][version]) for version in sorted(found[group], key=_preference)}
        for group in (*known, *others)
    }


def _by_name(kinds: Iterable[Kind]) -> list[Kind]:
    return sorted(kinds, key=lambda kind: kind.plural)


def _preference(version: str) -> tuple[object, ...]:
    """Stable versions come first, then beta, then alpha, higher numbers first; others last, by name."""
    found = _STABLE.fullmatch(version)
    if found is None:
        return 1, 0, 0, 0, version
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return 0, stage, -int(found[1]), -int(found[3] or 0), version


def _group(group: str, versions: Iterable[str]) -> Json:
    listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def _resources(registry: Registry, group: str, version: str) -> Json | None:
    kinds = _by_name(registry.versions().get(group, {}).get(version, ()))
    if not kinds:
        return None
    body: Json = {"kind": "APIResourceList"}
    if group:
        body["apiVersion"] = "v1"
    body["groupVersion"] = kinds[0].api_version
    body["resources"] = [one for kind in kinds for one in _resource(kind)]
    return body


def _resource(kind: Kind) -> list[Json]:
    """A resource and its subresources."""
    found: Json = {
        "name": kind.plural,
        "singularName": kind.singular or kind.kind.lower(),
        "namespaced": kind.is_namespaced,
        "kind": kind.kind,
        "verbs": list(kind.told_verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    if "list" in kind.verbs:
        found["storageVersionHash"] = _storage_hash(kind)
    return [found, *(_subresource(kind, *one) for one in _subresources(kind))]


def _subresource(kind: Kind, name: str, group: str, version: str, spoken: str, verbs: tuple[str, ...]) -> Json:
    found: Json = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.is_namespaced,
        "kind": spoken,
        "verbs": list(verbs),
    }
    return {**found, "group": group, "version": version} if version else found


def _subresources(kind: Kind) -> list[tuple[str, str, str, str, tuple[str, ...]]]:
    """Name, group and version (empty: those of the kind), kind, verbs; sorted by name."""
    found: list[tuple[str, str, str, str, tuple[str, ...]]] = []
    if not kind.group:
        found.extend(_ACTIONS.get(kind.plural, ()))
    for name, update in kind.strategy.subresources.items():
        verbs = tuple(sorted(getattr(update, "verbs", ("get", "patch", "update"))))
        spoken = _SCALE if name == "scale" else ("", "", kind.kind)
        found.append((name, *spoken, verbs))
    if getattr(kind.strategy, "scale", None) and all(name != "scale" for name, *_ in found):
        found.append(("scale", *_SCALE, ("get", "patch", "update")))
    return sorted(found)


def _storage_hash(kind: Kind) -> str:
    digest = hashlib.sha256(f"{kind.group}/{kind.version}/{kind.kind}".encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def _accepts_aggregated(request: Request) -> bool:
    """Whether the client's first wish that can be met is the aggregated form."""
    for wish in request.headers.get("accept", "").split(","):
        media_type, *parameters = (part.strip() for part in wish.split(";"))
        if media_type != JSON_TYPE:
            continue
        wanted = dict(one.partition("=")[::2] for one in parameters)
        if "as" not in wanted:
            return False
        if (wanted.get("g"), wanted.get("v"), wanted["as"]) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
            return True
    return False


def _aggregated(request: Request, groups: _Groups) -> Response:
    items = []
    for group, versions in groups.items():
        found = [
            {"version": version, "resources": [_discovered(kind) for kind in kinds], "freshness": "Current"}
            for version, kinds in versions.items()
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": found})
    body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    data = _ENCODER.encode(body) + b"\n"
    etag = f'"{hashlib.sha256(data).hexdigest().upper()}"'
    headers = (("ETag", etag), ("Vary", "Accept"))
    if request.headers.get("if-none-match") == etag:
        return Response(304, headers=headers)
    return Response(200, data, AGGREGATED_TYPE, headers)


def _discovered(kind: Kind) -> Json:
    found: Json = {
        "resource": kind.plural,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": kind.singular or kind.kind.lower(),
        "verbs": list(kind.told_verbs),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.categories:
        found["categories"] = list(kind.categories)
    below = [
        {
            "subresource": name,
            "responseKind": {"group": group, "version": version, "kind": spoken},
            "verbs": list(verbs),
        }
        for name, group, version, spoken, verbs in _subresources(kind)
    ]
    return {**found, "subresources": below} if below else found


def _paths(registry: Registry) -> list[str]:
    """Where something is, for people."""
    found = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
    for group, versions in _versions(registry).items():
        if group:
            found += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
    return sorted(found)


# Whether the server is alive and ready: ``/healthz``, ``/livez``, ``/readyz``. It is when it answers.

_PATHS = ("healthz", "livez", "readyz")
_TEXT = "text/plain; charset=utf-8"
_CHECKS = ("ping", "log", "etcd")


def answer_health(request: Request) -> Response | None:
    """The answer on these paths, whatever the method; None on others."""
    first, slash, check = request.path.removeprefix("/").partition("/")
    if first not in _PATHS or (slash and check not in _CHECKS):
        return None
    if "verbose" not in request.query or check:
        return Response(200, b"ok", _TEXT)
    lines = [f"[+]{one} ok" for one in _CHECKS]
    return Response(200, "\n".join([*lines, f"{first} check passed", ""]).encode(), _TEXT)
