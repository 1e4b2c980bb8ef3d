"""How the commands print: tables as kubectl has them, JSON, YAML, names. Pure, but for ``say``.

Cells may quote a worker: everything here is cleaned, or escaped by its format, so that a terminal shows it and does
nothing else (D18). Logs alone are not printed by this module. Not here: what the columns mean (the commands), what is
printed on (``terminal``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Generic, Literal, TypeVar

import click
import msgspec

from mirror.batch import times
from mirror.cli.user.fitting import Measure, fit
from mirror.cli.user.terminal import PLAIN, Display, Painted
from mirror.model.durations import human_duration
from mirror.model.text import clean
from mirror.model.tones import tone_of

T = TypeVar("T")

Format = Literal["table", "wide", "json", "yaml", "name"]
FORMATS: tuple[Format, ...] = ("table", "wide", "json", "yaml", "name")
NONE = "-"
"""What stands in a cell that has nothing to say."""

LONGEST_LINE = 65_536

API_VERSION = "cli.jobmirror.io/v1alpha1"
"""Of what ``-o json`` and ``-o yaml`` print: changes with what a script would notice."""

_APART = "   "


@dataclass(frozen=True)  # no slots: Python 3.11 can make no generic instances with them
class Column(Generic[T]):
    """One column: its heading, what stands in it, and what becomes of it on a narrow terminal."""

    heading: str
    cell: Callable[[T], str]
    is_wide: bool = False
    """Only with ``-o wide``."""
    is_state: bool = False
    """Its words have colours (``tones``)."""
    least: int = 0
    """How narrow it may be cut; 0: it is never cut."""
    rank: int = 0
    """Left out where there is no room, the highest first; 0: never."""


def table(
    columns: Sequence[Column[T]],
    rows: Iterable[T],
    *,
    wide: bool = False,
    widths: list[int] | None = None,
    on: Display = PLAIN,
) -> list[str]:
    """Lines with a heading; every cell is one printable line.

    Args:
        columns: from left to right.
        rows: from top to bottom.
        wide: whether to show the columns that are for that.
        widths: of a table that goes on: filled in by the first call, which alone has a heading, and kept by later ones.
        on: where it is shown; a table that goes on is not made to fit.
    """
    shown = [column for column in columns if wide or not column.is_wide]
    cells = [[clean(column.cell(row)) or NONE for column in shown] for row in rows]
    headings = [] if widths else [[column.heading for column in shown]]
    measured: list[int | None] = (
        [*widths] if widths else [max(map(len, of)) for of in zip(*headings, *cells, strict=True)]
    )
    if widths is not None and not widths:
        widths += [one or 0 for one in measured]
    if on.width is not None and widths is None:
        measures = [Measure(one or 0, column.least, column.rank) for one, column in zip(measured, shown, strict=True)]
        measured = fit(measures, on.width, gap=len(_APART))
    is_toned = [one.is_state for one in shown]
    first = [_line(line, measured, [], PLAIN) for line in headings]
    if on == PLAIN and None not in measured:
        return first + _padded(cells, measured)
    return [*first, *(_line(line, measured, is_toned, on) for line in cells)]


def _padded(cells: Iterable[Sequence[str]], widths: Iterable[int | None]) -> list[str]:
    """As ``_line`` does without colours and without a width to fit: tens of thousands of lines go into pipes."""
    form = _APART.join(f"%-{width}s" for width in widths)
    return [(form % tuple(line)).rstrip() for line in cells]


def _line(cells: Sequence[str], widths: Sequence[int | None], is_toned: Sequence[bool], on: Display) -> str:
    """Cells side by side, cut to their widths and padded; colours take no room."""
    parts, is_painted = [], False
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        if width is None:
            continue
        text = cell if len(cell) <= width or on.width is None else f"{cell[: width - 1]}…"
        if on.has_colors and is_toned[column]:
            painted = on.paint(text, tone_of(cell))
            is_painted = is_painted or painted is not text
            parts.append(painted + " " * (width - len(text)))
        else:
            parts.append(text.ljust(width))
    line = _APART.join(parts).rstrip()
    return Painted(line) if is_painted else line


def listing(kind: str, items: Iterable[object], form: Format | str) -> str:
    """Items as JSON or YAML, in the one shape that all commands have: ``apiVersion``, ``kind`` and ``items``.

    Args:
        kind: of one of them; the list is ``KINDList``.
        items: structs, dataclasses or JSON; the names of their fields become camelCase, keys of maps stay.
        form: ``yaml``, or JSON.
    """
    return document({"apiVersion": API_VERSION, "kind": f"{kind}List", "items": list(items)}, form)


def document(value: object, form: Format | str) -> str:
    """The value as JSON or YAML, in ASCII: both escape what a terminal could take for an order."""
    plain = plainly(value)
    if form == "yaml":
        import yaml

        return str(yaml.safe_dump(plain, sort_keys=False)).rstrip("\n")
    # json escapes what is not ASCII; msgspec indents, which takes json several times as long.
    return msgspec.json.format(json.dumps(plain), indent=2)


def line_of(value: object) -> str:
    """The value as JSON on one line, for what goes on."""
    return json.dumps(plainly(value), separators=(",", ":"))


def plainly(value: object) -> object:
    """Maps, lists, texts and numbers; fields of structs and dataclasses by their names in camelCase."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, msgspec.Struct):
        return {camel(name): plainly(getattr(value, name)) for name in value.__struct_fields__}
    if is_dataclass(value) and not isinstance(value, type):
        return {camel(one.name): plainly(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plainly(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plainly(one) for one in value]
    return msgspec.to_builtins(value)


@cache
def camel(name: str) -> str:
    """``token_expires`` as ``tokenExpires``."""
    first, *others = name.strip("_").split("_")
    return first + "".join(map(str.capitalize, others))


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
    for is_painted, some in groupby(lines, lambda line: isinstance(line, Painted)):
        if is_painted:
            click.echo("\n".join(some), color=True)
        else:
            click.echo("\n".join(clean(line, longest=LONGEST_LINE) for line in some))


def remark(text: str) -> None:
    """One line to stderr, which pipes leave out."""
    click.echo(clean(text, longest=1000), err=True)
