"""Which number of slots is in force, as the record of workers says it, and how it becomes another (S10, S11). Pure.

States and what must stay true are in decision 0031.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from mirror.model.terms import CARRIED_OUT_SECONDS

UNREADABLE = 0
"""No number of slots: what somebody else has written there is waited out like any other number."""


class InForce(NamedTuple):
    """What the annotation ``names.SLOTS`` of the record says."""

    slots: int = 1
    """So many have those who may work now."""
    lease_seconds: float = 0.0
    """No Lease of theirs lasts longer; 0: that is not said."""
    mark: str = ""
    """Of whoever assigns: another one each time, so that what one before has under way meets another version."""

    @staticmethod
    def of(text: str) -> InForce:
        """As it is written; nothing is written where there are no slots."""
        if not text:
            return InForce()
        slots, _, rest = text.partition(" ")
        seconds, _, mark = rest.partition(" ")
        if not all(one.isascii() and one.isdigit() and 0 < len(one) < 6 for one in (slots, seconds)):
            return InForce(UNREADABLE)
        return InForce(int(slots), float(seconds), mark)

    def __str__(self) -> str:
        """Whole seconds, not fewer."""
        if self.slots == 1:
            return ""
        return f"{self.slots} {-int(-self.lease_seconds // 1)} {self.mark}".rstrip()


class Step(Enum):
    """What who begins to work does next."""

    BEGIN = "begin"
    """Its number is in force."""
    WRITE = "write"
    """It writes ``to_write``, upon the version of the record that it has read."""
    WAIT_OUT = "wait out"
    """``seconds_to_wait``, in which all ends that those with another number have begun; then it reads again."""
    WAIT_FOR_ASSIGNER = "wait for assigner"
    """Only who assigns changes the number."""


def next_step(found: InForce | None, mine: InForce, *, assigns: bool, waited_for: InForce | None) -> Step:
    """What who begins to work does.

    Args:
        found: what the record says; None: there is no record, so nobody has worked yet.
        mine: of who begins.
        assigns: it holds the Lease of whoever assigns, or leads alone.
        waited_for: what it has waited for, since it holds that Lease: one with longer Leases may have come since.
    """
    if found is None:
        return Step.WRITE
    if found.slots != mine.slots:
        if not assigns:
            return Step.WAIT_FOR_ASSIGNER
        if waited_for is None or waited_for.slots != found.slots or waited_for.lease_seconds < found.lease_seconds:
            return Step.WAIT_OUT
        return Step.WRITE
    if mine.slots == 1:
        return Step.BEGIN  # what it may do depends on that Lease itself
    is_said = found.lease_seconds >= mine.lease_seconds and (not assigns or found.mark == mine.mark)
    return Step.BEGIN if is_said else Step.WRITE


def to_write(found: InForce | None, mine: InForce, *, assigns: bool) -> InForce:
    """What who begins writes; that Leases last longer is never taken back: who had them may hold one still."""
    if found is None or found.slots != mine.slots:
        return mine
    longest = max(found.lease_seconds, mine.lease_seconds)
    return InForce(mine.slots, longest, mine.mark if assigns else found.mark)


def seconds_to_wait(found: InForce, mine: InForce) -> float:
    """Until nothing of another number is under way: no Lease is valid, and what was sent has been carried out (S8)."""
    return (found.lease_seconds or mine.lease_seconds) + CARRIED_OUT_SECONDS
