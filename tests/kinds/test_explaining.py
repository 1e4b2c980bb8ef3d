"""Conditions that say why a source waits, or makes no progress (D22)."""

from __future__ import annotations

from mirror.kinds.explaining import explained, reason_of
from mirror.model.reasons import Obstruction, Reason

NOON, LATER = "2026-03-01T12:00:00Z", "2026-03-01T12:05:00Z"
OTHER = {"type": "acme.io/Seen", "status": "False"}
PLACED = {"type": "jobmirror.io/Placed", "status": "True", "reason": "Placed", "message": "east"}
FULL = Obstruction(Reason.WORKERS_FULL, "east: at capacity")
REFUSED = Obstruction(Reason.CHANGE_REFUSED, "worker east rejected the change")


def test_each_goes_where_it_belongs_and_leaves_the_rest() -> None:
    waits = explained([OTHER], FULL, is_placed=False, at=NOON)
    assert [one["type"] for one in waits] == ["acme.io/Seen", "jobmirror.io/Placed"]
    assert reason_of(waits) == "WorkersFull"
    stuck = explained([PLACED, OTHER], REFUSED, is_placed=True, at=NOON)
    assert [one["type"] for one in stuck] == ["jobmirror.io/Placed", "acme.io/Seen", "jobmirror.io/Progressing"]
    assert reason_of(stuck) == "ChangeRefused"
    assert explained(stuck, None, is_placed=True, at=LATER) == [PLACED, OTHER]
    assert explained(waits, None, is_placed=False, at=LATER) == [OTHER]
    assert reason_of([PLACED, OTHER]) == ""


def test_the_time_is_that_of_the_change() -> None:
    """Another reason is no other status."""
    waits = explained([], FULL, is_placed=False, at=NOON)
    assert explained(waits, FULL, is_placed=False, at=LATER) == waits
    [other] = explained(waits, Obstruction(Reason.NO_WORKERS, "none"), is_placed=False, at=LATER)
    assert (other["reason"], other["lastTransitionTime"]) == ("NoWorkers", NOON)
    [unknown] = explained(explained([], REFUSED, is_placed=True, at=NOON), LOST, is_placed=True, at=LATER)
    assert (unknown["status"], unknown["lastTransitionTime"]) == ("Unknown", LATER)


LOST = Obstruction(Reason.WORKER_LOST, "worker east is lost")


def test_a_job_without_its_worker_says_only_that() -> None:
    """Its record was cleared after a refusal: what it said of progress there is over."""
    stuck = explained([PLACED], REFUSED, is_placed=True, at=NOON)
    [waits] = explained([one for one in stuck if one is not PLACED], FULL, is_placed=False, at=LATER)
    assert (waits["type"], waits["reason"]) == ("jobmirror.io/Placed", "WorkersFull")


def test_a_message_is_one_line_of_bounded_length() -> None:
    [one] = explained([], Obstruction(Reason.NO_WORKERS, "a\x1b[2J\n" + "x" * 5000), is_placed=False, at=NOON)
    message = str(one["message"])
    assert message.isprintable()
    assert len(message) <= 1025
