"""``mirror worker list``: the table. What is in it is ``mirror.workers.overview``."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from mirror.cli.user import printing
from mirror.cli.user.printing import Column, Format, duration
from mirror.cli.user.running import progress
from mirror.cli.worker import clusters
from mirror.cli.worker.clusters import Where
from mirror.workers.overview import Row, overview


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

    def apart(text: str) -> float | None:
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            return None
        return (found - now).total_seconds() if found.tzinfo else None

    def since(row: Row) -> str:
        seconds = apart(row.since)
        return "" if seconds is None else duration(-seconds)

    def token(row: Row) -> str:
        seconds = apart(row.token_expires)
        if seconds is None:
            return ""
        return f"in {duration(seconds)}" if seconds > 0 else "ended"

    def takes(row: Row) -> str:
        states = ("cordoned", row.cordoned), ("draining", row.draining), ("misconfigured", row.misconfigured)
        marks = [word for word, is_so in states if is_so]
        return ",".join(marks) or "yes"

    return [
        Column("NAME", lambda row: row.name),
        Column("STATE", lambda row: row.state),
        Column("SINCE", since),
        Column("VERSION", lambda row: row.version),
        Column("JOBS", lambda row: str(row.jobs)),
        Column("CAPACITY", lambda row: "" if row.capacity is None else str(row.capacity)),
        Column("TAKES JOBS", takes),
        Column("TOKEN ENDS", token),
        Column("REASON", lambda row: row.reason),
        Column("LABELS", lambda row: ",".join(f"{key}={value}" for key, value in row.labels.items()), is_wide=True),
        Column("CLUSTER", lambda row: row.uid, is_wide=True),
    ]
