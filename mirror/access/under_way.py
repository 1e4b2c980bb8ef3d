"""How many of something are under way at once, and when no more may begin. What all of ``access`` is bounded by.

Not here: how many come in a second (``reviews``), and how many may be (``bounds``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mirror.access.answers import StatusError


class Most(NamedTuple):
    """A bound."""

    key: Hashable
    """What is counted together."""
    most: int
    text: str
    """Why no more may begin."""


class TooMany(StatusError):
    """429: as many are under way as may."""


class UnderWay:
    """Counts. Invariant: what is not under way has no entry."""

    def __init__(self, *, retry_after_seconds: int = 1) -> None:
        self._retry_after_seconds = retry_after_seconds
        self._counts: Counter[Hashable] = Counter()

    @contextmanager
    def one_more(self, bounds: Iterable[Most]) -> Iterator[None]:
        """While it is under way, it counts for each of these bounds.

        ``bounds``: taken one by one up to the first that is reached.

        Raises:
            TooMany: one is.
        """
        keys = []
        for bound in bounds:
            if self._counts[bound.key] >= bound.most:
                raise TooMany(429, bound.text, retry_after_seconds=self._retry_after_seconds)
            keys.append(bound.key)
        self._counts.update(keys)
        try:
            yield
        finally:
            for key in keys:
                self._counts[key] -= 1
                if not self._counts[key]:
                    del self._counts[key]
