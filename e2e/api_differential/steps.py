"""Requests as they are made here: a beginning, and named steps that change it, each with a seed of its own.

A request can be made again from its steps, and made smaller by leaving some out; that is all that shrinking is.
Not here: which steps there are (``features``, ``mutations``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]
Change: TypeAlias = Callable[[Random, Json], None]
"""Changes a body in place; what it does depends on the random numbers and the body only."""
Catalogue: TypeAlias = Mapping[str, Change]


class _Absent:
    """The value of a field that is not there."""


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Step:
    """One named change with its seed."""

    name: str
    seed: int

    def __str__(self) -> str:
        return f"{self.name}:{self.seed}"


def drawn(random: Random, names: Iterable[str]) -> tuple[Step, ...]:
    """Steps of these names, with seeds drawn for them."""
    return tuple(Step(name, random.getrandbits(32)) for name in names)


def applied(catalogue: Catalogue, steps: Sequence[Step], body: Json) -> Json:
    """A copy of the body after the steps."""
    changed = copy.deepcopy(body)
    for step in steps:
        catalogue[step.name](Random(step.seed), changed)
    return changed


def dotted(text: str) -> Path:
    """``spec.containers.0.name`` as a path; for keys without dots."""
    return tuple(int(part) if part.isdecimal() else part for part in text.split("."))


def find(body: Json, path: Path) -> Any:
    """What is at the path, or None."""
    found: Any = body
    for part in path:
        if isinstance(part, int):
            found = found[part] if isinstance(found, list) and part < len(found) else None
        else:
            found = found.get(part) if isinstance(found, dict) else None
    return found


def put(body: Json, path: Path, value: object) -> None:
    """Put a copy of the value at the path. Objects on the way are made; lists are not, and then nothing is changed."""
    *way, last = path
    here: Any = body
    for part, following in zip(way, path[1:], strict=True):
        if isinstance(part, str) and isinstance(here, dict):
            if here.get(part) is None and isinstance(following, str):
                here[part] = {}
            here = here.get(part)
        elif isinstance(part, int) and isinstance(here, list) and part < len(here):
            here = here[part]
        else:
            return
    if isinstance(here, dict):
        if value is ABSENT:
            here.pop(last, None)
        else:
            here[last] = copy.deepcopy(value)


def one_of(path: str | Path, *values: object) -> Change:
    """A change that puts one of these values at the path."""
    where = dotted(path) if isinstance(path, str) else path

    def change(random: Random, body: Json) -> None:
        put(body, where, random.choice(values))

    return change


def all_of(*changes: Change) -> Change:
    """A change that is several, in order."""

    def change(random: Random, body: Json) -> None:
        for one in changes:
            one(random, body)

    return change
