"""Label selectors: whether they are well formed, and what they match (C6–C9).

Selectors are canonical objects with matchLabels and matchExpressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mirror.batch.quoting import json_text
from mirror.batch.syntax import label_value_problems, qualified_name_problems
from mirror.batch.violations import Violation, forbidden, invalid, invalid_texts, required
from mirror.embedded.apiserver.apimachinery.canonical import Json

_SETS, _PRESENCES = ("In", "NotIn"), ("Exists", "DoesNotExist")


def check_labels(field: str, labels: Mapping[str, str] | None) -> Iterator[Violation]:
    """Keys and values of labels. A server takes them in any order; ours is that of the keys."""
    for key in sorted(labels or ()):
        yield from invalid_texts(field, key, qualified_name_problems(key))
        yield from invalid_texts(field, (labels or {})[key], label_value_problems((labels or {})[key]))


def check_selector(field: str, selector: Json | None, *, allow_bad_values: bool = False) -> Iterator[Violation]:
    """Whether a selector is well formed; one that is not there is."""
    if selector is None:
        return
    yield from check_labels(f"{field}.matchLabels", selector.get("matchLabels"))
    for position, requirement in enumerate(selector.get("matchExpressions", ())):
        yield from _check_requirement(
            f"{field}.matchExpressions[{position}]", requirement, allow_bad_values=allow_bad_values
        )


def has_bad_values(selector: Json | None) -> bool:
    """C9: a stored selector with such values may keep them."""
    expressions = (selector or {}).get("matchExpressions", ())
    return any(label_value_problems(value) for one in expressions for value in one.get("values", ()))


def matches(selector: Json | None, labels: Mapping[str, str]) -> bool | None:
    """Whether the selector takes an object with these labels; None if it is malformed. No selector takes nothing."""
    if selector is None:
        return False
    if next(check_selector("", selector), None) is not None:
        return None
    wanted: Mapping[str, str] = selector.get("matchLabels", {})
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_meets(one, labels) for one in selector.get("matchExpressions", ()))


def _meets(requirement: Json, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement["key"])
    match requirement["operator"]:
        case "In":
            return value in requirement["values"]
        case "NotIn":
            return value not in requirement["values"]
        case "Exists":
            return value is not None
        case _:
            return value is None


def _check_requirement(field: str, requirement: Json, *, allow_bad_values: bool) -> Iterator[Violation]:
    operator, values = requirement["operator"], requirement.get("values", ())
    if operator in _SETS:
        if not values:
            yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _PRESENCES:
        if values:
            yield forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    else:
        yield invalid(f"{field}.operator", json_text(operator), "not a valid selector operator")
    key = requirement["key"]
    yield from invalid_texts(f"{field}.key", key, qualified_name_problems(key))
    for position, value in () if allow_bad_values else enumerate(values):
        yield from invalid_texts(f"{field}.values[{position}]", value, label_value_problems(value))
