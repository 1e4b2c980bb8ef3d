"""A status while it is being computed; it comes from a status and ends as one, in the shape that the API serves (DF20).

Fields that the controller does not know stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from mirror.batch import conditions, views
from mirror.batch.conditions import TRUE, Condition
from mirror.jobcontroller.decide.values import Status


@dataclass(slots=True)
class Draft:
    """Only its maker changes it; ``status()`` gives it away."""

    base: Mapping[str, object]
    active: int
    ready: int
    terminating: int | None
    succeeded: int
    failed: int
    start: str | None
    completion: str | None
    completed_indexes: str
    failed_indexes: str | None
    uncounted_succeeded: list[str]
    uncounted_failed: list[str]
    conditions: list[Condition]

    @classmethod
    def of(cls, status: Mapping[str, object]) -> Draft:
        uncounted = views.mapping(status.get("uncountedTerminatedPods"))
        return cls(
            base=status,
            active=views.number(status.get("active")),
            ready=views.number(status.get("ready")),
            terminating=views.optional_number(status.get("terminating")),
            succeeded=views.number(status.get("succeeded")),
            failed=views.number(status.get("failed")),
            start=views.optional_text(status.get("startTime")),
            completion=views.optional_text(status.get("completionTime")),
            completed_indexes=views.text(status.get("completedIndexes")),
            failed_indexes=views.optional_text(status.get("failedIndexes")),
            uncounted_succeeded=list(map(views.text, views.items(uncounted.get("succeeded")))),
            uncounted_failed=list(map(views.text, views.items(uncounted.get("failed")))),
            conditions=conditions.of(status),
        )

    @property
    def uncounted(self) -> int:
        return len(self.uncounted_succeeded) + len(self.uncounted_failed)

    def count_gone(self, gone: Collection[str]) -> bool:
        """Add those of the uncounted pods to the counters whose finalizer is gone (T2, T11); whether there were any."""
        before = self.uncounted
        succeeded = [uid for uid in self.uncounted_succeeded if uid not in gone]
        failed = [uid for uid in self.uncounted_failed if uid not in gone]
        self.succeeded += len(self.uncounted_succeeded) - len(succeeded)
        self.failed += len(self.uncounted_failed) - len(failed)
        self.uncounted_succeeded, self.uncounted_failed = succeeded, failed
        return self.uncounted != before

    def upsert(self, type_name: str, reason: str, message: str, *, at: str, status: str = TRUE) -> bool:
        """Have this condition; whether it was not there like that (N1)."""
        found = conditions.find(self.conditions, type_name)
        wanted = (status, reason, message)
        if found and (found.get("status"), found.get("reason", ""), found.get("message", "")) == wanted:
            return False
        condition = conditions.new(type_name, status, reason=reason, message=message, at=at)
        self.conditions = conditions.upsert(self.conditions, condition)
        return True

    def status(self) -> Status:
        uncounted = {"succeeded": self.uncounted_succeeded, "failed": self.uncounted_failed}
        given: dict[str, object] = {
            "active": self.active or None,
            "ready": self.ready,
            "terminating": self.terminating,
            "succeeded": self.succeeded or None,
            "failed": self.failed or None,
            "startTime": self.start,
            "completionTime": self.completion,
            "completedIndexes": self.completed_indexes or None,
            "failedIndexes": self.failed_indexes,
            "uncountedTerminatedPods": {name: uids for name, uids in uncounted.items() if uids},
            "conditions": self.conditions or None,
        }
        kept = {name: value for name, value in self.base.items() if name not in given}
        return kept | {name: value for name, value in given.items() if value is not None}
