"""``scale`` of a custom resource: a few fields of it, under the names that all that can be scaled have."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from mirror.batch.quoting import quoted
from mirror.batch.violations import invalid
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.decoding import bodies
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, bad_request, failure, internal, not_found
from mirror.embedded.apiserver.apimachinery.errors import invalid as refused
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.crds import paths
from mirror.embedded.apiserver.managedfields import field_manager
from mirror.embedded.apiserver.messages import Answer
from mirror.embedded.apiserver.patch import patching
from mirror.embedded.apiserver.registry import object_meta, updates
from mirror.embedded.apiserver.registry.builtin import Builtin
from mirror.embedded.apiserver.registry.dependencies import Action, Dependencies
from mirror.embedded.apiserver.registry.subresources import common
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.info import ActionKey, RequestScope
from mirror.embedded.apiserver.request.options import PLAIN

METHODS = ("GET", "PUT", "PATCH")
_NO_SCALE = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
_NO_REPLICAS = -(2**31)
"""Upstream's size of what has none, which a patch has to change."""
_NOT_APPLIED = (
    "failed to convert new object (/{}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an "
    "invalid group/version: autoscaling/v1"
)
"""Upstream's defect, which nobody misses: what scales things never applies."""
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class _Scales(Builtin):
    struct = "Scale"


_SCALE = Kind("autoscaling", "v1", "Scale", "scales", _Scales(), singular="scale")


def actions(kind: Kind, scale: Json) -> dict[ActionKey, Action]:
    """How the subresource of a kind is read and written."""

    async def read(deps: Dependencies, scope: RequestScope, context: Context) -> Answer:
        options.check_export(scope.request)
        record = deps.storage.get(kind.stored_as, scope.namespace, scope.name)
        if record is None:
            raise not_found(kind.plural, kind.group, scope.name)
        body, path = objects.body_of(kind, record), scale["specReplicasPath"]
        if not paths.find(body, path):
            raise internal(f"the spec replicas field {quoted(path)} does not exist")
        return responses.written(objects.encode(scale_of(body, scale)), scope.format)

    async def write(deps: Dependencies, scope: RequestScope, context: Context) -> Answer:
        request, name, form = scope.request, scope.name, scope.format
        scope = replace(scope, verb="update", kind=kind, subresource="", format=PLAIN, warnings=[])
        content_type, is_patch = request.headers.get("content-type", ""), request.method == "PATCH"
        if is_patch:
            content_type = patching.type_of(content_type, kind)
        is_apply = content_type == patching.APPLY_PATCH
        wanted = options.write_options(request, is_patch=is_patch, is_apply=is_apply)

        def make(current: Json | None, context: Context) -> Json:
            assert current is not None
            if is_apply:
                raise StatusError(failure(500, "", _NOT_APPLIED.format(name)))
            requested = _patched(scope, content_type, wanted.validation, current, scale) if sent is None else sent
            old = deepcopy(current)
            new = _scaled(current, requested, scope, scale)
            field_manager.track(new, old, kind, manager=manager, subresource="scale", now=None)
            return new

        manager = options.manager_of(wanted, scope.request)
        with common.reporting(scope.warnings):
            sent = None if is_patch else await scope.pure(lambda: _sent(scope, content_type, wanted.validation))
            uid = sent["metadata"].get("uid", "") if sent is not None else ""
            change = updates.Change(make, wanted, manager, uid=uid, tracks_fields=False)
            raw, status = await updates.changed(deps, scope, change)
        made = scale_of(objects.decode(raw), scale)
        return responses.written(objects.encode(made), form, status, responses.warning_headers(scope.warnings))

    key = f"{kind.plural}.{kind.group}"
    return {(key, "scale", "GET"): read, (key, "scale", "PUT"): write, (key, "scale", "PATCH"): write}


def _sent(scope: RequestScope, content_type: str, validation: bodies.Validation) -> Json:
    """A scale that replaces another; upstream cannot say what is wrong with one that cannot be read."""
    try:
        decoded = bodies.decode_as(scope.request.body, content_type, "autoscaling/v1", "Scale", "Scale", validation)
    except StatusError as refused:
        if refused.code != HTTPStatus.BAD_REQUEST:
            raise
        raise bad_request(_NO_SCALE) from refused
    return _placed(scope, decoded)


def _patched(scope: RequestScope, content_type: str, validation: bodies.Validation, current: Json, scale: Json) -> Json:
    """The scale of an object, as the patch makes it."""
    before = scale_of(current, scale, none=_NO_REPLICAS)
    return _placed(scope, patching.patched(content_type, scope.request.body, before, _SCALE, validation))


def _placed(scope: RequestScope, decoded: bodies.Decoded) -> Json:
    """Raises: StatusError 400 unless it has the name and the namespace of the path."""
    scope.warnings.extend(one for one in decoded.warnings if one not in scope.warnings)
    requested = canonical(decoded.body, "Scale")
    meta = requested.setdefault("metadata", {})
    object_meta.match_namespace(scope, meta)
    object_meta.match_name(scope, meta)
    return requested


def scale_of(body: Json, scale: Json, *, none: int = 0) -> Json:
    """What of an object is its scale; ``none`` is its size if it says none."""
    meta = body["metadata"]
    found: Json = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in _META if name in meta},
        "spec": {},
        "status": {"replicas": _number(body, scale["statusReplicasPath"])},
    }
    replicas = _number(body, scale["specReplicasPath"], none)
    if replicas:
        found["spec"]["replicas"] = replicas
    path = scale.get("labelSelectorPath")
    if path and (selector := paths.find(body, path)) and isinstance(selector[0], str) and selector[0]:
        found["status"]["selector"] = selector[0]
    return found


def _number(body: Json, path: str, none: int = 0) -> int:
    found = paths.find(body, path)
    return found[0] if found and isinstance(found[0], int) and not isinstance(found[0], bool) else none


def _scaled(current: Json, wanted: Json, scope: RequestScope, scale: Json) -> Json:
    """The object with what its scale should be."""
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if replicas == _NO_REPLICAS:
        raise bad_request(f"the spec replicas field {quoted(scale['specReplicasPath'])} cannot be empty")
    if version := wanted["metadata"].get("resourceVersion"):
        current["metadata"]["resourceVersion"] = version
    *through, last = paths.names(scale["specReplicasPath"])
    place: Any = current
    for name in through:
        place = place.setdefault(name, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        why = invalid(scale["specReplicasPath"], replicas, "is not where the object has a map")
        raise refused(scope.kind.kind, scope.kind.group, scope.name, [why])
    place[last] = replicas
    return current
