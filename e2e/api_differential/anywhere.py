"""Changes of any field that a Job's spec happens to have: emptied, nulled, doubled, or given an odd value of its type.

They know no rule, and so find those that nobody thought of. What a server could not even decode is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from e2e.api_differential.steps import Change, Json, Path, find, put

_ODD_TEXTS = (
    "",
    "a b",
    "Bad_Name",
    "x" * 64,
    "x" * 300,
    "é",
    "a/b",
    "-",
    "1",
    "UPPER",
    "/abs",
    "../up",
    "a.b",
    " ",
    "x",
)
_ODD_NUMBERS = (-1, 0, 1, 7, 65_536, 2**31 - 1)
_QUANTITIES = frozenset(("limits", "requests", "overhead"))
_READ_STRICTLY = frozenset(("sizeLimit", "divisor", "creationTimestamp"))


def _fields(value: Any, path: Path) -> Iterator[Path]:
    """Every field and every item below."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name)
            if name not in _QUANTITIES:
                yield from _fields(inner, (*path, name))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _fields(inner, (*path, position))


def _somewhere(is_fit: Callable[[Any], bool], change: Callable[[Random, Any], object]) -> Change:
    def anywhere(random: Random, job: Json) -> None:
        fit = [path for path in _fields(job.get("spec"), ("spec",)) if _is_free(path) and is_fit(find(job, path))]
        if fit:
            path = random.choice(fit)
            put(job, path, change(random, find(job, path)))

    return anywhere


def _is_free(path: Path) -> bool:
    return path[-1] not in _READ_STRICTLY and isinstance(path[-1], str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


ANYWHERE: dict[str, Change] = {
    "emptied": _somewhere(lambda value: isinstance(value, dict | list | str), lambda _, value: type(value)()),
    "nulled": _somewhere(lambda _: True, lambda *_: None),
    "doubled": _somewhere(
        lambda value: isinstance(value, list) and bool(value), lambda random, value: [*value, random.choice(value)]
    ),
    "turned around": _somewhere(lambda value: isinstance(value, list) and len(value) > 1, lambda _, value: value[::-1]),
    "odd text": _somewhere(lambda value: isinstance(value, str), lambda random, _: random.choice(_ODD_TEXTS)),
    "odd number": _somewhere(_is_number, lambda random, _: random.choice(_ODD_NUMBERS)),
    "other truth": _somewhere(lambda value: isinstance(value, bool), lambda _, value: not value),
}
