"""What an evaluation costs, counted while it runs. Pure, but for a look at the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import thread_time
from typing import Any, TypeAlias

from mirror.embedded.apiserver.cel.times import CostExceeded

_LONGEST_SECONDS = 1.0
"""Of processor time, of one evaluation: a bound for what costs do not show, as comparing
large values again and again."""
_EACH = 64
"""Calls and items between two looks at the clock."""


class Meter:
    """What an evaluation has cost, and may cost."""

    __slots__ = ("_end", "_looks", "cost", "limit")

    def __init__(self, limit: int) -> None:
        self.cost = 0
        self.limit = limit
        self._looks = 0
        self._end = thread_time() + _LONGEST_SECONDS

    def check(self) -> None:
        """Raises CostExceeded: it has cost too much, or taken too long."""
        self._looks += 1
        if self.cost > self.limit or (self._looks % _EACH == 0 and thread_time() > self._end):
            raise CostExceeded


Variables: TypeAlias = Mapping[str, Any]
Step: TypeAlias = Callable[[Variables, Meter], Any]
