"""Priority classes. What pods make of them is ``pods``' business."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from mirror.batch.quoting import json_text
from mirror.batch.violations import IMMUTABLE, Violation, forbidden, invalid, not_supported, required
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.apimachinery.strategy import Column, Context, Json
from mirror.embedded.apiserver.registry import printers
from mirror.embedded.apiserver.registry.builtin import Builtin
from mirror.embedded.apiserver.registry.printers import TEXTS
from mirror.embedded.apiserver.validation import metadata

LARGEST_OF_USERS = 1_000_000_000
SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The classes that only the server itself makes, and their values."""
_DESCRIPTIONS = {
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but can be moved to another"
    " node if necessary.",
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}

_SYSTEM_PREFIX = "system-"
_POLICIES = ("PreemptLowerPriority", "Never")


class PriorityClasses(Builtin):
    """Cluster-scoped."""

    struct = "PriorityClass"
    is_namespaced = False
    has_generation = True
    columns = (
        printers.NAME,
        Column("Value", type="integer", description=TEXTS["PRIORITY_VALUE"]),
        Column("Global-Default", type="boolean", description=TEXTS["PRIORITY_DEFAULT"]),
        printers.AGE,
        Column("PreemptionPolicy", description=TEXTS["PRIORITY_PREEMPTION"]),
    )

    def prepare_update(self, new: Json, old: Json, context: Context) -> Json:
        self.keep_generation(new, old)
        return new

    def default(self, body: Json, context: Context) -> None:
        body.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def check(self, body: Json, context: Context) -> Iterator[Violation]:
        name, value = body["metadata"].get("name", ""), body["value"]
        if name.startswith(_SYSTEM_PREFIX):
            if problem := _system_problem(name, body):
                words = f"priority class names with '{_SYSTEM_PREFIX}' prefix are reserved for system use only. error: "
                yield forbidden("metadata.name", words + problem)
        elif value > LARGEST_OF_USERS:
            yield forbidden("value", f"maximum allowed value of a user defined priority is {LARGEST_OF_USERS}")
        policy = body["preemptionPolicy"]
        if policy not in _POLICIES:
            yield not_supported("preemptionPolicy", policy, _POLICIES) if policy else required("preemptionPolicy")

    def check_update(self, new: Json, old: Json, context: Context) -> Sequence[Violation]:
        found = list(metadata.check_meta_update(new, old))
        if new["value"] != old["value"]:
            found.append(forbidden("value", "may not be changed in an update."))
        if new["preemptionPolicy"] != old["preemptionPolicy"]:
            found.append(invalid("preemptionPolicy", json_text(new["preemptionPolicy"]), IMMUTABLE))
        return found

    def cells(self, body: Json, now: datetime) -> list[object]:
        return [
            body["metadata"]["name"],
            body.get("value", 0),
            body.get("globalDefault", False),
            printers.age(body, now),
            body.get("preemptionPolicy", ""),
        ]


def system() -> list[Json]:
    """Bodies of the classes that every cluster has."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name, "generation": 1},
            "value": value,
            "description": _DESCRIPTIONS[name],
            "preemptionPolicy": "PreemptLowerPriority",
        }
        for name, value in SYSTEM.items()
    ]


def _system_problem(name: str, body: Json) -> str:
    if name not in SYSTEM:
        return f"{name} is not a known system priority class"
    if body["value"] != SYSTEM[name]:
        return f"value of {name} PriorityClass must be {SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if body.get("globalDefault") else ""


def kind() -> Kind:
    """``scheduling.k8s.io/v1`` ``priorityclasses``."""
    return Kind(
        "scheduling.k8s.io",
        "v1",
        "PriorityClass",
        "priorityclasses",
        PriorityClasses(),
        singular="priorityclass",
        short_names=("pc",),
        is_namespaced=False,
    )
