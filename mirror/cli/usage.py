"""Invalid usage in two lines: what is wrong with which argument, perhaps what was meant; and where help is.

Used by ``main`` for every command. click prints a usage line before, which for our commands says nothing.
"""

from __future__ import annotations

import re
import sys
from typing import IO, Any

import click
from click.exceptions import NoArgsIsHelpError

from mirror.model.text import clean, nearest

_IS_NONE_OF = re.compile(r"'(?P<given>[^']*)' is not one of (?P<known>'.*')\.$")
_WORDS = (
    ("is not a valid integer range", "is not a whole number"),
    ("is not a valid integer", "is not a whole number"),
    ("is not a valid float range", "is not a number"),
    ("is not a valid float", "is not a number"),
)
LONGEST = 1000


class InvalidUsage(click.UsageError):
    """As ``click.UsageError``, printed in two lines."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error, and the command that shows help about it."""
        where = self.ctx.command_path if self.ctx is not None else ""
        lines = [f"Error: {self.message}", *([f"Try '{where} --help' for help."] if where else [])]
        for line in lines:
            click.echo(clean(line, longest=LONGEST), file=file or sys.stderr)


def invalid_usage(error: click.UsageError) -> click.UsageError:
    """The same error in words of ours; bare ``mirror`` still shows its help."""
    if isinstance(error, InvalidUsage):
        return error
    if isinstance(error, NoArgsIsHelpError):
        context = error.ctx
        if context.parent is None or not isinstance(context.command, click.Group):
            return error
        known = ", ".join(context.command.list_commands(context))
        return InvalidUsage(f"Missing command: one of {known}.", context)
    return InvalidUsage(words(error.format_message()), error.ctx)


def words(message: str) -> str:
    """click's message on one line, with what was probably meant."""
    text = " ".join(message.split())
    for theirs, ours in _WORDS:
        text = text.replace(theirs, ours)
    found = _IS_NONE_OF.search(text)
    meant = nearest(found["given"], re.findall(r"'([^']*)'", found["known"])) if found else None
    return f"{text} Did you mean '{meant}'?" if meant else text
