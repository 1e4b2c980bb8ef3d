"""What ``mirror diff`` prints of a worker's objects."""

from __future__ import annotations

from mirror.cli.user.diff import lines_of
from mirror.cli.user.server import Comparison, OnWorker
from mirror.kinds.report import Report


def test_what_is_on_the_worker_is_a_table() -> None:
    """Whether it is there, and why that is not known."""
    there = [
        OnWorker(worker="east", object="ConfigMap settings", state="Exists"),
        OnWorker(worker="east", object="Secret token", state="Copied"),
        OnWorker(worker="east", object="PersistentVolumeClaim data", state="Missing"),
        OnWorker(worker="east", object="PriorityClass high", state="Unknown", message="missing permission"),
    ]
    lines = list(lines_of(Comparison(report=Report(), on_worker=there), is_wide=False))

    assert [" ".join(line.split()) for line in lines] == [
        "No differences.",
        "",
        "WORKER OBJECT THERE WHY",
        "east ConfigMap settings yes -",
        "east Secret token yes, a copy -",
        "east PersistentVolumeClaim data no -",
        "east PriorityClass high not known missing permission",
    ]
