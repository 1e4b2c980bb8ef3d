"""A worker's status, made safe: known fields, typed, bounded, printable, and what was cut is counted (D7, D18)."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from doubles.examples import examples
from hypothesis import given
from hypothesis import strategies as st
from job_status_worlds import some_status
from msgspec.structs import fields

from mirror.batch import indexes
from mirror.kinds.batch_job.status import Cleaned, clean

Json = dict[str, Any]
AT = "2026-03-01T10:00:00Z"


def condition(type_name: Any = "Suspended", status: Any = "True", **more: Any) -> Json:
    return {"type": type_name, "status": status, "lastTransitionTime": AT, **more}


CUT: dict[str, tuple[Json, str, Any]] = {
    "a count that is true": ({"active": True}, "active", 0),
    "a count below zero": ({"failed": -1}, "failed", 0),
    "a count beyond 32 bits": ({"ready": 2**31}, "ready", None),
    "a fraction": ({"terminating": 1.0}, "terminating", None),
    "a count in words": ({"succeeded": "1"}, "succeeded", 0),
    "a time that is a number": ({"startTime": 5}, "start", None),
    "the year 0": ({"startTime": "0000-01-01T00:00:00Z"}, "start", None),
    "a year of five digits": ({"completionTime": "99999-01-01T00:00:00Z"}, "completion", None),
    "a time before computers": ({"startTime": "1899-01-01T00:00:00Z"}, "start", None),
    "a megabyte of digits": ({"startTime": "2026-03-01T10:00:00." + "0" * 10**6 + "Z"}, "start", None),
    "index text that is a list": ({"completedIndexes": [1]}, "completed_indexes", ()),
    "a megabyte of index text": ({"failedIndexes": "1," * 2**19}, "failed_indexes", None),
    "uncounted pods in a list": ({"uncountedTerminatedPods": ["u"]}, "uncounted", None),
    "conditions that are an object": ({"conditions": {"type": "Failed"}}, "conditions", ()),
    "a condition of ours": ({"conditions": [condition("jobmirror.io/Placed")]}, "conditions", ()),
    "a condition of a status that is none": ({"conditions": [condition(status="true")]}, "conditions", ()),
    "a condition of a status that is a list": ({"conditions": [condition(status=["True"])]}, "conditions", ()),
    **{
        f"a condition type that is no name: {name!r:.20}": ({"conditions": [condition(name)]}, "conditions", ())
        for name in (
            "",
            "a b",
            "x/",
            "/x",
            "A.example/x",
            "a/b/c",
            "a..b/x",
            "x" * 64,
            "b" * 254 + "/x",
            "\ud800",
            7,
            None,
        )
    },
}


@pytest.mark.parametrize(("status", "field", "expected"), CUT.values(), ids=CUT)
def test_what_does_not_fit_is_dropped_and_counted(status: Json, field: str, expected: Any) -> None:
    """Each leaves the neutral value of its field and counts as one cut."""
    cleaned = clean(status, completions=10)

    assert expected == getattr(cleaned, field)
    assert cleaned.cut == 1


@pytest.mark.parametrize("junk", [None, True, 7, 1.5, "x", [], [[]], float("nan"), {}, {"x": {"y": []}}], ids=repr)
def test_junk_is_an_empty_status(junk: object) -> None:
    """Anything that is no status says nothing."""
    cleaned = clean(junk, completions=3)

    assert Cleaned() == Cleaned(
        **{one.name: getattr(cleaned, one.name) for one in fields(Cleaned) if one.name != "cut"}
    )
    assert cleaned.cut == (0 if junk is None or isinstance(junk, dict) else 1)


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        pytest.param("reason", "PodFailurePolicy_oom", "PodFailurePolicy_oom", id="a reason with a rule's name"),
        pytest.param("reason", "R" * 200, "R" * 128, id="a long reason"),
        pytest.param("reason", "has blanks", "", id="no reason"),
        pytest.param("message", "größer als 5 %", "größer als 5 %", id="a message"),
        pytest.param("message", "a\nb\x1b[2J", "a\\nb\\x1b[2J", id="controls"),
        pytest.param("message", "\ud800\u202e", "\\ud800\\u202e", id="a lone surrogate and a turned direction"),
        pytest.param("message", "m" * 2000, "m" * 1021 + "…", id="a long message"),
        pytest.param("message", "ü" * 600, "ü" * 510 + "…", id="a message that is long in bytes"),
        pytest.param("message", {"a": 1}, "", id="a message that is an object"),
        pytest.param("lastTransitionTime", "now", None, id="a time that is none"),
    ],
)
def test_a_conditions_texts_are_bounded_and_printable(name: str, value: object, kept: object) -> None:
    """Reasons of at most 128 characters, messages of one line and 1 KiB, times or null."""
    [cleaned] = clean({"conditions": [condition(**{name: value})]}, completions=None).conditions

    assert kept == cleaned.get(name, "")


def test_among_thousands_of_conditions_those_of_the_job_are_found() -> None:
    """M16: at most ten other types are kept, and they do not crowd out a verdict."""
    others = [condition(f"example.com/type-{number}") for number in range(5000)]

    cleaned = clean({"conditions": [*others, condition("FailureTarget"), condition("Failed")]}, completions=None)

    assert len(cleaned.conditions) == 12
    assert cleaned.condition("Failed") is not None
    assert cleaned.cut == 4990


def test_a_type_is_there_once_and_true_wins() -> None:
    """Q14: a real status may hold a FailureTarget that is not True beside one that is."""
    said = [condition("FailureTarget", "False"), condition("FailureTarget"), condition("X", "False"), condition("X")]

    assert [(one["type"], one["status"]) for one in clean({"conditions": said}, completions=None).conditions] == [
        ("FailureTarget", "True"),
        ("X", "True"),
    ]


def test_uncounted_pods_are_unique_over_both_lists_and_bounded() -> None:
    """V11, V12: at most 500 uids, none twice, none that is no uid."""
    said = {"succeeded": ["a", "a", "", "b c", 7], "failed": ["a", *(f"u-{number}" for number in range(600))]}

    cleaned = clean({"uncountedTerminatedPods": said}, completions=None)

    assert cleaned.uncounted == {"succeeded": ["a"], "failed": [f"u-{number}" for number in range(499)]}
    assert cleaned.cut == 4 + 1 + 101


def test_a_billion_hostile_indexes_are_clipped_to_the_sources_own() -> None:
    """Intervals are never expanded."""
    cleaned = clean({"completedIndexes": "0-999999999", "failedIndexes": ""}, completions=10**9)

    assert indexes.count(cleaned.completed_indexes) == 10**9
    assert cleaned.failed_indexes == ()
    assert clean({"completedIndexes": "0-9"}, completions=None) == Cleaned()


@given(st.integers(0, 2**32).map(Random))
@examples(200)
def test_a_clean_status_is_small_and_is_json(random: Random) -> None:
    """At most 64 KiB besides index texts, whatever comes in; cleaning twice changes nothing."""
    cleaned = clean(some_status(random, wild=True), completions=5)
    status = {
        "conditions": cleaned.conditions,
        "startTime": cleaned.start,
        "completionTime": cleaned.completion,
        "active": cleaned.active,
        "succeeded": cleaned.succeeded,
        "failed": cleaned.failed,
        "ready": cleaned.ready,
        "terminating": cleaned.terminating,
        "uncountedTerminatedPods": cleaned.uncounted,
    }

    assert len(json.dumps(status, ensure_ascii=False, allow_nan=False).encode()) <= 64 * 1024
    again = clean(status, completions=5)
    assert again.cut == 0
    assert again.conditions == cleaned.conditions


def test_the_largest_status_that_passes_is_small_enough() -> None:
    """D7: sixteen conditions of the longest texts and 500 uids stay below 64 KiB."""
    prefix = "p" * 250
    said = {
        "conditions": [
            condition(f"{prefix}{number}/{'n' * 63}", reason="R" * 128, message='"' * 1024) for number in range(10, 40)
        ]
        + [
            condition(name, reason="R" * 128, message='"' * 1024)
            for name in ("Suspended", "Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
        ],
        "uncountedTerminatedPods": {"failed": [f"{number:040}" for number in range(600)]},
    }

    cleaned = clean(said, completions=None)

    assert len(cleaned.conditions) == 15
    kept = json.dumps([cleaned.conditions, cleaned.uncounted]).encode()
    assert len(kept) < 63 * 1024
