"""One cause of a refusal, as an API server gives it, and the words that each kind of cause has (E4).

Used by the rules of this room and by the embedded API server's. A value that is printed comes in as text already:
``printing`` and ``quoting`` know how.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mirror.batch.quoting import json_text, quoted

INVALID, REQUIRED, DUPLICATE = "FieldValueInvalid", "FieldValueRequired", "FieldValueDuplicate"
NOT_SUPPORTED, NOT_FOUND, FORBIDDEN = "FieldValueNotSupported", "FieldValueNotFound", "FieldValueForbidden"
TOO_LONG, TOO_MANY = "FieldValueTooLong", "FieldValueTooMany"

NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


@dataclass(frozen=True, slots=True)
class Violation:
    """One cause of a refusal, as the server would give it."""

    field: str
    reason: str
    message: str


def required(field: str, detail: str = "") -> Violation:
    """A value must be there."""
    return Violation(field, REQUIRED, _with_detail("Required value", detail))


def invalid(field: str, printed: object, detail: str) -> Violation:
    """A value is wrong; it is printed as it comes in."""
    return Violation(field, INVALID, f"Invalid value: {printed}: {detail}")


def invalid_text(field: str, value: str, detail: str) -> Violation:
    """A plain string is wrong."""
    return Violation(field, INVALID, f"Invalid value: {quoted(value)}: {detail}")


def invalid_texts(field: str, value: str, problems: Iterable[str]) -> Iterator[Violation]:
    """A plain string has these problems, one cause for each."""
    for problem in problems:
        yield invalid_text(field, value, problem)


def invalid_whole(field: str, detail: str) -> Violation:
    """Something is wrong where the server prints no value."""
    return Violation(field, INVALID, f"Invalid value: {detail}")


def not_supported(field: str, value: str, supported: Sequence[str]) -> Violation:
    """A word is none of an enumeration."""
    return _not_supported(field, json_text(value), supported)


def not_supported_text(field: str, value: str, supported: Sequence[str]) -> Violation:
    """The same for a field that the server holds as a plain string."""
    return _not_supported(field, quoted(value), supported)


def forbidden(field: str, detail: str) -> Violation:
    """A value that may not be there under these circumstances."""
    return Violation(field, FORBIDDEN, _with_detail("Forbidden", detail))


def duplicate(field: str, printed: object) -> Violation:
    """A value is there already."""
    return Violation(field, DUPLICATE, f"Duplicate value: {printed}")


def not_found(field: str, value: str, detail: str = "") -> Violation:
    """A name names nothing."""
    return Violation(field, NOT_FOUND, _with_detail(f"Not found: {quoted(value)}", detail))


def too_long(field: str, limit: int) -> Violation:
    """A text, or all texts of a map, have too many bytes."""
    why = f"may not be more than {limit} {_one_or_more(limit, 'byte')}" if limit >= 0 else "value is too long"
    return Violation(field, TOO_LONG, f"Too long: {why}")


def too_many(field: str, count: int, limit: int) -> Violation:
    """A list has too many items."""
    return Violation(field, TOO_MANY, f"Too many: {count}: must have at most {limit} {_one_or_more(limit, 'item')}")


def _one_or_more(count: int, what: str) -> str:
    return what if count == 1 else f"{what}s"


def not_negative(field: str, value: int | None) -> Iterator[Violation]:
    """A number that is there must not be below zero."""
    if value is not None and value < 0:
        yield invalid(field, value, NEGATIVE)


def one_of(field: str, value: str, supported: Sequence[str]) -> Iterator[Violation]:
    """An enumeration whose word must be there (the server lists the words in this order)."""
    if not value:
        yield required(field)
    elif value not in supported:
        yield not_supported(field, value, supported)


def _not_supported(field: str, printed: str, supported: Sequence[str]) -> Violation:
    listed = ", ".join(map(quoted, supported))
    return Violation(field, NOT_SUPPORTED, f"Unsupported value: {printed}: supported values: {listed}")


def _with_detail(words: str, detail: str) -> str:
    return f"{words}: {detail}" if detail else words
