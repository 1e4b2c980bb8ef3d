"""What ``mirror diff`` prints of a worker's objects."""

from __future__ import annotations

import pytest

from mirror.cli.user.diff import lines_of
from mirror.cli.user.server import Along, Comparison, LeftOut, OnWorker
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


def test_what_goes_along_is_first_as_it_is_here() -> None:
    """What is missing here is told from what the manager copies, though no worker has either."""
    here = [
        Along(object="ConfigMap settings", state="Exists", message="goes along"),
        Along(object="ConfigMap setings", state="Missing", message="the Job waits for it (DependencyMissing): …"),
        Along(object="Secret east", state="Refused", message="registers a worker"),
    ]
    there = [
        OnWorker(worker="east", object="ConfigMap settings", state="Foreign", message="not ours: …"),
        OnWorker(worker="east", object="ConfigMap setings", state="Missing"),
    ]
    shown = Comparison(report=Report(), goes_along=here, on_worker=there)
    lines = list(lines_of(shown, is_wide=False))

    assert [" ".join(line.split()) for line in lines[2:]] == [
        "WORKER OBJECT THERE WHY",
        "(here) ConfigMap settings yes goes along",
        "(here) ConfigMap setings no the Job waits for it (DependencyMissing): …",
        "(here) Secret east yes, not sent registers a worker",
        "east ConfigMap settings yes, not ours not ours: …",
        "east ConfigMap setings no -",
    ]


@pytest.mark.parametrize(
    ("left_out", "told"),
    [
        (LeftOut(objects=12, workers=2), ["(and 12 more objects and 2 more workers, not looked at)"]),
        (LeftOut(workers=1), ["(and 1 more worker, not looked at)"]),
        (LeftOut(), []),
    ],
)
def test_what_was_not_looked_at_is_counted(left_out: LeftOut, told: list[str]) -> None:
    there = [OnWorker(worker="east", object="ConfigMap settings", state="Exists")]
    lines = list(lines_of(Comparison(report=Report(), on_worker=there, left_out=left_out), is_wide=False))
    assert lines[4:] == told
