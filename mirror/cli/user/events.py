"""``mirror events``: the worker's events about the mirror and its pods; ``explain`` shows the source's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import click
import msgspec

from mirror.batch import views
from mirror.cli.user import printing
from mirror.cli.user.mirrors import inside
from mirror.cli.user.naming import Named
from mirror.cli.user.options import Where
from mirror.cli.user.printing import Column, Format
from mirror.cli.user.running import progress
from mirror.cli.user.terminal import display
from mirror.cli.user.timeline import time_of_event

Json = Mapping[str, object]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event; also how it looks as JSON."""

    at: str
    type: str
    reason: str
    about: str
    """``job/train`` or ``pod/train-x7k2p``."""
    message: str
    count: int = 1


async def events(where: Where, wanted: Named, form: Format) -> None:
    """Print the worker's events about a Job's mirror, oldest first.

    Raises:
        Failure: they may not be read, or nobody can be asked.
    """
    async with inside(where, wanted) as mirror:
        with progress(f"Listing the events of {wanted.name} …"):
            found = sorted(map(event_of, await mirror.events()), key=lambda event: event.at)
    if form in ("json", "yaml"):
        click.echo(printing.listing("MirrorEvent", found, form))
    elif found:
        printing.say(printing.table(columns(datetime.now(UTC)), found, on=display()))
    else:
        printing.remark(f"No events of {wanted} on its worker; most clusters keep events for one hour.")


def event_of(event: Json) -> Event:
    """An event, from its JSON."""
    about = views.mapping(event.get("involvedObject"))
    series = views.mapping(event.get("series"))
    return Event(
        at=time_of_event(event),
        type=views.text(event.get("type")),
        reason=views.text(event.get("reason")),
        about=f"{views.text(about.get('kind')).lower()}/{views.text(about.get('name'))}",
        message=views.text(event.get("message")),
        count=max(1, views.number(series.get("count")) or views.number(event.get("count"))),
    )


def columns(now: datetime) -> Sequence[Column[Event]]:
    """The table's, at this time."""
    return (
        Column("LAST SEEN", lambda event: printing.lasted(event.at, "", now)),
        Column("TYPE", lambda event: event.type, is_state=True),
        Column("REASON", lambda event: event.reason),
        Column("OBJECT", lambda event: event.about, least=10),
        Column("COUNT", lambda event: str(event.count), rank=1),
        Column("MESSAGE", lambda event: event.message, least=20),
    )
