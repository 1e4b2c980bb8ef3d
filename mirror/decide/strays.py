"""Has an object on a worker that carries our labels still a right to be there? Pure (D1, D2, D10)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Right(Enum):
    """The answer."""

    STAYS = "stays"
    GOES = "goes"
    ASK = "ask"
    """Only the management cluster itself can tell; the sweep asks."""


@dataclass(frozen=True, slots=True)
class MirrorSeen:
    """A mirror, and what the cache says about its source."""

    worker: str
    source_uid: str
    is_going: bool
    source_exists: bool = False
    """A source of that name with that uid is in the cache."""
    source_is_deleting: bool = False
    placed: str | None = None
    is_gone: bool = False
    """The deletion of a source with that uid was seen."""


def right_to_stay(seen: MirrorSeen) -> Right:
    """Judge one mirror."""
    if seen.is_going:
        return Right.STAYS
    if seen.source_exists:
        if seen.source_is_deleting:
            return Right.GOES
        return Right.STAYS if seen.placed in (None, seen.worker) else Right.ASK
    return Right.GOES if seen.is_gone else Right.ASK


def is_too_many(going: int, mirrors: int) -> bool:
    """Whether a sweep must halt: more would go at once than max(20, 10 %) of a worker's mirrors (D10)."""
    return going > max(20, mirrors // 10)
