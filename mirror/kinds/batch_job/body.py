"""The mirror of a batch/v1 Job: what is carried to a worker, and what of it follows later (D4, D9)."""

from __future__ import annotations

from mirror.batch import views
from mirror.kinds import queueing
from mirror.kinds.base import Json, MirrorTransform
from mirror.kinds.batch_job import rule_names
from mirror.kinds.carried import Part, carried_of, read, without_keys
from mirror.kinds.metadata import mirror_annotations, mirror_labels
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS
from mirror.model import names
from mirror.model.fences import FENCED, mark_of

GENERATED_LABELS = frozenset(
    ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
)
_SCALARS = (
    "parallelism",
    "completions",
    "backoffLimit",
    "activeDeadlineSeconds",
    "maxFailedIndexes",
    "podReplacementPolicy",
    "manualSelector",
)
_KEPT = frozenset((names.ORIGIN, names.SOURCE_UID, names.MANAGEMENT_UID))
"""Labels of ours that are carried like a user's."""
_FENCED = FENCED.encode()
_POD = ("spec", "template", "spec")
POD_LABELS = ("spec", "template", "metadata", "labels")
SUSPEND = Part("suspend", ("spec", "suspend"))
_PARTS = (
    SUSPEND,
    *(Part(scalar, ("spec", scalar)) for scalar in _SCALARS),
    Part("labels", ("metadata", "labels"), is_map=True),
    Part("annotations", ("metadata", "annotations"), is_map=True),
    Part("templateLabels", POD_LABELS, is_map=True, needs_mutable_template=True),
    Part(
        "templateAnnotations", ("spec", "template", "metadata", "annotations"), is_map=True, needs_mutable_template=True
    ),
    Part("nodeSelector", (*_POD, "nodeSelector"), is_map=True, needs_mutable_template=True),
    Part("tolerations", (*_POD, "tolerations"), needs_mutable_template=True),
    Part("schedulingGates", (*_POD, "schedulingGates"), needs_mutable_template=True),
    Part("nodeAffinity", (*_POD, "affinity", "nodeAffinity"), needs_mutable_template=True),
)
_PLACES = {
    place: tuple((part.name, str(part.path[-1])) for part in _PARTS if part.path[:-1] == place)
    for place in {part.path[:-1]: None for part in _PARTS}
}
"""What is at one place: the names of the parts there, and their keys."""


def mirror_body(source: Object, *, namespace: str, transform: MirrorTransform) -> dict[str, Json]:
    """The whole mirror of a source, as it is created (D4); of one that is fenced with its lease, which is not noted."""
    body = wanted_body(source, namespace=namespace, transform=transform)
    if _FENCED in bytes(source.status) and mark_of(source.status_dict()) == FENCED:
        spec, ttl = body["spec"], transform.fence_ttl_seconds
        user = spec.get("activeDeadlineSeconds")
        spec["activeDeadlineSeconds"] = ttl if user is None else min(user, ttl)
        body["metadata"]["annotations"][names.FENCE] = "true"
    return body


def wanted_body(source: Object, *, namespace: str, transform: MirrorTransform) -> dict[str, Json]:
    """What a mirror should be like, but for a lease."""
    spec = source.spec_dict()
    keep = _selected_labels(spec)
    for key in ("managedBy", "ttlSecondsAfterFinished", *(() if spec.get("manualSelector") else ("selector",))):
        spec.pop(key, None)
    template_metadata = read(spec, ("template", "metadata")) or {}
    labels = without_keys(template_metadata.get("labels"), GENERATED_LABELS - keep)
    labels |= transform.pod_labels(source)
    template = {
        **(spec.get("template") or {}),
        "metadata": {key: template_metadata[key] for key in ("annotations",) if template_metadata.get(key)}
        | ({"labels": labels} if labels else {}),
    }
    spec["template"] = queueing.template_for_worker(template, transform)
    spec["suspend"] = bool(spec.get("suspend"))
    body: dict[str, Json] = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": source.metadata.name,
            "namespace": namespace,
            "labels": mirror_labels(source, transform, generated=GENERATED_LABELS),
            "annotations": mirror_annotations(source, transform),
        },
        "spec": spec,
    }
    parts = parts_of(body)
    values = part_values(body, parts)
    is_changed = spec["template"] != template
    sources = part_values({**body, "spec": {**spec, "template": template}}, parts) if is_changed else values
    body["metadata"]["annotations"] = {
        **body["metadata"]["annotations"],
        names.CARRIED: carried_of(values, parts, source=sources).as_text(),
        **rule_names.for_mirror(source, spec, server_knows_names=transform.server_knows_rule_names),
    }
    return body


def parts_of(body: Json) -> tuple[Part, ...]:
    """All parts of a Job, its containers' resources among them."""
    containers = [
        Part(f"{field}{i}", (*_POD, field, i, "resources"), needs_mutable_template=True)
        for field in ("containers", "initContainers")
        for i in range(len(read(body, (*_POD, field)) or ()))
    ]
    return (*_PARTS, *containers)


def part_values(body: Json, parts: tuple[Part, ...]) -> dict[str, Json]:
    """What a body has at all parts that ``parts_of`` it are; those in one place are read together."""
    values: dict[str, Json] = {}
    for place, keys in _PLACES.items():
        there = views.mapping(read(body, place))
        for name, key in keys:
            values[name] = there.get(key)
    for part in parts[len(_PARTS) :]:
        values[part.name] = read(body, part.path)
    for name in ("labels", "annotations"):
        found = values[name] or {}
        values[name] = {key: value for key, value in found.items() if not key.startswith(names.PREFIX) or key in _KEPT}
    if labels := values.get("templateLabels"):
        # Ours are there only on mirrors that were created while pods are watched.
        values["templateLabels"] = without_keys(labels, (names.ORIGIN, names.SOURCE_UID)) or None
    return values


def _selected_labels(spec: Json) -> frozenset[str]:
    """Labels that a kept, manual selector asks for: they must stay in the template."""
    if not spec.get("manualSelector"):
        return frozenset()
    selector = spec.get("selector") or {}
    expressions = (expression.get("key", "") for expression in selector.get("matchExpressions") or ())
    return frozenset((*(selector.get("matchLabels") or {}), *expressions))
