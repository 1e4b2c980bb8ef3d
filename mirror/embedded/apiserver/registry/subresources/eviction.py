"""``pods/eviction``: a pod is deleted on behalf of its node. There are no disruption budgets, so nothing forbids it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, bad_request, conflict, failure
from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.messages import JSON_TYPE, Answer, Request
from mirror.embedded.apiserver.registry import deletion, object_meta
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.subresources import common
from mirror.embedded.apiserver.request.delete_options import DeleteOptions, delete_options
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.side_thread import pure
from mirror.embedded.apiserver.storage.records import Record, StorageConflict

_OLD_VERSION = "policy/v1beta1"
_CONDITION = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


async def evict(deps: Dependencies, scope: RequestScope, context: Context) -> Answer:
    """Answer a POST to a pod's ``eviction``: note why, and delete.

    Raises:
        StatusError: 400, 404, and 409 if its preconditions are not met.
    """
    kind, namespace, name, request = scope.kind, scope.namespace, scope.name, scope.request
    # The older version of the body is still taken, and means the same.
    version = _OLD_VERSION if _OLD_VERSION.encode() in request.body else "policy/v1"
    body, wanted, warnings = await common.read(scope, version, "Eviction")
    with common.reporting(warnings):
        admitted, body, more = await common.mutated(deps, scope, name, body, context)
        warnings += more
        if body["metadata"].get("name", "") != name:
            raise bad_request("name in URL does not match name in Eviction object")
        given = body.get("deleteOptions") or {}
        is_dry_run = _is_dry_run(given, is_asked=wanted.is_dry_run)
        context = replace(context, is_dry_run=is_dry_run)
        warnings += await deps.admission.validate(admitted)
        record = common.found(deps, "pods", namespace, name)
        if not is_dry_run:
            # What is wrong with the options is found only when the pod is deleted.
            record = await _marked(deps, scope, record, given.get("preconditions") or {}, context)
        options = _options(request, given, is_dry_run=is_dry_run)
        if options.version is not None and not is_dry_run:
            options = replace(options, version=str(record.version))
        delete = RequestScope(request, context.user, "delete", kind, namespace, name, "", scope.format, warnings)
        await deletion.deleted(deps, delete, options)
        return common.success(scope, warnings)


def _is_dry_run(given: Json, *, is_asked: bool) -> bool:
    dry_run = given.get("dryRun") or []
    if is_asked and dry_run not in ([], ["All"]):
        told = f"Non-matching dry-run options in request and content: [All] and [{' '.join(dry_run)}]"
        raise StatusError(failure(500, "", told))
    return is_asked or bool(dry_run)


def _options(request: Request, given: Json, *, is_dry_run: bool) -> DeleteOptions:
    headers = {"content-type": JSON_TYPE}
    options = delete_options(replace(request, query="", headers=headers, body=objects.encode(given)))
    return replace(options, is_dry_run=is_dry_run or options.is_dry_run)


async def _marked(deps: Dependencies, scope: RequestScope, record: Record, wanted: Json, context: Context) -> Record:
    """The pod with the condition that says why it is evicted."""
    while True:
        _check_preconditions(record, wanted)
        raw = record.raw
        pod: Json = await pure(scope.thread, len(raw), partial(_pod_of, raw))
        common.set_condition(pod["status"], _CONDITION, context.now)
        if objects.encode(pod["status"].get("conditions")) == objects.encode(
            objects.decode(record.raw)["status"].get("conditions")
        ):
            return record
        try:
            return object_meta.store(deps.storage, scope.kind, pod, replacing=record)
        except StorageConflict:
            record = common.found(deps, "pods", record.namespace, record.name)


def _pod_of(raw: bytes) -> Json:
    found: Json = canonical(objects.decode(raw), "Pod")
    return found


def _check_preconditions(record: Record, wanted: Json) -> None:
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid and uid != record.uid:
        raise conflict(
            "Pod",
            "",
            record.name,
            f"the UID in the precondition ({uid}) does not match the UID in record ({record.uid}). "
            "The object might have been deleted and then recreated",
        )
    if version and version != str(record.version):
        raise conflict(
            "Pod",
            "",
            record.name,
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({record.version}). The object might have been modified",
        )
