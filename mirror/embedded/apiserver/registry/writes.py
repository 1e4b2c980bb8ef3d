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
from mirror.embedded.apiserver.request.options import WriteOptions
from mirror.embedded.apiserver.request.scope import Call


async def create(deps: Dependencies, call: Call) -> Response:
    """Store a new object. Raises: Refused."""
    wanted = options.write_options(call.request)
    body = await call.pure(lambda: _decoded(call, wanted))
    context = deps.context(call.user, is_dry_run=wanted.is_dry_run)
    await call.pure(lambda: _complete(call, body, context, wanted))
    made = await created(deps, call, body, context, wanted)
    return await responses.showing(call, made, deps.clock.now(), status=201)


def _complete(call: Call, body: Json, context: Context, wanted: WriteOptions) -> None:
    """Give a new object its defaults and its managed fields, in place."""
    meta = body["metadata"]
    call.kind.strategy.default(body, context)
    for name in object_meta.SYSTEM_FIELDS:
        meta.pop(name, None)
    object_meta.match_namespace(call, meta)
    object_meta.drop_repeated_owners(meta, call.warnings, is_after_admission=False)
    manager = options.manager_of(wanted, call.user_agent)
    field_manager.track(body, None, call.kind, manager=manager, subresource=call.subresource, now=context.now)


async def update(deps: Dependencies, call: Call) -> Response:
    """Put an object in place of the stored one. Raises: Refused."""
    wanted = options.write_options(call.request)
    body, raw = await call.pure(lambda: _replacing(call, wanted))

    def make(_: Json | None, context: Context) -> Json:
        made: Json = objects.decode(raw)
        call.kind.strategy.default(made, context)
        return made

    change = Change(
        make,
        wanted,
        options.manager_of(wanted, call.user_agent),
        allows_create=call.kind.strategy.allows_create_on_update and not call.subresource,
        uid=body["metadata"].get("uid", ""),
    )
    made, status = await changed(deps, call, change)
    return await responses.showing(call, made, deps.clock.now(), status=status)


def _replacing(call: Call, wanted: WriteOptions) -> tuple[Json, bytes]:
    """What is to be there instead, and the same as bytes, of which each try makes an object of its own."""
    body = _decoded(call, wanted)
    meta = body["metadata"]
    object_meta.match_namespace(call, meta)
    object_meta.match_name(call, meta)
    object_meta.drop_repeated_owners(meta, call.warnings, is_after_admission=False)
    return body, objects.encode(body)


async def patch(deps: Dependencies, call: Call) -> Response:
    """Change the stored object; by server-side apply, or create it. Raises: Refused."""
    content_type = patching.type_of(call.request.headers.get("content-type", ""), call.kind)
    is_apply = content_type == patching.APPLY_PATCH
    wanted = options.write_options(call.request, is_patch=True, is_apply=is_apply)
    manager = options.manager_of(wanted, call.user_agent)
    data, kind, warnings = call.request.body, call.kind, call.warnings

    def make(current: Json | None, context: Context) -> Json:
        if is_apply:
            decoded = applying.applied(
                data,
                current,
                kind,
                manager=manager,
                force=wanted.force is True,
                subresource=call.subresource,
                now=context.now,
                validation=wanted.validation,
            )
        elif current is None:
            raise not_found(kind.plural, kind.group, call.name)
        else:
            decoded = patching.patched(content_type, data, current, kind, wanted.validation)
        warnings.extend(one for one in decoded.warnings if one not in warnings)
        body = _typed(kind, decoded.body)
        fill_in = kind.strategy.default_applied if is_apply else kind.strategy.default
        fill_in(body, context)
        meta = body["metadata"]
        if current is None and meta.get("uid"):
            why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
            raise conflict(kind.plural, kind.group, call.name, why)
        object_meta.match_namespace(call, meta)
        object_meta.match_name(call, meta)
        return body

    allows_create = is_apply and not call.subresource
    change = Change(make, wanted, manager, allows_create=allows_create, tracks_fields=not is_apply)
    made, status = await changed(deps, call, change)
    return await responses.showing(call, made, deps.clock.now(), status=status)


def _decoded(call: Call, wanted: WriteOptions) -> Json:
    content_type = call.request.headers.get("content-type", "")
    decoded = bodies.decode(call.request.body, content_type, call.kind, wanted.validation)
    call.warnings.extend(decoded.warnings)
    return _typed(call.kind, decoded.body)


def _typed(kind: Kind, decoded: Json) -> Json:
    """The object with the fields of its kind, and with metadata."""
    body = kind.strategy.decode(decoded)
    body.setdefault("metadata", {})
    return body
