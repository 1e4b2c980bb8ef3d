"""What a slot is, and which workers are in it. Pure.

A *slot* is a share of the workers; one replica at a time works on it, and its Lease says which. The number of slots
is in the name of the Lease, so that replicas with other settings share none by mistake (S3).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from mirror.model import names

_OFFSET, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, 0xFFFFFFFFFFFFFFFF
_NAME = re.compile(rf"{re.escape(names.SLOT_LEASE)}-(\d{{2,4}})-of-(\d{{2,4}})")

MOST_REMEMBERED = 4096
"""Names whose hash is not computed again: each event of a source, and each look at what holds a move, asks for some."""


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """One of ``of`` slots, counted from 0."""

    index: int
    of: int

    @property
    def suffix(self) -> str:
        """Of the names of what belongs to it; texts of equal length, so that they are listed in order."""
        return _suffix(self.index, self.of)

    @property
    def lease(self) -> str:
        """The name of its Lease."""
        return names.SLOT_LEASE + self.suffix

    def __str__(self) -> str:
        return f"{self.index} of {self.of}"


@lru_cache(maxsize=MOST_REMEMBERED)
def _suffix(index: int, of: int) -> str:
    width = max(2, len(str(of - 1)))
    return f"-{index:0{width}d}-of-{of:0{width}d}"


def slot_of_lease(name: str) -> Slot | None:
    """The slot that a Lease of this name is of; None for any other Lease."""
    found = _NAME.fullmatch(name)
    slot = Slot(int(found[1]), int(found[2])) if found is not None else None
    return slot if slot is not None and slot.index < slot.of and slot.lease == name else None


def is_member_lease(name: str) -> bool:
    """Whether a Lease of this name says that a member is there."""
    return name.startswith(f"{names.MEMBER_LEASE}-")


@lru_cache(maxsize=MOST_REMEMBERED)
def slot_of_worker(name: str, slots: int) -> Slot:
    """The slot that a worker is in: by its name alone, so that no replica can be late to know it."""
    found = fnv1a(name)
    return Slot((found ^ found >> 32) % slots, slots)  # its lowest bits alone are those of the letters


def fnv1a(text: str) -> int:
    """The 64-bit FNV-1a hash of a text: the same on every replica, whatever its version of Python."""
    value = _OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & _MASK
    return value


def term_id(uid: str, transitions: int) -> str:
    """The term of a Lease: the same for no other time of holding it, nor for another Lease of its name (S6)."""
    return f"{fnv1a(f'{uid}/{transitions}'):016x}"


def score(member: str, slot: Slot) -> int:
    """How much a slot belongs to a member (rendezvous): the highest of all members is its favourite."""
    # FNV-1a spreads its last bytes little: what differs comes first, and the rest mixes it.
    return fnv1a(f"{member}/{slot.index}/{member}")
