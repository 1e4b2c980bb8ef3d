"""Protobuf bodies of typed Go clients, which send nothing else for built-in kinds; answers to them are JSON.

An envelope says what the object is; fields are numbered (``schemas.numbers``). Unknown fields are skipped, as a server
does, so there is nothing to be strict about.
"""

from __future__ import annotations

import base64
import struct as binary
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeAlias

import msgspec

from mirror.batch import times
from mirror.embedded.apiserver.apimachinery.schemas import STRUCTS, gotypes, numbers

Json: TypeAlias = dict[str, Any]

PROTOBUF_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_DEEPEST = 100
_LENGTH, _VARINT, _EIGHT, _FOUR = 2, 0, 1, 5
_EARLIEST, _LATEST = -62_135_596_800, 253_402_300_799
"""Seconds since 1970 of the first and the last year that a time can have."""


class NotProtobuf(ValueError):
    """The bytes are no such object; says why."""


def envelope(data: bytes) -> tuple[str, str, bytes]:
    """``apiVersion``, ``kind`` and the object itself.

    Raises:
        NotProtobuf: it has none.
    """
    if not data:
        raise NotProtobuf("empty data")
    if data == _MAGIC:
        raise NotProtobuf("empty body")
    if not data.startswith(_MAGIC):
        raise NotProtobuf("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version = kind = ""
    raw = b""
    for number, value in _fields(data[len(_MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            for inner, text in _fields(value):
                if inner == 1:
                    api_version = _text(text)
                elif inner == 2:
                    kind = _text(text)
        elif number == 2 and isinstance(value, bytes):
            raw = value
    return api_version, kind, raw


def body(raw: bytes, struct: str) -> Json:
    """The object, with the zero values that were sent; canonical form drops them.

    Raises:
        NotProtobuf: it cannot be read.
    """
    return _message(raw, struct, 0)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values, as they come."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _LENGTH:
            length, at = _varint(data, at)
        elif wire in (_EIGHT, _FOUR):
            length = 8 if wire == _EIGHT else 4
        else:
            raise NotProtobuf(f"proto: illegal wireType {wire}")
        if length > len(data) - at:
            raise NotProtobuf("unexpected EOF")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise NotProtobuf("unexpected EOF")
        if shift >= 64:
            raise NotProtobuf("proto: integer overflow")
        part = data[at]
        at += 1
        value |= (part & 0x7F) << shift
        if part < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _message(data: bytes, struct: str, depth: int) -> Json:
    if depth > _DEEPEST:
        raise NotProtobuf("proto: message nested too deeply")
    own, embedded = _layout(struct)
    found: Json = {}
    inlined = numbers.EMBEDDED.get(struct)
    for number, value in _fields(data):
        if number == inlined and isinstance(value, bytes):
            for inner, part in _fields(value):
                _put(found, embedded.get(inner), part, depth)
        else:
            _put(found, own.get(number), value, depth)
    return found


_Place: TypeAlias = tuple[str, str]


@cache
def _layout(struct: str) -> tuple[Mapping[int, _Place], Mapping[int, _Place]]:
    """Number → field and its type; of the struct itself, and of the one that it embeds."""
    own: dict[int, _Place] = {}
    embedded: dict[int, _Place] = {}
    for name, number in numbers.of_struct(struct).items():
        into = embedded if gotypes.embedding(struct, name) else own
        into[number] = name, STRUCTS[struct][name].strip("*!")
    return own, embedded


def _put(found: Json, place: _Place | None, value: int | bytes, depth: int) -> None:
    if place is None:
        return
    name, kind = place
    if kind.startswith("["):
        items = found.setdefault(name, [])
        if isinstance(value, bytes) and kind == "[i]":
            items.extend(_packed(value))
        else:
            items.append(_value(value, kind[1:-1], depth))
    elif kind.startswith("{"):
        key, one = _entry(value, kind[1:-1], depth)
        found.setdefault(name, {})[key] = one
    else:
        found[name] = _value(value, kind, depth)


def _packed(data: bytes) -> list[int]:
    found, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        found.append(_signed(value))
    return found


def _entry(value: int | bytes, kind: str, depth: int) -> tuple[str, Any]:
    key, one = "", None
    for number, part in _fields(_bytes(value)):
        if number == 1:
            key = _text(part)
        elif number == 2:
            one = _value(part, kind, depth)
    return key, one


def _value(value: int | bytes, kind: str, depth: int) -> Any:
    if "|" in kind:
        return _either(_bytes(value), kind, depth)
    if kind in STRUCTS:
        return _message(_bytes(value), kind, depth + 1)
    if kind.startswith("["):  # a list that has a type of its own
        return [_value(part, kind[1:-1], depth) for number, part in _fields(_bytes(value)) if number == 1]
    return _READERS[kind](value)


def _either(data: bytes, kind: str, depth: int) -> Any:
    """A schema, or what may stand in its place."""
    first, second = kind.split("|")
    found: Any = None
    for number, part in _fields(data):
        if second == "b":
            if number == 1 and found is None:
                found = bool(part)
            elif number == 2:
                found = _message(_bytes(part), first, depth + 1)
        elif number == 1:
            found = _message(_bytes(part), first, depth + 1)
        elif number == 2:
            found = [*(found if isinstance(found, list) else []), _value(part, second[1:-1], depth)]
    return found


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise NotProtobuf("proto: wrong wireType = 0")
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode(errors="replace")


def _signed(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise NotProtobuf("proto: wrong wireType = 2")
    return value - (1 << 64) if value >> 63 else value


def _number(value: int | bytes) -> float:
    data = _bytes(value)
    if len(data) != 8:
        raise NotProtobuf("proto: wrong wireType")
    found: float = binary.unpack("<d", data)[0]
    return int(found) if found == found and abs(found) < 2**53 and found == int(found) else found


def _nanoseconds(value: int | bytes) -> int | None:
    """Since 1970; None for no time at all."""
    seconds = nanos = 0
    for number, part in _fields(_bytes(value)):
        if number == 1:
            seconds = _signed(part)
        elif number == 2:
            nanos = _signed(part)
    if not (seconds or nanos) or not _EARLIEST < seconds <= _LATEST:
        return None
    return seconds * times.NANOSECONDS + nanos


def _time(value: int | bytes) -> str | None:
    found = _nanoseconds(value)
    return None if found is None else times.text(found // times.NANOSECONDS)


def _micro_time(value: int | bytes) -> str | None:
    found = _nanoseconds(value)
    if found is None:
        return None
    seconds, rest = divmod(found, times.NANOSECONDS)
    return f"{times.text(seconds)[:-1]}.{rest // 1000:06}Z"


def _quantity(value: int | bytes) -> str:
    return next((_text(part) for number, part in _fields(_bytes(value)) if number == 1), "0")


def _number_or_text(value: int | bytes) -> int | str:
    parts = dict(_fields(_bytes(value)))
    return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))


def _raw(value: int | bytes) -> Any:
    """JSON that stands in a field as it is."""
    data = next((part for number, part in _fields(_bytes(value)) if number == 1), b"")
    try:
        return msgspec.json.decode(_bytes(data)) if data else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotProtobuf("embedded JSON cannot be read") from error


_READERS: Mapping[str, Callable[[int | bytes], Any]] = {
    "s": _text,
    "i": _signed,
    "b": bool,
    "f": _number,
    "t": _time,
    "m": _micro_time,
    "q": _quantity,
    "x": _number_or_text,
    "y": lambda value: base64.b64encode(_bytes(value)).decode(),
    "?": _raw,
}
