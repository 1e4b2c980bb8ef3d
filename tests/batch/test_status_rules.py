"""What the API refuses in a status update, rule by rule, with its fields, reasons, words and order."""

from __future__ import annotations

from typing import Any

import pytest
from doubles.examples import examples
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st

from mirror.batch import conditions
from mirror.batch.status_change import is_plain_progress
from mirror.batch.status_rules import Violation, check_status_update

Status = dict[str, Any]

EARLY, START, END = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"
INDEXED = {"completionMode": "Indexed", "completions": 5, "parallelism": 2}
PER_INDEX = {**INDEXED, "backoffLimitPerIndex": 1}
ELASTIC = {**INDEXED, "parallelism": 5}
PLAIN = {"completions": 5, "parallelism": 2}


def true(*types: str) -> list[conditions.Condition]:
    return [conditions.new(one, "True", at=END) for one in types]


def false(*types: str) -> list[conditions.Condition]:
    return [conditions.new(one, "False", at=END) for one in types]


COMPLETE = {"startTime": START, "completionTime": END, "conditions": true("SuccessCriteriaMet", "Complete")}
FAILED = {"startTime": START, "conditions": true("FailureTarget", "Failed")}


def invalid(field: str, detail: str) -> Violation:
    return Violation(f"status.{field}", "FieldValueInvalid", f"Invalid value: {detail}")


def clash(detail: str) -> Violation:
    return invalid("conditions", detail)


def required(field: str, detail: str) -> Violation:
    return Violation(f"status.{field}", "FieldValueRequired", f"Required value: {detail}")


