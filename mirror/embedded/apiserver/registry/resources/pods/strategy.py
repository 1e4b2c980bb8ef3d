"""The hooks of pods."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from types import MappingProxyType

from mirror.batch.syntax import label_problems
from mirror.batch.violations import Violation
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.objects import same
from mirror.embedded.apiserver.apimachinery.strategy import Context, Json, Update
from mirror.embedded.apiserver.registry.builtin import CORE_REFUSAL, Builtin
from mirror.embedded.apiserver.registry.resources import pod_defaults
from mirror.embedded.apiserver.registry.resources.pods import changes, resizing, row, status
from mirror.embedded.apiserver.validation import metadata
from mirror.embedded.apiserver.validation.pods import template
from mirror.embedded.apiserver.validation.pods.warnings import template_warnings

PENDING, ENDED = "Pending", ("Succeeded", "Failed")
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_TEMPLATE = "\0"
"""Stands for the path of a template in warnings, of which a pod's have none."""


class Pods(Builtin):
    """Pods go in their own time: see ``grace_seconds``."""

    struct = "Pod"
    checks_metadata = True
    has_graceful_deletion = True
    selector_refusal = CORE_REFUSAL
    columns = row.COLUMNS
    selectable = MappingProxyType(
        {
            "spec.nodeName": lambda body: str(body["spec"].get("nodeName", "")),
            "spec.host": lambda body: str(body["spec"].get("nodeName", "")),
            "spec.restartPolicy": lambda body: str(body["spec"].get("restartPolicy", "")),
            "spec.schedulerName": lambda body: str(body["spec"].get("schedulerName", "")),
            "spec.serviceAccountName": lambda body: str(body["spec"].get("serviceAccountName", "")),
            "spec.hostNetwork": lambda body: "true" if body["spec"].get("hostNetwork") else "false",
            "status.phase": lambda body: str(body["status"].get("phase", "")),
            "status.podIP": lambda body: str(body["status"].get("podIP", "")),
            # The server knows the name and has no value for it.
            "status.podIPs": lambda body: "",
            "status.nominatedNodeName": lambda body: str(body["status"].get("nominatedNodeName", "")),
        }
    )

    def __init__(self) -> None:
        self.subresources = {
            "status": Update(status.prepare, status.check, resets=status.RESETS),
            "ephemeralcontainers": Update(changes.prepare, changes.check_ephemeral, resets=(("status",),)),
            "resize": Update(resizing.prepare, resizing.check, resets=(("status",),)),
        }

    def default(self, body: Json, context: Context) -> None:
        pod_defaults.fill_pod(body)
        pod_defaults.fill_addresses(body["status"])

    def prepare_create(self, body: Json, context: Context) -> Json:
        spec, labels = body["spec"], body["metadata"].get("labels", {})
        body["metadata"]["generation"] = 1
        body["status"] = {"phase": PENDING, "qosClass": resizing.of(spec)}
        if spec.get("schedulingGates"):
            body["status"]["conditions"] = [_gated(context.now)]
        for term in _affinity_terms(spec.get("affinity", {})):
            _add_label_keys(term, labels)
        for constraint in spec.get("topologySpreadConstraints", ()):
            _add_label_keys(constraint, labels)
        return body

    def check_create(self, body: Json, context: Context) -> Sequence[Violation]:
        return list(template.check_create(body))

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        new["status"] = old["status"]
        self.keep_generation(new, old)
        if not same(new["spec"], old["spec"]):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        return new

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        return [
            *metadata.check_meta_update(new, old),
            *template.check_pod(new),
            *changes.check_annotations(new, old),
            *changes.check(new["spec"], old["spec"]),
        ]

    def warnings(self, new: Json, old: Json | None, context: Context) -> Sequence[str]:
        if old is not None:
            return ()
        problems = label_problems(new["metadata"].get("name", ""))
        name = "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
        recommended = [f"{name}a DNS label is recommended: [{' '.join(problems)}]"] if problems else []
        template = {"metadata": new["metadata"], "spec": new["spec"]}
        found = (one.replace(f"{_TEMPLATE}.", "") for one in template_warnings(_TEMPLATE, template))
        return [*recommended, *found]

    def grace_seconds(self, body: Json, wanted: int | None) -> int:
        """As long as the spec says, or the request; at once where nothing runs (any more)."""
        seconds = wanted if wanted is not None else int(body["spec"]["terminationGracePeriodSeconds"])
        if not body["spec"].get("nodeName") or body["status"].get("phase") in ENDED:
            return 0
        return seconds if seconds >= 0 else 1

    def row_conditions(self, body: Json) -> list[Json]:
        return row.conditions(body)

    def cells(self, body: Json, now: datetime) -> list[object]:
        return row.row(body, now)


def _gated(now: str) -> Json:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def _affinity_terms(affinity: Json) -> Iterator[Json]:
    for kind in ("podAffinity", "podAntiAffinity"):
        part = affinity.get(kind, {})
        yield from (one["podAffinityTerm"] for one in part.get(_PREFERRED, ()))
        yield from part.get(_REQUIRED, ())


def _add_label_keys(term: Json, labels: dict[str, str]) -> None:
    """Labels of the pod itself that its selector is to have (or must not have), in place."""
    selector = term.get("labelSelector")
    if selector is None:
        return
    for name, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(name, ()):
            if key in labels:
                expression = {"key": key, "operator": operator, "values": [labels[key]]}
                selector.setdefault("matchExpressions", []).append(expression)


def kind() -> Kind:
    """``v1`` ``pods``."""
    return Kind("", "v1", "Pod", "pods", Pods(), singular="pod", short_names=("po",), categories=("all",))
