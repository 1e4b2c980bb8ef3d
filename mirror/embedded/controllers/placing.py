"""Which node a pod may run on; pure. Selectors, affinity to nodes, taints; what nodes have room for is not counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mirror.batch.label_selectors import matches, requirement_of
from mirror.embedded.controllers.client import Json

UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"
_AFFINITY = "node(s) didn't match Pod's node affinity/selector"
_UNSCHEDULABLE = "node(s) were unschedulable"


def node_for(pod: Json, nodes: Sequence[Json], turn: int) -> str | None:
    """The name of a node for a pod, others for other turns; None: there is none."""
    found = sorted(one["metadata"]["name"] for one in nodes if _refusal(pod, one) is None)
    return found[turn % len(found)] if found else None


def why_none(pod: Json, nodes: Sequence[Json]) -> str:
    """Why no node will do, as the scheduler says it."""
    if not nodes:
        return "no nodes available to schedule pods"
    reasons = Counter(why for one in nodes if (why := _refusal(pod, one)) is not None)
    listed = ", ".join(sorted(f"{count} {why}" for why, count in reasons.items()))
    tail = f"preemption: 0/{len(nodes)} nodes are available: {len(nodes)} Preemption is not helpful for scheduling."
    return f"0/{len(nodes)} nodes are available: {listed}. {tail}"


def tolerates(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    """Whether one of them is about this taint."""
    return any(is_about(one, taint) for one in tolerations)


def is_about(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """Whether a toleration covers a taint."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    match toleration.get("operator") or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")
        case "Lt" | "Gt" as operator:
            return _compared(taint.get("value"), operator, [toleration.get("value")])
        case _:
            return False


def _refusal(pod: Json, node: Json) -> str | None:
    """Why a pod may not run there; None: it may."""
    spec = node.get("spec") or {}
    tolerations = pod["spec"].get("tolerations") or ()
    if spec.get("unschedulable") and not tolerates(
        tolerations, {"key": UNSCHEDULABLE_TAINT, "effect": "NoSchedule", "value": ""}
    ):
        return _UNSCHEDULABLE
    if not _matches(pod["spec"], node):
        return _AFFINITY
    for taint in spec.get("taints") or ():
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not tolerates(tolerations, taint):
            return f"node(s) had untolerated taint {{{taint.get('key')}: {taint.get('value') or ''}}}"
    return None


def _matches(spec: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(_fits(term, labels, fields) for term in affinity.get("nodeSelectorTerms") or ())


def _fits(term: Json, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    rules, field_rules = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not rules and not field_rules:
        return False
    return matches(map(requirement_of, rules), labels) and matches(map(requirement_of, field_rules), fields)


def _compared(value: object, operator: str, values: Sequence[object]) -> bool:
    try:
        left, right = int(str(value)), int(str(values[0]))
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right
