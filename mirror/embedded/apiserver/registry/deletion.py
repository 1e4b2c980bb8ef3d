"""Delete and deletecollection: what must happen before an object goes, and when it goes.

An object with finalizers, or with a grace period, is marked first (``deletionTimestamp``) and goes by a later write or
delete. The order of the checks is that of kube-apiserver's registry.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mirror.embedded.apiserver.admission.attributes import Attributes
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, Refused, conflict, not_found
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.messages import Response
from mirror.embedded.apiserver.registry import listing, object_meta
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.graceful_deletion import Step, step_of
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.delete_options import DeleteOptions, delete_options
from mirror.embedded.apiserver.request.scope import Call
from mirror.embedded.apiserver.storage.records import Moved, Record

_SHOWN_WHEN_DELETED = frozenset((("", "pods"), ("", "serviceaccounts"), ("", "namespaces")))
"""Kinds whose last state is the answer to a delete; for others it is a Status."""
_MOST_RETRIES = 5
_AT_ONCE = 100
"""Objects of a collection that are deleted before others have their turn."""
_BYTES_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an object: ``raw`` is what to show of it, empty where only its uid is told."""

    raw: bytes
    record: Record
    is_gone: bool


async def delete(deps: Dependencies, call: Call) -> Response:
    """Delete one object. Raises: Refused."""
    wanted = await call.pure(lambda: delete_options(call.request))
    call.warnings.extend(call.kind.strategy.delete_warnings(_named_policy(wanted)))
    outcome = await deleted(deps, call, wanted)
    if outcome.raw:
        is_accepted = not outcome.is_gone and wanted.orphan is False
        return await responses.showing(call, outcome.raw, deps.clock.now(), status=202 if is_accepted else 200)
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    details = {"name": outcome.record.name, "group": call.kind.group, "kind": call.kind.plural}
    status["details"] = {name: value for name, value in details.items() if value} | {"uid": outcome.record.uid}
    return responses.of_status(status, call.format, responses.warning_headers(call.warnings))


async def delete_collection(deps: Dependencies, call: Call) -> Response:
    """Delete every object of a list; the answer is the list as it was. Raises: Refused."""
    chosen = await call.pure(lambda: options.list_options(call.request))
    predicate = listing.predicate_of(call, chosen)
    wanted = await call.pure(lambda: delete_options(call.request))
    call.warnings.extend(call.kind.strategy.delete_warnings(_named_policy(wanted)))
    page = await listing.page_of(deps.storage, call, predicate, chosen)
    size = 0
    for number, record in enumerate(page.records):
        size += len(record.raw)
        if number % _AT_ONCE == _AT_ONCE - 1 or size > _BYTES_AT_ONCE:
            size = 0
            await asyncio.sleep(0)  # others want to be served, too
        one = Call(
            call.request,
            call.user,
            call.verb,
            call.kind,
            record.namespace,
            record.name,
            "",
            call.format,
            call.warnings,
            call.thread,
        )
        try:
            await deleted(deps, one, wanted)
        except Refused as refused:
            if refused.code != 404:
                raise
    return await listing.listed(call, page, deps.clock.now())


async def deleted(deps: Dependencies, call: Call, wanted: DeleteOptions) -> Outcome:
    """Delete the call's object, or mark it. Also for actions (eviction).

    Raises:
        Refused: 404, 409, and what admission says.
    """
    kind = call.kind
    for _ in range(_MOST_RETRIES + 1):
        record = deps.storage.get(kind.stored_as, call.namespace, call.name)
        if record is None:
            raise not_found(kind.plural, kind.group, call.name)
        _check_preconditions(call, wanted, record)
        try:
            return await _deleted(deps, call, wanted, record)
        except Moved:
            continue
    raise conflict(kind.plural, kind.group, call.name)


async def _deleted(deps: Dependencies, call: Call, wanted: DeleteOptions, record: Record) -> Outcome:
    """Raises: Moved if it is not what is stored any more."""
    kind, strategy = call.kind, call.kind.strategy
    context = deps.context(call.user, is_dry_run=wanted.is_dry_run)
    attributes = Attributes(
        operation="DELETE",
        kind=kind,
        subresource="",
        namespace=call.namespace,
        # Who deletes a collection names nothing.
        name=call.name if call.verb != "deletecollection" else "",
        body=None,
        old=objects.body_of(kind, record),
        user=call.user,
        is_dry_run=wanted.is_dry_run,
        options=_shown_options(wanted),
    )
    call.warnings.extend(await deps.admission.mutate(attributes))
    call.warnings.extend(await deps.admission.validate(attributes))
    if deps.storage.get(kind.stored_as, call.namespace, call.name) is not record:
        raise Moved
    body = objects.body_of(kind, record)
    had_finalizers = bool(body["metadata"].get("finalizers"))
    step = step_of(strategy, body, wanted, context)
    stored = await _written(deps, call, step, record, context) if step.body is not None else record
    if not step.is_final:
        raw = b"" if step.body is None and not _is_shown(call) else _raw(call, step, stored, wanted)
        return Outcome(raw, stored, is_gone=False)
    if wanted.is_dry_run and step.body is None and had_finalizers:
        # Upstream answers with the object that its update would have filled in, had there been one.
        return Outcome(objects.encoded(kind, objects.empty(kind)), record, is_gone=True)
    if wanted.is_dry_run:
        is_told = _is_shown(call) or step.body is not None
        return Outcome(_raw(call, step, stored, wanted) if is_told else b"", record, is_gone=True)
    last = object_meta.remove(deps.storage, kind, stored)
    return Outcome(objects.shown(kind, last) if _is_shown(call) else b"", last, is_gone=True)


async def _written(deps: Dependencies, call: Call, step: Step, record: Record, context: Context) -> Record:
    """Store what is to be written, unless it is what is there; a dry run writes nothing."""
    assert step.body is not None
    kind, body = call.kind, step.body
    if context.is_dry_run or body == objects.body_of(kind, record):
        return record
    served = await call.pure(lambda: object_meta.served(kind.strategy, body), record.raw)
    return object_meta.store(deps.storage, kind, served, replacing=record)


def _raw(call: Call, step: Step, stored: Record, wanted: DeleteOptions) -> bytes:
    if wanted.is_dry_run and step.body is not None:
        return objects.encoded(call.kind, step.body)
    return objects.shown(call.kind, stored)


def _is_shown(call: Call) -> bool:
    return (call.kind.group, call.kind.plural) in _SHOWN_WHEN_DELETED


def _check_preconditions(call: Call, wanted: DeleteOptions, record: Record) -> None:
    kind = call.kind
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
