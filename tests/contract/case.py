"""Cases by name and group. A case is a function that asks a server things and asserts what it says.

Its name is a sentence: that of the function with spaces, or that in a script. Not here: how they are played.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.contract.api import Api

Play: TypeAlias = Callable[[Api], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Case:
    """One behaviour."""

    group: str
    name: str
    play: Play
    is_alone: bool = False
    """Whether it disturbs others, so that it is played after all of them."""

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"


@dataclass(slots=True)
class Group:
    """The cases of one subject; names are unique in it."""

    name: str
    cases: list[Case] = field(default_factory=list)

    def case(self, play: Play) -> Play:
        """Decorates a case that is a function of its own."""
        self.add(getattr(play, "__name__", "").replace("_", " "), play)
        return play

    def alone(self, play: Play) -> Play:
        """Decorates a case that disturbs others."""
        self.add(getattr(play, "__name__", "").replace("_", " "), play, is_alone=True)
        return play

    def add(self, name: str, play: Play, *, is_alone: bool = False) -> None:
        """A case, for those that come from tables."""
        assert name not in {one.name for one in self.cases}, name
        self.cases.append(Case(self.name, name, play, is_alone))
