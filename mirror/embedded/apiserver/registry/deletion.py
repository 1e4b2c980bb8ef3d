"""Delete and deletecollection: what must happen before an object is removed, and when it is.

An object with finalizers, or with a grace period, is marked first (``deletionTimestamp``) and removed by a later write
or delete. The order of the checks is that of kube-apiserver's registry.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from mirror.embedded.apiserver.admission.plugins import Attributes
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, conflict, not_found
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.messages import Response
from mirror.embedded.apiserver.registry import listing, object_meta
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.graceful_deletion import Step, before_delete
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.delete_options import DeleteOptions, delete_options
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.storage.records import Record, StorageConflict

_SHOWN_WHEN_DELETED = frozenset((("", "pods"), ("", "serviceaccounts"), ("", "namespaces")))
"""Kinds whose last state is the answer to a delete; for others it is a Status."""
_MOST_RETRIES = 5
_ALL = 2**63 - 1
_AT_ONCE = 100
"""Objects of a collection that are deleted before others have their turn."""
_BYTES_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an object: ``raw`` is what to show of it, empty where only its uid is shown."""

    raw: bytes
    record: Record
    is_gone: bool


async def delete(deps: Dependencies, scope: RequestScope) -> Response:
    """Delete one object. Raises: StatusError."""
    wanted = await scope.pure(lambda: delete_options(scope.request))
    scope.warnings.extend(scope.kind.strategy.delete_warnings(_named_policy(wanted)))
    outcome = await deleted(deps, scope, wanted)
    if outcome.raw:
        is_accepted = not outcome.is_gone and wanted.orphan is False
        return await responses.showing(scope, outcome.raw, deps.clock, status=202 if is_accepted else 200)
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    details = {"name": outcome.record.name, "group": scope.kind.group, "kind": scope.kind.plural}
    status["details"] = {name: value for name, value in details.items() if value} | {"uid": outcome.record.uid}
    return responses.of_status(status, scope.format, responses.warning_headers(scope.warnings))


async def delete_collection(deps: Dependencies, scope: RequestScope) -> Response:
    """Delete every object of a list; the answer is the list as it was. Raises: StatusError."""
    chosen = await scope.pure(lambda: options.list_options(scope.request))
    predicate = listing.predicate_of(scope, chosen)
    wanted = await scope.pure(lambda: delete_options(scope.request))
    scope.warnings.extend(scope.kind.strategy.delete_warnings(_named_policy(wanted)))
    # Upstream lists in pages, which are of exactly the version that is named, if one is.
    paged = chosen if chosen.limit else replace(chosen, limit=_ALL)
    page = await listing.page_of(deps.storage, scope, predicate, paged)
    size = 0
    for number, record in enumerate(page.records):
        size += len(record.raw)
        if number % _AT_ONCE == _AT_ONCE - 1 or size > _BYTES_AT_ONCE:
            size = 0
            await asyncio.sleep(0)  # others want to be served, too
        one = replace(scope, namespace=record.namespace, name=record.name, subresource="")
        try:
            await deleted(deps, one, wanted)
        except StatusError as refused:
            if refused.code != 404:
                raise
    return await listing.listed(scope, page, deps.clock.now())


async def deleted(deps: Dependencies, scope: RequestScope, wanted: DeleteOptions) -> Outcome:
    """Delete the call's object, or mark it. Also for actions (eviction).

    Raises:
        StatusError: 404, 409, and what admission says.
    """
    kind = scope.kind
    for _ in range(_MOST_RETRIES + 1):
        record = deps.storage.get(kind.stored_as, scope.namespace, scope.name)
        if record is None:
            raise not_found(kind.plural, kind.group, scope.name)
        _check_preconditions(scope, wanted, record)
        try:
            return await _deleted(deps, scope, wanted, record)
        except StorageConflict:
            continue
    raise conflict(kind.plural, kind.group, scope.name)


