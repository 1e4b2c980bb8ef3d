"""``mirror version``"""

from __future__ import annotations

import click

from mirror.model.version import version


@click.command("version")
def print_version() -> None:
    """Print the version."""
    click.echo(f"mirror {version()}")
