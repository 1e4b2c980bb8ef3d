"""How wide the columns of a table are where the table would be wider than the terminal.

Long texts are cut first, down to what can still be read; then the columns that matter least are left out; only then is
everything that may be cut made as narrow as it may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

COMFORTABLE = 30
"""Characters of a text that is cut before a column is left out for it."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One column."""

    natural: int
    """Of its longest cell."""
    least: int = 0
    """What it may be cut to; 0: it is never cut."""
    rank: int = 0
    """The highest is left out first; 0: it always stays."""


def fit(measures: Sequence[Measure], width: int, *, gap: int) -> list[int | None]:
    """The width of each column; None for one that is left out.

    Args:
        measures: from left to right.
        width: of the terminal.
        gap: between two columns.
    """
    widths: list[int | None] = [one.natural for one in measures]

    def excess() -> int:
        shown = [one for one in widths if one is not None]
        return sum(shown) + gap * (len(shown) - 1) - width

    _cut(widths, [max(one.least, COMFORTABLE) if one.least else one.natural for one in measures], excess())
    for rank in sorted({one.rank for one in measures if one.rank}, reverse=True):
        for place, one in enumerate(measures):
            if one.rank == rank and excess() > 0:
                widths[place] = None
    _cut(widths, [one.least or one.natural for one in measures], excess())
    _widen(widths, measures, -excess())
    return widths


def _cut(widths: list[int | None], least: Sequence[int], excess: int) -> None:
    """Take away what is too much, always from the widest column that may still be cut."""
    while excess > 0:
        can = [place for place, wide in enumerate(widths) if wide is not None and wide > least[place]]
        if not can:
            return
        widest = max(can, key=lambda place: widths[place] or 0)
        widths[widest] = (widths[widest] or 0) - 1
        excess -= 1


def _widen(widths: list[int | None], measures: Sequence[Measure], room: int) -> None:
    """Give back what leaving out a column has freed, to the last columns first: they hold the texts."""
    for place in reversed(range(len(widths))):
        wide = widths[place]
        if wide is not None and room > 0:
            more = min(room, measures[place].natural - wide)
            widths[place], room = wide + more, room - more
