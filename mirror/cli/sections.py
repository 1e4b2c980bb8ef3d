"""A group of commands whose help lists them in sections: who is looking finds theirs without reading the others'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

OTHERS = "Other commands"


class Sections(click.Group):
    """As ``click.Group``; ``sections`` says which commands stand under which heading, in this order."""

    sections: Mapping[str, Sequence[str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the sections; what is in none comes last."""
        listed = [name for names in self.sections.values() for name in names if name in self.commands]
        return [*listed, *(name for name in sorted(self.commands) if name not in listed)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """One list per section, all with the same columns."""
        names = self.list_commands(ctx)
        width = max(map(len, names), default=0)
        listed: set[str] = set()
        for heading, wanted in {**self.sections, OTHERS: names}.items():
            rows = []
            for name in wanted:
                command = self.get_command(ctx, name)
                if command is not None and not command.hidden and name not in listed:
                    listed.add(name)
                    rows.append((name.ljust(width), command.get_short_help_str(formatter.width - width - 6)))
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
