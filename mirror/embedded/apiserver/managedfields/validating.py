"""Whether an applied object fits its kind, in the words of the library that a server merges with."""

from __future__ import annotations

from typing import Any

from mirror.embedded.apiserver.apimachinery.decoding import goprint
from mirror.embedded.apiserver.managedfields.comparing import element_of
from mirror.embedded.apiserver.managedfields.sets import Items, Scalar, Shape, Struct, Whole, shown

_DUPLICATE = "duplicate entries for key"


def problems(value: Any, shape: Shape, *, allows_duplicates: bool = False) -> list[str]:
    """What is wrong, each with its path; empty: it fits. An object that is there may have items twice."""
    found: list[str] = []
    _validate(value, shape, "", found)
    return [one for one in found if _DUPLICATE not in one] if allows_duplicates else found


def describe(found: list[str]) -> str:
    """All of it as one text."""
    return found[0] if len(found) == 1 else "\n".join(("errors:", *(f"  {one}" for one in found)))


def _validate(value: Any, shape: Shape, path: str, found: list[str]) -> None:
    if value is None:
        return
    match shape:
        case Scalar():
            _scalar(value, shape.wanted, path, found)
        case Whole():
            _whole(value, shape, path, found)
        case Struct():
            _struct(value, shape, path, found)
        case Items():
            _items(value, shape, path, found)


def _scalar(value: Any, wanted: str, path: str, found: list[str]) -> None:
    kind = goprint.type_of(value)
    is_number = kind in ("int64", "float64")
    if wanted == "numeric" and not is_number:
        _say(path, f"expected numeric (int or float), got {kind}", found)
    elif wanted == "string" and kind != "string":
        _say(path, f"expected string, got &value.valueUnstructured{{Value:{goprint.syntax(value)}}}", found)
    elif wanted == "boolean" and kind != "bool":
        _say(path, f"expected boolean, got &{{{goprint.text(value)}}}", found)
    elif wanted == "untyped" and isinstance(value, dict | list):
        _say(path, f"expected any scalar, got &{{{goprint.text(value)}}}", found)


def _whole(value: Any, shape: Whole, path: str, found: list[str]) -> None:
    if shape.wanted == "list":
        if not isinstance(value, list):
            _say(path, f"expected list, got &{{{goprint.text(value)}}}", found)
            return
        for position, item in enumerate(value):
            if shape.inner is not None:
                _validate(item, shape.inner, f"{path}[{position}]", found)
    elif shape.wanted == "map" and shape.inner is not None:
        _validate(value, shape.inner, path, found)


def _struct(value: Any, shape: Struct, path: str, found: list[str]) -> None:
    if not isinstance(value, dict):
        if not shape.is_deduced:
            _say(path, f"expected map, got &{{{goprint.text(value)}}}", found)
        return
    for name, one in value.items():
        below = shape.fields.get(name) or shape.other
        if below is None:
            _say(f"{path}.{name}", "field not declared in schema", found)
            return
        _validate(one, below, f"{path}.{name}", found)


def _items(value: Any, shape: Items, path: str, found: list[str]) -> None:
    if not isinstance(value, list):
        _say(path, f"expected list, got &{{{goprint.text(value)}}}", found)
        return
    seen: set[str] = set()
    for position, item in enumerate(value):
        wrong = _item_problem(item, shape)
        if wrong:
            _say(path, f"element {position}: {wrong}", found)
            return
        element = element_of(item, shape)
        place = shown((element,))
        if element in seen:
            _say(path, f"{_DUPLICATE} {place}", found)
        seen.add(element)
        _validate(item, shape.item, path + place, found)


def _item_problem(item: Any, shape: Items) -> str:
    """Why an item can have no place in the list."""
    if shape.keys:
        if item is None:
            return "associative list with keys may not have a null element"
        if not isinstance(item, dict):
            return "associative list with keys may not have non-map elements"
        if not element_of(item, shape):
            names = " ".join(f'"{key}"' for key in shape.keys)
            return (
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return ""
    if isinstance(item, dict):
        return "associative list without keys has an element that's a map type"
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    return "associative list without keys has an element that's an explicit null" if item is None else ""


def _say(path: str, message: str, found: list[str]) -> None:
    found.append(f"{path}: {message}" if path else message)
