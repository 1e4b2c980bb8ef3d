"""The source as it is stored: what of it decides the next status, and small questions about a status.

Stored conditions are kept as they are, in their order: other controllers on the management cluster write some, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from mirror.batch import conditions, times, views
from mirror.batch.conditions import Condition, Verdict
from mirror.batch.status_change import Spec
from mirror.batch.status_rules import check_status_update
from mirror.model import names

Status: TypeAlias = dict[str, Any]

_COUNTERS = ("active", "succeeded", "failed")
_TIMES = ("startTime", "completionTime")


class StoredJob(msgspec.Struct, frozen=True):
    """A source's spec and status; build it with ``of``."""

    spec: Mapping[str, object]
    status: Mapping[str, Any]
    """In the shape that the API serves (D20)."""
    wanted: Spec
    conditions: tuple[Condition, ...]

    @classmethod
    def of(cls, spec: Mapping[str, object], status: Mapping[str, object]) -> StoredJob:
        """From the parts of an object that the API served.

        Raises:
            BadTime: a time is none, which no API server serves.
        """
        # A time that is served as null is stored nevertheless, and the rules must know (V37).
        nulls = {name: None for name in _TIMES if name in status and status[name] is None}
        shaped = served(status) | nulls
        return cls(spec, shaped, Spec.of(spec), tuple(conditions.of(shaped)))

    @property
    def start(self) -> str | None:
        return views.optional_text(self.status.get("startTime"))

    @property
    def completion(self) -> str | None:
        return views.optional_text(self.status.get("completionTime"))

    @property
    def verdict(self) -> Verdict | None:
        return conditions.verdict(self.conditions)

    @property
    def is_finished(self) -> bool:
        return conditions.is_finished(self.conditions)

    def is_true(self, type_name: str) -> bool:
        return conditions.is_true(self.conditions, type_name)

    def refusal(self, status: Mapping[str, object]) -> str:
        """Why the API would refuse this status; empty when it accepts.

        The statuses that we make are refused only where any would be: something stored contradicts itself.
        """
        causes = check_status_update({"spec": self.spec, "status": self.status}, status)
        listed = "; ".join(f"{cause.field}: {cause.message}" for cause in causes)
        return listed and f"what is stored allows no such write: {listed}"


def served(status: Mapping[str, object]) -> Status:
    """The status in the shape that the API serves (D20); fields that we do not know stay.

    Raises:
        BadTime: a time is none.
    """
    shaped = {name: value for name, value in status.items() if value is not None}
    for name in _COUNTERS:
        if not shaped.get(name):
            shaped.pop(name, None)
    for name in _TIMES:
        if isinstance(time := shaped.get(name), str):
            shaped[name] = times.stored(time)
    shaped["conditions"] = [_served_condition(one) for one in conditions.of(status)]
    for name in ("completedIndexes", "conditions"):
        if not shaped.get(name):
            shaped.pop(name, None)
    if isinstance(uncounted := shaped.get("uncountedTerminatedPods"), Mapping):
        shaped["uncountedTerminatedPods"] = {name: list(uids) for name, uids in uncounted.items() if uids}
    return shaped


def _served_condition(condition: Condition) -> Condition:
    shaped = {name: value for name, value in condition.items() if value}
    for name in ("lastProbeTime", "lastTransitionTime"):
        time = shaped.get(name)
        shaped[name] = times.stored(time) if isinstance(time, str) else None
    return shaped


def is_finished(status: Mapping[str, object]) -> bool:
    """Whether Complete or Failed is True."""
    return conditions.is_finished(conditions.of(status))


def verdict(status: Mapping[str, object]) -> Verdict | None:
    """How the Job ends or has ended, as far as it is known."""
    return conditions.verdict(conditions.of(status))


def has_started(status: Mapping[str, object]) -> bool:
    """Whether anything of the Job has run, or been decided: a startTime, any counter, or a verdict (D11)."""
    counters = ("startTime", *_COUNTERS, "ready", "terminating", "completedIndexes", "failedIndexes")
    uncounted = views.mapping(status.get("uncountedTerminatedPods"))
    return any(map(status.get, counters)) or any(uncounted.values()) or verdict(status) is not None


def placed_worker(status: Mapping[str, object]) -> str | None:
    """The worker that is recorded on the source (D5)."""
    placed = conditions.find(conditions.of(status), names.PLACED, conditions.TRUE)
    return views.text(placed.get("message")) or None if placed else None
