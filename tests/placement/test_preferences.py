"""What annotations of a Job ask of the choice between workers."""

from __future__ import annotations

import pytest

from mirror.placement.preferences import BadPreference, order_of, priority_of, spread_key_of, spread_of

ORDER, SPREAD, PRIORITY = (f"jobmirror.io/{name}" for name in ("worker-order", "spread-by", "priority"))


def test_what_is_not_said_asks_for_nothing() -> None:
    assert (order_of({}), spread_of({}), priority_of({}), spread_key_of({})) == ((), "", 0, "")


def test_names_and_globs_are_read_in_their_order() -> None:
    """One that stands there twice counts where it stands first."""
    assert order_of({ORDER: "east, eu-*,west.example.com,east"}) == ("east", "eu-*", "west.example.com")


@pytest.mark.parametrize(("text", "number"), [("5", 5), (" -7 ", -7), ("1000000000", 10**9), ("007", 7)])
def test_a_priority_is_a_whole_number(text: str, number: int) -> None:
    assert priority_of({PRIORITY: text}) == number


@pytest.mark.parametrize(
    ("annotation", "text", "told"),
    [
        (ORDER, "", "'' is no name of a worker"),
        (ORDER, "east,,west", "'' is no name of a worker"),
        (ORDER, "region=eu", "'region=eu' is no name of a worker; write names or globs such as east,eu-*"),
        (ORDER, ",".join(f"w{n}" for n in range(33)), "more than 32 workers"),
        (SPREAD, "", "'' is no name of a label"),
        (SPREAD, "zone in (a)", "'zone in (a)' is no name of a label"),
        (PRIORITY, "high", "'high' is no priority"),
        (PRIORITY, "1.5", "'1.5' is no priority"),
        (PRIORITY, "1000000001", "write a whole number from -1000000000 to 1000000000"),
        (PRIORITY, "٣", "is no priority"),
    ],
)
def test_what_cannot_be_understood_is_said_with_the_way_out(annotation: str, text: str, told: str) -> None:
    with pytest.raises(BadPreference) as caught:
        {ORDER: order_of, SPREAD: spread_of, PRIORITY: priority_of}[annotation]({annotation: text})
    assert told in str(caught.value)


def test_a_spread_that_cannot_be_read_is_not_counted() -> None:
    """Who counts must not fail where somebody else says what is wrong."""
    assert spread_key_of({SPREAD: "a b"}) == ""
    assert spread_key_of({SPREAD: "topology.kubernetes.io/zone"}) == "topology.kubernetes.io/zone"
