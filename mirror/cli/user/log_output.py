"""How logs are printed: as they come or, of several, in whole lines with a prefix, coloured by pod on a terminal."""

from __future__ import annotations

import sys
from typing import BinaryIO

from mirror.cli.user.log_targets import Target
from mirror.cli.user.terminal import wants_colors
from mirror.model.text import clean

LONGEST_LINE = 2**20
"""Of several logs, lines are kept whole up to here."""
_COLOURS = (36, 32, 35, 33, 34, 96, 92, 95, 93, 94)
"""SGR codes: cyan, green, magenta, yellow, blue, and their bright ones; red is for what went wrong."""


class Writer:
    """Passes a log on; of several, whole lines, so that they do not tear each other apart."""

    def __init__(self, output: BinaryIO, *, prefix: bytes = b"", is_alone: bool = True) -> None:
        self._output = output
        self._prefix = prefix
        self._passes_on = is_alone and not prefix
        self._begun = bytearray()

    def write(self, piece: bytes) -> None:
        """What has come."""
        if self._passes_on:
            self._output.write(piece)
        else:
            self._begun += piece
            whole, end, rest = self._begun.rpartition(b"\n")
            if end:
                self._lines(bytes(whole))
                self._begun = bytearray(rest)
            if len(self._begun) > LONGEST_LINE:
                self.end()
        self._output.flush()

    def end(self) -> None:
        """No more of this line comes."""
        if self._begun:
            self._lines(bytes(self._begun))
            self._begun.clear()
            self._output.flush()

    def _lines(self, whole: bytes) -> None:
        self._output.writelines(self._prefix + line + b"\n" for line in whole.split(b"\n"))


class Output:
    """Standard output, for one log or several; each pod keeps its colour."""

    def __init__(self, *, with_prefix: bool, is_alone: bool) -> None:
        self._with_prefix = with_prefix
        self._is_alone = is_alone
        self._is_coloured = with_prefix and wants_colors(is_terminal=sys.stdout.isatty())
        self._colours: dict[str, int] = {}

    def writer(self, target: Target) -> Writer:
        """For one log."""
        prefix = self._prefix(target) if self._with_prefix else ""
        return Writer(sys.stdout.buffer, prefix=prefix.encode(), is_alone=self._is_alone)

    def _prefix(self, target: Target) -> str:
        text = f"[{title_of(target)}] "
        if not self._is_coloured:
            return text
        colour = self._colours.setdefault(target.pod, _COLOURS[len(self._colours) % len(_COLOURS)])
        return f"\x1b[{colour}m{text}\x1b[0m"


def title_of(target: Target) -> str:
    """``pod/NAME/CONTAINER``, which a worker has named; less of it where the manager chooses."""
    parts = ("pod", target.pod, target.container)
    return "/".join(clean(part) for part in parts if part)
