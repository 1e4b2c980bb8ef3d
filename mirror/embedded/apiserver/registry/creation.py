"""Create: from a body to a stored object, as kube-apiserver's handler and its generic store do it.

Nothing is awaited between looking for an object of the name and storing this one but the pure steps of large requests
and admission, after which storage finds out whether there is still none. ``updates`` creates by this, too.
"""

from __future__ import annotations

from functools import partial

from mirror.embedded.apiserver.admission.plugins import CREATE, attributes_of, check_lifecycle
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.decoding import bodies
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, already_exists
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.managedfields import field_manager
from mirror.embedded.apiserver.messages import Response
from mirror.embedded.apiserver.registry import object_meta
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.request.options import WriteOptions
from mirror.embedded.apiserver.storage.records import Record

_GENERATED_TRIES = 8


async def create(deps: Dependencies, scope: RequestScope) -> Response:
    """Store a new object. Raises: StatusError."""
    wanted = options.write_options(scope.request)
    context = deps.context(scope.user, is_dry_run=wanted.is_dry_run)
    body = await scope.pure(partial(_new, scope, context, wanted))
    made = await created(deps, scope, body, context, wanted)
    return await responses.showing(scope, made, deps.clock, status=201)


def decoded(scope: RequestScope, wanted: WriteOptions) -> Json:
    """The object in the body of the request, with the fields of its kind and with metadata."""
    content_type = scope.request.headers.get("content-type", "")
    found = bodies.decode(scope.request.body, content_type, scope.kind, wanted.validation)
    scope.warnings.extend(found.warnings)
    body = scope.kind.strategy.decode(found.body)
    body.setdefault("metadata", {})
    return body


def _new(scope: RequestScope, context: Context, wanted: WriteOptions) -> Json:
    """The object in the body of the request with its defaults and managed fields."""
    body = decoded(scope, wanted)
    meta = body["metadata"]
    scope.kind.strategy.default(body, context)
    for name in object_meta.SYSTEM_FIELDS:
        meta.pop(name, None)
    object_meta.match_namespace(scope, meta)
    object_meta.drop_repeated_owners(meta, scope.warnings, is_after_admission=False)
    manager = options.manager_of(wanted, scope.request)
    field_manager.track(body, None, scope.kind, manager=manager, subresource=scope.subresource, now=context.now)
    return body


async def created(deps: Dependencies, scope: RequestScope, body: Json, context: Context, wanted: WriteOptions) -> bytes:
    """Store a new object, decoded, with defaults and managed fields; the object as it is served then.

    Raises:
        StatusError: 409 if there is such an object already, 422, and what admission says.
    """
    kind = scope.kind
    attributes = attributes_of(scope, CREATE, body, None, wanted)
    scope.warnings.extend(await deps.admission.mutate(attributes))
    body = attributes.body or body
    object_meta.drop_repeated_owners(body["metadata"], scope.warnings, is_after_admission=True)
    object_meta.match_namespace(scope, body["metadata"])
    prefix = body["metadata"].get("generateName", "")
    if body["metadata"].get("name") or not prefix:
        return await _stored(deps, scope, body, context, wanted)
    raw = objects.encode(body)
    for tries_left in reversed(range(_GENERATED_TRIES)):
        attempt: Json = objects.decode(raw)
        attempt["metadata"]["name"] = object_meta.generated_name(deps.random, prefix)
        if tries_left and deps.storage.get(kind.stored_as, scope.namespace, attempt["metadata"]["name"]) is not None:
            continue
        try:
            return await _stored(deps, scope, attempt, context, wanted)
        except StatusError as refused:
            if refused.reason != "AlreadyExists" or not tries_left:
                raise
    raise AssertionError("the last try ends it")


async def _stored(deps: Dependencies, scope: RequestScope, body: Json, context: Context, wanted: WriteOptions) -> bytes:
    kind, strategy, meta = scope.kind, scope.kind.strategy, body["metadata"]
    version = meta.pop("resourceVersion", "")
    meta["uid"], meta["creationTimestamp"] = context.uid, context.now
    body["apiVersion"], body["kind"] = kind.api_version, kind.kind
    if strategy.looks_at_rights:
        body = strategy.prepare_create(body, context)
    prepared = await scope.pure(partial(_judged, scope, body, context), takes_long=strategy.takes_long)
    attributes = attributes_of(scope, CREATE, prepared, None, wanted)
    scope.warnings.extend(await deps.admission.validate(attributes))
    body = await scope.pure(partial(object_meta.served, strategy, prepared))
    check_lifecycle(deps.storage, attributes)
    name = body["metadata"]["name"]
    existing = deps.storage.get(kind.stored_as, body["metadata"].get("namespace", ""), name)
    if existing is not None:
        raise _exists(scope, body, existing)
    if wanted.is_dry_run:
        if version:
            body["metadata"]["resourceVersion"] = version
        return objects.encoded(kind, body)
    if object_meta.is_version(version):
        raise object_meta.version_on_create()
    return objects.shown(kind, object_meta.store(deps.storage, kind, body, replacing=None))


def _judged(scope: RequestScope, body: Json, context: Context) -> Json:
    """The prepared object, unless the rules of its kind refuse it. Raises: StatusError 422."""
    strategy = scope.kind.strategy
    prepared = body if strategy.looks_at_rights else strategy.prepare_create(body, context)
    object_meta.check_created(scope, prepared, strategy.check_create(prepared, context))
    scope.warnings.extend(strategy.warnings(prepared, None, context))
    return prepared


def _exists(scope: RequestScope, body: Json, existing: Record) -> StatusError:
    kind, meta = scope.kind, body["metadata"]
    is_generated = bool(meta.get("generateName"))
    refused = already_exists(kind.plural, kind.refused_group if is_generated else kind.group, meta["name"])
    if is_generated:
        status = refused.status
        status["message"] += ", the server was not able to generate a unique name for the object"
        status["details"]["retryAfterSeconds"] = 1
    if "deletionTimestamp" in objects.decode(existing.raw)["metadata"]:
        refused.status["message"] = f"object is being deleted: {refused.status['message']}"
    return refused
