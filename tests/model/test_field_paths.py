"""Paths of fields: what they mean in a body, and what is wrong with one that is none."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.model.field_paths import BadPath, FieldPath, at, put, strip, without, written

BODY: dict[str, Any] = {
    "metadata": {"annotations": {"chains.example.com/a": "1", "team": "x"}},
    "spec": {"tasks": [{"name": "a", "template": {"spec": {"x": 1}}}, {"name": "b"}], "suspend": True},
}

MEANT = {
    "one field": ("spec.suspend", ["spec.suspend"]),
    "a last field that is not there": ("spec.missing", ["spec.missing"]),
    "below what is not there": ("spec.missing.more", []),
    "every element": ("spec.tasks[].name", ["spec.tasks[0].name", "spec.tasks[1].name"]),
    "below only some elements": ("spec.tasks[].template.spec", ["spec.tasks[0].template.spec"]),
    "the elements themselves": ("spec.tasks[]", ["spec.tasks[0]", "spec.tasks[1]"]),
    "a chosen element": ("spec.tasks[name=b]", ["spec.tasks[1]"]),
    "no such element": ("spec.tasks[name=c]", []),
    "every element of no list": ("spec.suspend[]", []),
    "keys that match": ("metadata.annotations[chains.example.com/*]", ["metadata.annotations.chains.example.com/a"]),
}


@pytest.mark.parametrize(("text", "places"), MEANT.values(), ids=MEANT)
def test_a_path_means_places(text: str, places: list[str]) -> None:
    """In the order of the body."""
    assert [written(place) for place in FieldPath.of_text(text).places(BODY)] == places


@pytest.mark.parametrize(
    "text", ["", ".", "spec.", "spec..x", "spec.a-b", "spec[0]", "spec[].x[a=b][c=d]", "a" * 300, "a." * 20]
)
def test_what_is_no_path(text: str) -> None:
    """It is refused with a reason."""
    with pytest.raises(BadPath, match=r"."):
        FieldPath.of_text(text)


def test_what_is_stripped_is_gone_and_the_rest_stays() -> None:
    """The body itself is left as it is: it may be cached."""
    assert strip(BODY, FieldPath.of_text("spec.tasks[].name"))["spec"]["tasks"] == [
        {"template": {"spec": {"x": 1}}},
        {},
    ]
    assert strip(BODY, FieldPath.of_text("spec.tasks[name=a]"))["spec"]["tasks"] == [{"name": "b"}]
    assert strip(BODY, FieldPath.of_text("spec.tasks[]"))["spec"]["tasks"] == []
    assert len(BODY["spec"]["tasks"]) == 2


def test_a_value_is_put_and_its_parents_are_made() -> None:
    """A list's element has to be there."""
    assert put({}, ("spec", "runPolicy", "suspend"), True) == {"spec": {"runPolicy": {"suspend": True}}}
    changed = put(BODY, ("spec", "tasks", 1, "name"), "c")
    assert at(changed, ("spec", "tasks", 1, "name")) == "c"
    assert without(changed, ("spec", "tasks", 0))["spec"]["tasks"] == [{"name": "c"}]
