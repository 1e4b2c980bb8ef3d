"""Conditions of a Job's status: their type names and how to look at them and change a list of them.

A condition stays the mapping that it is on the wire, so that fields we do not know survive. Which condition a status
should have is not decided here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from mirror.batch import views

Condition: TypeAlias = Mapping[str, object]
Conditions: TypeAlias = Sequence[Condition]
Verdict: TypeAlias = Literal["Complete", "Failed"]

SUSPENDED = "Suspended"
COMPLETE: Verdict = "Complete"
FAILED: Verdict = "Failed"
SUCCESS_CRITERIA_MET = "SuccessCriteriaMet"
FAILURE_TARGET = "FailureTarget"

INTERIM: Mapping[Verdict, str] = {COMPLETE: SUCCESS_CRITERIA_MET, FAILED: FAILURE_TARGET}
"""The condition that a verdict has first, while pods are still ending."""
FINAL: tuple[Verdict, ...] = (FAILED, COMPLETE)
"""Conditions that finish a Job: the one place that says so. A failure wins where both are claimed."""
STANDARD = frozenset((SUSPENDED, COMPLETE, FAILED, SUCCESS_CRITERIA_MET, FAILURE_TARGET))
DECIDING = STANDARD - {SUSPENDED}
"""Those that say that it ends, or has ended."""

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
JOB_SUSPENDED, JOB_RESUMED = "JobSuspended", "JobResumed"

_DICT = frozenset((dict,))
"""What decoding makes of any condition."""


def of(status: Mapping[str, object]) -> list[Condition]:
    """The conditions of a status."""
    listed = status.get("conditions")
    if type(listed) is list and _DICT.issuperset(map(type, listed)):
        return [*listed]
    return [views.mapping(one) for one in views.items(listed)]


def find(conditions: Conditions, type_name: str, status: str | None = None) -> Condition | None:
    """The first condition of the type (and of the status); one type may be there twice (V41, Q14)."""
    for one in conditions:
        if one.get("type") == type_name and (status is None or one.get("status") == status):
            return one
    return None


def is_true(conditions: Conditions, type_name: str) -> bool:
    """Whether any condition of the type is True."""
    return find(conditions, type_name, TRUE) is not None


def verdict(conditions: Conditions) -> Verdict | None:
    """How the Job ends or has ended, as far as it is known; a failure wins where both are claimed."""
    true = [one.get("type") for one in conditions if one.get("status") == TRUE]
    for ending in FINAL if true else ():
        if ending in true or INTERIM[ending] in true:
            return ending
    return None


def final(conditions: Conditions) -> Condition | None:
    """The condition that has finished the Job; None while it goes on."""
    failed, complete = FINAL
    return find(conditions, failed, TRUE) or find(conditions, complete, TRUE)


def is_finished(conditions: Conditions) -> bool:
    """Whether the Job is finished."""
    return any(one.get("type") in FINAL and one.get("status") == TRUE for one in conditions)


def new(type_name: str, status: str, *, reason: str = "", message: str = "", at: str | None) -> dict[str, object]:
    """A condition in the shape that the API serves (DF20), probed and changed at this time."""
    return {
        "type": type_name,
        "status": status,
        "lastProbeTime": at,
        "lastTransitionTime": at,
        **({"reason": reason} if reason else {}),
        **({"message": message} if message else {}),
    }


def upsert(conditions: Conditions, condition: Condition) -> list[Condition]:
    """The list with this condition as the only one of its type: in place, or at the end."""
    changed: list[Condition] = []
    is_in = False
    for one in conditions:
        if one.get("type") != condition["type"]:
            changed.append(one)
        elif not is_in:
            changed.append(condition)
            is_in = True
    return changed if is_in else [*changed, condition]


def without(conditions: Conditions, *type_names: str) -> list[Condition]:
    """The list without any condition of these types."""
    return [one for one in conditions if one.get("type") not in type_names]
