"""``mirror get -w``: a table that lives on a terminal, lines for everything else. What is shown is ``get``'s."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from mirror.cli.user import printing
from mirror.cli.user.cluster import Cluster, management
from mirror.cli.user.failures import Failure, KindNotServed, NotAllowed
from mirror.cli.user.following import Jobs, follow
from mirror.cli.user.get import EVERY_JOB, Wanted, columns, full_name, needs_kinds, sort, summary
from mirror.cli.user.options import Where
from mirror.cli.user.screen import redrawn
from mirror.cli.user.terminal import PLAIN, Display
from mirror.kinds.base import Kind
from mirror.kube.objects import Object
from mirror.model.views import JobView

Tell = Callable[[Kind, Jobs], None]
"""Gets all that there are of a kind, each time one of them has changed."""


async def watch(where: Where, wanted: Wanted) -> None:
    """Print Jobs and each change of them until cancelled.

    Raises:
        Failure: they may not be listed or watched.
    """
    async with management(where) as cluster:
        show = _screen if sys.stdout.isatty() and wanted.form in ("table", "wide") else _printer
        left_out: list[Failure] = []
        async with show(wanted) as tell, asyncio.TaskGroup() as scope:
            for kind in wanted.chosen.kinds:
                scope.create_task(_follow(cluster, kind, wanted, tell, left_out), name=f"follow {kind.name}")


async def _follow(cluster: Cluster, kind: Kind, wanted: Wanted, tell: Tell, left_out: list[Failure]) -> None:
    """Follow one kind; one that is not served, or may not be listed, is left out as in ``get``."""
    namespace = None if wanted.everywhere else cluster.namespace
    fields, labels = wanted.chosen.field_selector(kind), wanted.filters.selector
    changes = follow(cluster, kind.resource, namespace=namespace, fields=fields, labels=labels)
    try:
        async with aclosing(changes):
            async for jobs in changes:
                tell(kind, jobs)
    except (KindNotServed, NotAllowed) as failure:
        left_out.append(failure)
        if wanted.chosen.are_asked_for or len(left_out) == len(wanted.chosen.kinds):
            raise left_out[0] from None
        if isinstance(failure, NotAllowed):
            printing.remark(failure.message)


class Changes:
    """What is printed of each change: also of a Job that the filters have left out since, once, as it is now."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._unfiltered = replace(wanted, filters=EVERY_JOB)
        self._printed: set[str] = set()
        """Uids of those that fit when they were printed last."""

    def of(self, kind: Kind, jobs: Jobs) -> list[JobView]:
        """One after the other; those that are gone with a state of their own."""
        wanted, printed = self._wanted, self._printed
        changed = [jobs.all[key] for key in jobs.changed if key in jobs.all]
        seen = wanted.views(kind, changed)
        fitting = {view.uid for view in seen}
        left = []
        if wanted.filters != EVERY_JOB:
            rest = [job for job in changed if job.metadata.uid in printed and job.metadata.uid not in fitting]
            left = self._unfiltered.views(kind, rest)
        # The server reports a Job whose labels do not match any more as it does one that is deleted.
        state = "Gone" if wanted.filters.labels else "Deleted"
        over = self._unfiltered.views(kind, [job for job in jobs.gone.values() if self._was_seen(kind, job)])
        gone = [msgspec.structs.replace(view, state=state) for view in over]
        printed |= fitting
        printed -= {view.uid for view in (*left, *gone)}
        return [*seen, *left, *gone]

    def _was_seen(self, kind: Kind, job: Object) -> bool:
        return job.metadata.uid in self._printed or bool(self._wanted.views(kind, [job]))


@asynccontextmanager
async def _printer(wanted: Wanted) -> AsyncIterator[Tell]:
    """A line per change, as soon as it is known, with a heading first."""
    widths: list[int] = []
    with_kinds = False
    changes = Changes(wanted)

    def tell(kind: Kind, jobs: Jobs) -> None:
        nonlocal with_kinds
        seen = changes.of(kind, jobs)
        with_kinds = with_kinds or needs_kinds(seen, wanted)
        printing.say(_lines(seen, wanted, widths, with_kinds=with_kinds))
        sys.stdout.flush()

    yield tell


def _lines(seen: Iterable[JobView], wanted: Wanted, widths: list[int], *, with_kinds: bool) -> Iterator[str]:
    if wanted.form == "json":
        yield from map(printing.line_of, seen)
    elif wanted.form == "yaml":
        for view in seen:
            yield "---"
            yield from printing.document(view, "yaml").splitlines()
    elif wanted.form == "name":
        yield from map(full_name, seen)
    else:
        shown = columns(datetime.now(UTC), wanted, with_kinds=with_kinds, with_lag=False)
        yield from printing.table(shown, seen, wide=wanted.form == "wide", widths=widths)


@asynccontextmanager
async def _screen(wanted: Wanted) -> AsyncIterator[Tell]:
    """A table that is redrawn in place."""
    shown: dict[Kind, Jobs] = {}

    def lines(room: int, on: Display) -> list[str]:
        seen = [view for kind, jobs in shown.items() for view in wanted.views(kind, jobs.all.values())]
        return screen(seen, wanted, room=room, on=on)

    async with redrawn(lines) as is_new:

        def tell(kind: Kind, jobs: Jobs) -> None:
            shown[kind] = jobs
            is_new()

        yield tell


def screen(seen: Sequence[JobView], wanted: Wanted, *, room: int, on: Display = PLAIN) -> list[str]:
    """The table as it fits into so many lines, what goes on and what is new first; how many are left out, and in which
    state how many are.

    ``room`` is for Jobs: beside them there are the heading and two lines more at most.
    """
    ordered = sorted(seen, key=lambda view: (view.created, view.namespace, view.name), reverse=True)
    ordered.sort(key=lambda view: view.is_finished)
    sort(ordered, wanted.sorted_by)
    shown = columns(datetime.now(UTC), wanted, with_kinds=needs_kinds(ordered, wanted), with_lag=False)
    lines = printing.table(shown, ordered[:room], wide=wanted.form == "wide", on=on)
    left_out = len(ordered) - room
    more = [f"… and {left_out} more"] if left_out > 0 else []
    return [*lines, *more, *([summary(ordered)] if ordered else [])]
