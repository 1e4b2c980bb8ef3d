"""Create, update and patch: from a body or a patch to a stored object, as kube-apiserver's handlers do it."""

from __future__ import annotations

from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.decoding import bodies
from mirror.embedded.apiserver.apimachinery.errors import Json, conflict, not_found
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.managedfields import field_manager
from mirror.embedded.apiserver.messages import Response
from mirror.embedded.apiserver.patch import applying, patching
from mirror.embedded.apiserver.registry import object_meta
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.store import Change, changed, created
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.request.options import WriteOptions


async def create(deps: Dependencies, scope: RequestScope) -> Response:
    """Store a new object. Raises: StatusError."""
    wanted = options.write_options(scope.request)
    body = await scope.pure(lambda: _decoded(scope, wanted))
    context = deps.context(scope.user, is_dry_run=wanted.is_dry_run)
    await scope.pure(lambda: _complete(scope, body, context, wanted))
    made = await created(deps, scope, body, context, wanted)
    return await responses.showing(scope, made, deps.clock.now(), status=201)


def _complete(scope: RequestScope, body: Json, context: Context, wanted: WriteOptions) -> None:
    """Give a new object its defaults and its managed fields, in place."""
    meta = body["metadata"]
    scope.kind.strategy.default(body, context)
    for name in object_meta.SYSTEM_FIELDS:
        meta.pop(name, None)
    object_meta.match_namespace(scope, meta)
    object_meta.drop_repeated_owners(meta, scope.warnings, is_after_admission=False)
    manager = options.manager_of(wanted, scope.user_agent)
    field_manager.track(body, None, scope.kind, manager=manager, subresource=scope.subresource, now=context.now)


async def update(deps: Dependencies, scope: RequestScope) -> Response:
    """Put an object in place of the stored one. Raises: StatusError."""
    wanted = options.write_options(scope.request)
    body, raw = await scope.pure(lambda: _replacing(scope, wanted))

    def make(_: Json | None, context: Context) -> Json:
        made: Json = objects.decode(raw)
        scope.kind.strategy.default(made, context)
        return made

    change = Change(
        make,
        wanted,
        options.manager_of(wanted, scope.user_agent),
        allows_create=scope.kind.strategy.allows_create_on_update and not scope.subresource,
        uid=body["metadata"].get("uid", ""),
    )
    made, status = await changed(deps, scope, change)
    return await responses.showing(scope, made, deps.clock.now(), status=status)


def _replacing(scope: RequestScope, wanted: WriteOptions) -> tuple[Json, bytes]:
    """What is to be there instead, and the same as bytes, of which each try makes an object of its own."""
    body = _decoded(scope, wanted)
    meta = body["metadata"]
    object_meta.match_namespace(scope, meta)
    object_meta.match_name(scope, meta)
    object_meta.drop_repeated_owners(meta, scope.warnings, is_after_admission=False)
    return body, objects.encode(body)


async def patch(deps: Dependencies, scope: RequestScope) -> Response:
    """Change the stored object; by server-side apply, or create it. Raises: StatusError."""
    content_type = patching.type_of(scope.request.headers.get("content-type", ""), scope.kind)
    is_apply = content_type == patching.APPLY_PATCH
    wanted = options.write_options(scope.request, is_patch=True, is_apply=is_apply)
    manager = options.manager_of(wanted, scope.user_agent)
    data, kind, warnings = scope.request.body, scope.kind, scope.warnings

    def make(current: Json | None, context: Context) -> Json:
        if is_apply:
            decoded = applying.applied(
                data,
                current,
                kind,
                manager=manager,
                force=wanted.force is True,
                subresource=scope.subresource,
                now=context.now,
                validation=wanted.validation,
            )
        elif current is None:
            raise not_found(kind.plural, kind.group, scope.name)
        else:
            decoded = patching.patched(content_type, data, current, kind, wanted.validation)
        warnings.extend(one for one in decoded.warnings if one not in warnings)
        body = _typed(kind, decoded.body)
        fill_in = kind.strategy.default_applied if is_apply else kind.strategy.default
        fill_in(body, context)
        meta = body["metadata"]
        if current is None and meta.get("uid"):
            why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
            raise conflict(kind.plural, kind.group, scope.name, why)
        object_meta.match_namespace(scope, meta)
        object_meta.match_name(scope, meta)
        return body

    allows_create = is_apply and not scope.subresource
    change = Change(make, wanted, manager, allows_create=allows_create, tracks_fields=not is_apply)
    made, status = await changed(deps, scope, change)
    return await responses.showing(scope, made, deps.clock.now(), status=status)


def _decoded(scope: RequestScope, wanted: WriteOptions) -> Json:
    content_type = scope.request.headers.get("content-type", "")
    decoded = bodies.decode(scope.request.body, content_type, scope.kind, wanted.validation)
    scope.warnings.extend(decoded.warnings)
    return _typed(scope.kind, decoded.body)


def _typed(kind: Kind, decoded: Json) -> Json:
    """The object with the fields of its kind, and with metadata."""
    body = kind.strategy.decode(decoded)
    body.setdefault("metadata", {})
    return body
