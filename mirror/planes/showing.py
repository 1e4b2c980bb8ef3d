"""Jobs of the management cluster as a table. Shared by all demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import JustifyMethod
from rich.table import Table

from mirror.kinds import read_model, registry
from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds, object_name
from mirror.kube.objects import decode_object
from mirror.model.durations import human_duration
from mirror.model.text import clean
from mirror.model.views import JobView

_STATE, _NUMBERS_FROM = 2, 3
"""Columns of the table."""
_COLOURS = {
    "Complete": "green",
    "Failed": "red",
    "Running": "cyan",
    "Suspended": "yellow",
    "Waiting": "magenta",
    "Placed": "blue",
}


def view_of(kind: Kind, job: Mapping[str, Any]) -> JobView:
    """Read one Job of the management cluster, as its API server sends it, as people see it."""
    return read_model.view_of(kind, decode_object(msgspec.json.encode(job)))


def table_of(
    jobs: Iterable[JobView],
    now: datetime,
    *,
    ends: Callable[[JobView], str] | None = None,
    kinds: Kinds | None = None,
) -> Table:
    """Draw the live table; in a narrow terminal the last column gives way.

    Args:
        jobs: what is shown.
        now: for ages.
        ends: how a Job should end, where that is known: a failure that is meant is called so.
        kinds: the table in which their kinds are, if not the built-in one.
    """
    ordered = sorted(jobs, key=lambda job: (job.name, job.kind))
    cells = [_cells(job, now, kinds or registry.BUILT_IN) for job in ordered]
    title = "Jobs on the management cluster, run by workers"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0), expand=True)
    for number, heading in enumerate(("Job", "Worker", "State", "Done", "Failed", "Age")):
        width = max(len(heading), *(len(line[number]) for line in cells)) if cells else len(heading)
        justify: JustifyMethod = "left" if number < _NUMBERS_FROM else "right"
        table.add_column(heading, no_wrap=True, min_width=width, justify=justify)
    table.add_column("Reason", overflow="ellipsis", no_wrap=True, ratio=1)
    for job, line in zip(ordered, cells, strict=True):
        line[_STATE] = f"[{_COLOURS.get(job.state, 'default')}]{job.state}[/]"
        is_meant = ends is not None and job.state == "Failed" == ends(job)
        table.add_row(*line, ("expected: " if is_meant else "") + clean(job.reason or job.because, longest=60))
    return table


def _cells(job: JobView, now: datetime, kinds: Kinds) -> list[str]:
    end = datetime.fromisoformat(job.finished) if job.finished else now
    age = human_duration((end - datetime.fromisoformat(job.created)).total_seconds())
    if job.kind != kinds.default.name:  # only of Jobs are pods counted
        return [object_name(kinds[job.kind], job.name), clean(job.worker) or "–", job.state, "–", "–", age]
    done = f"{job.succeeded}/{'?' if job.completions is None else job.completions}"
    return [job.name, clean(job.worker) or "–", job.state, done, str(job.failed), age]


def shares(jobs: Iterable[JobView]) -> str:
    """Count Jobs by worker: ``7 on east, 8 on west``."""
    listed = [job.worker for job in jobs]
    return ", ".join(f"{listed.count(worker)} on {worker}" for worker in sorted(set(listed)))
