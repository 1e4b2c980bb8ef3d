"""Quantities (``100m``, ``1.5Gi``, ``12e6``) as the API reads, compares, rounds and writes them.

A quantity is kept as whole nano-units, the smallest thing that the API tells apart, and the form in which it is written
again. Which quantities a resource may have is not decided here.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

NANO = 1_000_000_000
MILLI = 1_000_000
ZERO_TEXT = "0"

_SHAPE = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_BINARY_SUFFIXES = ("", *_BINARY)
_LARGEST = (2**63 - 1) * NANO
_LONGEST = 64
"""Characters of a text that is still read; nobody writes more, and exponents must stay small enough to compute with."""
_LARGEST_EXPONENT = 99


class Quantity(msgspec.Struct, frozen=True):
    """An amount and how it is written."""

    nano: int
    text: str

    @property
    def is_whole(self) -> bool:
        """Whether it has no fraction of a unit left once rounded up to thousandths."""
        return _round_away(self.nano, MILLI) % NANO == 0

    @property
    def units(self) -> int:
        """Whole units, rounded away from zero."""
        return _round_away(self.nano, NANO) // NANO


def parse(text: str) -> Quantity | None:
    """Read a quantity; None if it is none (an API server refuses such a body before it comes to any rule)."""
    return _parse(text) if 0 < len(text) <= _LONGEST else None  # what is longer is not worth remembering either


@lru_cache(maxsize=4096)
def _parse(text: str) -> Quantity | None:
    found = _SHAPE.fullmatch(text)
    if found is None or not (found[2] or found[3] or _may_lack_digits(found[4] or "")):
        return None
    sign, whole, fraction, suffix = found[1], found[2].lstrip("0"), found[3] or "", found[4] or ""
    digits = (whole or "0") + fraction
    if suffix in _BINARY:
        amount = _scaled(int(digits) << _BINARY[suffix], -len(fraction))
        amount = min(amount, _LARGEST)
        nano = -amount if sign == "-" else amount
        return Quantity(nano, _binary_text(nano))
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    if abs(exponent) > _LARGEST_EXPONENT:
        return None
    is_exponent = suffix not in _DECIMAL
    amount = _scaled(int(digits), exponent - len(fraction))
    nano = -amount if sign == "-" else amount
    # The server keeps the text of a number that it finds canonical enough, sign and all.
    scale = exponent - len(fraction)
    kept = scale >= -9 and scale % 3 == 0 and len(digits) <= 18 and not digits.endswith("000") and digits[0] != "0"
    return Quantity(nano, text if kept else _decimal_text(nano, is_exponent=is_exponent))


def _may_lack_digits(suffix: str) -> bool:
    """Whether a suffix alone is nothing of its unit: those of numbers that upstream reads the quick way."""
    if suffix in _BINARY:
        return _BINARY[suffix] <= _BINARY["Ti"]
    return suffix in _DECIMAL or int(suffix[1:]) >= _DECIMAL["n"]


def of(value: object) -> Quantity | None:
    """Read what stands in JSON: a text or a number."""
    if isinstance(value, str):
        return parse(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return parse(repr(value))
    return None


def rounded_up(value: Quantity) -> Quantity:
    """Rounded up to thousandths, as resource lists are when they are defaulted."""
    nano = _round_away(value.nano, MILLI)
    return value if nano == value.nano else Quantity(nano, _decimal_text(nano, is_exponent=False))


def plus(one: Quantity, other: Quantity) -> Quantity:
    """The sum, in the form of the first that is not zero."""
    nano, form = one.nano + other.nano, one if one.nano else other
    if form.text.endswith("i"):
        return Quantity(nano, _binary_text(nano))
    return Quantity(nano, _decimal_text(nano, is_exponent="e" in form.text.lower()))


def _scaled(number: int, exponent: int) -> int:
    """number × 10^exponent in nano-units, rounded up."""
    exponent += 9
    power: int = 10 ** abs(exponent)
    return number * power if exponent >= 0 else -(-number // power)


def _round_away(nano: int, unit: int) -> int:
    return -(-nano // unit) * unit if nano >= 0 else nano // unit * unit


def _decimal_text(nano: int, *, is_exponent: bool) -> str:
    if not nano:
        return ZERO_TEXT
    exponent = -9
    while nano % 1000 == 0:
        nano //= 1000
        exponent += 3
    if is_exponent or exponent not in _DECIMAL_SUFFIX:
        return f"{nano}e{exponent}" if exponent else str(nano)
    return f"{nano}{_DECIMAL_SUFFIX[exponent]}"


def _binary_text(nano: int) -> str:
    if nano % NANO or abs(nano) < 1024 * NANO:
        return _decimal_text(nano, is_exponent=False)
    units, power = nano // NANO, 0
    while units % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        units //= 1024
        power += 1
    return f"{units}{_BINARY_SUFFIXES[power]}"
