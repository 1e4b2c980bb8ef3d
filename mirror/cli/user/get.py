"""``mirror get``: where Jobs are, how they are, and for how long. The right to list Jobs is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import click
import msgspec

from mirror.cli.user import printing
from mirror.cli.user.cluster import Cluster, management
from mirror.cli.user.failures import Failure
from mirror.cli.user.options import Where
from mirror.cli.user.printing import Column, Format
from mirror.cli.user.running import progress
from mirror.cli.user.server import manager
from mirror.cli.user.sources import is_source, view_of
from mirror.kube.objects import Object
from mirror.model.views import JobView

LAG_SECONDS = 2.0
"""How long the manager is waited for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be listed, and how."""

    names: tuple[str, ...] = ()
    everywhere: bool = False
    form: Format = "table"

    @property
    def fields(self) -> str:
        """A field selector, where one can say it."""
        return f"metadata.name={self.names[0]}" if len(set(self.names)) == 1 else ""

    def wants(self, job: Object) -> bool:
        """A Job by its name if there are names, and else every source."""
        return job.metadata.name in self.names if self.names else is_source(job)


async def get(where: Where, wanted: Wanted) -> None:
    """List them once.

    Raises:
        Failure: they may not be listed, or one of the names is not there.
    """
    async with management(where) as cluster:
        namespace = None if wanted.everywhere else cluster.namespace
        with progress("Listing Jobs …"):
            found, _ = await cluster.jobs(namespace=namespace, fields=wanted.fields)
            seen = await with_lags(where, cluster, wanted, [view_of(job) for job in found if wanted.wants(job)])
    missing = [name for name in wanted.names if name not in {view.name for view in seen}]
    _print(seen, wanted, namespace=cluster.namespace)
    if missing:
        raise Failure(f"jobs.batch {', '.join(missing)} not found in namespace {cluster.namespace}")


async def with_lags(where: Where, cluster: Cluster, wanted: Wanted, seen: list[JobView]) -> list[JobView]:
    """The same with what only the manager knows, where it can be asked: never a reason to fail, or to wait long."""
    if not any(view.worker and not view.is_finished for view in seen):
        return seen
    try:
        async with asyncio.timeout(LAG_SECONDS), manager(where, cluster) as asked:
            told = await asked.jobs(None if wanted.everywhere else cluster.namespace)
    except (Failure, TimeoutError):
        return seen
    lags = {view.uid: view.lag_seconds for view in told}
    return [msgspec.structs.replace(view, lag_seconds=lags.get(view.uid)) for view in seen]


def _print(seen: Sequence[JobView], wanted: Wanted, *, namespace: str) -> None:
    form = wanted.form
    ordered = sorted(seen, key=lambda view: (view.namespace, view.name))
    if form in ("json", "yaml"):
        click.echo(printing.document({"items": ordered}, form))
    elif form == "name":
        printing.say(f"job.batch/{view.name}" for view in ordered)
    elif ordered:
        printing.say(printing.table(columns(datetime.now(UTC), wanted), ordered, wide=form == "wide"))
    elif not wanted.names:
        printing.remark("No mirrored Jobs found" + ("." if wanted.everywhere else f" in namespace {namespace}."))


def columns(now: datetime, wanted: Wanted) -> list[Column[JobView]]:
    """The table's columns, at this time."""

    def lag(view: JobView) -> str:
        return "" if view.lag_seconds is None else f"{view.lag_seconds:.1f}s"

    found: list[Column[JobView]] = [Column("NAMESPACE", lambda view: view.namespace)] if wanted.everywhere else []
    return [
        *found,
        Column("NAME", lambda view: view.name),
        Column("WORKER", lambda view: view.worker),
        Column("STATE", lambda view: view.state),
        Column("COMPLETIONS", done),
        Column("DURATION", lambda view: printing.lasted(view.started, view.finished, now)),
        Column("AGE", lambda view: printing.lasted(view.created, "", now)),
        Column("LAG", lag),
        Column("ACTIVE", lambda view: str(view.active), is_wide=True),
        Column("FAILED", lambda view: str(view.failed), is_wide=True),
        Column("UID", lambda view: view.uid, is_wide=True),
        Column("WHY", lambda view: view.because),
    ]


def done(view: JobView) -> str:
    """``2/5``; a work queue has no number of completions: ``2``."""
    return str(view.succeeded) if view.completions is None else f"{view.succeeded}/{view.completions}"
