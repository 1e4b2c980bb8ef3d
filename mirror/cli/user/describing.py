"""Text as ``kubectl describe`` has it: aligned fields, then sections. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mirror.cli.user.printing import NONE
from mirror.cli.user.terminal import Display, Painted
from mirror.model.text import clean
from mirror.model.tones import tone_of

INDENT = "  "
LONGEST_VALUE = 1000


def fields_of(pairs: Sequence[tuple[str, str]], on: Display) -> Iterator[str]:
    """``Name:  value`` lines with the values aligned; a field without a value is left out.

    Args:
        pairs: name and value; the value of ``State`` has its colour.
        on: where they are shown.
    """
    shown = [(name, clean(value, longest=LONGEST_VALUE)) for name, value in pairs if value]
    width = max((len(name) for name, _ in shown), default=0) + 3
    for name, value in shown:
        tone = tone_of(value) if name == "State" else "plain"
        painted = on.paint(value, tone)
        line = f"{name + ':':<{width}}{painted}"
        yield line if painted is value else Painted(line)


def section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """A heading with indented lines; ``NONE`` stands in the place of no lines."""
    found = list(lines)
    yield f"{heading}:" if found else f"{heading}:{INDENT}{NONE}"
    for line in found:
        yield Painted(INDENT + line) if isinstance(line, Painted) else INDENT + line


def indented(on: Display) -> Display:
    """What is left of a display for the lines of a section."""
    return on if on.width is None else replace(on, width=on.width - len(INDENT))
