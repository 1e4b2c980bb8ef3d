"""``pods/binding``, and ``bindings``, the old way to it: a scheduler says on which node a pod runs."""

from __future__ import annotations

from functools import partial

from mirror.batch.quoting import quoted
from mirror.batch.violations import Violation, not_supported_text, required
from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, bad_request, conflict, failure
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import canonical
from mirror.embedded.apiserver.apimachinery.strategy import Context
from mirror.embedded.apiserver.messages import Answer
from mirror.embedded.apiserver.registry import object_meta
from mirror.embedded.apiserver.registry.builtin import Builtin
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.subresources import common
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.side_thread import pure
from mirror.embedded.apiserver.storage.records import Record, StorageConflict


async def bind(deps: Dependencies, scope: RequestScope, context: Context) -> Answer:
    """Answer a POST to a pod's ``binding``.

    Raises:
        StatusError: 400, 404, 409 if the pod cannot be bound (any more), 500 for a target that is none.
    """
    return await _bind(deps, scope, context)


async def bind_named_by_body(deps: Dependencies, scope: RequestScope, context: Context) -> Answer:
    """Answer a POST to ``bindings``, the old way, in which the body names the pod. Raises: as ``bind``."""
    return await _bind(deps, scope, context)


async def _bind(deps: Dependencies, scope: RequestScope, context: Context) -> Answer:
    namespace = scope.namespace
    pods = deps.registry.find("", "v1", "pods")
    assert pods is not None
    body, _, warnings = await common.read(scope, "v1", "Binding")
    with common.reporting(warnings):
        name = scope.name or body["metadata"].get("name", "")
        admitted, body, more = await common.mutated(deps, scope, name, body, context)
        warnings += more
        if body["metadata"].get("name", "") != name:
            raise bad_request("name in URL does not match name in Binding object")
        if problems := _problems(body["target"]):
            told = [f"{one.field}: {one.message}" for one in problems]
            raise StatusError(failure(500, "", told[0] if len(told) == 1 else f"[{', '.join(told)}]"))
        warnings += await deps.admission.validate(admitted)
        while True:
            record = common.found(deps, "pods", namespace, name)
            pod = await pure(scope.thread, len(record.raw), partial(_bound, record, body, context.now))
            if context.is_dry_run:
                break
            try:
                object_meta.store(deps.storage, pods, pod, replacing=record)
            except StorageConflict:
                continue
            break
        return common.success(scope, warnings)


def _problems(target: Json) -> list[Violation]:
    found = []
    if target.get("kind", "Node") != "Node":
        found.append(not_supported_text("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        found.append(required("target.name"))
    return found


def _bound(record: Record, binding: Json, now: str) -> Json:
    """The pod on its node."""
    pod: Json = canonical(objects.decode(record.raw), "Pod")
    meta, spec, wanted = pod["metadata"], pod["spec"], binding["metadata"]
    _check_preconditions(record, wanted)
    name, why = record.name, ""
    if "deletionTimestamp" in meta:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f"pod {name} is already assigned to node {quoted(spec['nodeName'])}"
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict("pods/binding", "", name, why)
    spec["nodeName"] = binding["target"]["name"]
    pod["status"].pop("nominatedNodeName", None)
    for part in ("annotations", "labels"):
        if wanted.get(part):
            meta[part] = meta.get(part, {}) | wanted[part]
    common.set_condition(pod["status"], {"type": "PodScheduled", "status": "True"}, now)
    return pod


def _check_preconditions(record: Record, wanted: Json) -> None:
    """The uid and the version of a binding are those of the pod, if they are there."""
    told = ""
    if wanted.get("uid") and wanted["uid"] != record.uid:
        told = f"UID in precondition: {wanted['uid']}, UID in object meta: {record.uid}"
    elif wanted.get("resourceVersion") and wanted["resourceVersion"] != str(record.version):
        told = (
            f"ResourceVersion in precondition: {wanted['resourceVersion']}, "
            f"ResourceVersion in object meta: {record.version}"
        )
    if told:
        key = f"/registry/pods/{record.namespace}/{record.name}"
        error = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
        raise conflict("pods", "", record.name, f"{error}Precondition failed: {told}")


class Bindings(Builtin):
    """Only its fields matter."""

    struct = "Binding"


def kind() -> Kind:
    """``v1`` ``bindings``."""
    return Kind("", "v1", "Binding", "bindings", Bindings(), singular="binding", verbs=("create",))
