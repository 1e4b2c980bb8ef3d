"""What a queue (Kueue) writes on Jobs and their pod templates: on the management cluster, and on a worker (D26). Pure.

Its notes are of one cluster: a mirror never has those of the management cluster, and what has them there was admitted
by the worker's own. What a user asks of a queue (its name, a priority, a topology) is carried like everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from mirror.batch import views
from mirror.kinds.base import Json, MirrorTransform
from mirror.kinds.carried import without_keys
from mirror.kube.errors import BadAnswer
from mirror.kube.objects import Object
from mirror.model import names

_KUEUE = "kueue.x-k8s.io/"
NOTES = frozenset(
    f"{_KUEUE}{name}"
    for name in (
        "multikueue-origin",
        "multikueue-origin-uid",
        "multikueue-worker-workload-pod",
        "podset",
        "prebuilt-workload-name",
        "stopping",
        "workload",
        "workload-slice-name",
        "workload-slice-replacement-for",
    )
)
"""Labels and annotations, of Jobs and of their pod templates."""
POD_NOTES = NOTES | {f"{_KUEUE}cluster-queue-name", f"{_KUEUE}local-queue-name"}
GATE = f"{_KUEUE}topology"
"""On pods until a topology is assigned to them, which is of nodes of one cluster."""
_FIELDS = ("nodeSelector", "tolerations", "schedulingGates")


def template_for_worker(template: Mapping[str, Json], transform: MirrorTransform) -> dict[str, Json]:
    """A pod template without the notes and directives that are of the management cluster; others stay as they are."""
    found = dict(template)
    metadata = views.mapping(found.get("metadata"))
    for field in ("labels", "annotations"):
        values = views.mapping(metadata.get(field))
        if not POD_NOTES.isdisjoint(values):
            metadata = _put(metadata, field, without_keys(values, POD_NOTES))
            found["metadata"] = metadata
    spec = found.get("spec")
    if isinstance(spec, dict) and any(spec.get(field) for field in _FIELDS):
        found["spec"] = _directives(spec, transform)
    return found


def _directives(spec: dict[str, Json], transform: MirrorTransform) -> dict[str, Json]:
    selector, tolerations, gates = (spec.get(field) for field in _FIELDS)
    if isinstance(selector, dict) and (transform.strip_node_selectors or transform.replace_node_selectors):
        spec = _put(spec, "nodeSelector", _node_selector(selector, transform))
    if isinstance(tolerations, list) and transform.strip_tolerations:
        spec = _put(spec, "tolerations", [one for one in tolerations if not _is_stripped(one, transform)])
    if isinstance(gates, list) and any(views.mapping(gate).get("name") == GATE for gate in gates):
        spec = _put(spec, "schedulingGates", [gate for gate in gates if views.mapping(gate).get("name") != GATE])
    return spec


def _node_selector(found: dict[str, Json], transform: MirrorTransform) -> dict[str, Json]:
    """What is replaced is not stripped; what is replaced gives way to what the user has asked for by that key."""
    kept: dict[str, Json] = {}
    added: dict[str, Json] = {}
    replaced = dict(transform.replace_node_selectors)
    for key, value in found.items():
        there = replaced.get((key, value)) if isinstance(value, str) else None
        if there is not None:
            added[there[0]] = there[1]
        elif not any(fnmatchcase(key, glob) for glob in transform.strip_node_selectors):
            kept[key] = value
    return added | kept


def _is_stripped(toleration: Json, transform: MirrorTransform) -> bool:
    key = views.mapping(toleration).get("key")
    return isinstance(key, str) and any(fnmatchcase(key, glob) for glob in transform.strip_tolerations)


def _put(found: Mapping[str, Json], field: str, value: Json) -> dict[str, Json]:
    """With this value in a field, or without the field where nothing is left."""
    rest = {key: kept for key, kept in found.items() if key != field or value}
    return rest | ({field: value} if value else {})


def is_admitted(templates: Iterable[Json]) -> bool:
    """Whether a queue on its worker has admitted a mirror that has these pod templates, by the note that it leaves."""
    metadata = (views.mapping(views.mapping(template).get("metadata")) for template in templates)
    return any(names.POD_SET in views.mapping(one.get("labels")) for one in metadata)


def is_reset(old: Object, new: Object) -> bool:
    """Whether a status differs by a start that was taken away, and nothing else: so that a template may be restored."""
    try:
        before, after = dict(old.status_dict()), new.status_dict()
    except BadAnswer:
        return False
    return before.pop("startTime", None) is not None and before == after


def queue_of(found: Object) -> str:
    """The queue that an object is in, on its own cluster; empty: in none."""
    return found.labels.get(names.QUEUE_NAME, "")
