"""What a command prints on: a terminal or not, how wide it is, and whether colours are wanted there.

Colours are for terminals only, and never where ``NO_COLOR`` (https://no-color.org) is set; ``--color`` overrides both.
Lines for anything but a terminal are never abridged.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import click

from mirror.model.tones import Tone

Choice = Literal["auto", "always", "never"]
COLORS: tuple[Choice, ...] = ("auto", "always", "never")

_ANSI: Mapping[Tone, str] = {
    "good": "green",
    "bad": "red",
    "warning": "yellow",
    "active": "cyan",
    "muted": "bright_black",
}


class Painted(str):
    """A line of cleaned text with colours of ours: the only escape sequences in it."""


@dataclass(frozen=True, slots=True)
class Display:
    """Where lines are shown."""

    width: int | None = None
    """In characters; None: lines are not abridged."""
    has_colors: bool = False

    def paint(self, text: str, tone: Tone) -> str:
        """Cleaned text in the colour of a tone, where there are colours."""
        if not self.has_colors or tone == "plain" or not text:
            return text
        return Painted(click.style(text, fg=_ANSI[tone]))


PLAIN = Display()
"""A pipe, or a file."""


def color_option() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--color``; ``display`` and ``click.echo`` follow it by the context."""
    return click.option(
        "--color",
        type=click.Choice(COLORS),
        default="auto",
        show_default=True,
        expose_value=False,
        callback=_chosen,
        help="Colors; auto: on a terminal, unless NO_COLOR is set.",
    )


def _chosen(context: click.Context, _: click.Parameter, value: Choice) -> None:
    context.color = {"always": True, "never": False}.get(value)


def display(*, abridged: bool = True) -> Display:
    """What stdout is.

    Args:
        abridged: whether lines may be cut to a terminal's width.
    """
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size((0, 0)).columns if is_terminal and abridged else 0
    return Display(width or None, wants_colors(is_terminal=is_terminal))


def wants_colors(*, is_terminal: bool) -> bool:
    """Whether to use colours: by ``--color``, else on a terminal that supports them, unless NO_COLOR is set."""
    context = click.get_current_context(silent=True)
    if context is not None and context.color is not None:
        return context.color
    return is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
