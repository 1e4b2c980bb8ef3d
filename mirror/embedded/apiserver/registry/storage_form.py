"""What storage makes of an object: times in UTC with whole seconds (or microseconds), no lists that are empty.

Only what the struct of a kind calls a time is one; a label or a key of a ConfigMap may have the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from mirror.batch import times
from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS
from mirror.embedded.apiserver.apimachinery.strategy import Json

_Change: TypeAlias = Callable[[Any], Any]


def stored(body: Json, struct: str) -> Json:
    """The canonical object of this struct as every answer shows it; what it shares with the input is never changed."""
    changed: Json = _changed(body, _changes(struct))
    return changed


def micro(text: str) -> str:
    """A time with six digits of a second, in UTC.

    Raises:
        BadTime: it is not a time.
    """
    seconds, rest = divmod(times.instant(text), times.NANOSECONDS)
    return f"{times.text(seconds)[:-1]}.{rest // 1_000:06}Z"


@cache
def _changes(struct: str) -> Mapping[str, _Change]:
    """The fields of a struct in which anything may change, and how."""
    found = ((name, _change(kind)) for name, kind in STRUCTS[struct].items() if struct != "ManagedFieldsEntry")
    return {name: change for name, change in found if change is not None}


def _change(kind: str) -> _Change | None:
    base = kind.strip("*!")
    if base == "t":
        return _seconds
    if base == "m":
        return _microseconds
    if base.startswith("["):
        item = _change(base[1:-1])
        return (lambda value: [item(one) for one in value] or None if value else None) if item else _list
    if base in STRUCTS:
        changes = _changes(base)
        return (lambda value: _changed(value, changes) if value else value) if changes else None
    return None


def _changed(body: Json, changes: Mapping[str, _Change]) -> Json:
    return {name: changes[name](value) if name in changes else value for name, value in body.items()}


def _list(value: Any) -> Any:
    return value or None


def _seconds(value: Any) -> Any:
    return _time(value, times.stored)


def _microseconds(value: Any) -> Any:
    return _time(value, micro)


def _time(value: Any, form: Callable[[str], str]) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return None if times.instant(value) == _ZERO else form(value)
    except times.BadTime:
        return value


_ZERO = times.instant(times.ZERO)
