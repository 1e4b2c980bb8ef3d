"""How the server prints plain values into some of its messages: Go's ``%v``."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from mirror.batch.quoting import quoted


def text(value: Any) -> str:
    """Maps are sorted by name."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{text(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(text, value)) + "]"
    if isinstance(value, float):
        return _float(value)
    return str(value)


def _float(value: float) -> str:
    """As many digits as it needs, with an exponent below 0.0001 and from a million on."""
    shortest = Decimal(repr(value)).normalize()
    if -4 <= shortest.adjusted() < 6 or not value:
        return f"{shortest:f}"
    return f"{value:.{len(shortest.as_tuple().digits) - 1}e}"


def as_text(value: Any) -> str:
    """A value where a text was expected: Go's ``%s``."""
    if value is None:
        return "%!s(<nil>)"
    if isinstance(value, bool | int | float):
        return f"%!s({type_of(value)}={text(value)})"
    return text(value)


def type_of(value: Any) -> str:
    """The type of a decoded value."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, dict):
        return "map[string]interface {}"
    if isinstance(value, list):
        return "[]interface {}"
    if isinstance(value, int):
        return "int64"
    return "float64" if isinstance(value, float) else "string"


def syntax(value: Any) -> str:
    """A value as it would stand in a program: Go's ``%#v``."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, dict):
        members = ", ".join(f"{quoted(name)}:{syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(syntax, value))}}}"
    return quoted(value) if isinstance(value, str) else text(value)
