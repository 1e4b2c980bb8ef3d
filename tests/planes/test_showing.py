"""Jobs as people see them, and the samples of demonstrations."""

from __future__ import annotations

from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from doubles.drills import DRILL, KINDS
from rich.console import Console

from mirror.kinds import registry
from mirror.kinds.registry import JOB
from mirror.model import names
from mirror.planes.fleet import worker_names
from mirror.planes.samples import COPIES, EXPECTED, expected, sample_jobs
from mirror.planes.showing import shares, table_of, view_of

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


def job(*conditions: dict[str, str], waiting: str = "", suspend: bool = False, **status: Any) -> dict[str, Any]:
    """A Job on the management cluster, half a minute old."""
    annotations = {names.WAITING_BECAUSE: waiting} if waiting else {}
    metadata = {"name": "train-1", "creationTimestamp": "2026-03-01T12:00:00Z", "annotations": annotations}
    return {
        "metadata": metadata,
        "spec": {"completions": 3, "suspend": suspend},
        "status": {"conditions": list(conditions), **status},
    }


def true(kind: str, **more: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "lastTransitionTime": "2026-03-01T12:00:12Z", **more}


PLACED = true(names.PLACED, message="east")


@pytest.mark.parametrize(
    ("body", "worker", "state", "why"),
    [
        (job(), "", "Waiting", "no worker assigned yet"),
        (job(waiting="no worker takes it"), "", "Waiting", "no worker takes it"),
        (job(PLACED, active=2, startTime="2026-03-01T12:00:02Z"), "east", "Running", ""),
        (job(PLACED, true("Suspended"), suspend=True), "east", "Suspended", "spec.suspend is true"),
        (job(PLACED, true("Complete", reason="CompletionsReached")), "east", "Complete", "CompletionsReached"),
        (job(PLACED, true("Failed", reason="MirrorLost")), "east", "Failed", "MirrorLost"),
    ],
    ids=["new", "waiting", "running", "suspended", "complete", "failed"],
)
def test_jobs_are_read_from_the_management_cluster_alone(
    body: dict[str, Any], worker: str, state: str, why: str
) -> None:
    """By the read model that the page and commands have."""
    seen = view_of(JOB, body)
    assert (seen.worker, seen.state, seen.because) == (worker, state, why)
    assert seen.is_finished is (state in ("Complete", "Failed"))


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_is_readable_in_a_small_terminal(width: int) -> None:
    """Only the reason is cut."""
    ends = (PLACED, true("Complete", reason="CompletionsReached"))
    hostile = job(waiting="no worker\x1b[2J")
    long = view_of(JOB, job(PLACED, true("Failed", reason="R" * 60)))
    jobs = [view_of(JOB, {**job(*ends), "metadata": {**job()["metadata"], "name": name}}) for name in ("b" * 20, "a")]
    console = Console(file=StringIO(), width=width)
    console.print(table_of([*jobs, view_of(JOB, hostile), long], NOW, ends=lambda _: "Failed"))
    console.print(table_of([], NOW))
    text = console.file.getvalue()
    assert text.index(" a ") < text.index("b" * 20)
    assert all(word in text for word in ("Worker", "Complete", "Done", "Failed", "0/3", "12s", "CompletionsRea"))
    assert "expected: RRR" in text
    assert all(len(line) <= width for line in text.splitlines())
    assert "\x1b[2J" not in text
    assert shares(jobs) == "2 on east"


def test_a_second_kind_is_shown_as_kubectl_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one name there may be two; Jobs stay as they are."""
    monkeypatch.setattr(registry, "BUILT_IN", KINDS)
    body = {"metadata": job()["metadata"], "spec": {"run": {}}, "status": {"conditions": [PLACED]}}
    console = Console(file=StringIO(), width=120)
    console.print(table_of([view_of(DRILL, body), view_of(JOB, job())], NOW))
    lines = console.file.getvalue().splitlines()

    assert [line.split()[0] for line in lines if "train-1" in line] == ["drill.example.com/train-1", "train-1"]


def test_samples_are_jobs_that_end_as_they_say() -> None:
    """Each is valid, is ours, and has a name that tells what it is."""
    bodies = list(sample_jobs("example.com/mine"))
    assert len(bodies) == COPIES * len(EXPECTED)
    for body in bodies:
        assert body["spec"]["managedBy"] == "example.com/mine"
        assert expected(view_of(JOB, {**job(), "metadata": {**job()["metadata"], **body["metadata"]}})) in (
            "Complete",
            "Failed",
        )


def test_workers_have_names() -> None:
    """As many as one wants."""
    assert worker_names(2) == ("east", "west")
    assert worker_names(6)[4:] == ("worker-5", "worker-6")
