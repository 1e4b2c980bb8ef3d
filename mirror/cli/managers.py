"""``mirror managers``: its options and table. What is in it is ``worker.operations.managers``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mirror.cli.user.options import output_option
from mirror.cli.user.terminal import color_option
from mirror.cli.worker.options import where_options

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from mirror.cli.user.printing import Column
    from mirror.cli.worker.operations.managers import Row
    from mirror.sharding.slots import Slot

MOST_LISTED = 32
"""Slots of one manager; there may be a thousand."""


@click.command()
@output_option()
@color_option()
@where_options
def managers(where: Any, form: Any) -> None:
    """List managers: which one leads, or what each works on.

    By the Leases in the namespace of the manager. Without slots (setting sharding.slots) only one that leads has one.
    """
    from mirror.cli.worker.clusters import run

    run(lambda: _show(where, form))


async def _show(where: Any, form: Any) -> None:
    from datetime import UTC, datetime

    from mirror.cli.user import printing
    from mirror.cli.user.running import progress
    from mirror.cli.user.terminal import display
    from mirror.cli.worker import clusters
    from mirror.cli.worker.operations.managers import managers as found_managers

    now = datetime.now(UTC)
    async with clusters.home(where) as home:
        with progress("looking at managers"):
            found = await found_managers(home, now)
            if not found.rows:
                await home.check_namespace()
    if form in ("json", "yaml"):
        click.echo(printing.listing("Manager", found.rows, form))
    elif form == "name":
        printing.say(row.name for row in found.rows)
    elif not found.rows:
        click.echo(f"no manager holds a Lease in namespace {where.namespace}", err=True)
    else:
        wide = form == "wide"
        printing.say(printing.table(_columns(now), found.rows, wide=wide, on=display(abridged=not wide)))
    if found.nobodys:
        click.echo(
            f"! nobody holds {_slots(found.nobodys)}: Jobs on the workers of these slots are not followed", err=True
        )


def _columns(now: datetime) -> list[Column[Row]]:
    from mirror.cli.user import printing
    from mirror.cli.user.printing import Column

    return [
        Column("NAME", lambda row: row.name, least=8),
        Column("STATE", lambda row: row.state, is_state=True),
        Column("ROLE", lambda row: row.role),
        Column("SLOTS", lambda row: _slots(row.slots), least=8),
        Column("RENEWED", lambda row: printing.lasted(row.renewed, "", now)),
        Column("ADDRESS", lambda row: row.address, is_wide=True),
    ]


def _slots(slots: Iterable[Slot]) -> str:
    """Slots in words: ``0, 4, 7 of 16``; while their number changes there are two."""
    by_number: dict[int, list[str]] = {}
    for slot in slots:
        by_number.setdefault(slot.of, []).append(str(slot.index))
    return "; ".join(f"{_some(indexes)} of {of}" for of, indexes in by_number.items())


def _some(indexes: list[str]) -> str:
    more = len(indexes) - MOST_LISTED
    return ", ".join(indexes[:MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
