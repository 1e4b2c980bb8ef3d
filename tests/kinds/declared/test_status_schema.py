"""What a definition would refuse of a status is left out, as little as possible (D7, D18)."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.kinds.declared.status_schema import StatusSchema

Json = Any
TEXT, WHOLE = {"type": "string"}, {"type": "integer", "format": "int32"}
ENTRY = {"type": "object", "required": ["name", "active"], "properties": {"name": TEXT, "active": WHOLE}}


def of(**properties: Json) -> StatusSchema:
    return StatusSchema({"type": "object", "properties": properties})


LISTED = {"type": "array", "items": ENTRY, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
ONE = {"name": "a", "active": 1}
FILLED = {"type": "object", "default": {}, "properties": {"c": {**WHOLE, "default": 0}}}
CASES: dict[str, tuple[Json, Json, Json]] = {
    "what fits": (WHOLE, 5, 5),
    "text for a number": (WHOLE, "5", None),
    "a truth for a number": (WHOLE, True, None),
    "a number with a fraction": (WHOLE, 5.0, None),
    "a number that is too large": (WHOLE, 2**31, None),
    "a number below its least": ({"type": "integer", "minimum": 0}, -1, None),
    "a number at its least, which is excluded": ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, 0, None),
    "a number above its most": ({"type": "number", "maximum": 1}, 2, None),
    "no number at all": ({"type": "number"}, float("nan"), None),
    "an infinite one": ({"type": "number"}, float("inf"), None),
    "nothing": (TEXT, None, None),
    "a word of a set": ({**TEXT, "enum": ["a", "b"]}, "a", "a"),
    "another word": ({**TEXT, "enum": ["a", "b"]}, "c", None),
    "text that is too long": ({**TEXT, "maxLength": 3}, "four", None),
    "text of another form": ({**TEXT, "pattern": "^a+$"}, "b", None),
    "text with a line more": ({**TEXT, "pattern": "^a+$"}, "a\n", None),
    "a form that only Go knows": ({**TEXT, "pattern": r"^\pL+$"}, "a", "a"),
    "a time": ({**TEXT, "format": "date-time"}, "2026-01-02T03:04:05.1+02:00", "2026-01-02T03:04:05.1+02:00"),
    "no time": ({**TEXT, "format": "date-time"}, "yesterday", None),
    "a time that is none": ({**TEXT, "format": "date-time"}, "2026-13-02T03:04:05Z", None),
    "a quantity as a number": ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+$"}, 5, 5),
    "a quantity that is none": ({"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+$"}, "x", None),
    "an element that lacks something": (LISTED, [{"name": "b"}, ONE], [ONE]),
    "an element with a bad value that it needs": (LISTED, [{"name": "b", "active": "x"}, ONE], [ONE]),
    "one name twice": (LISTED, [ONE, {**ONE, "active": 2}], [ONE]),
    "no list": (LISTED, {"a": 1}, None),
    "more than fit": ({"type": "array", "items": WHOLE, "maxItems": 2}, [1, 2, 3], [1, 2]),
    "fewer than needed": ({"type": "array", "items": WHOLE, "minItems": 1}, ["x"], None),
    "one of a set twice": ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}, ["a", "a"], ["a"]),
    "a map": ({"type": "object", "additionalProperties": WHOLE}, {"a": 1, "b": "x"}, {"a": 1}),
    "a field that is not known": ({"type": "object", "properties": {"a": TEXT}}, {"a": "x", "b": "y"}, {"a": "x"}),
    "what may hold anything": (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"a": {"b": [1, float("inf")]}},
        {"a": {"b": [1]}},
    ),
    "what is filled by the server": (
        {"type": "object", "required": ["a"], "properties": {"a": {**WHOLE, "default": 0}, "b": TEXT}},
        {"b": "x"},
        {"a": 0, "b": "x"},
    ),
    "what is filled within what is filled": (
        {"type": "object", "properties": {"a": FILLED, "b": TEXT}},
        {"b": "x"},
        {"a": {"c": 0}, "b": "x"},
    ),
}


@pytest.mark.parametrize(("schema", "value", "expected"), CASES.values(), ids=CASES)
def test_what_is_kept_of_a_field(schema: Json, value: Json, expected: Json) -> None:
    """CR5: the rest of the status stays, and what went is counted."""
    found, cut = of(found=schema, other=TEXT).fitted({"found": value, "other": "stays"})
    assert found == {"other": "stays", **({} if expected is None else {"found": expected})}
    assert bool(cut) is (expected != value or value is None) or value == {"b": "x"}


def test_something_deeper_than_anybody_writes_is_left_out() -> None:
    """And it breaks nothing."""
    schema: Json = {"type": "object"}
    schema["additionalProperties"] = schema
    value: Json = {}
    for _ in range(500):
        value = {"a": value}
    found, cut = of(found=schema).fitted({"found": value})
    assert cut == 1
    assert "found" in found


WRONG: dict[str, tuple[Json, Json]] = {
    "a set of words that is a number": ({"type": "string", "enum": 5}, "a"),
    "a form that is a number": ({"type": "string", "pattern": 5}, "a"),
    "a length that is text": ({"type": "string", "maxLength": "3", "minLength": []}, "a"),
    "a format that is a list": ({"type": "integer", "format": []}, 5),
    "a bound that is text": ({"type": "integer", "minimum": "1", "maximum": {}}, 5),
    "a type that is a list": ({"type": ["string"]}, "a"),
    "fields that are a list": ({"type": "object", "properties": [], "additionalProperties": True}, {"a": "b"}),
    "what is needed is a number": ({"type": "object", "required": 5, "additionalProperties": True}, {"a": "b"}),
    "a number of fields that is text": (
        {"type": "object", "maxProperties": "1", "additionalProperties": True},
        {"a": "b"},
    ),
    "a number of elements that is text": ({"type": "array", "maxItems": "1", "minItems": "1"}, ["a"]),
    "elements that are said by text": ({"type": "array", "items": "x"}, ["a"]),
    "keys that are a number": (
        {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": 5},
        [{"name": "a"}],
    ),
}


@pytest.mark.parametrize(("schema", "value"), WRONG.values(), ids=WRONG)
def test_a_keyword_of_another_type_than_it_has_says_nothing(schema: Json, value: Json) -> None:
    """No API server publishes one; whoever does, for an aggregated one, disturbs no status by it."""
    assert of(field=schema).fitted({"field": value}) == ({"field": value}, 0)


def test_what_is_below_more_levels_than_any_definition_has_says_nothing() -> None:
    """Such a status is not stored either."""
    schema: Json = TEXT
    for _ in range(900):
        schema = {"type": "array", "items": schema}
    assert of(field=schema).fitted({"field": []}) == ({"field": []}, 0)
