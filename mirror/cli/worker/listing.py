"""``mirror worker list``: the table. What is in it is ``operations.overview``."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from mirror.cli.user import printing
from mirror.cli.user.printing import Column, Format
from mirror.cli.user.running import progress
from mirror.cli.user.terminal import display
from mirror.cli.worker import clusters
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations.managers import no_leader
from mirror.cli.worker.operations.overview import UNKNOWN, Row, overview
from mirror.model.durations import human_duration


async def show(where: Where, form: Format) -> None:
    """All workers."""
    async with clusters.home(where) as home:
        with progress("looking at workers"):
            rows = await overview(home)
            if all(row.state == UNKNOWN for row in rows):  # perhaps it is another namespace's manager
                await home.check_namespace()
            note = await no_leader(home, datetime.now(UTC))
    if form in ("json", "yaml"):
        click.echo(printing.listing("Worker", rows, form))
    elif form == "name":
        printing.say(row.name for row in rows)
    elif not rows:
        click.echo(f"no workers in namespace {where.namespace}; see: mirror worker add --help", err=True)
    else:
        wide = form == "wide"
        printing.say(printing.table(columns(datetime.now(UTC)), rows, wide=wide, on=display(abridged=not wide)))
    if note:
        click.echo(f"Note: {note}", err=True)


def columns(now: datetime) -> list[Column[Row]]:
    """What is shown of each."""

    def token(row: Row) -> str:
        passed = printing.seconds_between(row.token_expires, "", now)
        if passed is None:
            return ""
        return "expired" if passed >= 0 else f"in {human_duration(-passed)}"

    def takes(row: Row) -> str:
        states = (
            ("declared dead", row.dead),
            ("cordoned", row.cordoned),
            ("draining", row.draining),
            ("misconfigured", row.misconfigured),
        )
        marks = [word for word, is_so in states if is_so]
        return f"no ({', '.join(marks)})" if marks else "yes"

    def labels(row: Row) -> str:
        listed = ",".join(f"{key}={value}" for key, value in row.labels.items())
        return f"{listed},… ({row.more_labels} more)" if row.more_labels else listed

    return [
        Column("NAME", lambda row: row.name, least=8),
        Column("STATE", lambda row: row.state, is_state=True),
        Column("SINCE", lambda row: printing.lasted(row.since, "", now)),
        Column("VERSION", lambda row: row.version, rank=3),
        Column("JOBS", lambda row: str(row.jobs)),
        Column("CAPACITY", lambda row: "" if row.capacity is None else str(row.capacity), rank=2),
        Column("SCHEDULABLE", takes, least=4),
        Column("TOKEN EXPIRES", token, rank=1),
        Column("REASON", lambda row: row.reason, least=8),
        Column("LABELS", labels, is_wide=True),
        Column("CLUSTER", lambda row: row.uid, is_wide=True),
    ]
