"""Jobs as people see them on the management cluster: rows, and a table of them. Shared by all demonstrations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import JustifyMethod
from rich.table import Table

from mirror.model import names
from mirror.model.durations import human_duration
from mirror.model.text import clean

_STATE, _NUMBERS_FROM = 2, 3
"""Columns of the table."""
_COLOURS = {"Complete": "green", "Failed": "red", "Running": "cyan", "Suspended": "yellow", "Waiting": "magenta"}


@dataclass(frozen=True, slots=True)
class Row:
    """One Job as a person sees it."""

    name: str
    worker: str
    state: str
    active: int
    done: str
    failed: int
    age: str
    why: str

    @property
    def has_ended(self) -> bool:
        return self.state in ("Complete", "Failed")


def row_of(job: Mapping[str, Any], now: datetime) -> Row:
    """What the management cluster tells about one Job."""
    metadata, status = job["metadata"], job.get("status") or {}
    true = {c["type"]: c for c in status.get("conditions") or () if c.get("status") == "True"}
    placed = true.get(names.PLACED, {}).get("message", "")
    ended = next((true[kind] for kind in ("Complete", "Failed") if kind in true), None)
    state = ended["type"] if ended else "Suspended" if "Suspended" in true else "Running" if placed else "Waiting"
    waiting = (metadata.get("annotations") or {}).get(names.WAITING_BECAUSE, "")
    done, active, failed = (status.get(name) or 0 for name in ("succeeded", "active", "failed"))
    end = datetime.fromisoformat(ended["lastTransitionTime"]) if ended else now
    age = (end - datetime.fromisoformat(metadata["creationTimestamp"])).total_seconds()
    return Row(
        name=metadata["name"],
        worker=clean(placed) or "–",
        state=state,
        active=active,
        done=f"{done}/{job['spec'].get('completions') or '?'}",
        failed=failed,
        age=human_duration(age),
        why=clean((ended or {}).get("reason") or waiting, longest=60),
    )


def table_of(rows: Iterable[Row]) -> Table:
    """The live table. In a narrow terminal the last column gives way."""
    ordered = sorted(rows, key=lambda row: row.name)
    cells = [[row.name, row.worker, row.state, str(row.active), row.done, str(row.failed), row.age] for row in ordered]
    title = "Jobs on the management cluster, run by workers"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0))
    for number, heading in enumerate(("Job", "Worker", "State", "Active", "Done", "Failed", "Age")):
        width = max(len(heading), *(len(line[number]) for line in cells)) if cells else len(heading)
        justify: JustifyMethod = "left" if number < _NUMBERS_FROM else "right"
        table.add_column(heading, no_wrap=True, min_width=width, justify=justify)
    table.add_column("Why", overflow="ellipsis", no_wrap=True)
    for row, line in zip(ordered, cells, strict=True):
        line[_STATE] = f"[{_COLOURS[row.state]}]{row.state}[/]"
        table.add_row(*line, row.why)
    return table


def shares(rows: Iterable[Row]) -> str:
    """``7 on east, 8 on west``."""
    listed = [row.worker for row in rows]
    return ", ".join(f"{listed.count(worker)} on {worker}" for worker in sorted(set(listed)))
