"""A status update as the rules look at it: both statuses with their types, the spec, and what changed (V1).

Built by ``status_rules``; decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from mirror.batch import conditions, times, views
from mirror.batch.conditions import COMPLETE, FAILED, SUSPENDED
from mirror.batch.quoting import json_texts

_INDEXES = ("completedIndexes", "failedIndexes")
_STORED_ZERO = times.instant(times.ZERO) - 1


class Spec(msgspec.Struct, frozen=True):
    """What the rules ask of a Job's spec, with the API's defaults."""

    suspend: bool
    completions: int | None
    parallelism: int | None
    is_indexed: bool
    has_backoff_limit_per_index: bool
    has_success_policy: bool

    @classmethod
    def of(cls, spec: Mapping[str, object]) -> Spec:
        return cls(
            suspend=spec.get("suspend") is True,
            completions=views.optional_number(spec.get("completions")),
            parallelism=views.optional_number(spec.get("parallelism")),
            is_indexed=spec.get("completionMode") == "Indexed",
            has_backoff_limit_per_index=spec.get("backoffLimitPerIndex") is not None,
            has_success_policy=spec.get("successPolicy") is not None,
        )

    @property
    def is_elastic(self) -> bool:
        """V35: the Job may be scaled down, and its successes with it."""
        return self.is_indexed and self.completions == self.parallelism


class Uncounted(msgspec.Struct, frozen=True):
    """Lists that are absent are None: the server prints them differently from empty ones."""

    succeeded: tuple[str, ...] | None
    failed: tuple[str, ...] | None

    @property
    def lists(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        return ("succeeded", self.succeeded or ()), ("failed", self.failed or ())

    def __str__(self) -> str:
        return f'{{"Succeeded":{json_texts(self.succeeded)},"Failed":{json_texts(self.failed)}}}'


_NONE_UNCOUNTED = Uncounted(None, None)


class Status(msgspec.Struct, frozen=True, dict=True):
    """A status with its types; times are instants, because the API compares instants (V2)."""

    active: int
    succeeded: int
    failed: int
    ready: int | None
    terminating: int | None
    start: int | None
    completion: int | None
    completed_indexes: str
    failed_indexes: str | None
    uncounted: Uncounted | None
    conditions: Sequence[conditions.Condition]

    @classmethod
    def of(cls, status: Mapping[str, object], *, is_stored: bool = False) -> Status:
        """Of a request, or as the API serves what is stored.

        There, a time that is ``null`` is a zero time, which equals no time that a request could have, not even zero.
        """
        absent = _STORED_ZERO if is_stored else None
        uncounted, number = status.get("uncountedTerminatedPods"), views.optional_number
        return cls(
            active=number(status.get("active")) or 0,
            succeeded=number(status.get("succeeded")) or 0,
            failed=number(status.get("failed")) or 0,
            ready=number(status.get("ready")),
            terminating=number(status.get("terminating")),
            start=_instant(status["startTime"], absent) if "startTime" in status else None,
            completion=_instant(status["completionTime"], absent) if "completionTime" in status else None,
            completed_indexes=views.text(status.get("completedIndexes")),
            failed_indexes=views.optional_text(status.get("failedIndexes")),
            uncounted=_uncounted(uncounted) if isinstance(uncounted, Mapping) else None,
            conditions=conditions.of(status),
        )

    @cached_property
    def true(self) -> frozenset[object]:
        return frozenset(one.get("type") for one in self.conditions if one.get("status") == conditions.TRUE)

    @cached_property
    def is_complete(self) -> bool:
        return COMPLETE in self.true

    @cached_property
    def is_failed(self) -> bool:
        return FAILED in self.true

    @property
    def is_finished(self) -> bool:
        return self.is_complete or self.is_failed


def _instant(value: object, absent: int | None) -> int | None:
    return times.instant(value) if isinstance(value, str) else absent


def _uncounted(value: Mapping[str, object]) -> Uncounted:
    return Uncounted(_uids(value.get("succeeded")), _uids(value.get("failed"))) if value else _NONE_UNCOUNTED


def _uids(listed: object) -> tuple[str, ...] | None:
    return tuple(map(views.text, listed)) if isinstance(listed, list | tuple) else None


class StatusChange(msgspec.Struct, frozen=True, dict=True):
    """The change flags of V1, beside both statuses and the spec."""

    spec: Spec
    old: Status
    new: Status

    def turned(self, *types: str) -> bool:
        """Whether the True-ness of any of these conditions changed."""
        return any((one in self.old.true) != (one in self.new.true) for one in types)

    @cached_property
    def turned_finished(self) -> bool:
        return self.old.is_finished != self.new.is_finished

    @cached_property
    def changed_start(self) -> bool:
        return self.old.start != self.new.start

    @cached_property
    def changed_completion(self) -> bool:
        return self.old.completion != self.new.completion

    @cached_property
    def changed_completed_indexes(self) -> bool:
        return self.old.completed_indexes != self.new.completed_indexes

    @cached_property
    def changed_failed_indexes(self) -> bool:
        return self.old.failed_indexes != self.new.failed_indexes

    @cached_property
    def is_resuming(self) -> bool:
        """V3."""
        resumed = conditions.find(self.new.conditions, SUSPENDED, conditions.FALSE) is not None
        return SUSPENDED in self.old.true and resumed


def is_plain_progress(stored: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Whether pods start and counters go on, in a Job that neither ends nor has ended: no rule minds any of it.

    Looks at statuses as they are on the wire, with times that are some; what is no plain progress is nothing yet.
    """
    number = views.number
    return (
        0 <= number(new.get("ready")) <= number(new.get("active"))
        and number(new.get("terminating")) >= 0
        and number(new.get("succeeded")) >= number(stored.get("succeeded")) >= 0
        and number(new.get("failed")) >= number(stored.get("failed")) >= 0
        and [*map(stored.get, _INDEXES)] == [*map(new.get, _INDEXES)]
        and ("startTime" not in stored or stored["startTime"] == new.get("startTime") is not None)
        and "completionTime" not in stored
        and "completionTime" not in new
        and (stored.get("conditions") == new.get("conditions") or _claims_no_end(stored))
        and _claims_no_end(new)
        and _are_counted_once(views.mapping(new.get("uncountedTerminatedPods")))
    )


def _claims_no_end(status: Mapping[str, object]) -> bool:
    """Whether rules ask for none of its conditions: of Suspended only one does, where startTime changes (V3)."""
    return conditions.DECIDING.isdisjoint([one.get("type") for one in conditions.of(status)])


def _are_counted_once(uncounted: Mapping[str, object]) -> bool:
    """V11, V12; what is no list of texts is not looked at, and not taken for right."""
    if not any(uncounted.values()):
        return True
    listed = [uid for name in ("succeeded", "failed") for uid in views.items(uncounted.get(name))]
    return all(uid and isinstance(uid, str) for uid in listed) and len(set(listed)) == len(listed)
