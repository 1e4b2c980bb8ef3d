"""``mirror kinds``: what is built in, or what a manager with some settings mirrors; ``--check`` asks clusters.

What is asked is in ``worker.kinds_check``, which is imported only where it is wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from mirror.cli.check_config import read_settings
from mirror.cli.user.options import output_option
from mirror.cli.user.terminal import color_option
from mirror.cli.worker.options import allow_option, where_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mirror.kinds.base import Kind

_HEADINGS = ("KIND", "RESOURCE", "MANAGED BY", "VALUE", "ENABLED")
_GAP = 3


class Row(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """One kind."""

    kind: str
    resource: str
    managed_by: str
    """Path of the field."""
    value: str
    """What in it makes an object ours; empty: the setting ``managedBy``."""
    enabled: bool | None = None
    """None: no settings were given."""

    @property
    def cells(self) -> Sequence[str]:
        said = {True: ("yes",), False: ("no",), None: ()}[self.enabled]
        return (self.kind, self.resource, self.managed_by, self.value or "setting managedBy", *said)


@click.command()
@click.option(
    "--config", metavar="FILE", type=click.Path(), help="List what a manager with this settings file mirrors, too."
)
@click.option(
    "--check",
    is_flag=True,
    help="Ask the management cluster and every worker: is each kind served, in which version, and which permissions of "
    "the manager are missing. Without --config: the kinds that the manager has recorded.",
)
@allow_option
@output_option("text", "json", "yaml")
@color_option()
@where_options
def kinds(config: str | None, check: bool, allow: tuple[str, ...], form: str, where: Any) -> None:
    """List the kinds that can be mirrored beside Jobs.

    Without options: those that are built in.

    Exit codes: 0 success, 1 a permission is missing or a cluster could not be asked, 2 invalid usage or settings.
    """
    from mirror.kinds.declared.choosing import built_in, kinds_of  # half a second that `mirror --help` need not cost
    from mirror.settings.kinds import KindEntry

    settings = read_settings(config) if config is not None else None
    if check:
        from mirror.cli.worker.clusters import run
        from mirror.cli.worker.kinds_check import Asked
        from mirror.cli.worker.kinds_check import check as work

        run(lambda: work(Asked(settings=settings, allow=allow, form=form, where=where)))
        return
    enabled = list(kinds_of(settings.kinds)) if settings is not None else []
    names = {kind.name for kind in enabled}
    others = [kind for kind in kinds_of([KindEntry(kind=name) for name in built_in()]) if kind.name not in names]
    default = settings.managed_by if settings is not None else ""
    rows = [_row(kind, default, is_enabled=True) for kind in enabled]
    rows += [_row(kind, default, is_enabled=None if settings is None else False) for kind in others]
    if form == "text":
        headings = _HEADINGS if settings is not None else _HEADINGS[:-1]
        for line in _table([headings, *(row.cells for row in rows)]):
            click.echo(line)
    else:
        from mirror.cli.user import printing

        click.echo(printing.listing("Kind", rows, form))


def _row(kind: Kind, default: str, *, is_enabled: bool | None) -> Row:
    resource = kind.resource
    name = f"{resource.plural}.{resource.version}.{resource.group}"
    return Row(kind.name, name, kind.managed_by_field, kind.managed_by_value or default, is_enabled)


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield (" " * _GAP).join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
