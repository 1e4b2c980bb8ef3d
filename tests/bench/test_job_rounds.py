"""What ``e2e.job_rounds`` reads out of an audit log."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from e2e import job_rounds
from e2e.job_rounds import Round, Step, What

US, KWOK = "job-controller-ours", "kwok"


def line(user: str, verb: str, what: str, name: str, began: float, ended: float, body: Any = None) -> str:
    """A line of the log; times in ms."""
    resource, _, subresource = what.partition("/")
    event = {
        "stage": "ResponseComplete",
        "user": {"username": user},
        "verb": verb,
        "objectRef": {"resource": resource, "subresource": subresource, "name": name},
        "requestReceivedTimestamp": at(began),
        "stageTimestamp": at(ended),
    }
    return json.dumps(event | ({"requestObject": body} if body is not None else {}))


def at(milliseconds: float) -> str:
    return datetime.fromtimestamp(1_700_000_000 + milliseconds / 1000, UTC).isoformat().replace("+00:00", "Z")


def created(job: str, began: float, ended: float) -> str:
    return line(US, "create", "pods", "", began, ended, {"metadata": {"ownerReferences": [{"name": job}]}})


def stored(job: str, began: float, ended: float) -> str:
    return line(US, "update", "jobs/status", job, began, ended, {"metadata": {}, "status": {"active": 1}})


def removed(pod: str, began: float, ended: float) -> str:
    return line(US, "patch", "pods", pod, began, ended, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}})


def ended(pod: str, when: float) -> str:
    return line(KWOK, "patch", "pods/status", pod, when - 1, when, {"status": {"phase": "Succeeded"}})


LINES = [
    created("a", 0, 10),
    created("b", 5, 9),
    created("a", 10, 20),
    created("a", 10, 30),
    stored("a", 35, 40),
    line(KWOK, "patch", "pods/status", "a-1", 41, 42, {"status": {"phase": "Running"}}),
    line(KWOK, "patch", "pods", "a-1", 41, 42, [{"op": "remove", "path": "/metadata/finalizers/0"}]),
    line(US, "watch", "pods", "", 0, 900),
    line(US, "create", "events", "", 900, 910),
    line(US, "create", "events", "", 2900, 2910),
    ended("a-1", 50),
    ended("a-2", 60),
    created("a", 1000, 1012),
    stored("a", 1014, 1020),
    removed("a-1", 1022, 1030),
    removed("a-2", 1022, 1034),
    stored("a", 1036, 1040),
    created("a", 2050, 2051),
    stored("a", 2055, 2060),
]


def trace(tmp_path: Path, lines: list[str]) -> job_rounds.Trace:
    log = tmp_path / "audit.log"
    log.write_text("what came before\n" + "".join(f"{text}\n" for text in lines))
    return job_rounds.read(log, len("what came before\n"), US)


def test_requests_that_do_the_same_are_a_step(tmp_path: Path) -> None:
    """Who waits for an answer is not beside the request that it waited for; each status is a step of its own."""
    sent = [one for one in trace(tmp_path, LINES).sent if one.job == "a"]
    found = job_rounds.steps(sent)
    assert [(one.what, one.count, one.at_once) for one in found] == [
        (What.CREATE, 3, 2),
        (What.STATUS, 1, 1),
        (What.CREATE, 1, 1),
        (What.STATUS, 1, 1),
        (What.REMOVE, 2, 2),
        (What.STATUS, 1, 1),
        (What.CREATE, 1, 1),
        (What.STATUS, 1, 1),
    ]
    assert found[0].seconds == pytest.approx(0.030)


def test_a_round_is_whole_if_it_counts_pods_and_another_follows(tmp_path: Path) -> None:
    """The first only creates, the last is not over."""
    found = trace(tmp_path, LINES)
    (one,) = job_rounds.rounds(found.sent)
    assert (one.job, round(one.seconds, 3), round(one.waited_seconds, 3)) == ("a", 1.05, 1.01)
    figures = job_rounds.figures(found)
    assert figures == {
        "whole rounds of all Jobs": 1,
        "pods created": 1,
        "at most at once": 1,
        "all pods are created": 12,
        "until the status is sent": 2,
        "status": 6,
        "until the first finalizer is removed": 2,
        "finalizers removed": 2,
        "of these at most at once": 2,
        "all finalizers are removed": 12,
        "second status": 4,
        "until the next round": 1010,
        "whole round": 1050,
        "rounds with a second status, %": 100,
        "a pod's end → its finalizer is removed": 962,
        "Jobs in a sync at once, at most": 1,
        "events sent before the last Job's end": 1,
    }


def test_a_second_status_may_be_left_to_the_next_sync(tmp_path: Path) -> None:
    """Then there is nothing to show of it."""
    figures = job_rounds.figures(trace(tmp_path, [text for text in LINES if text != stored("a", 1036, 1040)]))
    assert math.isnan(figures["second status"])
    assert (figures["rounds with a second status, %"], figures["until the next round"]) == (0, 1016)


def test_a_timeline_has_a_line_for_each_step() -> None:
    """Drawn to a scale that several share."""
    one = Round("a", [Step(What.CREATE, 10.0, 10.4, 20, 5), Step(What.STATUS, 10.5, 10.6, 1, 1)], next_began=11.0)
    assert job_rounds.timeline(one, 2.0) == [
        f"      0 ms  {'█' * 10:50}  20 pods created, 5 at once",
        f"    500 ms  {' ' * 12 + '█' * 3:50}  status",
        f"   1000 ms  {' ' * 25}│ next round",
    ]
