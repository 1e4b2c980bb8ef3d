"""Which part of the work one instance of mirroring does: all, a slot's workers, or assigning workers (S1, S2). Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from mirror.sharding.slots import Slot, slot_of_worker


class Part(Enum):
    """What of one source is done by who has a share (S2)."""

    ALL = "all"
    NONE = "none"
    HOLDER = "holder"
    """It follows the source on its worker."""
    FORMER = "former"
    """The source was moved from a worker of ours: the copy there may count after all (D14)."""
    ASSIGNER = "assigner"
    """It gives the source a worker."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of the workers, and of the sources; by default it is everything there is."""

    slot: Slot | None = None
    """Of whose workers; None: of all."""
    slots: int = 1
    """Where there is no ``slot``: how many others follow what is placed; 1: nobody does."""

    @property
    def is_whole(self) -> bool:
        """Whether there is no other share: nobody else writes anything of it."""
        return self.slot is None and self.slots == 1

    @property
    def slot_count(self) -> int:
        """How many slots there are, of which this is one, or whose workers it assigns."""
        return self.slots if self.slot is None else self.slot.of

    @property
    def assigns(self) -> bool:
        """Whether it gives workers to sources that have none."""
        return self.slot is None

    @property
    def follows(self) -> bool:
        """Whether it is connected to its workers, and writes what becomes of the sources that are placed on them."""
        return self.slot is not None or self.slots == 1

    def has(self, worker: str) -> bool:
        """Whether a worker of this name is in it."""
        return self.slot is None or slot_of_worker(worker, self.slot.of) == self.slot

    def keeps(self, placed: str | None, left_on: Iterable[str] = ()) -> bool:
        """Whether a source that is placed there has to be known; ``left_on``: workers where copies of it were left."""
        if self.assigns or (placed is not None and self.has(placed)):
            return True
        return placed is not None and any(self.has(worker) for worker in left_on)

    def is_elsewhere(self, placed: str | None) -> bool:
        """Whether a source that is placed there is another slot's."""
        return self.slot is not None and placed is not None and not self.has(placed)

    def part_of(self, placed: str | None, *, is_found: bool, is_requested: bool) -> Part:
        """What is done of such a source.

        Args:
            placed: the worker that is recorded.
            is_found: it has none, and its mirror is on a worker of ours.
            is_requested: the holder of its worker's slot requests another one.
        """
        if self.is_whole:
            return Part.ALL
        if self.slot is None:
            return Part.ASSIGNER if placed is None or is_requested else Part.NONE
        if placed is None:
            return Part.HOLDER if is_found else Part.NONE
        return Part.HOLDER if self.has(placed) else Part.FORMER


EVERYTHING = Share()
