"""Reading a parsed text into the fields of a struct: what fits is kept, and everything that does not is reported.

This is the slow reader, which reports; ``text.decode`` reads bodies with nothing wrong.
"""

from __future__ import annotations

import base64
from typing import Any, TypeAlias

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.apimachinery.decoding import scalars
from mirror.embedded.apiserver.apimachinery.decoding.text import Members, Number, clean, json_type, plain
from mirror.embedded.apiserver.apimachinery.schemas import gotypes
from mirror.embedded.apiserver.apimachinery.schemas.dropped import KNOWN, drop

Json: TypeAlias = dict[str, Any]

_MOST_COMPLAINTS = 100
_ABSENT: Any = object()
_INT32, _INT64 = 2**31, 2**63


class Refusal(Exception):
    """The body cannot be read; the text says why."""


class Reading:
    """One body.

    ``complaints`` are unknown and duplicate fields, which strict validation refuses. A wrong type is found anywhere and
    remembered, the first of them; reading goes on, since some later defects outweigh it.
    """

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self._wrong_type = ""
        self._struct, self._fields = "", ""

    def body(self, members: Any, struct: str) -> Json:
        """The object.

        Raises:
            Refusal: something in it has a wrong type.
        """
        found = self._object(members, struct, "v1." + gotypes.name_of(struct), "") if members is not None else {}
        if self._wrong_type:
            raise Refusal(self._wrong_type)
        return found if isinstance(found, dict) else {}

    def _object(self, value: Any, struct: str, type_name: str, path: str, known: Json | None = None) -> Any:
        if not isinstance(value, Members):
            return self._mismatch(value, type_name)
        fields, found, seen = KNOWN[struct], known if isinstance(known, dict) else {}, set()
        outer = self._struct, self._fields
        for raw, one in value:
            name = clean(raw)
            below = f"{path}.{name}" if path else name
            kind = fields.get(name)
            if kind is None:
                self._complain("unknown", below)
                continue
            if name in seen:
                self._complain("duplicate", below)
            seen.add(name)
            through = gotypes.embedding(struct, name)
            self._struct = gotypes.name_of(struct)
            self._fields = ".".join(filter(None, (outer[1], through, name)))
            self._field(found, name, one, kind, gotypes.of_field(struct, name, kind), below)
            self._struct, self._fields = outer
        return _ABSENT if drop(found, struct) else found

    def _field(self, found: Json, name: str, value: Any, kind: str, type_name: str, path: str) -> None:
        is_pointer, kind = kind.startswith("*"), kind.strip("*!")
        if value is None:
            if is_pointer or kind not in "sibf" or name not in found:
                found[name] = None
            return
        read = self._value(value, kind, type_name, path, found.get(name))
        if read is not _ABSENT:
            found[name] = read

    def _value(self, value: Any, kind: str, type_name: str, path: str, known: Any = None) -> Any:
        if kind == "?":
            return plain(value)
        if "|" in kind and kind[0] not in "[{":
            return self._either(value, kind, path)
        if kind in KNOWN:
            return self._object(value, kind, type_name, path, known)
        if kind.startswith("["):
            return self._list(value, kind[1:-1], type_name, path)
        if kind.startswith("{"):
            return self._map(value, kind[1:-1], type_name, path, known)
        return self._scalar(value, kind, type_name)

    def _list(self, value: Any, item: str, type_name: str, path: str) -> Any:
        if not isinstance(value, list) or isinstance(value, Members):
            return self._mismatch(value, type_name)
        inner = gotypes.of_item(type_name)
        found = []
        for position, one in enumerate(value):
            read = None if one is None else self._value(one, item, inner, f"{path}[{position}]")
            found.append(None if read is _ABSENT else read)
        return found

    def _map(self, value: Any, item: str, type_name: str, path: str, known: Any) -> Any:
        if not isinstance(value, Members):
            return self._mismatch(value, type_name)
        inner = gotypes.of_item(type_name)
        found: Json = known if isinstance(known, dict) else {}
        seen = set()
        for raw, one in value:
            key = clean(raw)
            below = f"{path}.{key}"
            if key in seen:
                self._complain("duplicate", below)
            seen.add(key)
            read = None if one is None else self._value(one, item, inner, below)
            found[key] = None if read is _ABSENT else read
        return found

    def _either(self, value: Any, kind: str, path: str) -> Any:
        """A type with a reader of its own: nothing unknown in it is reported."""
        wanted = kind.split("|")
        known = len(self.complaints)
        found = _ABSENT
        if isinstance(value, Members):
            found = self._value(value, wanted[0], "v1." + wanted[0], path)
        elif isinstance(value, list) and wanted[1].startswith("["):
            found = self._value(value, wanted[1], "[]" + ("string" if wanted[1] == "[s]" else "v1." + wanted[0]), path)
        elif wanted[1] == "b":
            if not isinstance(value, bool):
                raise Refusal("boolean or JSON schema expected")
            found = value
        del self.complaints[known:]
        return found

    def _scalar(self, value: Any, kind: str, type_name: str) -> Any:
        match kind:
            case "s" if isinstance(value, str):
                return clean(value)
            case "b" if isinstance(value, bool):
                return value
            case "i" if isinstance(value, Number):
                limit = _INT64 if type_name == "int64" else _INT32
                return self._integer(value, type_name, limit)
            case "f" if isinstance(value, Number):
                return value.value
            case "y" if isinstance(value, str):
                problem = scalars.base64_complaint(value)
                if problem:
                    self._wrong_type = self._wrong_type or problem
                    return _ABSENT
                return value
            case "y" if isinstance(value, list) and not isinstance(value, Members):
                return self._octets(value)
            case "t" | "m":
                return self._time(value, is_micro=kind == "m")
            case "q":
                return self._quantity(value)
            case "x":
                return self._number_or_text(value)
            case _:
                return self._mismatch(value, type_name)

    def _octets(self, value: list[Any]) -> Any:
        """Bytes may also be written as a list of numbers."""
        found = bytearray()
        for one in value:
            digits = one.digits if isinstance(one, Number) else ""
            if digits.isdigit() and len(digits) < 4 and int(digits) < 256:
                found.append(int(digits))
            elif one is not None:
                self._remember(f"number {digits}" if digits else json_type(one), "uint8")
                return _ABSENT
            else:
                found.append(0)
        return base64.b64encode(found).decode()

    def _integer(self, value: Number, type_name: str, limit: int) -> Any:
        digits = value.digits
        if digits.lstrip("-").isdigit() and len(digits) < 21 and -limit <= int(digits) < limit:
            return int(digits)
        self._remember(f"number {digits}", type_name)
        return _ABSENT

    def _time(self, value: Any, *, is_micro: bool) -> Any:
        if not isinstance(value, str):
            raise Refusal(self._words(json_type(value), "string"))
        problem = scalars.time_complaint(value, is_micro=is_micro)
        if problem:
            raise Refusal(problem)
        return value

    def _quantity(self, value: Any) -> Any:
        text = value.digits if isinstance(value, Number) else value if isinstance(value, str) else "{"
        problem = scalars.quantity_complaint(text)
        if problem:
            raise Refusal(problem)
        return text

    def _number_or_text(self, value: Any) -> Any:
        if isinstance(value, str):
            return clean(value)
        if not isinstance(value, Number):
            raise Refusal(self._words(json_type(value), "int32"))
        digits = value.digits
        if digits.lstrip("-").isdigit() and len(digits) < 12 and -_INT32 <= int(digits) < _INT32:
            return int(digits)
        raise Refusal(self._words(f"number {digits}", "int32"))

    def _mismatch(self, value: Any, type_name: str) -> Any:
        self._remember(json_type(value), type_name)
        return _ABSENT

    def _remember(self, value: str, type_name: str) -> None:
        self._wrong_type = self._wrong_type or self._words(value, type_name)

    def _words(self, value: str, type_name: str) -> str:
        where = f"struct field {self._struct}.{self._fields}" if self._struct else "value"
        return f"json: cannot unmarshal {value} into Go {where} of type {type_name}"

    def _complain(self, what: str, path: str) -> None:
        complaint = f"{what} field {quoted(path)}"
        if len(self.complaints) < _MOST_COMPLAINTS and complaint not in self.complaints:
            self.complaints.append(complaint)


def duplicates(value: Any, path: str = "") -> list[str]:
    """Complaints of what is there twice in an object that has no fields of its own."""
    found: dict[str, None] = {}
    _find_duplicates(value, path, found)
    return list(found)[:_MOST_COMPLAINTS]


def _find_duplicates(value: Any, path: str, found: dict[str, None]) -> None:
    if isinstance(value, Members):
        seen = set()
        for raw, one in value:
            name = clean(raw)
            below = f"{path}.{name}" if path else name
            if name in seen:
                found[f"duplicate field {quoted(below)}"] = None
            seen.add(name)
            _find_duplicates(one, below, found)
    elif isinstance(value, list):
        for position, one in enumerate(value):
            _find_duplicates(one, f"{path}[{position}]", found)


def unplain(value: Any) -> Any:
    """A plain value as if it had just been parsed, from a text in which members are sorted by name."""
    if isinstance(value, dict):
        return Members((name, unplain(one)) for name, one in sorted(value.items()))
    if isinstance(value, list):
        return [unplain(one) for one in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Number(repr(value))
    return value