NEGATIVE = "-1: must be greater than or equal to 0"
UNCOUNTED = "uncountedTerminatedPods"
NO_FAILURE_TARGET = clash("cannot set Failed=True condition without the FailureTarget=true condition")
NO_CRITERIA = clash("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
BOTH_INTERIM = clash("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
CRITERIA_AND_FAILED = clash("cannot set SuccessCriteriaMet=True and Failed=true conditions")
START_IS_FIXED = "field is immutable for unsuspended job once set"

REFUSED: dict[str, tuple[dict[str, Any], Status, Status, list[Violation]]] = {
    "V10 negative counters": (
        PLAIN,
        {},
        {"active": -1, "succeeded": -1, "failed": -1, "ready": -1, "terminating": -1},
        [
            *(invalid(name, NEGATIVE) for name in ("active", "succeeded", "failed", "ready", "terminating")),
            invalid("failed", "-1: cannot decrease the failed counter"),
            invalid("succeeded", "-1: cannot decrease the succeeded counter"),
        ],
    ),
    "V11 an empty uid": (
        PLAIN,
        {},
        {UNCOUNTED: {"succeeded": ["a", ""]}},
        [invalid(f"{UNCOUNTED}.succeeded[1]", '"": must not be empty')],
    ),
    "V12 a uid in both lists": (
        PLAIN,
        {},
        {UNCOUNTED: {"succeeded": ["a"], "failed": ["b", "a"]}},
        [Violation(f"status.{UNCOUNTED}.failed[1]", "FieldValueDuplicate", 'Duplicate value: "a"')],
    ),
    "V13 complete and failed": (
        PLAIN,
        {},
        COMPLETE | {"conditions": true("SuccessCriteriaMet", "Complete", "Failed")},
        [clash("cannot set Complete=True and Failed=true conditions"), NO_FAILURE_TARGET, CRITERIA_AND_FAILED],
    ),
    "V14 complete and failure target": (
        PLAIN,
        {},
        COMPLETE | {"conditions": true("SuccessCriteriaMet", "Complete", "FailureTarget")},
        [clash("cannot set Complete=True and FailureTarget=true conditions"), BOTH_INTERIM],
    ),
    "V15 a completion time without Complete": (
        PLAIN,
        {},
        {"completionTime": END},
        [invalid("completionTime", f'"{END}": cannot set completionTime when there is no Complete=True condition')],
    ),
    "V15 the zero time is a completion time, too": (
        PLAIN,
        {},
        {"completionTime": "0001-01-01T00:00:00Z"},
        [invalid("completionTime", "null: cannot set completionTime when there is no Complete=True condition")],
    ),
    "V16 Complete without a completion time": (
        PLAIN,
        {},
        COMPLETE | {"completionTime": None},
        [required("completionTime", "completionTime is required for Complete jobs")],
    ),
    "V17 completed before it started": (
        PLAIN,
        {},
        COMPLETE | {"completionTime": EARLY},
        [invalid("completionTime", f'"{EARLY}": must be equal to or after `startTime`')],
    ),
    "V18 failed without failure target": (
        PLAIN,
        {},
        FAILED | {"conditions": [*true("Failed"), *false("FailureTarget")]},
        [NO_FAILURE_TARGET],
    ),
    "V18 asked again when failed indexes change": (
        PER_INDEX,
        FAILED | {"conditions": true("Failed")},
        FAILED | {"conditions": true("Failed"), "failedIndexes": "1"},
        [NO_FAILURE_TARGET],
    ),
    "V19 complete without criteria": (
        PLAIN,
        {},
        COMPLETE | {"conditions": true("Complete")},
        [NO_CRITERIA],
    ),
    "V20 finished with active pods": (
        PLAIN,
        {},
        FAILED | {"active": 2},
        [invalid("active", "2: active>0 is invalid for finished job")],
    ),
    "V21 finished without start": (
        PLAIN,
        {},
        FAILED | {"startTime": None},
        [required("startTime", "startTime is required for finished job")],
    ),
    "V22 finished with uncounted pods": (
        PLAIN,
        {},
        FAILED | {UNCOUNTED: {"succeeded": ["a", "b<"], "failed": []}},
        [invalid(UNCOUNTED, '{"Succeeded":["a","b\\u003c"],"Failed":[]}: must be empty for finished job')],
    ),
    "V22 asked when the uncounted pods change": (
        PLAIN,
        FAILED,
        FAILED | {UNCOUNTED: {"failed": ["a"]}},
        [invalid(UNCOUNTED, '{"Succeeded":null,"Failed":["a"]}: must be empty for finished job')],
    ),
    "V23 completed indexes beyond completions": (
        INDEXED,
        {},
        {"completedIndexes": "0,5"},
        [invalid("completedIndexes", '"0,5": error parsing completedIndexes: too large index: "5"')],
    ),
    "V24 bad failed indexes": (
        PER_INDEX,
        {},
        {"failedIndexes": "<"},
        [
            invalid(
                "failedIndexes",
                '"\\u003c": error parsing failedIndexes: cannot convert string to integer for index: "<"',
            )
        ],
    ),
    "V25 completed indexes of a Job without indexes": (
        PLAIN,
        {},
        {"completedIndexes": "1"},
        [invalid("completedIndexes", '"1": cannot set non-empty completedIndexes when non-indexed completion mode')],
    ),
    "V26 failed indexes without a limit per index, even empty ones": (
        INDEXED,
        {},
        {"failedIndexes": ""},
        [invalid("failedIndexes", '"": cannot set non-null failedIndexes when backoffLimitPerIndex is null')],
    ),
    "V27 an index both completed and failed": (
        PER_INDEX,
        {},
        {"completedIndexes": "0-3", "failedIndexes": "2,4"},
        [invalid("failedIndexes", '"2,4": failedIndexes and completedIndexes overlap at index: 2')],
    ),
    "V28 finished with terminating pods": (
        PLAIN,
        {},
        FAILED | {"terminating": 1},
        [invalid("terminating", "1: terminating>0 is invalid for finished job")],
    ),
    "V29 more ready than active": (
        PLAIN,
        {},
        {"active": 1, "ready": 2},
        [invalid("ready", "2: cannot set more ready pods than active")],
    ),
    "V30 criteria and failed": (
        PLAIN,
        {},
        FAILED | {"conditions": true("SuccessCriteriaMet", "Failed")},
        [NO_FAILURE_TARGET, CRITERIA_AND_FAILED],
    ),
    "V31 both interim conditions, even when stored already": (
        PLAIN,
        {"conditions": true("SuccessCriteriaMet", "FailureTarget")},
        {"conditions": true("SuccessCriteriaMet", "FailureTarget"), "active": 1},
        [BOTH_INTERIM],
    ),
    "V32 complete by success policy without criteria": (
        {**INDEXED, "successPolicy": {"rules": [{"succeededCount": 1}]}},
        {},
        COMPLETE | {"conditions": true("Complete")},
        [NO_CRITERIA, clash("cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True")],
    ),
    "V33 verdicts taken back": (
        PLAIN,
        FAILED,
        {"startTime": START},
        [
            clash("cannot disable the terminal Failed=True condition"),
            clash("cannot disable the terminal FailureTarget=True condition"),
        ],
    ),
    "V33 completion taken back": (
        PLAIN,
        COMPLETE,
        {"startTime": START, "conditions": true("SuccessCriteriaMet")},
        [clash("cannot disable the terminal Complete=True condition")],
    ),
    "V34 fewer failures": (
        ELASTIC,
        {"failed": 3},
        {"failed": 2},
        [invalid("failed", "2: cannot decrease the failed counter")],
    ),
    "V35 fewer successes": (
        INDEXED,
        {"succeeded": 3},
        {},
        [invalid("succeeded", "0: cannot decrease the succeeded counter")],
    ),
    "V36 another completion time": (
        PLAIN,
        COMPLETE,
        COMPLETE | {"completionTime": "2026-01-04T00:00:00Z"},
        [invalid("completionTime", '"2026-01-04T00:00:00Z": field is immutable')],
    ),
    "V36 half a second is another time": (
        PLAIN,
        COMPLETE,
        COMPLETE | {"completionTime": "2026-01-03T00:00:00.500Z"},
        [invalid("completionTime", f'"{END}": field is immutable')],
    ),
    "V37 another start": (
        PLAIN,
        {"startTime": START},
        {"startTime": END},
        [invalid("startTime", f'"{END}": {START_IS_FIXED}')],
    ),
    "V37 no start any more, though suspended by its condition": (
        PLAIN,
        {"startTime": START},
        {"conditions": true("Suspended")},
        [invalid("startTime", f"null: {START_IS_FIXED}")],
    ),
    "V37 a stored zero time, which the API shows as null, is another one even than itself": (
        PLAIN,
        {"startTime": None},
        {"startTime": "0001-01-01T00:00:00Z"},
        [invalid("startTime", f"null: {START_IS_FIXED}")],
    ),
    "V38 criteria taken back": (
        PLAIN,
        {"conditions": true("SuccessCriteriaMet")},
        {"conditions": false("SuccessCriteriaMet")},
        [clash("cannot disable the SuccessCriteriaMet=True condition")],
    ),
    "V39 criteria added to a complete Job": (
        PLAIN,
        COMPLETE | {"conditions": true("Complete")},
        COMPLETE,
        [clash("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")],
    ),
}

ACCEPTED: dict[str, tuple[dict[str, Any], Status, Status]] = {
    "V10, V11, V12 counters of zero and uids once": (
        PLAIN,
        {},
        {"active": 0, "ready": 0, UNCOUNTED: {"succeeded": ["a"], "failed": ["b"]}},
    ),
    "V13 a contradiction that is stored, when nothing of it changes": (
        PLAIN,
        FAILED | {"completionTime": END, "conditions": true("FailureTarget", "Failed", "Complete")},
        FAILED | {"completionTime": END, "conditions": true("FailureTarget", "Failed", "Complete"), "failed": 1},
    ),
    "V15, V16, V19 complete in one write": (PLAIN, {}, COMPLETE),
    "V17 completed in the second of its start": (PLAIN, {}, COMPLETE | {"completionTime": START}),
    "V18 failed in one write": (PLAIN, {}, FAILED),
    "V20, V22, V28 finished, with what is left written as zero": (
        PLAIN,
        {"active": 3, "terminating": 1, UNCOUNTED: {"failed": ["a"]}},
        FAILED | {"active": 0, "ready": 0, "terminating": 0, UNCOUNTED: {}},
    ),
    "V20 active pods of a finished Job that are stored already": (
        PLAIN,
        FAILED | {"active": 2},
        FAILED | {"active": 2, "failed": 7},
    ),
    "V4, V21 a suspended Job of no completions never starts": (
        {"completions": 0, "parallelism": 1, "suspend": True},
        {},
        COMPLETE | {"startTime": None},
    ),
    "V23, V24, V27 indexes side by side": (PER_INDEX, {}, {"completedIndexes": "0,1", "failedIndexes": "2-4"}),
    "V23 bad indexes that are stored already": (
        INDEXED,
        {"completedIndexes": "0-9"},
        {"completedIndexes": "0-9", "active": 1},
    ),
    "V24, V26 failed indexes of a Job that has them": (PER_INDEX, {}, {"failedIndexes": ""}),
    "V29 as many ready as active": (PLAIN, {}, {"active": 2, "ready": 2}),
    "V33, V38 verdicts that stay": (PLAIN, COMPLETE, COMPLETE | {"failed": 1}),
    "V35 fewer successes of an elastic Job": (ELASTIC, {"succeeded": 3}, {"succeeded": 1}),
    "V36 the same completion time in another zone": (
        PLAIN,
        COMPLETE,
        COMPLETE | {"completionTime": "2026-01-03T02:00:00+02:00"},
    ),
    "V37 a first start": (PLAIN, {}, {"startTime": START}),
    "V37 another start while suspended": ({**PLAIN, "suspend": True}, {"startTime": START}, {"startTime": END}),
    "V3, V37 another start with the resumption": (
        PLAIN,
        {"startTime": START, "conditions": true("Suspended")},
        {"startTime": END, "conditions": false("Suspended")},
    ),
    "V41 what is never checked": (
        PLAIN,
        COMPLETE,
        COMPLETE
        | {"succeeded": 99, "failed": 99, "conditions": [*COMPLETE["conditions"], *true("X", "X", "Suspended")]},
    ),
    "nulls are as good as absent fields": (
        PLAIN,
        {"active": None, "conditions": None},
        {"ready": None, "failedIndexes": None, UNCOUNTED: None, "startTime": None},
    ),
}


@pytest.mark.parametrize(("spec", "old", "new", "causes"), REFUSED.values(), ids=REFUSED)
def test_a_status_that_breaks_a_rule_is_refused(
    spec: dict[str, Any], old: Status, new: Status, causes: list[Violation]
) -> None:
    """The causes are the API's: field, reason, message, and in its order (V42)."""
    assert causes == check_status_update({"spec": spec, "status": old}, new)


@pytest.mark.parametrize(("spec", "old", "new"), ACCEPTED.values(), ids=ACCEPTED)
def test_a_status_that_keeps_the_rules_is_accepted(spec: dict[str, Any], old: Status, new: Status) -> None:
    """The other side of each rule, and what is stored already blocks nothing (V1)."""
    assert check_status_update({"spec": spec, "status": old}, new) == []


COUNTS = st.none() | st.integers(-1, 3)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("active", "succeeded", "failed", "ready", "terminating"), COUNTS),
    **dict.fromkeys(("startTime", "completionTime"), st.sampled_from((None, EARLY, START))),
    **dict.fromkeys(("completedIndexes", "failedIndexes"), st.sampled_from((None, "", "0", "0-9", "x"))),
    UNCOUNTED: st.none()
    | st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("succeeded", "failed"), st.none() | st.lists(st.sampled_from(("a", "b", ""))))
    ),
    "conditions": st.lists(
        st.sampled_from((*true(*sorted(conditions.STANDARD), "X"), *false("Suspended"))), max_size=3
    ),
}
UNDECIDED = st.lists(st.sampled_from((*true("Suspended", "X"), *false("Suspended", "X"))), max_size=2)


