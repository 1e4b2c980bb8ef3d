"""A Job's label selector: which pods it means. Pure.

Used by ``jobview`` for the Job's cache, and by all that look for pods of a Job or for Jobs of a pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mirror.batch import views


@dataclass(frozen=True, slots=True)
class Requirement:
    """One entry of ``matchExpressions``."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def accepts(self, labels: Mapping[str, str]) -> bool:
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case _:
                return False  # the API refuses others


@dataclass(frozen=True, slots=True)
class Selector:
    """A ``LabelSelector``. A missing one means no pod, an empty one every pod."""

    labels: tuple[tuple[str, str], ...] = ()
    requirements: tuple[Requirement, ...] = ()
    is_missing: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        for key, value in self.labels:  # a loop, since this is asked for each pod by each sync
            if labels.get(key) != value:
                return False
        return not self.is_missing and (not self.requirements or all(one.accepts(labels) for one in self.requirements))

    @property
    def pivot(self) -> tuple[str, str] | None:
        """One label that every pod it means has; None when it names none."""
        return self.labels[0] if self.labels else None

    def __str__(self) -> str:
        words = [f"{key}={value}" for key, value in self.labels]
        words += [f"{one.key} {one.operator} {sorted(one.values)}" for one in self.requirements]
        return ",".join(words)


MISSING = Selector(is_missing=True)


def selector_of(value: object) -> Selector:
    """Read a Job's ``spec.selector``."""
    if value is None:
        return MISSING
    found = views.mapping(value)
    labels = tuple(sorted((key, views.text(text)) for key, text in views.mapping(found.get("matchLabels")).items()))
    requirements = tuple(_requirement(views.mapping(one)) for one in views.items(found.get("matchExpressions")))
    return Selector(labels, requirements)


def _requirement(found: Mapping[str, object]) -> Requirement:
    values = frozenset(views.text(value) for value in views.items(found.get("values")))
    return Requirement(views.text(found.get("key")), views.text(found.get("operator")), values)
