"""``mirror worker list``: the table. What is in it is ``operations.overview``."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from mirror.cli.user import printing
from mirror.cli.user.printing import Column, Format
from mirror.cli.user.running import progress
from mirror.cli.worker import clusters
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations.overview import Row, overview
from mirror.model.durations import human_duration


async def show(where: Where, form: Format) -> None:
    """All workers."""
    async with clusters.home(where) as home:
        with progress("looking at workers"):
            rows = await overview(home)
    if form in ("json", "yaml"):
        click.echo(printing.document(rows, form))
    elif form == "name":
        printing.say(row.name for row in rows)
    elif not rows:
        click.echo(f"no workers in namespace {where.namespace}; see: mirror worker add --help", err=True)
    else:
        printing.say(printing.table(columns(datetime.now(UTC)), rows, wide=form == "wide"))


def columns(now: datetime) -> list[Column[Row]]:
    """What is shown of each."""

    def token(row: Row) -> str:
        passed = printing.seconds_between(row.token_expires, "", now)
        if passed is None:
            return ""
        return "expired" if passed >= 0 else f"in {human_duration(-passed)}"

    def takes(row: Row) -> str:
        states = ("cordoned", row.cordoned), ("draining", row.draining), ("misconfigured", row.misconfigured)
        marks = [word for word, is_so in states if is_so]
        return f"no ({', '.join(marks)})" if marks else "yes"

    return [
        Column("NAME", lambda row: row.name),
        Column("STATE", lambda row: row.state),
        Column("SINCE", lambda row: printing.lasted(row.since, "", now)),
        Column("VERSION", lambda row: row.version),
        Column("JOBS", lambda row: str(row.jobs)),
        Column("CAPACITY", lambda row: "" if row.capacity is None else str(row.capacity)),
        Column("SCHEDULABLE", takes),
        Column("TOKEN EXPIRES", token),
        Column("REASON", lambda row: row.reason),
        Column("LABELS", lambda row: ",".join(f"{key}={value}" for key, value in row.labels.items()), is_wide=True),
        Column("CLUSTER", lambda row: row.uid, is_wide=True),
    ]
