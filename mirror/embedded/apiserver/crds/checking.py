"""Whether a value is as a schema wants it, in the words of kube-apiserver (which validates as OpenAPI does). Pure.

What a structural schema wants in addition is in ``structural_checks``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mirror.batch.quoting import quoted
from mirror.batch.violations import (
    Violation,
    invalid,
    invalid_whole,
    not_supported,
    required,
    too_long,
    too_many,
)
from mirror.embedded.apiserver.apimachinery.decoding import goprint
from mirror.embedded.apiserver.apimachinery.objects import encode
from mirror.embedded.apiserver.apimachinery.patterns import BadPattern, TooCostly, pattern_of
from mirror.embedded.apiserver.crds import formats, numbers
from mirror.embedded.apiserver.crds.correlation import Correlated
from mirror.embedded.apiserver.crds.values import Schema

_TYPE_INVALID = "FieldValueTypeInvalid"
_FORMATS = {"integer": "int64", "number": "float64"}
"""Of numbers in Go."""


def check(
    value: Any, schema: Schema, *, field: str = "", path: str = "", before: Correlated | None = None
) -> list[Violation]:
    """What is wrong with a value.

    Args:
        value: any JSON.
        schema: structural.
        field: where the value is; before the path in fields.
        path: what it is called in messages.
        before: what it was; what has not changed since may be as wrong as it was.
    """
    return list(_check(value, schema, _Place(field, path), before))


class _Place(NamedTuple):
    root: str
    path: str

    def member(self, name: str) -> _Place:
        return _Place(self.root, f"{self.path}.{name}" if self.path else name)

    def item(self, number: int) -> _Place:
        return _Place(self.root, f"{self.path}[{number}]")

    @property
    def whole(self) -> str:
        """What errors are about that have no place."""
        return self.root or "<nil>"

    @property
    def field(self) -> str:
        path = self.path.removeprefix(".")
        if not path:
            return self.whole
        return f"{self.root}.{path}" if self.root else path


def kind_of(value: Any) -> str:
    """The JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _check(value: Any, schema: Schema, place: _Place, before: Correlated | None = None) -> Iterator[Violation]:
    found = _check_all(value, schema, place, before)
    if before is None:
        yield from found
        return
    wrong = list(found)
    if wrong and not before.is_same:
        yield from wrong


def _check_all(value: Any, schema: Schema, place: _Place, before: Correlated | None) -> Iterator[Violation]:
    """What is wrong, whatever it was; in junctors nothing is eased but the whole."""
    yield from _check_type(value, schema, place)
    if value is None:
        yield from _check_enum(value, schema, place)
        return
    yield from _check_junctors(value, schema, place)
    if isinstance(value, str):
        yield from _check_text(value, schema, place)
        yield from _check_format(value, schema, place)
    elif kind_of(value) in ("integer", "number"):
        yield from _check_number(value, schema, place)
    elif isinstance(value, list):
        yield from _check_list(value, schema, place, before)
    yield from _check_enum(value, schema, place)
    if isinstance(value, dict):
        yield from _check_object(value, schema, place, before)


