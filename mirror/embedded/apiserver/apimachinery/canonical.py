"""Decoding: a body as the API server holds it after it has read it (DF20, E6).

A copy in which there is nothing that the server would not have: no unknown fields, no nulls, no empty lists, maps and
texts where they mean the same as nothing; quantities are written as the server writes them. What has a wrong type is
left out (a server answers 400 before anybody comes here). So rules and defaults can rely on types, and comparing is
``same``.

Two things remain as they came, because rules tell them apart: empty lists that are served even if empty, and fractions
of seconds. ``registry.storage_form`` settles both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from mirror.batch import times
from mirror.embedded.apiserver.apimachinery import quantities
from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS

Json: TypeAlias = dict[str, Any]

_ABSENT: Any = object()
_Read: TypeAlias = Callable[[Any], Any]


def canonical(body: object, struct: str = "Job") -> Json:
    """The body of this struct as a server has decoded it; always a new object."""
    return _STRUCTS.read(body, struct)


def fill_labels(job: Json) -> None:
    """DF7, in place: a Job without labels has those of its pods. Reading from storage does this, too (DF1)."""
    labels = job["spec"]["template"]["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        job["metadata"]["labels"] = dict(labels)


def same(one: Any, other: Any) -> bool:
    """Whether two canonical values mean the same: a list that is empty is as good as none."""
    if one is other:
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(name), other.get(name)) for name in one.keys() | other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if one is None or other is None:
        return one in (None, []) and other in (None, [])
    return bool(one == other)


class Structs:
    """Reads bodies of the structs of a table, such as that of all built-in kinds."""

    def __init__(self, table: Mapping[str, Mapping[str, str]]) -> None:
        self._table = table
        self._readers: dict[str, _Read] = {}

    def read(self, body: object, struct: str) -> Json:
        """The body of this struct as a server has decoded it; always a new object."""
        decoded: Json = self._struct(struct)(body)
        return decoded

    def _struct(self, name: str) -> _Read:
        known = self._readers.get(name)
        if known is not None:
            return known
        readers: dict[str, _Read] = {}
        zeros: list[tuple[str, Callable[[], Any]]] = []
        is_filled = False

        def read(value: Any) -> Json:
            nonlocal is_filled
            if not is_filled:  # now, because some structs are parts of each other
                is_filled = True
                self._fill(name, readers, zeros)
            found: Json = {}
            if isinstance(value, dict):
                for key, one in value.items():
                    reader = readers.get(key)
                    if reader is not None and one is not None:
                        converted = reader(one)
                        if converted is not _ABSENT:
                            found[key] = converted
                            if name == "PodSpec" and key == "resources" and one.get("claims") == []:
                                # Resources of a whole pod have no claims: not even an empty list is let through.
                                converted["claims"] = []
            for key, zero in zeros:
                if key not in found:
                    found[key] = zero()
            return found

        self._readers[name] = read
        return read

    def _fill(self, struct: str, readers: dict[str, _Read], zeros: list[tuple[str, Callable[[], Any]]]) -> None:
        for name, kind in self._table[struct].items():
            keeps_empty, is_pointer = kind.endswith("!"), kind.startswith("*")
            kind = kind.strip("*!")
            readers[name] = self._reader(kind, keeps_empty=keeps_empty or is_pointer)
            if keeps_empty and (is_pointer or kind[0] in "[{"):
                zeros.append((name, lambda: None))
            elif keeps_empty and kind in _ZEROS:
                zeros.append((name, partial(_ZEROS.__getitem__, kind)))
            elif kind in self._table and not is_pointer:
                zeros.append((name, partial(self._struct(kind), None)))
            elif kind == "q" and not is_pointer:
                zeros.append((name, lambda: quantities.ZERO_TEXT))

    def _reader(self, kind: str, *, keeps_empty: bool) -> _Read:
        if "|" in kind and kind[0] not in "[{":
            return _either([self._reader(one, keeps_empty=True) for one in kind.split("|")])
        if kind.startswith("["):
            return _list(self._item(kind[1:-1]), keeps_empty=keeps_empty)
        if kind.startswith("{"):
            return _map(self._item(kind[1:-1]))
        if kind in self._table:
            read = self._struct(kind)
            return lambda value: read(value) if isinstance(value, dict) else _ABSENT
        return _KEPT[kind] if keeps_empty else _DROPPED.get(kind, _KEPT[kind])

    def _item(self, kind: str) -> _Read:
        """An item of a list or a map, which is there even if it is nothing."""
        if kind in self._table:
            return self._struct(kind)
        read, zero = self._reader(kind, keeps_empty=True), quantities.ZERO_TEXT if kind == "q" else _ZEROS.get(kind)

        def converted(value: Any) -> Any:
            found = read(value)
            return zero if found is _ABSENT else found

        return converted


_ZEROS: dict[str, Any] = {"s": "", "i": 0, "b": False, "f": 0, "y": "", "t": None, "m": None, "x": 0}


def _either(readers: list[_Read]) -> _Read:
    def read(value: Any) -> Any:
        return next((found for one in readers if (found := one(value)) is not _ABSENT), _ABSENT)

    return read


def _list(item: _Read, *, keeps_empty: bool) -> _Read:
    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple) or (not value and not keeps_empty):
            return _ABSENT
        return [item(one) for one in value]

    return read


def _map(item: _Read) -> _Read:
    def read(value: Any) -> Any:
        return {key: item(one) for key, one in value.items()} if isinstance(value, dict) and value else _ABSENT

    return read


def _bytes(value: Any) -> Any:
    """Base64 without line ends."""
    return value.replace("\n", "").replace("\r", "") if isinstance(value, str) else _ABSENT


def _micro_time(value: Any) -> Any:
    """A time that is kept to the microsecond."""
    if not isinstance(value, str):
        return _ABSENT
    try:
        return times.micro(value)
    except times.BadTime:
        return _ABSENT


def _quantity(value: Any) -> Any:
    found = quantities.of(value)
    return _ABSENT if found is None else found.text


_KEPT: dict[str, _Read] = {
    "s": lambda value: value if isinstance(value, str) else _ABSENT,
    "i": lambda value: value if type(value) is int else _ABSENT,
    "b": lambda value: value if type(value) is bool else _ABSENT,
    "t": lambda value: value if isinstance(value, str) else _ABSENT,
    "x": lambda value: value if type(value) is int or isinstance(value, str) else _ABSENT,
    "q": _quantity,
    "f": lambda value: value if type(value) in (int, float) else _ABSENT,
    "y": _bytes,
    "m": _micro_time,
    "?": lambda value: value,
}
_DROPPED: dict[str, _Read] = {
    "t": lambda value: value if value != times.ZERO and isinstance(value, str) else _ABSENT,
    "s": lambda value: value if value and isinstance(value, str) else _ABSENT,
    "i": lambda value: value if value and type(value) is int else _ABSENT,
    "b": lambda value: True if value is True else _ABSENT,
    "y": lambda value: _bytes(value) or _ABSENT,
    "f": lambda value: value if value and type(value) in (int, float) else _ABSENT,
}
"""Readers that take a zero value for nothing."""

_STRUCTS = Structs(STRUCTS)
