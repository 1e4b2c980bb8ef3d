"""Which number of slots is in force, and what who begins to work does about it (S10, decision 0031)."""

from __future__ import annotations

import pytest

from mirror.model.terms import CARRIED_OUT_SECONDS
from mirror.sharding.in_force import UNREADABLE, InForce, Step, next_step, seconds_to_wait, to_write

ONE, FOUR, EIGHT = InForce(1, 15.0), InForce(4, 30.0, "a"), InForce(8, 30.0, "b")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", InForce(1)),
        ("4 30 a", InForce(4, 30.0, "a")),
        ("4 30", InForce(4, 30.0)),
        ("four", InForce(UNREADABLE)),
        ("4", InForce(UNREADABLE)),
        ("4 soon a", InForce(UNREADABLE)),
        ("-4 30 a", InForce(UNREADABLE)),
        ("٤ 30 a", InForce(UNREADABLE)),
    ],
)
def test_it_is_read_as_it_is_written(text: str, found: InForce) -> None:
    """What makes no sense is a number that nobody has: it is waited out."""
    assert InForce.of(text) == found


@pytest.mark.parametrize("one", [FOUR, InForce(16, 10.0)])
def test_what_is_written_is_read(one: InForce) -> None:
    assert InForce.of(str(one)) == one


def test_without_slots_nothing_is_written() -> None:
    assert str(ONE) == ""


def test_a_part_of_a_second_counts_as_a_whole_one() -> None:
    assert InForce.of(str(InForce(4, 14.2))).lease_seconds == 15.0


@pytest.mark.parametrize(
    ("found", "mine", "assigns", "waited_for", "step"),
    [
        (None, ONE, True, None, Step.WRITE),
        (None, FOUR, False, None, Step.WRITE),
        (InForce(1), ONE, True, None, Step.BEGIN),
        (InForce(1), FOUR, True, None, Step.WAIT_OUT),
        (InForce(1), FOUR, True, InForce(1), Step.WRITE),
        (InForce(1), FOUR, False, None, Step.WAIT_FOR_ASSIGNER),
        (FOUR, ONE, True, None, Step.WAIT_OUT),
        (FOUR, ONE, True, FOUR, Step.WRITE),
        (FOUR, ONE, True, FOUR._replace(lease_seconds=10.0), Step.WAIT_OUT),
        (FOUR, ONE, True, EIGHT, Step.WAIT_OUT),
        (FOUR, EIGHT, True, None, Step.WAIT_OUT),
        (FOUR, EIGHT, False, FOUR, Step.WAIT_FOR_ASSIGNER),
        (FOUR, FOUR, True, None, Step.BEGIN),
        (FOUR, FOUR._replace(mark="c"), True, None, Step.WRITE),
        (FOUR, FOUR._replace(mark=""), False, None, Step.BEGIN),
        (FOUR, FOUR._replace(lease_seconds=60.0), False, None, Step.WRITE),
        (FOUR, FOUR._replace(lease_seconds=10.0), False, None, Step.BEGIN),
        (InForce(UNREADABLE), ONE, True, None, Step.WAIT_OUT),
        (InForce(UNREADABLE), FOUR, False, None, Step.WAIT_FOR_ASSIGNER),
    ],
)
def test_what_who_begins_does(
    found: InForce | None, mine: InForce, waited_for: InForce | None, step: Step, *, assigns: bool
) -> None:
    assert next_step(found, mine, assigns=assigns, waited_for=waited_for) is step


@pytest.mark.parametrize("found", [None, InForce(1), FOUR, EIGHT, InForce(UNREADABLE)])
@pytest.mark.parametrize("mine", [ONE, FOUR._replace(mark="c", lease_seconds=60.0), EIGHT._replace(mark="d")])
def test_who_has_written_begins(found: InForce | None, mine: InForce) -> None:
    """Whatever was there before."""
    written = InForce.of(str(to_write(found, mine, assigns=True)))
    assert next_step(written, mine, assigns=True, waited_for=found) is Step.BEGIN


def test_that_leases_last_longer_is_never_taken_back() -> None:
    """Who had the longer ones may hold one still; and a holder of a slot leaves the mark of who assigns."""
    longer = FOUR._replace(lease_seconds=60.0)
    assert to_write(longer, FOUR._replace(mark="c"), assigns=True) == longer._replace(mark="c")
    assert to_write(FOUR, InForce(4, 60.0), assigns=False) == longer
    assert to_write(longer, EIGHT, assigns=True) == EIGHT


def test_a_lease_of_theirs_and_a_minute_are_waited_for() -> None:
    """S8, S10; of a number that says nothing of its Leases, a Lease of ours."""
    assert seconds_to_wait(FOUR, ONE) == 30.0 + CARRIED_OUT_SECONDS
    assert seconds_to_wait(InForce(1), EIGHT) == 30.0 + CARRIED_OUT_SECONDS
