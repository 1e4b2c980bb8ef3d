"""What follows what in a campaign: storms, and losses in which Jobs move, some of which outlast leases. Pure.

``storms`` and ``losses`` play them. A new leader moves nothing in its first minute, so that in a loss managers and the
management cluster are left alone but for its *strikes*, which come when Jobs begin to move, or may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

STORM, LOSS, STRUCK = "storm", "loss", "struck loss"
OUTLASTED, LAST_MINUTE, RESTARTED = "outlasted lease", "return in the last minute", "restart before the lease ends"
UNANSWERED, UNMANAGED, BREACHED = "unanswered renewal", "managers away", "lease that nobody enforces"
WITH_A_LEASE_SECONDS = 1_500.0
"""In campaigns that take so long every other loss outlasts leases."""


class Moment(Enum):
    """When a strike comes."""

    EARLY = "in the first half minute"
    MIDDLE = "while the lease still lasts"
    AT_FIRST_MOVE = "within 300 ms after the first move"
    AT_RETURN = "in the first second after the way is whole again"


Strikes = Mapping[Moment, str]
"""What becomes of the leader, or of a program of the management cluster, by the name in ``faults``."""
KILL = "kill"
OTHERS = (
    *("kill kube-apiserver", "freeze", "stall answers", "cut", "refuse", "stop"),
    *("freeze etcd", "full etcd", "lose answers"),
)
_ALL = (KILL, *OTHERS)


@dataclass(frozen=True, slots=True)
class Era:
    """A part of the campaign."""

    name: str
    seconds: float
    away_seconds: float = 0.0
    """How long the worker is lost, which is whole again for what is left; of ``UNMANAGED``: how long nobody leads."""
    strikes: Strikes = field(default_factory=dict, hash=False)
    is_forgotten: bool = False
    """Whether an operator declares the worker dead, which is wrong."""

    @property
    def is_loss(self) -> bool:
        """Whether something is away in most of it, and is chosen for that."""
        return self.name != STORM


LEASES = (
    # A lease of five minutes, its margin of two, the pods' grace period, and time to see it; up to 100 s more where the
    # leader is new, and counts from what is written down for the worker.
    Era(OUTLASTED, 590.0, 580.0),
    # Less than a minute of the lease is left, which is not renewed any more, and ends while its worker is reachable.
    Era(LAST_MINUTE, 330.0, 255.0),
    # Who takes over counts from what is written down in any case.
    Era(RESTARTED, 590.0, 580.0, {Moment.MIDDLE: KILL}),
    # A renewal is waited for, which comes after a third of the lease at the latest.
    Era(UNANSWERED, 620.0, 610.0),
    Era(UNMANAGED, 390.0, 340.0),
    # What would end the copies there is frozen meanwhile, so that they run on beside those that were made since.
    Era(BREACHED, 630.0, 590.0),
)
"""How leases end. The clocks of managers are left alone: whoever has seen one jump distrusts leases for minutes."""
OUTLASTING = (OUTLASTED, RESTARTED, UNANSWERED, BREACHED)
"""Those in which a worker is lost for longer than leases last, so that what is fenced leaves it."""


def eras(seconds: float, seed: int) -> Iterator[Era]:
    """Storms and losses in turns, together so long; a loss that would be cut short is a storm.

    Every other loss is struck, and the first move of the first one is followed by a kill. The others are calm, or in
    long campaigns ``LEASES`` in turns, of which the seed says the first.
    """
    left, number = seconds, 0
    while left > 0:
        era = Era(STORM, 75.0)
        if number % 2:
            era = _loss(number // 2, seed, is_long=seconds >= WITH_A_LEASE_SECONDS)
        if left < era.seconds:
            era = Era(STORM, left)
        yield era
        left -= era.seconds
        number += 1


def _loss(number: int, seed: int, *, is_long: bool) -> Era:
    turn = number // 2
    if number % 2:
        return LEASES[(seed + turn) % len(LEASES)] if is_long else Era(LOSS, 110.0, 108.0)
    strikes = {
        Moment.EARLY: _ALL[(seed + turn) % len(_ALL)],
        Moment.AT_FIRST_MOVE: OTHERS[(seed + turn // 2) % len(OTHERS)] if turn % 2 else KILL,
        Moment.AT_RETURN: _ALL[(seed + 3 * turn + 1) % len(_ALL)],
    }
    return Era(STRUCK, 200.0, 190.0, strikes, is_forgotten=bool(turn % 2))
