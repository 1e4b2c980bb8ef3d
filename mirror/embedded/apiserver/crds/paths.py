"""Simple JSON paths, as definitions name fields by them. Pure.

``.spec.size``, ``.spec.list[0]``, ``.status.conditions[?(@.type=="Ready")].status``
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

_STEP = re.compile(
    r"""\.(?P<name>[\w\-$/]+(?:\\\.[\w\-$/]+)*)
    | \[\s*(?P<index>-?\d+|\*)\s*\]
    | \[\s*(?P<quote>['"])(?P<key>.*?)(?P=quote)\s*\]
    | \[\?\(\s*@\.(?P<field>[\w\-.]+)\s*==\s*(?P<mark>['"])(?P<value>.*?)(?P=mark)\s*\)\]""",
    re.VERBOSE,
)


class NotAPath(ValueError):
    """The text is no path that is understood here."""


class _Step(NamedTuple):
    name: str = ""
    position: int | None = None
    is_all: bool = False
    field: str = ""
    value: str = ""


def find(body: Any, path: str) -> list[Any]:
    """Every value at the path.

    Raises:
        NotAPath: as it says.
    """
    values = [body]
    for step in _steps(path):
        values = [found for value in values for found in _take(value, step)]
    return values


def names(path: str) -> list[str]:
    """The members that a simple path goes through."""
    return path.strip(".").split(".")


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[_Step, ...]:
    path = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    return tuple(_parse(path))


def _parse(path: str) -> Iterator[_Step]:
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise NotAPath(f"unrecognized character in action: {path[at:]!r}")
        at = found.end()
        parts = found.groupdict()
        if parts["name"] is not None:
            yield _Step(name=parts["name"].replace("\\.", "."))
        elif parts["key"] is not None:
            yield _Step(name=parts["key"])
        elif parts["index"] == "*":
            yield _Step(is_all=True)
        elif parts["index"] is not None:
            yield _Step(position=int(parts["index"]))
        else:
            yield _Step(field=parts["field"], value=parts["value"])


def _take(value: Any, step: _Step) -> list[Any]:
    if step.name:
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    if isinstance(value, dict) and step.is_all:
        return list(value.values())
    if not isinstance(value, list):
        return []
    if step.is_all:
        return value
    if step.position is not None:
        return [value[step.position]] if -len(value) <= step.position < len(value) else []
    return [one for one in value if [step.value] == [str(found) for found in find(one, "." + step.field)][:1]]
