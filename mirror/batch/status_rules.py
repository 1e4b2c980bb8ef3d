"""What the API refuses in an update of a Job's status: V10–V39, in V42's order and with its words.

The embedded API server refuses by these rules, the mirror computes statuses that keep them. Both sides must be decoded
already, that is have the API's types; metadata is not looked at (V41).

Most rules ask only when something they speak of has changed (V1), so that a bad value that is stored already never
blocks an unrelated change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from mirror.batch import indexes, times, views
from mirror.batch.conditions import COMPLETE, FAILED, FAILURE_TARGET, SUCCESS_CRITERIA_MET
from mirror.batch.quoting import json_text, quoted
from mirror.batch.status_change import Spec, Status, StatusChange, Uncounted
from mirror.batch.violations import DUPLICATE, IMMUTABLE, INVALID, NEGATIVE, REQUIRED, Violation

__all__ = ["Violation", "check_change", "check_status_update"]


def check_status_update(job: Mapping[str, object], new_status: Mapping[str, object]) -> list[Violation]:
    """The causes for which the API would refuse this status for this stored Job; empty when it accepts.

    ``job`` has spec and status as the API serves them.

    Raises:
        BadTime: startTime or completionTime is no time (an API server answers 400 before it comes to these rules).
    """
    spec, status = views.mapping(job.get("spec")), views.mapping(job.get("status"))
    return check_change(Spec.of(spec), status, new_status)


def check_change(spec: Spec, stored: Mapping[str, object], new_status: Mapping[str, object]) -> list[Violation]:
    """As ``check_status_update``, for a spec that was read already."""
    change = StatusChange(spec, Status.of(stored, is_stored=True), Status.of(new_status))
    return [violation for rule in _RULES for violation in rule(change)]


_Rule: TypeAlias = Callable[[StatusChange], Iterator[Violation]]


def _invalid(field: str, value: object, detail: str) -> Violation:
    return Violation(f"status.{field}", INVALID, f"Invalid value: {value}: {detail}")


def _required(field: str, detail: str) -> Violation:
    return Violation(f"status.{field}", REQUIRED, f"Required value: {detail}")


def _clash(detail: str) -> Violation:
    """About conditions, where the server prints no value."""
    return Violation("status.conditions", INVALID, f"Invalid value: {detail}")


def _time(instant: int | None) -> str:
    text = times.ZERO if instant is None else times.text(instant // times.NANOSECONDS)
    return "null" if text == times.ZERO else json_text(text)


def _counters_not_negative(change: StatusChange) -> Iterator[Violation]:
    """V10."""
    for name in ("active", "succeeded", "failed", "ready", "terminating"):
        value: int | None = getattr(change.new, name)
        if value is not None and value < 0:
            yield _invalid(name, value, NEGATIVE)


def _uncounted_once(change: StatusChange) -> Iterator[Violation]:
    """V11, V12."""
    seen: set[str] = set()
    for name, uids in change.new.uncounted.lists if change.new.uncounted else ():
        for position, uid in enumerate(uids):
            field = f"uncountedTerminatedPods.{name}[{position}]"
            if not uid:
                yield _invalid(field, '""', "must not be empty")
            elif uid in seen:
                yield Violation(f"status.{field}", DUPLICATE, f"Duplicate value: {json_text(uid)}")
            seen.add(uid)


def _not_both(
    one: str, other: str, detail: str, *, asked_when: Callable[[StatusChange], bool] = lambda _: True
) -> _Rule:
    def rule(change: StatusChange) -> Iterator[Violation]:
        if one in change.new.true and other in change.new.true and asked_when(change):
            yield _clash(detail)

    return rule


def _completion_time_belongs_to_complete(change: StatusChange) -> Iterator[Violation]:
    """V15, V16."""
    if not (change.turned(COMPLETE) or change.changed_completion):
        return
    if change.new.completion is not None and not change.new.is_complete:
        detail = "cannot set completionTime when there is no Complete=True condition"
        yield _invalid("completionTime", _time(change.new.completion), detail)
    if change.new.completion is None and change.new.is_complete:
        yield _required("completionTime", "completionTime is required for Complete jobs")


def _completion_not_before_start(change: StatusChange) -> Iterator[Violation]:
    """V17."""
    start, completion = change.new.start, change.new.completion
    if (
        start is not None
        and completion is not None
        and completion < start
        and (change.changed_start or change.changed_completion)
    ):
        yield _invalid("completionTime", _time(completion), "must be equal to or after `startTime`")


def _failed_needs_failure_target(change: StatusChange) -> Iterator[Violation]:
    """V18."""
    asked = change.turned(FAILED) or change.changed_failed_indexes
    if asked and change.new.is_failed and FAILURE_TARGET not in change.new.true:
        yield _clash("cannot set Failed=True condition without the FailureTarget=true condition")


def _complete_needs_success_criteria(change: StatusChange) -> Iterator[Violation]:
    """V19."""
    asked = change.turned(COMPLETE, SUCCESS_CRITERIA_MET)
    if asked and change.new.is_complete and SUCCESS_CRITERIA_MET not in change.new.true:
        yield _clash("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")


def _finished_has_no_active(change: StatusChange) -> Iterator[Violation]:
    """V20."""
    asked = change.turned_finished or change.old.active != change.new.active
    if asked and change.new.is_finished and change.new.active > 0:
        yield _invalid("active", change.new.active, "active>0 is invalid for finished job")


def _finished_has_started(change: StatusChange) -> Iterator[Violation]:
    """V21; a suspended Job of no completions ends without ever starting (V4)."""
    asked = change.turned_finished or change.changed_start
    suspended_zero = change.spec.suspend and change.spec.completions == 0
    if asked and not suspended_zero and change.new.is_finished and change.new.start is None:
        yield _required("startTime", "startTime is required for finished job")


def _finished_has_counted_all(change: StatusChange) -> Iterator[Violation]:
    """V22."""
    uncounted = change.new.uncounted
    if not (change.new.is_finished and uncounted and (uncounted.succeeded or uncounted.failed)):
        return
    if change.turned_finished or _lists(change.old.uncounted) != _lists(uncounted):
        yield _invalid("uncountedTerminatedPods", uncounted, "must be empty for finished job")


def _lists(uncounted: Uncounted | None) -> object:
    return uncounted and uncounted.lists


def _indexes_parse(change: StatusChange) -> Iterator[Violation]:
    """V23, V24."""
    completions = change.spec.completions
    completed, failed = change.new.completed_indexes, change.new.failed_indexes
    if completions is None:
        return
    if change.changed_completed_indexes and (problem := _problem(completed, completions)):
        yield _invalid("completedIndexes", quoted(completed), f"error parsing completedIndexes: {problem}")
    if not (change.changed_failed_indexes and change.spec.has_backoff_limit_per_index and failed is not None):
        return
    if problem := _problem(failed, completions):
        yield _invalid("failedIndexes", json_text(failed), f"error parsing failedIndexes: {problem}")


def _problem(text: str, completions: int) -> str:
    try:
        indexes.parse(text, completions)
    except indexes.BadIndexes as problem:
        return str(problem)
    return ""


def _indexes_fit_the_mode(change: StatusChange) -> Iterator[Violation]:
    """V25, V26."""
    completed, failed = change.new.completed_indexes, change.new.failed_indexes
    if change.changed_completed_indexes and completed and not change.spec.is_indexed:
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield _invalid("completedIndexes", quoted(completed), detail)
    if change.changed_failed_indexes and failed is not None and not change.spec.has_backoff_limit_per_index:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield _invalid("failedIndexes", quoted(failed), detail)


def _indexes_do_not_overlap(change: StatusChange) -> Iterator[Violation]:
    """V27."""
    completed, failed, completions = change.new.completed_indexes, change.new.failed_indexes, change.spec.completions
    asked = change.changed_failed_indexes or change.changed_completed_indexes
    if not asked or completions is None or failed is None:
        return
    index = indexes.first_overlap(completed, failed, completions)
    if index is not None:
        detail = f"failedIndexes and completedIndexes overlap at index: {index}"
        yield _invalid("failedIndexes", quoted(failed), detail)


def _finished_has_none_terminating(change: StatusChange) -> Iterator[Violation]:
    """V28."""
    asked = change.turned_finished or change.old.terminating != change.new.terminating
    if asked and change.new.is_finished and (change.new.terminating or 0) > 0:
        yield _invalid("terminating", change.new.terminating, "terminating>0 is invalid for finished job")


def _ready_are_active(change: StatusChange) -> Iterator[Violation]:
    """V29."""
    ready, active = change.new.ready, change.new.active
    asked = change.old.ready != ready or change.old.active != active
    if asked and ready is not None and ready > active:
        yield _invalid("ready", ready, "cannot set more ready pods than active")


def _success_policy_needs_criteria(change: StatusChange) -> Iterator[Violation]:
    """V32, in addition to V19."""
    met = SUCCESS_CRITERIA_MET in change.new.true
    if change.spec.has_success_policy and change.new.is_complete and not met:
        yield _clash("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")


def _verdicts_stay(change: StatusChange) -> Iterator[Violation]:
    """V33."""
    for one in (FAILED, COMPLETE, FAILURE_TARGET):
        if one in change.old.true and one not in change.new.true:
            yield _clash(f"cannot disable the terminal {one}=True condition")


def _counters_do_not_sink(change: StatusChange) -> Iterator[Violation]:
    """V34, V35: only the successes of an elastic Job may become fewer."""
    old, new = change.old, change.new
    if new.failed < old.failed:
        yield _invalid("failed", new.failed, "cannot decrease the failed counter")
    if new.succeeded < old.succeeded and not change.spec.is_elastic:
        yield _invalid("succeeded", new.succeeded, "cannot decrease the succeeded counter")


def _times_stay(change: StatusChange) -> Iterator[Violation]:
    """V36, V37."""
    old, new = change.old, change.new
    if old.completion is not None and new.completion is not None and change.changed_completion:
        yield _invalid("completionTime", _time(new.completion), IMMUTABLE)
    if old.start is not None and change.changed_start and not change.is_resuming and not change.spec.suspend:
        yield _invalid("startTime", _time(new.start), "field is immutable for unsuspended job once set")


def _success_criteria_stay(change: StatusChange) -> Iterator[Violation]:
    """V38, V39."""
    was, now = SUCCESS_CRITERIA_MET in change.old.true, SUCCESS_CRITERIA_MET in change.new.true
    if was and not now:
        yield _clash("cannot disable the SuccessCriteriaMet=True condition")
    if change.old.is_complete and now and not was:
        yield _clash("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")


_RULES: tuple[_Rule, ...] = (
    _counters_not_negative,
    _uncounted_once,
    _not_both(  # V13
        COMPLETE,
        FAILED,
        "cannot set Complete=True and Failed=true conditions",
        asked_when=lambda change: change.turned(COMPLETE, FAILED),
    ),
    _not_both(  # V14
        COMPLETE,
        FAILURE_TARGET,
        "cannot set Complete=True and FailureTarget=true conditions",
        asked_when=lambda change: change.turned(COMPLETE, FAILURE_TARGET),
    ),
    _completion_time_belongs_to_complete,
    _completion_not_before_start,
    _failed_needs_failure_target,
    _complete_needs_success_criteria,
    _finished_has_no_active,
    _finished_has_started,
    _finished_has_counted_all,
    _indexes_parse,
    _indexes_fit_the_mode,
    _indexes_do_not_overlap,
    _finished_has_none_terminating,
    _ready_are_active,
    _not_both(  # V30
        SUCCESS_CRITERIA_MET, FAILED, "cannot set SuccessCriteriaMet=True and Failed=true conditions"
    ),
    _not_both(  # V31
        SUCCESS_CRITERIA_MET, FAILURE_TARGET, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"
    ),
    _success_policy_needs_criteria,
    _verdicts_stay,
    _counters_do_not_sink,
    _times_stay,
    _success_criteria_stay,
)
