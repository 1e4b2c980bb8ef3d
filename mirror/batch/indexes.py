"""Index text (``0-3,7,9``) as sorted intervals; completedIndexes, failedIndexes and succeededIndexes are written in it.

Whoever reads a worker's text must survive ``0-999999999``: intervals are never expanded, so the cost depends on the
length of the text only. Two readers: a strict one that refuses as the API does (X1, X2), a lenient one that takes what
makes sense (I1).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from mirror.batch.quoting import quoted

Intervals: TypeAlias = tuple[tuple[int, int], ...]
"""First and last index of each run: ascending, not overlapping, not touching."""

_INTEGER = re.compile(r"\+?([0-9]+)", re.ASCII)
_LARGEST = 2**63 - 1


class BadIndexes(ValueError):
    """The text breaks the grammar; the message is the API's (X1)."""


def parse(text: str, completions: int) -> Intervals:
    """Read a text by the API's grammar.

    Raises:
        BadIndexes: with the message that the API server gives (X1, X2).
    """
    if not text:
        return ()
    found: list[tuple[int, int]] = []
    for piece in text.split(","):
        first, last = _parse_piece(piece, completions)
        if found and found[-1][1] >= first:
            raise BadIndexes(f"non-increasing order, previous: {found[-1][1]}, current: {first}")
        found.append((first, last))
    return _merged(found)


def read(text: str, completions: int) -> Intervals:
    """Read what makes sense of a text: bad pieces are skipped, the first start beyond the completions ends it (I1).

    For a text that the API accepted this is the same as ``parse``, clipped.
    """
    found: list[tuple[int, int]] = []
    for piece in text.split(",") if text else ():
        start, dash, end = piece.partition("-")
        first = _integer(start)
        last = _integer(end) if dash else first
        if first is not None and first >= completions:
            break
        if first is None or last is None or last < first:
            continue
        found.append((first, min(last, completions - 1)))
    return _merged(found)


def write(intervals: Intervals) -> str:
    """The text that the Job controller writes: runs of three or more as ``a-b``, two neighbours as ``a,b`` (I1)."""
    return ",".join(
        str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"
        for first, last in intervals
    )


def count(intervals: Intervals) -> int:
    """How many indexes there are."""
    return sum(last - first + 1 for first, last in intervals)


def union(one: Intervals, other: Intervals) -> Intervals:
    """The indexes in either."""
    return one if one == other else _merged((*one, *other))


def minus(one: Intervals, other: Intervals) -> Intervals:
    """The indexes of the first that are not in the second."""
    if not one or not other:
        return one
    left: list[tuple[int, int]] = []
    taken = 0
    for interval in one:
        first, last = interval
        while taken < len(other) and other[taken][1] < first:
            taken += 1
        position = taken
        while position < len(other) and other[position][0] <= last:
            if other[position][0] > first:
                left.append((first, other[position][0] - 1))
            first = other[position][1] + 1
            position += 1
        if first <= last:
            left.append((first, last))
    return tuple(left)


def first_overlap(completed: str, failed: str, completions: int) -> int | None:
    """The index that V27 names: the first one met in both texts when walking them side by side, bad pieces skipped."""
    left = _good_pieces(completed, completions)
    right = _good_pieces(failed, completions)
    at, against = 0, 0
    while at < len(left) and against < len(right):
        (first, last), (other_first, other_last) = left[at], right[against]
        if first <= other_last and other_first <= last:
            return max(first, other_first)
        if first <= other_first:
            at += 1
        else:
            against += 1
    return None


def _parse_piece(piece: str, completions: int) -> tuple[int, int]:
    parts = piece.split("-")
    if len(parts) > 2:
        raise BadIndexes(
            f"the fragment {quoted(piece)} violates the requirement that an index interval can have at most two parts"
            " separated by '-'"
        )
    first = _parse_bound(parts[0], completions)
    if len(parts) == 1:
        return first, first
    last = _parse_bound(parts[1], completions)
    if first >= last:
        raise BadIndexes(f"non-increasing order, previous: {first}, current: {last}")
    return first, last


def _parse_bound(text: str, completions: int) -> int:
    found = _integer(text)
    if found is None:
        raise BadIndexes(f"cannot convert string to integer for index: {quoted(text)}")
    if found >= completions:
        raise BadIndexes(f"too large index: {quoted(text)}")
    return found


def _integer(text: str) -> int | None:
    """As Go's Atoi reads it: a plus and leading zeros pass, anything beyond 64 bits does not (X2)."""
    if len(text) < 19 and text.isdecimal() and text.isascii():
        return int(text)
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    # Python refuses to convert very long digit strings, however many of the digits are zeros.
    digits = found[1].lstrip("0") or "0"
    value = int(digits) if len(digits) <= 19 else _LARGEST + 1
    return value if value <= _LARGEST else None


def _good_pieces(text: str, completions: int) -> list[tuple[int, int]]:
    found = []
    for piece in text.split(",") if text else ():
        try:
            found.append(_parse_piece(piece, completions))
        except BadIndexes:
            continue
    return found


def _merged(intervals: Iterable[tuple[int, int]]) -> Intervals:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)
