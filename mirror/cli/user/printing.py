"""How the commands for users print: tables as kubectl has them, JSON, YAML, names. Pure, but for ``say``.

Cells may quote a worker: everything here is cleaned, or escaped by its format, so that a terminal shows it and does
nothing else (D18). Logs alone are not printed by this module. Not here: what the columns mean (the commands).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

import click
import msgspec

from mirror.model.text import clean

T = TypeVar("T")

Format = Literal["table", "wide", "json", "yaml", "name"]
FORMATS: tuple[Format, ...] = ("table", "wide", "json", "yaml", "name")
NONE = "-"
"""What stands in a cell that has nothing to say."""

LONGEST_LINE = 65_536

_APART = "   "
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400


@dataclass(frozen=True)  # no slots: Python 3.11 can make no generic instances with them
class Column(Generic[T]):
    """One column: its heading, and what stands in it."""

    heading: str
    cell: Callable[[T], str]
    is_wide: bool = False
    """Only with ``-o wide``."""


def table(
    columns: Sequence[Column[T]], rows: Iterable[T], *, wide: bool = False, widths: list[int] | None = None
) -> list[str]:
    """Lines with a heading; every cell is one printable line.

    Args:
        columns: from left to right.
        rows: from top to bottom.
        wide: whether to show the columns that are for that.
        widths: of a table that goes on: filled in by the first call, which alone has a heading, and kept by later ones.
    """
    shown = [column for column in columns if wide or not column.is_wide]
    lines = [[clean(column.cell(row)) or NONE for column in shown] for row in rows]
    if widths:
        measured = widths
    else:
        lines.insert(0, [column.heading for column in shown])
        measured = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
        if widths is not None:
            widths += measured
    return [_APART.join(map(str.ljust, line, measured)).rstrip() for line in lines]


def document(value: object, form: Format) -> str:
    """The value as JSON or YAML, in ASCII: both escape what a terminal could take for an order."""
    plain = msgspec.to_builtins(value)
    if form == "yaml":
        import yaml

        return str(yaml.safe_dump(plain, sort_keys=False)).rstrip("\n")
    return json.dumps(plain, indent=2)


def line_of(value: object) -> str:
    """The value as JSON on one line, for what goes on."""
    return json.dumps(msgspec.to_builtins(value), separators=(",", ":"))


def duration(seconds: float) -> str:
    """How long, as kubectl says it: exact while it is young, coarse later."""
    whole = max(0, int(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    return f"{whole // _DAY}d" if whole < 2 * _YEAR else _two(whole, _YEAR, "y", _DAY, "d")


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = whole % large // small
    return f"{whole // large}{large_name}" + (f"{rest}{small_name}" if rest else "")


def say(lines: Iterable[str]) -> None:
    """Print lines to stdout. Names, too, come from clusters: no line does anything but stand there."""
    for line in lines:
        click.echo(clean(line, longest=LONGEST_LINE))


def remark(text: str) -> None:
    """One line to stderr: nothing that somebody would want to pipe."""
    click.echo(clean(text, longest=1000), err=True)
