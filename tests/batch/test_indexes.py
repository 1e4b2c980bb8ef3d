"""Index text: the API's grammar and words, lenient reading, and arithmetic that never expands an interval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.batch import indexes
from mirror.batch.indexes import BadIndexes, Intervals

ACCEPTED = {
    "nothing": ("", ()),
    "one": ("3", ((3, 3),)),
    "runs and singles": ("0-2,4,6-7", ((0, 2), (4, 4), (6, 7))),
    "neighbours that are not written as a run": ("0,1,2", ((0, 2),)),
    "leading zeros": ("00,07-08", ((0, 0), (7, 8))),
    "a plus": ("+1-+3", ((1, 3),)),
    "thousands of zeros": ("0" * 5000 + "4", ((4, 4),)),
}
REFUSED = {
    "three parts": (
        "0-1-2",
        'the fragment "0-1-2" violates the requirement that an index interval can have at most two parts separated'
        " by '-'",
    ),
    "a word": ("0,x", 'cannot convert string to integer for index: "x"'),
    "a blank": (" 1", 'cannot convert string to integer for index: " 1"'),
    "a negative number": ("-1", 'cannot convert string to integer for index: ""'),
    "an open end": ("1-", 'cannot convert string to integer for index: ""'),
    "an empty piece": ("1,,3", 'cannot convert string to integer for index: ""'),
    "digits of another script": ("٣", 'cannot convert string to integer for index: "٣"'),
    "more than 64 bits": ("9223372036854775808", 'cannot convert string to integer for index: "9223372036854775808"'),
    "the completions": ("10", 'too large index: "10"'),
    "an end beyond the completions": ("3-10", 'too large index: "10"'),
    "a run of one": ("3-3", "non-increasing order, previous: 3, current: 3"),
    "a run backwards": ("4-2", "non-increasing order, previous: 4, current: 2"),
    "a piece twice": ("1,1", "non-increasing order, previous: 1, current: 1"),
    "a piece inside the one before": ("1-4,3", "non-increasing order, previous: 4, current: 3"),
    "control characters": ("1\n\x01", 'cannot convert string to integer for index: "1\\n\\x01"'),
}
LENIENT = {
    "bad pieces are skipped": ("x,1,-2,3-4-5,6-", ((1, 1),)),
    "a run backwards is skipped": ("5-3,6", ((6, 6),)),
    "touching runs become one": ("0-1,2,3-4", ((0, 4),)),
    "overlaps become one": ("0-5,2-3,4-7", ((0, 7),)),
    "disorder is sorted": ("7,1-2", ((1, 2), (7, 7))),
    "the end is clipped": ("7-999999999", ((7, 9),)),
    "the first start beyond the completions ends it": ("1,10,2", ((1, 1),)),
}
WRITTEN = {
    "nothing": ((), ""),
    "one": (((4, 4),), "4"),
    "two neighbours": (((4, 5),), "4,5"),
    "three in a row": (((4, 6),), "4-6"),
    "all of it": (((0, 0), (2, 3), (5, 9)), "0,2,3,5-9"),
}


@pytest.mark.parametrize(("text", "expected"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_the_grammar_allows_is_read(text: str, expected: Intervals) -> None:
    """X1, X2: the strict reader takes what the API takes."""
    assert expected == indexes.parse(text, 10)


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_breaks_the_grammar_is_refused_in_the_api_s_words(text: str, message: str) -> None:
    """X1, X2: the strict reader's message is the API's."""
    with pytest.raises(BadIndexes) as refused:
        indexes.parse(text, 10)

    assert message == str(refused.value)


@pytest.mark.parametrize(("text", "expected"), LENIENT.values(), ids=LENIENT)
def test_a_bad_text_is_read_as_far_as_it_makes_sense(text: str, expected: Intervals) -> None:
    """I1: the lenient reader never refuses."""
    assert expected == indexes.read(text, 10)


@pytest.mark.parametrize(("intervals", "text"), WRITTEN.values(), ids=WRITTEN)
def test_text_is_written_as_the_job_controller_writes_it(intervals: Intervals, text: str) -> None:
    """I1: runs of three or more with a dash, two neighbours with a comma."""
    assert text == indexes.write(intervals)


def test_a_billion_indexes_cost_nothing() -> None:
    """Nothing expands an interval: this test would not end otherwise."""
    billion = indexes.read("0-999999999", 10**9)
    holes = indexes.read("5,500-999", 10**9)

    left = indexes.minus(billion, holes)

    assert indexes.write(left) == "0-4,6-499,1000-999999999"
    assert indexes.count(left) == 10**9 - 501
    assert billion == indexes.union(left, holes)


@pytest.mark.parametrize(
    ("completed", "failed", "index"),
    [
        pytest.param("", "1", None, id="nothing completed"),
        pytest.param("0-2", "3,4", None, id="side by side"),
        pytest.param("0-5", "3,4", 3, id="inside"),
        pytest.param("4-6", "1-5", 4, id="across"),
        pytest.param("0,x,7", "y,7", 7, id="bad pieces skipped"),
        pytest.param("9,1", "1", None, id="out of order, walked past"),
    ],
)
def test_an_overlap_is_found_by_walking_both_texts(completed: str, failed: str, index: int | None) -> None:
    """V27: the index that the message names."""
    assert index == indexes.first_overlap(completed, failed, 10)


index_sets = st.sets(st.integers(0, 40))


def intervals_of(numbers: set[int]) -> Intervals:
    return indexes.read(",".join(map(str, sorted(numbers))), 10**6)


def numbers_of(intervals: Intervals) -> set[int]:
    return {number for first, last in intervals for number in range(first, last + 1)}


@given(index_sets, index_sets)
def test_intervals_behave_as_sets_of_numbers(one: set[int], other: set[int]) -> None:
    """Union, difference and counting agree with plain sets."""
    left, right = intervals_of(one), intervals_of(other)

    assert one == numbers_of(left)
    assert one | other == numbers_of(indexes.union(left, right))
    assert one - other == numbers_of(indexes.minus(left, right))
    assert len(one) == indexes.count(left)


@given(index_sets)
def test_what_is_written_is_read_back(numbers: set[int]) -> None:
    """The canonical text is valid, and both readers understand it."""
    intervals = intervals_of(numbers)
    text = indexes.write(intervals)

    assert intervals == indexes.parse(text, 41) == indexes.read(text, 41)


@given(st.text(alphabet="0123456789,-+ x", max_size=20), st.integers(0, 12))
def test_both_readers_agree_on_what_the_api_accepts(text: str, completions: int) -> None:
    """The lenient reader is a superset of the strict one, and its result is always writable."""
    lenient = indexes.read(text, completions)

    assert lenient == indexes.parse(indexes.write(lenient), completions)
    try:
        strict = indexes.parse(text, completions)
    except BadIndexes:
        return
    assert strict == lenient