async def _deleted(deps: Dependencies, scope: RequestScope, wanted: DeleteOptions, record: Record) -> Outcome:
    """Raises: StorageConflict if it is not what is stored any more."""
    kind, strategy = scope.kind, scope.kind.strategy
    context = deps.context(scope.user, is_dry_run=wanted.is_dry_run)
    attributes = Attributes(
        operation="DELETE",
        kind=kind,
        subresource="",
        namespace=scope.namespace,
        # Who deletes a collection names nothing.
        name=scope.name if scope.verb != "deletecollection" else "",
        body=None,
        old=objects.body_of(kind, record),
        user=scope.user,
        is_dry_run=wanted.is_dry_run,
        options=_shown_options(wanted),
    )
    scope.warnings.extend(await deps.admission.mutate(attributes))
    scope.warnings.extend(await deps.admission.validate(attributes))
    if deps.storage.get(kind.stored_as, scope.namespace, scope.name) is not record:
        raise StorageConflict
    body = objects.body_of(kind, record)
    had_finalizers = bool(body["metadata"].get("finalizers"))
    step = before_delete(strategy, body, wanted, context)
    stored = await _written(deps, scope, step, record, context) if step.body is not None else record
    if not step.is_final:
        raw = b"" if step.body is None and not _is_shown(scope) else _raw(scope, step, stored, wanted)
        return Outcome(raw, stored, is_gone=False)
    if wanted.is_dry_run and step.body is None and had_finalizers:
        # Upstream answers with the object that its update would have filled in, had there been one.
        return Outcome(objects.encoded(kind, objects.empty(kind)), record, is_gone=True)
    if wanted.is_dry_run:
        is_told = _is_shown(scope) or step.body is not None
        return Outcome(_raw(scope, step, stored, wanted) if is_told else b"", record, is_gone=True)
    last = object_meta.remove(deps.storage, kind, stored)
    return Outcome(objects.shown(kind, last) if _is_shown(scope) else b"", last, is_gone=True)


async def _written(deps: Dependencies, scope: RequestScope, step: Step, record: Record, context: Context) -> Record:
    """Store what is to be written, unless it is what is there; a dry run writes nothing."""
    assert step.body is not None
    kind, body = scope.kind, step.body
    if context.is_dry_run or body == objects.body_of(kind, record):
        return record
    served = await scope.pure(lambda: object_meta.served(kind.strategy, body), record.raw)
    return object_meta.store(deps.storage, kind, served, replacing=record)


def _raw(scope: RequestScope, step: Step, stored: Record, wanted: DeleteOptions) -> bytes:
    if wanted.is_dry_run and step.body is not None:
        return objects.encoded(scope.kind, step.body)
    return objects.shown(scope.kind, stored)


def _is_shown(scope: RequestScope) -> bool:
    return (scope.kind.group, scope.kind.plural) in _SHOWN_WHEN_DELETED


def _check_preconditions(scope: RequestScope, wanted: DeleteOptions, record: Record) -> None:
    kind = scope.kind
    if (kind.group, kind.plural) == ("", "namespaces"):
        _check_namespace_preconditions(wanted, record)
    if wanted.uid is not None and wanted.uid != record.uid:
        why = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({record.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(kind.kind, kind.refused_group, record.name, why)
    if wanted.version is not None and wanted.version != str(record.version):
        why = (
            f"the ResourceVersion in the precondition ({wanted.version}) does not match the ResourceVersion in record "
            f"({record.version}). The object might have been modified"
        )
        raise conflict(kind.kind, kind.refused_group, record.name, why)


def _check_namespace_preconditions(wanted: DeleteOptions, record: Record) -> None:
    for what, given, found in (
        ("UID", wanted.uid, record.uid),
        ("ResourceVersion", wanted.version, str(record.version)),
    ):
        if given is not None and given != found:
            why = f"Precondition failed: {what} in precondition: {given}, {what} in object meta: {found}"
            raise conflict("namespaces", "", record.name, why)


def _named_policy(wanted: DeleteOptions) -> str | None:
    if wanted.orphan is not None:
        return "Orphan" if wanted.orphan else "Background"
    return wanted.propagation


def _shown_options(wanted: DeleteOptions) -> Json:
    preconditions = {
        name: value for name, value in (("uid", wanted.uid), ("resourceVersion", wanted.version)) if value is not None
    }
    found = {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": wanted.grace_seconds,
        "preconditions": preconditions or None,
        "orphanDependents": wanted.orphan,
        "propagationPolicy": wanted.propagation,
        "dryRun": ["All"] if wanted.is_dry_run else None,
    }
    return {name: value for name, value in found.items() if value is not None}
