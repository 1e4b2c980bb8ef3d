"""Parts, notes and differences: whatever differs, one patch settles it (D9)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from doubles.patching import apply_json_patch
from hypothesis import given
from hypothesis import strategies as st

from mirror.kinds.carried import (
    Carried,
    Part,
    carried_of,
    contains,
    differences,
    patch_operations,
    place_of,
    read,
    without,
)

Json = dict[str, Any]

PARTS = (
    Part("number", ("spec", "number")),
    Part("listed", ("spec", "deep", "er", "list")),
    Part("map", ("meta", "map"), is_map=True),
    Part("first", ("spec", "items", 0, "value")),
)
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b"])
MAPS = st.dictionaries(st.sampled_from(["a", "b/c", "d~e", "x"]), st.sampled_from(["1", "2"]), max_size=3)
LISTS = st.lists(st.fixed_dictionaries({"key": st.sampled_from("ab")}) | st.sampled_from(["p", "q"]), max_size=2)


@st.composite
def bodies(draw: st.DrawFn) -> Json:
    """Bodies in which any part may be missing, with or without its parents."""
    body: Json = {"spec": {"items": [{"name": "main"}]}}
    if draw(st.booleans()):
        body["spec"]["number"] = draw(SCALARS)
    if draw(st.booleans()):
        body["spec"]["deep"] = draw(st.sampled_from([{}, {"er": {}}])) | {}
        if draw(st.booleans()):
            body["spec"]["deep"]["er"] = {"list": draw(LISTS)}
    if draw(st.booleans()):
        body["meta"] = {"map": draw(MAPS)} if draw(st.booleans()) else {}
    if draw(st.booleans()):
        body["spec"]["items"][0]["value"] = draw(MAPS | SCALARS)
    return body


def values(body: Json) -> Json:
    return {part.name: read(body, part.path) for part in PARTS}


def settled(want: Json, have: Json, noted: Carried) -> Json:
    """The mirror after one patch."""
    for difference in list(differences(values(want), values(have), noted, carried_of(values(want), PARTS), PARTS)):
        have = apply_json_patch(have, patch_operations(difference, have))
    return have


@given(want=bodies(), before=bodies(), have=bodies())
def test_one_patch_settles_every_difference(want: Json, before: Json, have: Json) -> None:
    """Whatever was carried before and whatever became of it: nothing is left to do afterwards."""
    unchanged = copy.deepcopy(have)
    patched = settled(want, have, carried_of(values(before), PARTS))
    assert have == unchanged
    note = carried_of(values(want), PARTS)
    assert list(differences(values(want), values(patched), note, note, PARTS)) == []


@given(want=bodies(), added=MAPS)
def test_what_others_add_to_a_map_is_kept(want: Json, added: Json) -> None:
    """Only keys that we carried are ours to remove."""
    have = copy.deepcopy(want)
    ours = read(want, ("meta", "map")) or {}
    have["meta"] = {"map": {f"other-{key}": value for key, value in added.items()} | ours}
    found = settled(want, have, carried_of(values(want), PARTS))
    assert found["meta"]["map"] == have["meta"]["map"]


@given(bodies())
def test_a_note_is_read_as_it_was_written(body: Json) -> None:
    """It is an annotation: text, the same for the same content."""
    noted = carried_of(values(body), PARTS)
    assert Carried.of_text(noted.as_text()) == noted
    assert carried_of(values(copy.deepcopy(body)), PARTS).as_text() == noted.as_text()


@pytest.mark.parametrize("text", [None, "", "no json", "[]", '{"a": 1}', '{"a": [1]}', '{"a": []}'])
def test_a_note_that_makes_no_sense_notes_nothing(text: str | None) -> None:
    """People and worker admission may write there."""
    assert Carried.of_text(text) == Carried()


@pytest.mark.parametrize(
    ("have", "want", "is_there"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 1}, True, id="an addition to a map"),
        pytest.param({"a": 2}, {"a": 1}, False, id="another value"),
        pytest.param({}, {"a": 1}, False, id="a lost key"),
        pytest.param([{"k": 1, "default": 2}, {"k": 3}], [{"k": 1}], True, id="defaults and entries added to a list"),
        pytest.param([{"k": 3}], [{"k": 1}], False, id="a lost entry"),
        pytest.param("x", {"a": 1}, False, id="another type"),
        pytest.param(5, None, True, id="nothing is wanted"),
        pytest.param(None, 0, False, id="a zero is a value"),
    ],
)
def test_additions_do_not_count_as_changes(have: Any, want: Any, is_there: bool) -> None:
    """D9: only what was carried is looked for."""
    assert contains(have, want) is is_there


def test_paths_are_pointers() -> None:
    """RFC 6901."""
    assert Part("x", ("metadata", "labels", "a/b~c", 0)).pointer == "/metadata/labels/a~1b~0c/0"
    assert read({"a": [{"b": 1}]}, ("a", 0, "b")) == 1
    assert read({"a": []}, ("a", 0)) is None
    assert read({"a": {"0": 1}}, ("a", 0)) is None
    assert without({"a": 1, "b": 2}, lambda key: key == "a") == {"b": 2}
    assert without(None, lambda key: True) == {}


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("/spec/jobs/0/labels", ("spec", "jobs", 0, "labels")),
        ("/spec/tasks/0/labels", ("spec", "tasks", "0", "labels")),
        ("/spec/jobs/first", ("spec", "jobs", "first")),
        ("/metadata/labels/a~1b~01", ("metadata", "labels", "a/b~1")),
    ],
)
def test_a_number_in_a_path_of_an_operation_is_an_index_in_lists_alone(
    pointer: str, expected: tuple[str | int, ...]
) -> None:
    """RFC 6901: what a step means is for the value to say that it is in."""
    assert place_of(pointer, {"spec": {"jobs": [{}], "tasks": {"0": {}}}}) == expected
