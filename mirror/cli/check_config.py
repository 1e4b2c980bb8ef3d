"""``mirror check-config FILE``, and how every command reads its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mirror.settings.schema import Settings

BAD_SETTINGS = 2


@click.command("check-config")
@click.argument("file", type=click.Path())
def check_config(file: str) -> None:
    """Validate a settings FILE; list all problems."""
    read_settings(file)
    click.echo(f"{file}: valid")


def read_settings(file: str) -> Settings:
    """The settings, or the end of the process: one line per problem on stderr and exit code 2."""
    from mirror.settings.load import SettingsError, load

    try:
        return load(file)
    except SettingsError as error:
        click.echo(str(error), err=True)
        raise SystemExit(BAD_SETTINGS) from None
