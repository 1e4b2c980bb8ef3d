"""``mirror kinds``: the kinds that are built in, or that a manager with some settings mirrors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mirror.cli.check_config import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mirror.kinds.base import Kind

_HEADINGS = ("KIND", "RESOURCE", "MANAGED BY", "VALUE", "ENABLED")
_GAP = 3


@click.command()
@click.option(
    "--config", metavar="FILE", type=click.Path(), help="List what a manager with this settings file mirrors, too."
)
def kinds(config: str | None) -> None:
    """List the kinds that can be mirrored beside Jobs.

    Without --config: those that are built in. Exit code 2: invalid settings.
    """
    from mirror.kinds.declared.choosing import built_in, kinds_of  # half a second that `mirror --help` need not cost
    from mirror.settings.kinds import KindEntry

    settings = read_settings(config) if config is not None else None
    enabled = list(kinds_of(settings.kinds)) if settings is not None else []
    names = {kind.name for kind in enabled}
    others = kinds_of([KindEntry(kind=name) for name in built_in() if name not in names])
    default = settings.managed_by if settings is not None else "setting managedBy"
    rows = [_row(kind, default, "yes") for kind in enabled]
    rows += [_row(kind, default, "no" if settings is not None else "") for kind in others if kind.name not in names]
    for line in _table([_HEADINGS if settings is not None else _HEADINGS[:-1], *rows]):
        click.echo(line)


def _row(kind: Kind, default: str, enabled: str) -> Sequence[str]:
    resource = kind.resource
    name = f"{resource.plural}.{resource.version}.{resource.group}"
    cells = (kind.name, name, kind.managed_by_field, kind.managed_by_value or default)
    return (*cells, enabled) if enabled else cells


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield (" " * _GAP).join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