def _types(schema: Schema) -> Sequence[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _check_type(value: Any, schema: Schema, place: _Place) -> Iterator[Violation]:
    types = _types(schema)
    found = kind_of(value)
    if not types or found in types:
        return
    if found == "null":
        if not schema.get("nullable"):
            yield _wrong_type(place, ",".join(types), found)
        return
    if found == "number" and "integer" in types and _is_integer(value):
        return
    if found == "integer" and "number" in types:
        return
    format_ = schema.get("format")
    if not format_:
        yield _wrong_type(place, ",".join(types), found)
    elif not isinstance(value, str | list):
        have = _FORMATS.get(found, "")
        yield _wrong_type(place, *((",".join(types), found) if have == format_ else (format_, have)))
    elif {"integer", "number"} & set(types):  # of other types, texts and lists are left to the format
        yield _wrong_type(place, ",".join(types), found)


def _wrong_type(place: _Place, wanted: str, shown: str) -> Violation:
    words = f"{place.path} in body must be of type {wanted}: {quoted(shown)}"
    return Violation(place.field, _TYPE_INVALID, f"Invalid value: {quoted(shown)}: {words}")


def _wrong(place: _Place, value: Any, words: str) -> Violation:
    return invalid(place.field, shown(value), f"{place.path} in body {words}")


def shown(value: Any) -> str:
    """A value as refusals print it."""
    if isinstance(value, str):
        return quoted(value)
    return goprint.text(value) if isinstance(value, int | float) else encode(value).decode()


def _check_text(value: str, schema: Schema, place: _Place) -> Iterator[Violation]:
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if most is not None and len(value) > most:
        yield too_long(place.field, most)
    elif least is not None and len(value) < least:
        yield _wrong(place, value, f"should be at least {least} chars long")
    elif pattern:
        yield from _check_pattern(value, pattern, place)


def _check_pattern(value: str, pattern: str, place: _Place) -> Iterator[Violation]:
    try:
        if not pattern_of(pattern).fits(value):
            yield _wrong(place, value, f"should match '{pattern}'")
    except BadPattern:
        return  # of a definition from before it was checked
    except TooCostly:
        yield _wrong(place, value, f"is too long to be matched with '{pattern}' by this server")


def _check_format(value: str, schema: Schema, place: _Place) -> Iterator[Violation]:
    format_ = schema.get("format", "")
    if format_ and not formats.fits(format_, value):
        yield _wrong_type(place, format_, value)


def _check_number(value: float, schema: Schema, place: _Place) -> Iterator[Violation]:
    for complaint in numbers.complaints(value, schema, place.path):
        if complaint.value is None:
            yield invalid_whole(place.whole, f'"": {complaint.words}')
        else:
            yield invalid(place.field, shown(complaint.value), complaint.words)


def _is_integer(value: float) -> bool:
    """A float so large that the adjacent ones are whole, too, is none for Go."""
    return isinstance(value, int) or (value.is_integer() and abs(value) <= numbers.LARGEST_WHOLE)


def _check_list(value: list[Any], schema: Schema, place: _Place, before: Correlated | None) -> Iterator[Violation]:
    items = schema.get("items")
    if isinstance(items, Mapping):
        for position, one in enumerate(value):
            yield from _check(one, items, place.item(position), before and before.item(position))
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        yield invalid(place.field, len(value), f"{place.path} in body should have at least {least} items")
    if most is not None and len(value) > most:
        yield too_many(place.field, len(value), most)


def _check_enum(value: Any, schema: Schema, place: _Place) -> Iterator[Violation]:
    allowed = schema.get("enum")
    if not allowed or _enum_of(allowed).has(value):
        return
    words = _enum_of(allowed).words
    if isinstance(value, str):
        yield not_supported(place.field, value, words)
        return
    listed = ", ".join(map(quoted, words))
    yield Violation(
        place.field, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {listed}"
    )


class _Enum:
    """Values that are allowed: to be found at once, and as refusals list them."""

    __slots__ = ("_known", "allowed", "words")

    def __init__(self, allowed: Sequence[Any]) -> None:
        self.allowed = allowed
        self._known = frozenset(map(_frozen, allowed))
        listed = allowed[:_MOST_LISTED]
        self.words = [one if isinstance(one, str) else encode(one).decode() for one in listed]
        if len(allowed) > _MOST_LISTED:
            self.words.append(f"… and {len(allowed) - _MOST_LISTED} more")

    def has(self, value: Any) -> bool:
        """Whether the value is one of them, once it is converted to the type of that one as in Go. Null never is."""
        return any(_frozen(one) in self._known for one in _converted(value))


def _converted(value: Any) -> Iterator[Any]:
    """The value, and what Go makes of a number: a float, an integer without the fraction, a character."""
    if value is None:
        return
    yield value
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield float(value)
        is_character = 0 <= value <= sys.maxunicode and not 0xD800 <= value <= 0xDFFF
        yield chr(value) if is_character else "\ufffd"
    elif isinstance(value, float):
        yield int(value) if -(2**63) <= value < 2**63 else -(2**63)


def _frozen(value: Any) -> object:
    """The same for what is the same in Go: neither 1 and 1.0 are, nor 1 and true."""
    if isinstance(value, dict):
        return frozenset((name, _frozen(one)) for name, one in value.items())
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return (type(value), value) if isinstance(value, bool | int | float) else value


_MOST_LISTED = 100
"""Values of an enumeration in a refusal; kube-apiserver lists all of them, for each value that is none."""
_MOST_ENUMS = 64
_enums: dict[int, _Enum] = {}
"""By the identity of the list, which each keeps: no other can have it meanwhile."""


def _enum_of(allowed: Sequence[Any]) -> _Enum:
    found = _enums.get(id(allowed))
    if found is None or found.allowed is not allowed:
        if len(_enums) >= _MOST_ENUMS:
            _enums.clear()
        found = _enums[id(allowed)] = _Enum(allowed)
    return found


def _check_object(
    value: dict[str, Any], schema: Schema, place: _Place, before: Correlated | None
) -> Iterator[Violation]:
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        yield invalid(place.field, len(value), f"{place.path} in body should have at least {least} properties")
    if most is not None and len(value) > most:
        yield too_many(place.field, len(value), most)
    properties, additional = schema.get("properties") or {}, schema.get("additionalProperties")
    if isinstance(additional, Mapping):
        for name, one in value.items():
            if name not in properties:
                yield from _check(one, additional, place.member(name), before and before.key(name))
    # Go walks them in any order; whichever there are fewer of are looked for among the others.
    for name in properties if len(properties) <= len(value) else value:
        if name in properties and name in value:
            yield from _check(value[name], properties[name], place.member(name), before and before.key(name))
    for name in schema.get("required") or ():
        if name not in value:
            yield required(place.member(name).field)


def _check_junctors(value: Any, schema: Schema, place: _Place) -> Iterator[Violation]:
    told = place.path or ""
    anyone = schema.get("anyOf") or ()
    if anyone and not any(_fits(value, one) for one in anyone):
        yield invalid_whole(place.whole, f'"": "{told}" must validate at least one schema (anyOf)')
        yield from _best(value, anyone, place)
    one_of = schema.get("oneOf") or ()
    if one_of:
        count = sum(_fits(value, one) for one in one_of)
        if count != 1:
            why = "Found none valid" if count == 0 else f"Found {count} valid alternatives"
            yield invalid_whole(place.whole, f'"": "{told}" must validate one and only one schema (oneOf). {why}')
            if count == 0:
                yield from _best(value, one_of, place)
    every = schema.get("allOf") or ()
    failed = 0
    for one in every:
        found = list(_check(value, one, place))
        failed += bool(found)
        yield from found
    if failed:
        none = ". None validated" if failed == len(every) else ""
        yield invalid_whole(place.whole, f'"": "{told}" must validate all the schemas (allOf){none}')
    not_ = schema.get("not")
    if not_ is not None and _fits(value, not_):
        yield invalid_whole(place.whole, f'"": "{told}" must not validate the schema (not)')


def _fits(value: Any, schema: Schema) -> bool:
    return next(_check(value, schema, _Place("", "")), None) is None


def _best(value: Any, schemas: Sequence[Schema], place: _Place) -> Iterator[Violation]:
    """What is wrong by the alternative by which least is."""
    yield from min((list(_check(value, one, place)) for one in schemas), key=len)
