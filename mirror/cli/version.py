"""``mirror version`` and ``mirror --version``"""

from __future__ import annotations

import click

from mirror.model.version import version


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
