"""``mirror check-config FILE``, and how every command reads its settings."""

from __future__ import annotations

import os
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


def check_kubeconfig(file: str, said_by: str) -> None:
    """Whether there is a kubeconfig, or a pod's ServiceAccount in its place, before anything is started.

    Args:
        file: its path; empty: none was given.
        said_by: the setting or option that names it.

    Raises:
        ClickException: there is none; one line, exit code 1.
    """
    if file and not os.path.isfile(file):
        raise click.ClickException(f"{said_by} {file}: no such file")
    if not file and "KUBERNETES_SERVICE_HOST" not in os.environ:
        raise click.ClickException(f"{said_by} is not set, and this is no pod: set it to a kubeconfig file")


def read_settings(file: str) -> Settings:
    """The settings, or the end of the process: one line per problem on stderr and exit code 2."""
    from mirror.settings.load import SettingsError, load

    try:
        settings = load(file)
        if settings.kinds:
            _check_kinds(settings, file)
    except SettingsError as error:
        click.echo(str(error), err=True)
        raise SystemExit(BAD_SETTINGS) from None
    return settings


def _check_kinds(settings: Settings, file: str) -> None:
    """Whether every kind that is named or declared can be mirrored.

    Raises:
        SettingsError: one cannot; all problems are named.
    """
    from mirror.kinds.declared.choosing import BadKinds, kinds_of
    from mirror.settings.load import Problem, SettingsError

    try:
        kinds = kinds_of(settings.kinds)
    except BadKinds as error:
        raise SettingsError(file, error.problems) from None
    slots = settings.sharding.slots
    by_annotation = {kind.name for kind in kinds if kind.records_by_annotation} if slots > 1 else set()
    if refused := [at for at, entry in enumerate(settings.kinds) if entry.kind in by_annotation]:
        what = f"a record by annotation cannot be used yet where sharding.slots is {slots}"
        raise SettingsError(file, tuple(Problem(f"kinds[{at}].record", what) for at in refused))
