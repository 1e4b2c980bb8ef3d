"""Whether the management cluster was away: of each kind for itself, but for what it may not have noticed yet."""

from __future__ import annotations

from collections.abc import Callable

from mirror.controllers.management_absence import ManagementAbsence
from mirror.kube.errors import Forbidden, Unreachable
from mirror.runtime.clock import SystemClock


class _Clock(SystemClock):
    """One that moves when it is moved."""

    at = 1000.0

    def monotonic(self) -> float:
        return self.at


class _Watches:
    """Those of Jobs, which were heard of last at some time, and others that fail."""

    def __init__(self) -> None:
        self.clock, self.heard_at = _Clock(), 1000.0
        self.absence = ManagementAbsence(self.clock)
        self.absence.follow("Job", lambda: self.clock.at - self.heard_at)

    def fail(self, kind: str, seconds: float, until: Callable[[float], bool] = lambda _: True) -> None:
        """Every four seconds."""
        end = self.clock.at + seconds
        while self.clock.at <= end and until(self.clock.at):
            self.absence.note(kind, Unreachable("connection refused"))
            self.clock.at += 4

    @property
    def holds(self) -> tuple[bool, bool]:
        return self.absence.was_just_now("Job"), self.absence.is_long


def test_it_holds_for_a_minute_after_it() -> None:
    of = _Watches()
    of.fail("Job", 20)
    assert of.holds == (True, False)
    of.clock.at += 50
    assert of.holds == (True, False)
    of.clock.at += 10
    assert of.holds == (False, False)


def test_one_failure_is_none_and_a_refusal_is_an_answer() -> None:
    of = _Watches()
    of.absence.note("Job", Unreachable("reset"))
    for _ in range(20):
        of.absence.note("Queue", Forbidden(403, "Forbidden", "no"))
        of.clock.at += 4
    assert of.holds == (False, False)


def test_what_another_kind_has_noticed_counts_while_nothing_is_heard_of_jobs() -> None:
    """Their watch is silent: it may hang, and the workers' connections, too."""
    of = _Watches()
    of.fail("Queue", 90)
    assert of.holds == (True, True)
    of.heard_at = of.clock.at
    of.fail("Queue", 8)
    assert of.holds == (True, True), "one attempt may have begun before Jobs were heard of"


def test_a_kind_that_fails_although_jobs_are_heard_of_is_its_own_trouble() -> None:
    """It fails so long after that was heard that no attempt was on its way since before."""
    of = _Watches()
    of.fail("Queue", 20)
    of.heard_at = of.clock.at
    of.fail("Queue", 60)
    assert of.holds == (False, False)
    of.fail("Job", 20)
    assert of.holds == (True, False), "what Jobs themselves have noticed counts as before"
