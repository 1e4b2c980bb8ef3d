"""What is wrong with a number by the schema of a definition, as the library has it that upstream validates with. Pure.

It compares what is written as an integer with what is left of a bound without its fraction: 0 is not less than a
minimum of 0.5, and a multiple of 0.5 is none. Of an integer, a bound with a fraction is itself an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mirror.embedded.apiserver.apimachinery.decoding import goprint

LARGEST_WHOLE = 2.0**53 - 1
"""The adjacent floats of larger ones are whole, too."""
_FORMATS = {"integer": ("int32", "int64"), "number": ("float", "double")}
_LEAST_TOO_LARGE = 2.0**128 - 2.0**103
"""For 32 bits."""
_EPSILON = 1e-9


class Complaint(NamedTuple):
    """What is wrong."""

    value: float | None
    """The value that is shown; None: it is about no place in the object."""
    words: str


class _Constraints(NamedTuple):
    """What the schema says, as far as numbers are concerned, and where."""

    type: str
    format: str
    path: str

    def misfit(self, number: float, what: str) -> Iterator[Complaint]:
        """Unless a number, or a bound, is one of the type and the format."""
        if self.type == "integer":
            most = 2**31 if self.format == "int32" else 2**63
            fits = float(number).is_integer() and -most <= int(number) < most
        else:
            fits = self.format != "float" or abs(number) < _LEAST_TOO_LARGE
        if not fits:
            shape = f"with format {self.format}" if self.format else "(default format)"
            yield Complaint(None, f"{what} value must be of type {self.type} {shape} in {self.path}")


def complaints(value: float, schema: Mapping[str, Any], path: str) -> Iterator[Complaint]:
    """Everything, in the library's order.

    Args:
        path: of the value, as refusals have it.
    """
    type_, format_ = schema.get("type", ""), schema.get("format", "")
    known = _Constraints(
        type_ if type_ in _FORMATS else "", format_ if format_ in _FORMATS.get(type_, ()) else "", path
    )
    yield from known.misfit(value, "Checked")
    multiple, least, most = (schema.get(name) for name in ("multipleOf", "minimum", "maximum"))
    if multiple is not None:
        misfits = list(known.misfit(multiple, "MultipleOf"))
        yield from misfits
        yield from _multiple(*_compared(value, multiple, is_native=not misfits), path)
    if least is not None:
        misfits = list(known.misfit(least, "Minimum boundary"))
        yield from misfits
        number, bound = _compared(value, least, is_native=not misfits)
        is_exclusive = bool(schema.get("exclusiveMinimum"))
        if number <= bound if is_exclusive else number < bound:
            words = "greater than" if is_exclusive else "greater than or equal to"
            yield Complaint(number, f"{path} in body should be {words} {goprint.text(bound)}")
    if most is not None:
        misfits = list(known.misfit(most, "Maximum boundary"))
        yield from misfits
        number, bound = _compared(value, most, is_native=not misfits)
        is_exclusive = bool(schema.get("exclusiveMaximum"))
        if number >= bound if is_exclusive else number > bound:
            words = "less than" if is_exclusive else "less than or equal to"
            yield Complaint(number, f"{path} in body should be {words} {goprint.text(bound)}")


def _compared(value: float, bound: float, *, is_native: bool) -> tuple[float, float]:
    """A number and a bound as they are compared: both are integers, or both are floats."""
    if not (is_native and isinstance(value, int)):
        return float(value), float(bound)
    # As processors convert floats: what does not fit is the least number.
    return value, int(bound) if -(2**63) <= bound < 2**63 else -(2**63)


def _multiple(value: float, factor: float, path: str) -> Iterator[Complaint]:
    if factor <= 0:
        words = f"factor MultipleOf declared for {path} must be positive: {goprint.text(factor)}"
        yield Complaint(factor, words)
        return
    if isinstance(value, int):
        is_multiple = value % factor == 0
    else:
        is_multiple = _is_whole(1 / factor * value if factor < 1 else value / factor)
    if not is_multiple:
        yield Complaint(value, f"{path} in body should be a multiple of {goprint.text(factor)}")


def _is_whole(number: float) -> bool:
    """Or so little more than a whole positive number that it is taken for one."""
    if not math.isfinite(number) or abs(number) > LARGEST_WHOLE:
        return False
    whole = math.trunc(number)
    if number == whole:
        return True
    return number > 0 and whole > 0 and (number - whole) / (number + whole) < _EPSILON
