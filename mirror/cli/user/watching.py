"""``mirror get -w``: a table that lives on a terminal, lines for everything else. What is shown is ``get``'s."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

import msgspec

from mirror.cli.user import printing
from mirror.cli.user.cluster import management
from mirror.cli.user.following import Jobs, follow
from mirror.cli.user.get import Wanted, columns
from mirror.cli.user.options import Where
from mirror.cli.user.sources import view_of
from mirror.kube.objects import Object
from mirror.model.views import JobView

DRAWN_AT_MOST_EVERY_SECONDS = 0.2
DRAWN_AT_LEAST_EVERY_SECONDS = 0.8
"""Ages go on while nothing happens."""
_LINES_BESIDE = 3
"""Of a terminal: the heading, the line that says what is left out, and the cursor's."""


async def watch(where: Where, wanted: Wanted) -> None:
    """Show them, and go on until cancelled.

    Raises:
        Failure: they may not be listed or watched.
    """
    async with management(where) as cluster:
        namespace = None if wanted.everywhere else cluster.namespace
        show = _screen if sys.stdout.isatty() and wanted.form in ("table", "wide") else _printer
        async with show(wanted) as tell, aclosing(follow(cluster, namespace, fields=wanted.fields)) as changes:
            async for jobs in changes:
                tell(jobs)


@asynccontextmanager
async def _printer(wanted: Wanted) -> AsyncIterator[Callable[[Jobs], None]]:
    """A line per change, as soon as it is known, with a heading first."""
    widths: list[int] = []

    def tell(jobs: Jobs) -> None:
        changed = [jobs.all[key] for key in jobs.changed if key in jobs.all]
        seen = [view_of(job) for job in changed if wanted.wants(job)]
        seen += [
            msgspec.structs.replace(view_of(job), state="Deleted") for job in jobs.gone.values() if wanted.wants(job)
        ]
        printing.say(_lines(seen, wanted, widths))
        sys.stdout.flush()

    yield tell


def _lines(seen: Iterable[JobView], wanted: Wanted, widths: list[int]) -> Iterator[str]:
    if wanted.form == "json":
        yield from map(printing.line_of, seen)
    elif wanted.form == "yaml":
        for view in seen:
            yield "---\n" + printing.document(view, "yaml")
    elif wanted.form == "name":
        yield from (f"job.batch/{view.name}" for view in seen)
    else:
        yield from printing.table(columns(datetime.now(UTC), wanted), seen, wide=wanted.form == "wide", widths=widths)


@asynccontextmanager
async def _screen(wanted: Wanted) -> AsyncIterator[Callable[[Jobs], None]]:
    """A table that is drawn anew a few times a second while things change, and each second for the ages."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console, shown, is_new = Console(highlight=False), Jobs(), asyncio.Event()

    def tell(jobs: Jobs) -> None:
        nonlocal shown
        shown = jobs
        is_new.set()

    def draw() -> None:
        room = max(1, console.size.height - _LINES_BESIDE)
        lines = screen(shown.all.values(), wanted, room=room)
        live.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True)

    async with asyncio.TaskGroup() as scope:
        with Live(console=console, auto_refresh=False) as live:
            drawing = scope.create_task(_draw_again_and_again(draw, is_new), name="draw the table")
            try:
                yield tell
            finally:
                drawing.cancel()


async def _draw_again_and_again(draw: Callable[[], None], is_new: asyncio.Event) -> None:
    while True:
        draw()
        await asyncio.sleep(DRAWN_AT_MOST_EVERY_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAWN_AT_LEAST_EVERY_SECONDS):
                await is_new.wait()
        is_new.clear()


def screen(jobs: Iterable[Object], wanted: Wanted, *, room: int) -> list[str]:
    """The table as it fits into so many lines, what goes on and what is new first, and how many Jobs are left out."""
    seen = [view_of(job) for job in jobs if wanted.wants(job)]
    seen.sort(key=lambda view: (view.created, view.namespace, view.name), reverse=True)
    seen.sort(key=lambda view: view.is_finished)
    lines = printing.table(columns(datetime.now(UTC), wanted), seen[:room], wide=wanted.form == "wide")
    left_out = len(seen) - room
    return [*lines, f"… and {left_out} more"] if left_out > 0 else lines
