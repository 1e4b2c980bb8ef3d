"""The conditions of a namespace that is being deleted, in the words of kube-controller-manager; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mirror.embedded.controllers.client import Json
from mirror.kube.resources import Resource

_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass(slots=True)
class Found:
    """What was found while a namespace's content was deleted."""

    remaining: dict[Resource, int] = field(default_factory=dict)
    finalizers: dict[str, int] = field(default_factory=dict)
    """How many objects wait for each."""
    errors: list[str] = field(default_factory=list)
    discovery_error: str = ""
    estimate_seconds: int = 0
    """How long it may take until what remains is gone."""
    are_totals_known: bool = True
    """Whether all kinds were looked at; while pods remain, only they are."""

    def add(self, resource: Resource, objects: Sequence[Mapping[str, Any]], estimate_seconds: int) -> None:
        """Objects of one kind remain."""
        self.remaining[resource] = len(objects)
        for one in objects:
            for finalizer in one["metadata"].get("finalizers") or ():
                self.finalizers[finalizer] = self.finalizers.get(finalizer, 0) + 1
        self.estimate_seconds = max(self.estimate_seconds, estimate_seconds)


def changed(stored: Sequence[Mapping[str, Any]], found: Found, now: str) -> list[Json] | None:
    """The conditions to write; None if the stored ones say the same."""
    problems = _problems(found)
    conditions: list[Json] = [dict(one) for one in stored]
    is_changed = False
    for kind, (reason, message) in _FINE.items():
        status, reason, message = problems.get(kind, ("False", reason, message))
        old = next((one for one in conditions if one.get("type") == kind), None)
        new = {"type": kind, "status": status, "reason": reason, "message": message}
        if old is None:
            conditions.append(new | {"lastTransitionTime": now})
        elif any(old.get(name) != value for name, value in new.items()):
            if old.get("status") != status:
                old["lastTransitionTime"] = now
            old |= new
        else:
            continue
        is_changed = True
    return conditions if is_changed else None


def _problems(found: Found) -> dict[str, tuple[str, str, str]]:
    problems: dict[str, tuple[str, str, str]] = {}
    if found.discovery_error:
        problems["NamespaceDeletionDiscoveryFailure"] = ("True", "DiscoveryFailed", found.discovery_error)
    if found.errors:
        message = (
            f"Failed to delete all resource types, {len(found.errors)} remaining: {', '.join(sorted(found.errors))}"
        )
        problems["NamespaceDeletionContentFailure"] = ("True", "ContentDeletionFailed", message)
    if found.remaining and found.are_totals_known:
        listed = sorted(
            f"{resource.plural}.{resource.group} has {count} resource instances"
            for resource, count in found.remaining.items()
        )
        message = f"Some resources are remaining: {', '.join(listed)}"
        problems["NamespaceContentRemaining"] = ("True", "SomeResourcesRemain", message)
    if found.finalizers and found.are_totals_known:
        listed = sorted(f"{name} in {count} resource instances" for name, count in found.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(listed)}"
        problems["NamespaceFinalizersRemaining"] = ("True", "SomeFinalizersRemain", message)
    return problems
