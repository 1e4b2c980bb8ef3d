"""A terminal as far as our own programs use one, and its film as an animated SVG that needs no script. Pure.

``Screen`` understands line ends, cursor-up, erasing and colours (SGR), no more. ``film`` draws each text once, for the
time that it is on the screen, by CSS: so it moves where images may not run scripts, as in a README. Used by
``demo_picture``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

_ESCAPE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")
_COLOURS = {31: "r", 32: "g", 33: "y", 34: "b", 35: "m", 36: "c"}
CHARACTER, LINE, MARGIN = 8.0, 18, 12
"""Of the drawing, in pixels."""
_STYLE = """
rect{fill:#0d1117}
text{font:13.3px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;fill:#e6edf3;white-space:pre}
.r{fill:#ff7b72}.g{fill:#7ee787}.y{fill:#e3b341}.b{fill:#79c0ff}.m{fill:#d2a8ff}.c{fill:#76e3ea}.d{fill:#8b949e}
.w{font-weight:600}"""

Cell = tuple[str, str]
"""A character, and the class of its colour."""
Line = tuple[Cell, ...]


class Screen:
    """What a terminal shows; lines that leave it at the top are forgotten."""

    def __init__(self, columns: int, rows: int) -> None:
        self._columns, self._rows = columns, rows
        self._lines: list[list[Cell]] = [[]]
        self._row = self._column = 0
        self._classes: set[str] = set()
        self._rest = ""

    def write(self, text: str) -> None:
        """Take what a program has printed; a sequence may come in two pieces."""
        text, self._rest = self._rest + text, ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                found = _ESCAPE.match(text, at)
                if found is None:
                    self._rest = text[at:]
                    return
                self._obey(found[1], found[2])
                at = found.end()
                continue
            self._put(text[at])
            at += 1

    def shown(self) -> tuple[Line, ...]:
        """The last lines, without what is empty at their ends."""
        kept = [tuple(line) for line in self._lines[-self._rows :]]
        return tuple(_stripped(line) for line in kept)

    def _put(self, character: str) -> None:
        if character == "\n":
            self._row, self._column = self._row + 1, 0
        elif character == "\r":
            self._column = 0
        else:
            if self._column >= self._columns:
                self._row, self._column = self._row + 1, 0
            line = self._line()
            line += [(" ", "")] * (self._column + 1 - len(line))
            line[self._column] = (character, " ".join(sorted(self._classes)))
            self._column += 1
        self._line()

    def _line(self) -> list[Cell]:
        self._lines += [[] for _ in range(self._row + 1 - len(self._lines))]
        return self._lines[self._row]

    def _obey(self, parameters: str, command: str) -> None:
        if command == "A":
            self._row = max(0, self._row - int(parameters or 1))
        elif command == "K":
            line = self._line()
            del line[0 if parameters == "2" else self._column :]
        elif command == "m":
            for number in map(int, parameters.split(";") if parameters else ["0"]):
                self._colour(number)

    def _colour(self, number: int) -> None:
        if number == 0:
            self._classes = set()
        elif number in (1, 2):
            self._classes.add({1: "w", 2: "d"}[number])
        elif number in _COLOURS:
            self._classes = {one for one in self._classes if one not in _COLOURS.values()} | {_COLOURS[number]}


@dataclass(frozen=True, slots=True)
class Frame:
    """What was on the screen from a time on, in seconds."""

    at: float
    lines: tuple[Line, ...]


def film(frames: Sequence[Frame], *, columns: int, rows: int, still_seconds: float, title: str) -> str:
    """The frames one after the other, for ever; the last one stays for so long."""
    ends = frames[-1].at + still_seconds
    times: dict[tuple[float, float], int] = {}
    texts = []
    for row, begin, end, line in _stretches(frames, rows, ends):
        number = times.setdefault((begin, end), len(times))
        always = (begin, end) == (0.0, ends)
        texts.append(_text(row, line, number, always))
    keys = [_keys(number, begin / ends, end / ends) for (begin, end), number in times.items()]
    used = "".join(f".t{number}{{animation-name:k{number}}}" for number in times.values())
    width, height = columns * CHARACTER + 2 * MARGIN, rows * LINE + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}\n"
        f".a{{visibility:hidden;animation:{ends:.2f}s step-end infinite}}\n{used}\n{''.join(keys)}</style>\n"
        f'<rect width="100%" height="100%" rx="8"/>\n{"".join(texts)}</svg>\n'
    )


def _stretches(frames: Sequence[Frame], rows: int, ends: float) -> Iterator[tuple[int, float, float, Line]]:
    """Each text with its row, and from when to when it is there."""
    for row in range(rows):
        begin = 0.0
        shown: Line = ()
        for frame in (*frames, Frame(ends, ())):
            line: Line = frame.lines[row] if row < len(frame.lines) else ()
            if line == shown and frame.at < ends:
                continue
            if shown:
                yield row, begin, frame.at, shown
            begin, shown = frame.at, line


def _text(row: int, line: Line, number: int, always: bool) -> str:
    spans, at = [], 0
    while at < len(line):
        until = at
        while until < len(line) and line[until][1] == line[at][1]:
            until += 1
        part = escape("".join(character for character, _ in line[at:until]), quote=False)
        spans.append(f'<tspan class="{line[at][1]}">{part}</tspan>' if line[at][1] else part)
        at = until
    length = f' textLength="{len(line) * CHARACTER:g}"'
    kind = "" if always else f' class="a t{number}"'
    return f'<text x="{MARGIN}" y="{MARGIN + (row + 1) * LINE - 5}"{length}{kind}>{"".join(spans)}</text>\n'


def _keys(number: int, begin: float, end: float) -> str:
    first = "" if begin == 0 else "0%{visibility:hidden}"
    last = "" if end >= 1 else f"{end * 100:.2f}%{{visibility:hidden}}"
    return f"@keyframes k{number}{{{first}{begin * 100:.2f}%{{visibility:visible}}{last}}}\n"


def _stripped(line: Line) -> Line:
    end = len(line)
    while end and line[end - 1] == (" ", ""):
        end -= 1
    return line[:end]
