"""What is under way at once is counted, for each of its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest

from mirror.access.under_way import Most, TooMany, UnderWay

OF_ANN, OF_BOB, IN_ALL = Most("ann", 1, "ann has 1"), Most("bob", 5, "bob has 5"), Most("all", 2, "2 in all")


def tried(counts: UnderWay, bounds: Iterable[Most]) -> str:
    """Why no more may begin; empty: it may."""
    try:
        with counts.one_more(bounds):
            return ""
    except TooMany as refused:
        return f"{refused.code}: {refused.message}"


def fail(counts: UnderWay) -> None:
    """While one of ann's is under way."""
    with counts.one_more([OF_ANN, IN_ALL]):
        assert tried(counts, [OF_ANN, IN_ALL]) == "429: ann has 1"
        raise ZeroDivisionError


def test_it_counts_until_it_ends_however_it_ends() -> None:
    counts = UnderWay()
    with pytest.raises(ZeroDivisionError):
        fail(counts)
    assert tried(counts, [OF_ANN, IN_ALL]) == ""


def test_each_bound_counts_for_itself() -> None:
    counts = UnderWay()
    with counts.one_more([OF_ANN, IN_ALL]):
        assert tried(counts, [OF_BOB, IN_ALL]) == ""
        with counts.one_more([OF_BOB, IN_ALL]):
            assert tried(counts, [OF_BOB, IN_ALL]) == "429: 2 in all"


def test_nothing_is_made_for_bounds_after_one_that_is_reached() -> None:
    """A bound may have something to be remembered for it: who is refused costs nothing."""
    counts = UnderWay()

    def bounds() -> Iterator[Most]:
        yield OF_ANN
        raise AssertionError("it goes on")

    with counts.one_more([OF_ANN]):
        assert tried(counts, bounds()) == "429: ann has 1"
