"""The command ``mirror``, as a plugin of kubectl, too, and the list of its subcommands, in sections.

A new subcommand is one file beside this, or for users one in ``user/`` with its options in ``user/commands``, and an
entry in ``COMMANDS``. One that asks clusters with an operator's rights does so as ``worker.listing`` does.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import ShellComplete

from mirror.cli.apiserver import apiserver
from mirror.cli.check_config import check_config
from mirror.cli.demo import demo
from mirror.cli.dev import dev
from mirror.cli.job_controller import job_controller
from mirror.cli.kinds import kinds
from mirror.cli.managers import managers
from mirror.cli.run import run
from mirror.cli.take_over import take_over
from mirror.cli.usage import invalid_usage
from mirror.cli.user import commands as user
from mirror.cli.user.completion import completion
from mirror.cli.worker.commands import worker
from mirror.model.version import version

OTHERS = "Other commands"
PLUGIN = "kubectl mirror"
NO_FILES = 4
"""Cobra's directive: do not offer files where we offer nothing."""
FILES = 0


class Sections(click.Group):
    """As ``click.Group``; ``sections`` lists the headings of the help, in order, with their commands."""

    sections: Mapping[str, Sequence[str]] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the sections; what is in none comes last."""
        listed = [name for names in self.sections.values() for name in names if name in self.commands]
        return [*listed, *(name for name in sorted(self.commands) if name not in listed)]

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """As click does; invalid usage is reported in two lines (``usage``)."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise invalid_usage(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        """As click does; invalid usage of any command is reported in two lines (``usage``)."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise invalid_usage(error) from None

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


@click.command("version")
def print_version() -> None:
    """Print the version."""
    _print()


def _print_and_exit(context: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        _print()
        context.exit()


# click.version_option fails in a checkout that was never installed, or reads the version at import, which is slow.
version_option = click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_and_exit,
    help="Print the version.",
)


def _print() -> None:
    click.echo(f"mirror {version()}")


@click.group(cls=Sections, context_settings={"help_option_names": ["-h", "--help"]})
@version_option
def main() -> None:
    """Run Kubernetes Jobs on worker clusters and mirror their status back."""


COMMANDS: Mapping[str, Sequence[click.Command]] = {
    "For users": (user.get, user.explain, user.logs, user.pods, user.events, user.diff, user.place),
    "For operators": (worker, managers, kinds, check_config, take_over),
    "Running": (run, job_controller, demo, dev, apiserver),
    OTHERS: (completion, print_version),
}
"""Every command, under the heading where help lists it."""
for commands in COMMANDS.values():
    for command in commands:
        main.add_command(command)
main.sections = {heading: [command.name or "" for command in commands] for heading, commands in COMMANDS.items()}


def kubectl_plugin() -> None:
    """``kubectl-mirror``: the same commands under kubectl's name."""
    main(prog_name=PLUGIN)


def kubectl_complete() -> None:
    """``kubectl_complete-mirror``: print what may follow our arguments as kubectl reads it: lines, a directive."""
    *before, incomplete = sys.argv[1:] or [""]
    offered = ShellComplete(main, {}, PLUGIN, "").get_completions(before, incomplete)
    for item in offered:
        if item.type == "plain":
            print(f"{item.value}\t{item.help}" if item.help else item.value)
    print(f":{FILES if any(item.type == 'file' for item in offered) else NO_FILES}")
