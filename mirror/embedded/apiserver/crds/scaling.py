"""``scale`` of a custom resource: a few fields of it, under the names that all that can be scaled have."""

from __future__ import annotations

from copy import deepcopy
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from mirror.batch.violations import invalid
from mirror.embedded.apiserver import answers, bodies, managed, objects, options, patches, schemas, storing
from mirror.embedded.apiserver.calls import Call
from mirror.embedded.apiserver.crds import paths
from mirror.embedded.apiserver.failures import Json, Refused, bad_request, not_found
from mirror.embedded.apiserver.failures import invalid as refused
from mirror.embedded.apiserver.kinds import Kind
from mirror.embedded.apiserver.messages import Answer, Request
from mirror.embedded.apiserver.negotiation import PLAIN
from mirror.embedded.apiserver.resources.actions import common
from mirror.embedded.apiserver.resources.base import Builtin
from mirror.embedded.apiserver.strategy import Context

if TYPE_CHECKING:
    from mirror.embedded.apiserver.core import Action, ActionKey, ApiServer

METHODS = ("GET", "PUT", "PATCH")
_NO_SCALE = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class _Scales(Builtin):
    struct = "Scale"


_SCALE = Kind("autoscaling", "v1", "Scale", "scales", _Scales(), singular="scale")


def actions(kind: Kind, scale: Json) -> dict[ActionKey, Action]:
    """How the subresource of a kind is read and written."""

    async def read(server: ApiServer, _: Kind, namespace: str, name: str, request: Request, context: Context) -> Answer:
        record = server.storage.get(kind.stored_as, namespace, name)
        if record is None:
            raise not_found(kind.plural, kind.group, name)
        return answers.written(objects.encode(scale_of(objects.body_of(kind, record), scale)), PLAIN)

    async def write(
        server: ApiServer, _: Kind, namespace: str, name: str, request: Request, context: Context
    ) -> Answer:
        call = Call(request, context.user, "update", kind, namespace, name, "", PLAIN)
        is_patch = request.method == "PATCH"
        wanted = options.write_options(request, is_patch=is_patch)
        content_type = request.headers.get("content-type", "")
        validation = wanted.validation

        sent = None if is_patch else _sent(request.body, content_type, validation)
        call.warnings.extend(sent.warnings if sent is not None else ())

        def make(current: Json | None, context: Context) -> Json:
            assert current is not None
            before = scale_of(current, scale)
            if is_patch:
                decoded = patches.patched(
                    patches.type_of(content_type, _SCALE), request.body, before, _SCALE, validation
                )
            else:
                assert sent is not None
                decoded = sent
            call.warnings.extend(decoded.warnings)
            old = deepcopy(current)
            new = _scaled(current, schemas.canonical(decoded.body, "Scale"), call, scale)
            managed.track(new, old, kind, manager=manager, subresource="scale", now=None)
            return new

        manager = options.manager_of(wanted, call.user_agent)
        with common.telling(call.warnings):
            raw, status = await storing.changed(
                server, call, storing.Change(make, wanted, manager, tracks_fields=False)
            )
        made = scale_of(objects.decode(raw), scale)
        return answers.written(objects.encode(made), PLAIN, status, answers.warning_headers(call.warnings))

    key = f"{kind.plural}.{kind.group}"
    return {(key, "scale", "GET"): read, (key, "scale", "PUT"): write, (key, "scale", "PATCH"): write}


def _sent(body: bytes, content_type: str, validation: bodies.Validation) -> bodies.Decoded:
    """A scale that replaces another; upstream cannot say what is wrong with one that cannot be read."""
    try:
        return bodies.decode_as(body, content_type, "autoscaling/v1", "Scale", "Scale", validation)
    except Refused as refused:
        if refused.code != HTTPStatus.BAD_REQUEST:
            raise
        raise bad_request(_NO_SCALE) from refused


def scale_of(body: Json, scale: Json) -> Json:
    """What of an object is its scale."""
    meta = body["metadata"]
    found: Json = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in _META if name in meta},
        "spec": {},
        "status": {"replicas": _number(body, scale["statusReplicasPath"])},
    }
    replicas = _number(body, scale["specReplicasPath"])
    if replicas:
        found["spec"]["replicas"] = replicas
    path = scale.get("labelSelectorPath")
    if path and (selector := paths.find(body, path)) and isinstance(selector[0], str) and selector[0]:
        found["status"]["selector"] = selector[0]
    return found


def _number(body: Json, path: str) -> int:
    found = paths.find(body, path)
    return found[0] if found and isinstance(found[0], int) and not isinstance(found[0], bool) else 0


def _scaled(current: Json, wanted: Json, call: Call, scale: Json) -> Json:
    """The object with what its scale should be."""
    meta = wanted.get("metadata") or {}
    if meta.get("name", call.name) != call.name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({call.name})")
    if meta.get("namespace", call.namespace) != call.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    version = meta.get("resourceVersion")
    if version:
        current["metadata"]["resourceVersion"] = version
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    *through, last = paths.names(scale["specReplicasPath"])
    place: Any = current
    for name in through:
        place = place.setdefault(name, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        why = invalid(scale["specReplicasPath"], replicas, "is not where the object has a map")
        raise refused(call.kind.kind, call.kind.group, call.name, [why])
    place[last] = replicas
    return current
