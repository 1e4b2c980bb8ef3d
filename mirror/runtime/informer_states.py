"""What an informer is at, and how its attempts end: pure, with what follows for the next one. Used by ``informer``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never

QUIET_SECONDS = 120.0
LASTED_SECONDS = 1.0


class Phase(Enum):
    """The name of an informer's state, for health pages."""

    LISTING = "listing"
    WATCHING = "watching"
    BACKING_OFF = "backing off"
    ABSENT = "not served"


@dataclass(frozen=True, slots=True)
class Listing:
    """It learns what there is: by a watch that begins with all objects, or page by page."""


@dataclass(frozen=True, slots=True)
class Resuming:
    """It has asked for the changes since the last version, which a list or an earlier watch has shown."""


@dataclass(frozen=True, slots=True)
class Watching:
    """It follows changes: the server has accepted that."""

    since: float


@dataclass(frozen=True, slots=True)
class BackingOff:
    """The last attempts failed: it waits, or until somebody knows that the server answers again."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Absent:
    """The resource is not served: what is known of it stays, nobody waits for it, and it is asked for again."""


State = Listing | Resuming | Watching | BackingOff | Absent


class AttemptEnd(Enum):
    """How a list or a watch has ended, where it was not cancelled."""

    CLOSED = "closed"
    """By the server, as each watch is after some minutes; or a list was whole."""
    EXPIRED = "expired"
    """The version to go on from is gone: only a new list shows what was missed."""
    REFUSED = "refused"
    """We may not: only a new list proves that the rights are back."""
    BROKEN = "broken"
    """The connection, or an answer that is none."""
    ABSENT = "absent"
    """The server does not serve it, or did not let us look whether it does."""


def failures_after(before: int, end: AttemptEnd, *, watched_seconds: float | None) -> int:
    """How many attempts have failed in a row; ``watched_seconds``: how long the last one watched, None: not at all."""
    lasted = watched_seconds is not None and watched_seconds > LASTED_SECONDS
    match end:
        case AttemptEnd.CLOSED if watched_seconds is None:
            failures = before
        case AttemptEnd.CLOSED:
            failures = 0 if lasted else before + 1  # a server that ends each watch at once must not be hammered
        case AttemptEnd.BROKEN:
            failures = 1 if lasted else before + 1  # one that ran for a while and broke is no repeated failure
        case AttemptEnd.EXPIRED | AttemptEnd.REFUSED | AttemptEnd.ABSENT:
            failures = before + 1
        case _:
            assert_never(end)
    if watched_seconds is not None and watched_seconds > QUIET_SECONDS:
        return min(failures, 1)
    return failures


def phase_of(state: State) -> Phase:
    """What a state is called."""
    match state:
        case Listing():
            return Phase.LISTING
        case Resuming() | Watching():
            return Phase.WATCHING
        case BackingOff():
            return Phase.BACKING_OFF
        case Absent():
            return Phase.ABSENT
        case _:
            assert_never(state)
