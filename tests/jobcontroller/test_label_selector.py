"""A Job's label selector."""

from __future__ import annotations

from typing import Any

import pytest

from mirror.batch.label_selectors import selector_of

LABELS = {"app": "a", "tier": "x"}


def expression(operator: str, key: str = "app", *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        pytest.param(None, False, id="none means no pod"),
        pytest.param({}, True, id="an empty one means every pod"),
        pytest.param({"matchLabels": {"app": "a"}}, True, id="a label"),
        pytest.param({"matchLabels": {"app": "a", "tier": "y"}}, False, id="all labels are needed"),
        pytest.param(expression("In", "app", "a", "b"), True, id="in"),
        pytest.param(expression("In", "no", "a"), False, id="in, without the key"),
        pytest.param(expression("NotIn", "app", "a"), False, id="not in"),
        pytest.param(expression("NotIn", "no", "a"), True, id="not in, without the key"),
        pytest.param(expression("Exists"), True, id="exists"),
        pytest.param(expression("DoesNotExist"), False, id="does not exist"),
        pytest.param(expression("Like"), False, id="an operator that the API refuses"),
        pytest.param({"matchLabels": {"app": "a"}} | expression("In", "tier", "y"), False, id="labels and expressions"),
    ],
)
def test_a_selector_matches_as_the_api_says(selector: dict[str, Any] | None, matches: bool) -> None:
    """``LabelSelectorAsSelector``."""
    found = selector_of(selector)
    assert found.matches(LABELS) is matches
    assert hash(found) == hash(selector_of(selector))


def test_the_pivot_is_a_label_that_every_match_has() -> None:
    """None where the selector names no label."""
    assert selector_of({"matchLabels": {"b": "2", "a": "1"}}).pivot == ("a", "1")
    assert selector_of(expression("Exists")).pivot is None
