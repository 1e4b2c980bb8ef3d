"""How the commands for users print: tables as kubectl has them, JSON, YAML, names. Pure, but for ``say``.

Cells may quote a worker: everything here is cleaned, or escaped by its format, so that a terminal shows it and does
nothing else (D18). Logs alone are not printed by this module. Not here: what the columns mean (the commands).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, TypeVar

import click
import msgspec

from mirror.batch import times
from mirror.model.durations import human_duration
from mirror.model.text import clean

T = TypeVar("T")

Format = Literal["table", "wide", "json", "yaml", "name"]
FORMATS: tuple[Format, ...] = ("table", "wide", "json", "yaml", "name")
NONE = "-"
"""What stands in a cell that has nothing to say."""

LONGEST_LINE = 65_536

_APART = "   "


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


def lasted(since: str, until: str, now: datetime) -> str:
    """How long from one RFC 3339 time to another, or to now where that is empty; empty without a beginning."""
    seconds = seconds_between(since, until, now)
    return "" if seconds is None else human_duration(seconds)


def seconds_between(since: str, until: str, now: datetime) -> float | None:
    """Seconds between two RFC 3339 times, an empty second one being now; None where a text is no time."""
    try:
        begin = times.seconds(since)
        return (times.seconds(until) if until else now.timestamp()) - begin
    except times.BadTime:
        return None


def say(lines: Iterable[str]) -> None:
    """Print lines to stdout. Names, too, come from clusters: no line does anything but stand there."""
    for line in lines:
        click.echo(clean(line, longest=LONGEST_LINE))


def remark(text: str) -> None:
    """One line to stderr: nothing that somebody would want to pipe."""
    click.echo(clean(text, longest=1000), err=True)
