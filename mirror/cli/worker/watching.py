"""``mirror worker list -w``: workers as they change; a table that is redrawn, or a line per change without a terminal.

Secrets, the manager's record and Jobs are watched; what a row says is ``operations.overview``.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import msgspec

from mirror.cli.user import printing
from mirror.cli.user.cluster import Cluster
from mirror.cli.user.failures import KindNotServed
from mirror.cli.user.following import Jobs, follow
from mirror.cli.user.printing import Format
from mirror.cli.user.screen import redrawn
from mirror.cli.user.terminal import Display
from mirror.cli.worker import clusters
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.listing import columns
from mirror.cli.worker.operations.overview import Row, Tally, rows
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.kube.resources import CONFIGMAPS, SECRETS
from mirror.model import names
from mirror.workers.inventory import WorkerInventory
from mirror.workers.spec import SECRET_SELECTOR

Placed = tuple[str, str, str]
"""Kind, namespace and name of a Job."""


@dataclass(slots=True)
class Known:
    """What is known of all workers. Nothing is shown before everything has been listed once."""

    unread: int
    """How many collections have not been listed yet."""
    secrets: list[Object] = field(default_factory=list)
    records: list[Object] = field(default_factory=list)
    """What the manager has written down of them, if it has."""
    placed: dict[Placed, str] = field(default_factory=dict)
    """Unfinished Jobs and the workers that are recorded on them."""

    def rows(self) -> list[Row]:
        """All workers, as they are now."""
        if self.unread:
            return []
        inventory = WorkerInventory.of(self.records[0] if self.records else None)
        return rows(self.secrets, inventory, Tally(unfinished=dict(Counter(self.placed.values()))))

    def take_jobs(self, kind: Kind, jobs: Jobs) -> None:
        """Count the Jobs that have changed."""
        for namespace, name in jobs.gone:
            self.placed.pop((kind.name, namespace, name), None)
        for key in jobs.changed:
            found = jobs.all.get(key)
            summary = kind.summary(found) if found is not None else None
            if summary is not None and summary.placed and not summary.is_finished:
                self.placed[(kind.name, *key)] = summary.placed
            else:
                self.placed.pop((kind.name, *key), None)


async def watch(where: Where, form: Format) -> None:
    """Print workers and each change of them until cancelled.

    Raises:
        Failure: something may not be listed or watched.
    """
    show = _screen if sys.stdout.isatty() and form in ("table", "wide") else _printer
    async with clusters.home(where) as home:
        kinds = list(await home.kinds())
        known = Known(unread=2 + len(kinds))
        client = home.site.client
        cluster = Cluster(client, client.credentials, where.namespace)
        async with show(known, form) as tell, asyncio.TaskGroup() as scope:

            def begin(changes: AsyncGenerator[Jobs, None], take: Callable[[Jobs], None], name: str) -> None:
                scope.create_task(_follow(changes, take, known, tell), name=f"follow {name}")

            def take_secrets(found: Jobs) -> None:
                known.secrets = list(found.all.values())

            def take_record(found: Jobs) -> None:
                known.records = list(found.all.values())

            secrets = follow(cluster, SECRETS, namespace=where.namespace, labels=SECRET_SELECTOR)
            begin(secrets, take_secrets, "workers")
            named = f"metadata.name={names.WORKERS_CONFIGMAP}"
            record = follow(cluster, CONFIGMAPS, namespace=where.namespace, fields=named)
            begin(record, take_record, names.WORKERS_CONFIGMAP)
            for kind in kinds:
                jobs = follow(cluster, kind.resource, namespace=None)
                begin(jobs, partial(known.take_jobs, kind), kind.name)


async def _follow(
    changes: AsyncGenerator[Jobs, None], take: Callable[[Jobs], None], known: Known, tell: Callable[[], None]
) -> None:
    """Take each change; a kind that is not served has no Jobs."""
    is_first = True
    try:
        async with aclosing(changes):
            async for found in changes:
                take(found)
                known.unread -= is_first
                is_first = False
                tell()
    except KindNotServed:
        known.unread -= is_first
        tell()


@asynccontextmanager
async def _screen(known: Known, form: Format) -> AsyncIterator[Callable[[], None]]:
    def lines(room: int, on: Display) -> list[str]:
        found = known.rows()
        if not found:
            return ["" if known.unread else "no workers"]
        shown = printing.table(columns(datetime.now(UTC)), found[:room], wide=form == "wide", on=on)
        left_out = len(found) - room
        return [*shown, f"… and {left_out} more"] if left_out > 0 else shown

    async with redrawn(lines) as is_new:
        yield is_new


@asynccontextmanager
async def _printer(known: Known, form: Format) -> AsyncIterator[Callable[[], None]]:
    """A line for each worker that is another than before, with a heading first."""
    before: dict[str, Row] = {}
    widths: list[int] = []

    def tell() -> None:
        if known.unread:
            return
        now = {row.name: row for row in known.rows()}
        changed = [row for name, row in now.items() if before.get(name) != row]
        changed += [msgspec.structs.replace(row, state="Deleted") for name, row in before.items() if name not in now]
        before.clear()
        before.update(now)
        if changed:
            printing.say(_lines(changed, form, widths))
            sys.stdout.flush()

    yield tell


def _lines(changed: list[Row], form: Format, widths: list[int]) -> Iterator[str]:
    if form == "json":
        yield from map(printing.line_of, changed)
    elif form == "yaml":
        for row in changed:
            yield "---"
            yield from printing.document(row, "yaml").splitlines()
    elif form == "name":
        yield from (row.name for row in changed)
    else:
        yield from printing.table(columns(datetime.now(UTC)), changed, wide=form == "wide", widths=widths)
