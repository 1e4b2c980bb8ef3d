"""Has an object on a worker that carries our labels still a right to be there? Pure (D1, D2, D10)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MirrorVerdict(Enum):
    """The answer."""

    KEEP = "keep"
    DELETE = "delete"
    CHECK_LIVE = "check live"
    """Only the management cluster itself can tell; the sweep asks."""
    LEFT_BEHIND = "left behind"
    """Its source was moved from this worker (D14): ``controllers.returning``."""


@dataclass(frozen=True, slots=True)
class MirrorState:
    """A mirror, and what the cache says about its source."""

    worker: str
    source_uid: str
    is_going: bool
    source_exists: bool = False
    """A source of that name with that uid is in the cache."""
    source_is_deleting: bool = False
    placed: str | None = None
    source_is_finished: bool = False
    is_finished: bool = False
    """The mirror has ended: it runs no pods any more."""
    is_gone: bool = False
    """The deletion of a source with that uid was seen."""
    has_labels: bool = True
    """Both of ours: without them it is not ours, unless it is recorded."""
    is_recorded: bool = False
    """A source in the cache has recorded its uid; ``source_exists`` speaks of that source."""
    is_recorded_gone: bool = False
    """A source that had recorded its uid was seen to be deleted."""
    is_left_behind: bool = False
    """Its source was moved from this worker, and says that this may be what it left there."""


def classify_mirror(seen: MirrorState) -> MirrorVerdict:
    """Judge one mirror."""
    if seen.is_going:
        return MirrorVerdict.KEEP
    if seen.source_exists or seen.is_recorded:
        if seen.source_is_deleting:
            # That of another management cluster may name a source of ours, by mistake (D1).
            is_ours = seen.has_labels or seen.is_recorded or seen.is_left_behind
            return MirrorVerdict.DELETE if is_ours else MirrorVerdict.KEEP
        if seen.is_left_behind:
            return MirrorVerdict.LEFT_BEHIND
        # A worker may have got another name since: what has ended is kept as long as its source (D8).
        is_over = seen.source_is_finished and seen.is_finished
        is_here = seen.is_recorded or is_over or seen.placed in (None, seen.worker)
        return MirrorVerdict.KEEP if is_here else MirrorVerdict.CHECK_LIVE
    if seen.is_recorded_gone:
        return MirrorVerdict.DELETE
    if not seen.has_labels:
        return MirrorVerdict.KEEP
    return MirrorVerdict.DELETE if seen.is_gone else MirrorVerdict.CHECK_LIVE


def is_too_many(going: int, mirrors: int) -> bool:
    """Whether a sweep must halt: more would go at once than max(20, 10 %) of a worker's mirrors (D10)."""
    return going > max(20, mirrors // 10)
