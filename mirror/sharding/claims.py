"""Which slots a replica takes and gives back, from what it sees of all (S3, S4). Pure.

Each replica decides for itself, from a view that may be some seconds old: two may want the same slot, and its Lease
lets one of them have it. What is decided here is only who tries, when, and who makes room for whom.

Slots go to members by rendezvous, so that each has a favourite that all agree on; a member that has its share stands
behind those that have not. Nothing moves while all have as many as any other, or one less: favourites matter only for
what is free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mirror.sharding.slots import Slot, score

TURN_SECONDS = 2.0
"""A free slot is the first one's at once, the second's after this, and so on: none waits for one that is sick."""
JOINED_SECONDS = 2.0
"""So long a replica that has just begun takes nothing: it may not know the others yet."""
STEADY_SECONDS = 30.0
"""So long a member must have been there, and ready, before others make room for it."""


@dataclass(frozen=True, slots=True)
class Board:
    """What one replica sees of all slots and members at one moment."""

    me: str
    slots: int
    members: Mapping[str, float]
    """Those that are alive and ready, and for how many seconds they have been; without ``me`` it takes nothing."""
    holders: Mapping[int, str]
    """Who holds a slot, by its index; a holder need not be a member any more."""
    free_for: Mapping[int, float] = field(default_factory=dict)
    """Slots that nobody holds, by index, and for how many seconds."""

    @property
    def counts(self) -> Counter[str]:
        """How many slots each holder has."""
        return Counter(self.holders.values())


@dataclass(frozen=True, slots=True)
class Decision:
    """What a replica does now, and when it has to look again although nothing has changed."""

    claim: tuple[int, ...] = ()
    give_back: tuple[int, ...] = ()
    look_again_seconds: float | None = None


def decide(board: Board) -> Decision:
    """What this replica takes and gives back now."""
    claimed, wait = _claims(board)
    given = _given_back(board) if not board.free_for else ()
    waits = [one for one in (wait, _until_steady(board)) if one is not None]
    return Decision(claimed, given, min(waits, default=None))


def _claims(board: Board) -> tuple[tuple[int, ...], float | None]:
    """Free slots whose turn for this replica has come, and the seconds until the next one's has."""
    ready_for = board.members.get(board.me)
    if ready_for is None:
        return (), None
    if ready_for < JOINED_SECONDS:
        return (), JOINED_SECONDS - ready_for
    counts, claimed, waits = board.counts, [], []
    for index, free_for in sorted(board.free_for.items()):
        slot = Slot(index, board.slots)
        ranked = sorted(board.members, key=lambda one: (counts[one], -score(one, slot), one))
        left = ranked.index(board.me) * TURN_SECONDS - free_for
        if left > 0:
            waits.append(left)
        else:
            claimed.append(index)
        counts[ranked[0]] += 1
    return tuple(claimed), min(waits, default=None)


def _given_back(board: Board) -> tuple[int, ...]:
    """The slot that this replica gives back so that another one has as many: one at a time, when nothing is free."""
    mine = [index for index, holder in board.holders.items() if holder == board.me]
    receiver = next((to for giver, to in _moves(board) if giver == board.me), None)
    if receiver is None:
        return ()
    return (max(mine, key=lambda index: (score(receiver, Slot(index, board.slots)), -index)),)


def _moves(board: Board) -> Iterator[tuple[str, str]]:
    """Who gives a slot to whom until all have as many as any other, or one less; the same on each replica."""
    steady = [one for one, ready_for in board.members.items() if ready_for >= STEADY_SECONDS]
    counts = board.counts
    if not steady:
        return
    while True:
        giver = min(counts, key=lambda one: (-counts[one], one), default=None)
        receiver = min(steady, key=lambda one: (counts[one], one))
        if giver is None or counts[giver] - counts[receiver] < 2:
            return
        yield giver, receiver
        counts[giver] -= 1
        counts[receiver] += 1


def _until_steady(board: Board) -> float | None:
    """Until the next member has been there for long enough to be made room for."""
    left = [STEADY_SECONDS - ready_for for ready_for in board.members.values() if ready_for < STEADY_SECONDS]
    return min(left, default=None)
