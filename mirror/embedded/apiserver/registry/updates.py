"""Update and patch: from a body or a patch to a changed object, as kube-apiserver's handlers and generic store do it.

Nothing is awaited between reading a record and writing it but admission and the pure steps of large requests
(``side_thread``), after which storage finds out whether the record is still the same; if it is not, the write starts
over with what is there now. Actions on subresources make their changes by ``changed``, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.admission.plugins import UPDATE, attributes_of
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, conflict, failure, invalid, not_found
from mirror.embedded.apiserver.apimachinery.strategy import Context, Strategy
from mirror.embedded.apiserver.managedfields import field_manager
from mirror.embedded.apiserver.messages import Response
from mirror.embedded.apiserver.patch import applying, patching
from mirror.embedded.apiserver.patch.apply import Applicant
from mirror.embedded.apiserver.registry import object_meta
from mirror.embedded.apiserver.registry.creation import created, decoded
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.graceful_deletion import should_delete_during_update
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.request.options import WriteOptions
from mirror.embedded.apiserver.storage.records import Record, StorageConflict

_MOST_RETRIES = 5
"""Of writes that did not say which version they replace, when others write the same object meanwhile."""
_LONGEST_NUMBER = 19


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
        options.manager_of(wanted, scope.request),
        allows_create=scope.kind.strategy.allows_create_on_update and not scope.subresource,
        uid=body["metadata"].get("uid", ""),
    )
    made, status = await changed(deps, scope, change)
    return await responses.showing(scope, made, deps.clock, status=status)


def _replacing(scope: RequestScope, wanted: WriteOptions) -> tuple[Json, bytes]:
    """What is to be there instead, and the same as bytes, of which each try makes an object of its own."""
    body = decoded(scope, wanted)
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
    manager = options.manager_of(wanted, scope.request)
    data, kind, warnings = scope.request.body, scope.kind, scope.warnings

    def make(current: Json | None, context: Context) -> Json:
        if is_apply:
            applicant = Applicant(manager, scope.subresource, context.now, force=wanted.force is True)
            patched = applying.applied(data, current, kind, applicant, validation=wanted.validation)
        elif current is None:
            raise not_found(kind.plural, kind.group, scope.name)
        else:
            patched = patching.patched(content_type, data, current, kind, wanted.validation)
        warnings.extend(one for one in patched.warnings if one not in warnings)
        body = kind.strategy.decode(patched.body)
        body.setdefault("metadata", {})
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
    return await responses.showing(scope, made, deps.clock, status=status)


@dataclass(frozen=True, slots=True)
class Change:
    """A wanted change of one object."""

    make: Callable[[Json | None, Context], Json]
    """The new object, decoded and with defaults, made of the one that is there (a copy), if there is one."""
    options: WriteOptions
    manager: str
    allows_create: bool = False
    uid: str = ""
    """The object must have it, if given."""
    tracks_fields: bool = True
    """Whether managedFields are still to be written."""


async def changed(deps: Dependencies, scope: RequestScope, change: Change) -> tuple[bytes, int]:
    """Make the change; the object as it is served then, and 200 or 201. Also for actions on subresources.

    Raises:
        StatusError: 404, 409, 422, and what admission says.
    """
    kind = scope.kind
    for _ in range(_MOST_RETRIES + 1):
        context = deps.context(scope.user, is_dry_run=change.options.is_dry_run)
        record = deps.storage.get(kind.stored_as, scope.namespace, scope.name)
        if record is None and not change.allows_create:
            raise not_found(kind.plural, kind.group, scope.name)
        if change.uid and (record.uid if record else "") != change.uid:
            raise conflict(kind.plural, kind.group, scope.name, _uid_differs(scope, change, record))
        try:
            if record is not None:
                return await _replaced(deps, scope, change, context, record), 200
            return await _created_by_update(deps, scope, change, context), 201
        except StorageConflict:
            continue
    raise conflict(kind.plural, kind.group, scope.name)


async def _replaced(deps: Dependencies, scope: RequestScope, change: Change, context: Context, record: Record) -> bytes:
    """Raises: StorageConflict if it is not what is stored any more."""
    kind, strategy = scope.kind, scope.kind.strategy
    new, old = await scope.pure(lambda: _made(scope, change, context, record), record.raw)
    attributes = attributes_of(scope, UPDATE, new, old, change.options)
    scope.warnings.extend(await deps.admission.mutate(attributes))
    new = attributes.body or new
    object_meta.drop_repeated_owners(new["metadata"], scope.warnings, is_after_admission=True)
    _check_version(scope, new["metadata"], record, strategy)
    object_meta.match_namespace(scope, new["metadata"])
    object_meta.keep_system_fields(new["metadata"], old["metadata"])
    new["apiVersion"], new["kind"] = kind.api_version, kind.kind
    new = await _judged_update(scope, new, old, context, record)
    attributes = attributes_of(scope, UPDATE, new, old, change.options)
    scope.warnings.extend(await deps.admission.validate(attributes))
    asked = new
    new, is_same = await scope.pure(lambda: _outcome(strategy, asked, old, record), record.raw)
    if should_delete_during_update(strategy, new, old):
        return _gone(deps, scope, change, asked | {"metadata": new["metadata"]}, record)
    if is_same:
        # Nobody may think that somebody else has written in the meantime.
        if deps.storage.get(kind.stored_as, scope.namespace, scope.name) is not record:
            raise StorageConflict
        return objects.shown(kind, record)
    if change.options.is_dry_run:
        return objects.encoded(kind, new)
    return objects.shown(kind, object_meta.store(deps.storage, kind, new, replacing=record))


def _made(scope: RequestScope, change: Change, context: Context, record: Record) -> tuple[Json, Json]:
    """The new object with its managed fields, and the one that is there."""
    kind = scope.kind
    old = objects.body_of(kind, record)
    new = change.make(objects.body_of(kind, record), context)
    if change.tracks_fields:
        field_manager.track(new, old, kind, manager=change.manager, subresource=scope.subresource, now=context.now)
    return new, old


async def _judged_update(scope: RequestScope, new: Json, old: Json, context: Context, record: Record) -> Json:
    """The object as the rules of its kind make it. Raises: StatusError 422."""
    subresource, strategy = scope.subresource_strategy, scope.kind.strategy

    def prepare() -> Json:
        return subresource.prepare(new, old, context) if subresource else strategy.prepare_update(new, old, context)

    def judge(prepared: Json) -> None:
        found = (
            subresource.check(prepared, old, context) if subresource else strategy.check_update(prepared, old, context)
        )
        scope.warnings.extend(strategy.eased(prepared, old))
        object_meta.check_updated(scope, prepared, old, found)
        if not subresource:
            scope.warnings.extend(strategy.warnings(prepared, old, context))

    prepared = prepare() if strategy.looks_at_rights else await scope.pure(prepare, record.raw)
    await scope.pure(lambda: judge(prepared), record.raw, takes_long=strategy.takes_long)
    return prepared


def _outcome(strategy: Strategy, new: Json, old: Json, record: Record) -> tuple[Json, bool]:
    """The object as it will be shown, and whether that is what is there."""
    new = object_meta.served(strategy, new)
    new["metadata"]["resourceVersion"] = str(record.version)
    return new, object_meta.same_but_for_times(new, old)


def _gone(deps: Dependencies, scope: RequestScope, change: Change, new: Json, record: Record) -> bytes:
    """The last finalizer went, and with it the object; ``new`` never saw storage, and is shown as it was asked for."""
    new["metadata"]["resourceVersion"] = str(record.version)
    if not change.options.is_dry_run:
        object_meta.remove(deps.storage, scope.kind, record)
    return objects.encoded(scope.kind, new)


async def _created_by_update(deps: Dependencies, scope: RequestScope, change: Change, context: Context) -> bytes:
    """Raises: StorageConflict if somebody else was quicker."""
    body = await scope.pure(lambda: change.make(None, context))
    _check_number(body["metadata"].get("resourceVersion", ""))
    # A dry run shows the version that was sent, as that of a create does.
    forgotten = (
        object_meta.SYSTEM_FIELDS if change.options.is_dry_run else (*object_meta.SYSTEM_FIELDS, "resourceVersion")
    )
    for name in forgotten:
        body["metadata"].pop(name, None)
    deps.authorizer.check(scope.user, "create", scope.kind, scope.subresource, scope.namespace, scope.name)
    if change.tracks_fields:
        kind, manager, now = scope.kind, change.manager, context.now
        await scope.pure(lambda: field_manager.track(body, None, kind, manager=manager, subresource="", now=now))
    try:
        return await created(deps, scope, body, context, change.options)
    except StatusError as refused:
        if refused.reason == "AlreadyExists":
            raise StorageConflict(scope.name) from refused
        raise


def _check_version(scope: RequestScope, meta: Json, record: Record, strategy: Strategy) -> None:
    kind, version = scope.kind, meta.get("resourceVersion", "")
    if version in ("", "0"):
        if not strategy.allows_unconditional_update:
            problem = Violation(
                "metadata.resourceVersion",
                "FieldValueInvalid",
                "Invalid value: 0: must be specified for an update",
            )
            raise invalid(kind.plural, kind.refused_group, scope.name, [problem])
        meta["resourceVersion"] = str(record.version)
        return
    _check_number(version)
    if int(version) != record.version:
        raise conflict(kind.plural, kind.group, scope.name)


def _check_number(version: str) -> None:
    """Raises: StatusError 500 for what is no version at all, as upstream does."""
    if not version:
        return
    if not (version.isascii() and version.isdigit()):
        raise StatusError(failure(500, "", f"strconv.ParseUint: parsing {quoted(version)}: invalid syntax"))
    if len(version) > _LONGEST_NUMBER:
        raise StatusError(failure(500, "", f"strconv.ParseUint: parsing {quoted(version)}: value out of range"))


def _uid_differs(scope: RequestScope, change: Change, record: Record | None) -> str:
    key = storage_key(scope) if not change.options.is_dry_run else storage_key(scope).removeprefix("/registry")
    found = record.uid if record else ""
    return (
        f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {change.uid}, UID in object meta: {found}"
    )


def storage_key(scope: RequestScope) -> str:
    """Where upstream keeps it in etcd; some messages show it."""
    kind = scope.kind
    plural = "minions" if (kind.group, kind.plural) == ("", "nodes") else kind.plural
    is_custom = not kind.strategy.struct or kind.group == "apiextensions.k8s.io"
    place = f"{kind.group}/{plural}" if is_custom else plural
    return "/".join(filter(None, ("/registry", place, scope.namespace, scope.name)))
