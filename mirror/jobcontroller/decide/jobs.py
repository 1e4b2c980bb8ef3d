"""A Job as the decisions look at it: what its spec asks for, gates included, and what its stored status says.

Bodies come as the API serves them, defaults included; what is absent reads as its neutral value.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from mirror.batch import conditions, views
from mirror.batch.conditions import Condition
from mirror.batch.feature_gates import FeatureGates

_DEFAULT_BACKOFF_LIMIT = 6
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Job(msgspec.Struct, frozen=True):
    """What the spec asks for."""

    completions: int | None
    parallelism: int
    is_indexed: bool
    is_suspended: bool
    restarts_on_failure: bool
    backoff_limit: int
    backoff_limit_per_index: int | None
    max_failed_indexes: int | None
    deadline_seconds: int | None
    replacement_policy: str
    replaces_only_failed: bool
    """R1: a terminating pod is neither failed nor replaced before it has ended."""

    @classmethod
    def of(cls, spec: Mapping[str, object], gates: FeatureGates) -> Job:
        is_indexed = spec.get("completionMode") == "Indexed"
        per_index = views.optional_number(spec.get("backoffLimitPerIndex"))
        has_per_index = is_indexed and gates.job_backoff_limit_per_index
        policy = views.text(spec.get("podReplacementPolicy")) if gates.job_pod_replacement_policy else ""
        pod = views.mapping(views.mapping(spec.get("template")).get("spec"))
        backoff_limit = views.optional_number(spec.get("backoffLimit"))
        parallelism = views.optional_number(spec.get("parallelism"))
        completions = views.optional_number(spec.get("completions"))
        return cls(
            # An API server gives no Indexed Job without completions (C18).
            completions=completions or 0 if is_indexed else completions,
            parallelism=1 if parallelism is None else parallelism,
            is_indexed=is_indexed,
            is_suspended=spec.get("suspend") is True,
            restarts_on_failure=pod.get("restartPolicy") == "OnFailure",
            backoff_limit=_DEFAULT_BACKOFF_LIMIT if backoff_limit is None else backoff_limit,
            backoff_limit_per_index=per_index if has_per_index else None,
            max_failed_indexes=views.optional_number(spec.get("maxFailedIndexes")) if has_per_index else None,
            deadline_seconds=views.optional_number(spec.get("activeDeadlineSeconds")),
            replacement_policy=policy,
            replaces_only_failed=policy == "Failed" or spec.get("podFailurePolicy") is not None,
        )

    @property
    def size(self) -> int:
        """Of an Indexed Job, how many indexes there are."""
        return self.completions or 0

    @property
    def is_elastic(self) -> bool:
        """V35: it may be scaled down, and its successes with it."""
        return self.is_indexed and self.completions == self.parallelism

    @property
    def ends_without_start(self) -> bool:
        """V21: suspended and of no completions, it ends without ever having started (W6)."""
        return self.is_suspended and self.completions == 0

    def has_index(self, index: int | None) -> bool:
        """Whether it is an index of this Indexed Job."""
        return index is not None and 0 <= index < self.size


class Stored(msgspec.Struct, frozen=True):
    """What the stored status says."""

    active: int
    ready: int | None
    terminating: int | None
    succeeded: int
    failed: int
    start: str | None
    completed_indexes: str
    failed_indexes: str | None
    uncounted_succeeded: frozenset[str]
    uncounted_failed: frozenset[str]
    conditions: list[Condition]

    @classmethod
    def of(cls, status: Mapping[str, object]) -> Stored:
        uncounted = views.mapping(status.get("uncountedTerminatedPods"))
        return cls(
            active=views.number(status.get("active")),
            ready=views.optional_number(status.get("ready")),
            terminating=views.optional_number(status.get("terminating")),
            succeeded=views.number(status.get("succeeded")),
            failed=views.number(status.get("failed")),
            start=views.optional_text(status.get("startTime")),
            completed_indexes=views.text(status.get("completedIndexes")),
            failed_indexes=views.optional_text(status.get("failedIndexes")),
            uncounted_succeeded=frozenset(map(views.text, views.items(uncounted.get("succeeded")))),
            uncounted_failed=frozenset(map(views.text, views.items(uncounted.get("failed")))),
            conditions=conditions.of(status),
        )

    @property
    def is_suspended(self) -> bool:
        """The condition says so; the spec may say otherwise by now."""
        return conditions.is_true(self.conditions, conditions.SUSPENDED)

    def started_at(self) -> datetime | None:
        return read_time(self.start)


def read_time(text: str | None) -> datetime | None:
    """A time of the API. What Go can say and Python cannot is the year 0: that is as long ago as can be."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return _LONG_AGO
