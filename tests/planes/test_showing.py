"""Jobs as people see them, and the samples of demonstrations."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from mirror.model import names
from mirror.planes.fleet import worker_names
from mirror.planes.samples import COPIES, EXPECTED, expected, sample_jobs
from mirror.planes.showing import row_of, shares, table_of

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


def job(*conditions: dict[str, str], waiting: str = "", **status: Any) -> dict[str, Any]:
    """A Job on the management cluster, half a minute old."""
    annotations = {names.WAITING_BECAUSE: waiting} if waiting else {}
    metadata = {"name": "train-1", "creationTimestamp": "2026-03-01T12:00:00Z", "annotations": annotations}
    return {"metadata": metadata, "spec": {"completions": 3}, "status": {"conditions": list(conditions), **status}}


def true(kind: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": "2026-03-01T12:00:12Z", **more}


PLACED = true(names.PLACED, message="east")


@pytest.mark.parametrize(
    ("body", "worker", "state", "age", "why"),
    [
        (job(), "–", "Waiting", "30s", ""),
        (job(waiting="no worker takes it\x1b[2J"), "–", "Waiting", "30s", "no worker takes it\\x1b[2J"),
        (job(PLACED, active=2), "east", "Running", "30s", ""),
        (job(PLACED, true("Suspended")), "east", "Suspended", "30s", ""),
        (job(PLACED, true("Complete", reason="CompletionsReached")), "east", "Complete", "12s", "CompletionsReached"),
        (job(PLACED, true("Failed", reason="MirrorLost")), "east", "Failed", "12s", "MirrorLost"),
    ],
    ids=["new", "waiting, with hostile text", "running", "suspended", "complete", "failed"],
)
def test_rows(body: dict[str, Any], worker: str, state: str, age: str, why: str) -> None:
    """What the management cluster tells is enough."""
    row = row_of(body, NOW)
    assert (row.worker, row.state, row.age, row.why) == (worker, state, age, why)
    assert row.has_ended is (state in ("Complete", "Failed"))
    assert row.done == "0/3"


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_is_readable_in_a_small_terminal(width: int) -> None:
    """Only the reason is cut."""
    ends = (PLACED, true("Complete", reason="CompletionsReached"))
    rows = [row_of({**job(*ends), "metadata": {**job()["metadata"], "name": name}}, NOW) for name in ("b" * 20, "a")]
    console = Console(file=StringIO(), width=width)
    console.print(table_of(rows))
    console.print(table_of([]))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.index(" a ") < text.index("b" * 20)
    assert all(word in text for word in ("Worker", "Complete", "Active", "Failed", "0/3", "12s", "CompletionsRea"))
    assert shares(rows) == "2 on east"


def test_samples_are_jobs_that_end_as_they_say() -> None:
    """Each is valid, is ours, and has a name that tells what it is."""
    bodies = list(sample_jobs("example.com/mine"))
    assert len(bodies) == COPIES * len(EXPECTED)
    for body in bodies:
        assert body["spec"]["managedBy"] == "example.com/mine"
        assert expected(row_of({**job(), "metadata": {**job()["metadata"], **body["metadata"]}}, NOW)) in (
            "Complete",
            "Failed",
        )


def test_workers_have_names() -> None:
    """As many as one wants."""
    assert worker_names(2) == ("east", "west")
    assert worker_names(6)[4:] == ("worker-5", "worker-6")