def mostly_progress(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[Status]:
    """Parts of a status as they are while a Job runs, and one of any kind."""
    uids = st.lists(st.sampled_from("abcdefgh"), max_size=2)
    running = st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("active", "succeeded", "failed", "ready", "terminating"), st.integers(0, 2)),
            UNCOUNTED: st.fixed_dictionaries({}, optional=dict.fromkeys(("succeeded", "failed"), uids)),
            **more,
        },
    )
    odd = st.one_of(st.just({}), *(st.builds(dict, **{name: values}) for name, values in PARTS.items()))
    return st.builds(lambda one, other: {**one, **other}, running, odd)


@examples(300, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.sampled_from((PLAIN, INDEXED, PER_INDEX, ELASTIC, {**PLAIN, "suspend": True, "successPolicy": {}})),
    mostly_progress(conditions=UNDECIDED),
    mostly_progress(startTime=st.just(START), conditions=UNDECIDED),
)
def test_plain_progress_breaks_no_rule(spec: dict[str, Any], old: Status, changes: Status) -> None:
    """What is accepted without asking the rules would be accepted by each (V1)."""
    new = old | changes
    assume(is_plain_progress(old, new))

    assert check_status_update({"spec": spec, "status": old}, new) == []


def test_pods_that_start_and_are_counted_are_plain_progress() -> None:
    """The common case takes the short way."""
    old = {"startTime": START, "active": 3, "ready": 1, "conditions": true("jobmirror.io/Placed")}

    assert is_plain_progress(old, old | {"ready": 2, "failed": 1})
    assert is_plain_progress(old, old | {"active": 2, "ready": 1, UNCOUNTED: {"succeeded": ["a"], "failed": ["b"]}})
    assert is_plain_progress({"conditions": old["conditions"]}, old)
    assert is_plain_progress(old, old | {"conditions": true("jobmirror.io/Placed", "Suspended")})


@pytest.mark.parametrize(
    ("old", "changes"),
    [
        ({}, {UNCOUNTED: {"succeeded": [""]}}),
        ({}, {UNCOUNTED: {"succeeded": ["a"], "failed": ["a"]}}),
        ({"completionTime": EARLY}, {"startTime": START}),
        ({"startTime": EARLY}, {"startTime": START}),
        ({"startTime": None}, {"active": 1}),
        ({"conditions": true("Complete")}, {"active": 1}),
        ({"conditions": true("FailureTarget")}, {"conditions": []}),
        ({"conditions": true("X")}, {"conditions": true("X", "SuccessCriteriaMet")}),
    ],
)
def test_what_a_rule_may_mind_is_no_plain_progress(old: Status, changes: Status) -> None:
    assert not is_plain_progress(old, old | changes)
