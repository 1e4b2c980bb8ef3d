"""``format`` of texts: values in place of %s, %d, %f, %e, %b, %x, %X and %o. Pure."""

from __future__ import annotations

import math
import re
from typing import Any

from mirror.batch.quoting import quoted
from mirror.embedded.apiserver.cel import values
from mirror.embedded.apiserver.cel.functions.standard import double_text
from mirror.embedded.apiserver.cel.times import Duration, EvaluationError, Instant, TypeName

CLAUSE = re.compile(r"%(?:%|(?:\.(\d*))?(.?))", re.DOTALL)
"""A per cent sign, or a clause: its precision and its verb, which is empty where the text ends."""
_ONLY = "clause can only be used on"
_HEX = "only integers, byte buffers, and strings can be formatted as hex"
KINDS_TOLD = {
    "s": f"string {_ONLY} strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
    "d": f"decimal {_ONLY} integers",
    "f": f"fixed-point {_ONLY} doubles",
    "e": f"scientific {_ONLY} doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": _HEX,
    "X": _HEX,
    "o": f"octal {_ONLY} integers",
}
"""What each verb takes."""
_LARGEST_BYTES = 4 * 2**20
"""Of a text that comes out; what follows costs by its length."""


def format_text(text: str, arguments: list[Any]) -> str:
    """The text with its clauses filled in.

    Raises:
        EvaluationError: a clause or its argument is wrong.
    """
    left = iter(enumerate(arguments))

    def one(clause: re.Match[str]) -> str:
        if clause.group() == "%%":
            return "%"
        precision, verb = clause.groups()
        _, value = next(left, (0, _MISSING))
        if value is _MISSING:
            raise EvaluationError(f"index {len(arguments)} out of range")
        return _formatted(verb or "", int(precision) if precision else None, value)

    found = CLAUSE.sub(one, text)
    if len(found) > _LARGEST_BYTES:
        raise EvaluationError("the formatted text is too long")
    return found


_MISSING = object()


def _formatted(verb: str, precision: int | None, value: Any) -> str:
    match verb:
        case "s":
            return shown(value)
        case "d":
            return _decimal(value)
        case "f" | "e":
            return _floating(verb, 6 if precision is None else min(precision, 1000), value)
        case "b":
            if isinstance(value, int):
                return format(int(value), "b")
            raise _unfit(verb, value)
        case "x" | "X":
            return _hexadecimal(verb, value)
        case "o":
            if isinstance(value, int) and not isinstance(value, bool):
                return format(int(value), "o")
            raise _unfit(verb, value)
    raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')


def _unfit(verb: str, value: Any) -> EvaluationError:
    return EvaluationError(f"error during formatting: {KINDS_TOLD[verb]}, was given {values.type_name(value)}")


def _decimal(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    raise _unfit("d", value)


def _floating(verb: str, precision: int, value: Any) -> str:
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return value
    if not isinstance(value, float):
        raise _unfit(verb, value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return format(value, f".{precision}{verb}")


def _hexadecimal(verb: str, value: Any) -> str:
    match value:
        case bool():
            pass
        case int():
            return format(int(value), verb)
        case str() | bytes():
            raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
            return raw.hex().upper() if verb == "X" else raw.hex()
    raise _unfit(verb, value)


def shown(value: Any) -> str:
    """A value as %s writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case bytes():
            return value.decode("utf-8", "replace")
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case float():
            return double_text(value)
        case int() | Duration() | Instant():
            return str(value)
        case list():
            return f"[{', '.join(map(_inner, value))}]"
        case dict():
            pairs = sorted((_inner(key), _inner(one)) for key, one in value.items())
            return f"{{{', '.join(f'{key}:{one}' for key, one in pairs)}}}"
        case TypeName():
            return value.name
    raise _unfit("s", value)


def _inner(value: Any) -> str:
    """A value in a list or a map: texts are quoted."""
    match value:
        case str():
            return quoted(value)
        case bytes():
            return f"b{quoted(shown(value))}"
        case float() if not math.isfinite(value):
            return quoted(shown(value))
    return shown(value)
