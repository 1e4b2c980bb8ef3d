"""What the Leases in the manager's namespace say of members and slots, on one replica's own clock. Pure.

No clock but our own is believed: a Lease has ended when it was not renewed for its duration since *we* first saw it as
it is, as in leader election (S5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mirror.kube.errors import BadAnswer
from mirror.kube.objects import Object
from mirror.model import names
from mirror.runtime.leadership import Sighting
from mirror.sharding.claims import Board
from mirror.sharding.slots import Slot, is_member_lease, slot_of_lease, term_id


@dataclass(frozen=True, slots=True)
class ObservedLease:
    """A Lease as it is, and since when we have seen it like that (``Clock.boottime``)."""

    holder: str
    version: str
    duration_seconds: float
    at: float
    slots: int | None = None
    """How many slots the settings of its holder have, if that says so."""
    is_ready: bool = False
    """Of a member: whether it could work."""
    address: str = ""
    """Of a member: where it is asked for what only it knows."""
    term: str = ""
    renewed: str = ""
    """When it was renewed, by its holder's clock: for people."""

    def is_live(self, now: float) -> bool:
        """Whether somebody holds it."""
        return bool(self.holder) and now < self.at + self.duration_seconds

    def free_since(self) -> float:
        """Since when nobody has held it, given that nobody does."""
        return self.at + self.duration_seconds if self.holder else self.at


class LeaseBoard:
    """All Leases that were ever reported and not deleted."""

    def __init__(self, me: str, slots: int) -> None:
        self.me = me
        self.slots = slots
        self._seen: dict[str, ObservedLease] = {}
        self._member_since: dict[str, float] = {}
        self._watching_since: float | None = None

    # -- what is reported ---------------------------------------------------------------------------------------------

    def begin(self, now: float) -> None:
        """All Leases are known from now on: a slot without one is free since then."""
        if self._watching_since is None:
            self._watching_since = now

    def note(self, found: Object, now: float) -> None:
        """A Lease is there, or has changed."""
        name, seen = found.metadata.name, observed_lease(found, now)
        before = self._seen.get(name)
        if before is None or (before.holder, before.version) != (seen.holder, seen.version):
            self._seen[name] = seen
        self._note_members(now)

    def remove(self, name: str, now: float) -> None:
        """A Lease was deleted."""
        self._seen.pop(name, None)
        self._note_members(now)

    def _note_members(self, now: float) -> None:
        ready = {member for member, seen in self._members(now) if seen.is_ready and seen.slots == self.slots}
        self._member_since = {one: self._member_since.get(one, now) for one in ready}

    # -- what follows -------------------------------------------------------------------------------------------------

    def holder_of(self, slot: Slot, now: float) -> str:
        """Who holds a slot; empty: nobody."""
        seen = self._seen.get(slot.lease)
        return seen.holder if seen is not None and seen.is_live(now) else ""

    def term_of(self, slot: Slot, now: float) -> str:
        """In which term a slot is held; empty: nobody holds it."""
        seen = self._seen.get(slot.lease)
        return seen.term if seen is not None and seen.is_live(now) else ""

    def address_of(self, member: str, now: float) -> str:
        """Where a member is asked for what only it knows; empty: it is not there, or does not say."""
        return next((seen.address for one, seen in self._members(now) if one == member), "")

    def addresses(self, now: float) -> frozenset[str]:
        """Where members are asked that are there."""
        return frozenset(seen.address for _, seen in self._members(now) if seen.address)

    def sighting_of(self, lease: str) -> Sighting | None:
        """Since when a Lease is as it is; None: there is none."""
        seen = self._seen.get(lease)
        return None if seen is None else Sighting(seen.holder, seen.version, seen.at, seen.duration_seconds)

    def managers(self, now: float) -> int | None:
        """How many managers there are, ready or not; None: our own Leases are not seen renewed, so nobody's may be."""
        there = {seen.holder for name, seen in self._seen.items() if _is_a_managers(name) and seen.is_live(now)}
        return len(there) if self.me in there else None

    def assigner(self, now: float) -> str:
        """Who assigns workers; empty: nobody."""
        seen = self._seen.get(names.LEASE)
        return seen.holder if seen is not None and seen.is_live(now) else ""

    def obstacle(self, now: float) -> str:
        """Why no slot may be taken now; empty: nothing speaks against it (S3).

        Replicas with other settings, or without slots, work on all that these would work on.
        """
        return self._other_number(now) if self.assigner(now) else "no replica assigns workers yet"

    def _other_number(self, now: float) -> str:
        """Who works with another number of slots than ours; empty: nobody does."""
        if problem := self.foreign_assigner(now):
            return problem
        for name, seen in self._seen.items():
            slot = slot_of_lease(name)
            if slot is not None and slot.of != self.slots and seen.is_live(now):
                return f"Lease {name} is held by {seen.holder}: its number of slots is another"
        return ""

    def foreign_assigner(self, now: float) -> str:
        """Why slots are to be given back: somebody with other settings assigns workers; empty: nobody does."""
        seen = self._seen.get(names.LEASE)
        if seen is None or not seen.is_live(now) or seen.slots == self.slots:
            return ""
        said = "has no slots" if seen.slots in (None, 1) else f"has {seen.slots} slots"
        return f"{seen.holder} assigns workers, and {said}: sharding.slots is {self.slots} here"

    def board(self, now: float) -> Board:
        """For ``claims.decide``."""
        self._note_members(now)
        holders: dict[int, str] = {}
        free: dict[int, float] = {}
        for index in range(self.slots):
            seen = self._seen.get(Slot(index, self.slots).lease)
            if seen is not None and seen.is_live(now):
                holders[index] = seen.holder
            elif self._watching_since is not None:
                since = self._watching_since if seen is None else max(self._watching_since, seen.free_since())
                free[index] = max(0.0, now - since)
        ready = {member: now - since for member, since in self._member_since.items()}
        return Board(self.me, self.slots, ready, holders, free)

    def unheld(self, now: float) -> Mapping[int, float]:
        """Slots that nobody works on, by index, and for how many seconds.

        None while that is not known: our own Leases are not seen renewed, or another number of slots is in force.
        """
        is_known = self.managers(now) is not None and not self._other_number(now)
        return self.board(now).free_for if is_known else {}

    def is_spokesman(self, now: float) -> bool:
        """Whether it is us who say to users what all replicas see: who assigns; without one, the first of all."""
        first = min((holder for holder, _ in self._members(now)), default="")
        return (self.assigner(now) or first) == self.me

    def until_next_end(self, now: float) -> float | None:
        """Seconds until the next Lease ends if nobody renews it; None: none is held."""
        ends = [seen.at + seen.duration_seconds - now for seen in self._seen.values() if seen.is_live(now)]
        return min(ends, default=None)

    def _members(self, now: float) -> Iterator[tuple[str, ObservedLease]]:
        for name, seen in self._seen.items():
            if is_member_lease(name) and seen.is_live(now):
                yield seen.holder, seen


def _is_a_managers(lease: str) -> bool:
    """Whether a Lease of this name is of what mirrors: others may have theirs in our namespace."""
    return lease == names.LEASE or is_member_lease(lease) or slot_of_lease(lease) is not None


def observed_lease(found: Object, at: float) -> ObservedLease:
    """What a Lease says, and that it has been so since then."""
    spec: Mapping[str, Any]
    try:
        spec = found.spec_dict()
    except BadAnswer:
        spec = {}
    named, duration, renewed = (spec.get(name) for name in ("holderIdentity", "leaseDurationSeconds", "renewTime"))
    holder, transitions = named if isinstance(named, str) else "", spec.get("leaseTransitions")
    return ObservedLease(
        holder=holder,
        version=found.metadata.resource_version,
        duration_seconds=float(duration) if isinstance(duration, int) and duration > 0 else 1.0,
        at=at,
        slots=_slots_of(found.annotations.get(names.SLOTS, ""), holder),
        is_ready=found.annotations.get(names.READY) == "true",
        address=found.annotations.get(names.ADDRESS, ""),
        term=term_id(found.metadata.uid, transitions if isinstance(transitions, int) else 0),
        renewed=renewed if isinstance(renewed, str) else "",
    )


def slots_said(slots: int, holder: str) -> str:
    """The annotation ``names.SLOTS``: who says so, too, since whoever takes a Lease may leave what was there."""
    return f"{slots} {holder}"


def slots_of(lease: Object | None) -> int:
    """With how many slots the managers work that hold the Lease of whoever assigns, or have given it back."""
    if lease is None:
        return 1
    said, holder = lease.annotations.get(names.SLOTS, ""), observed_lease(lease, 0.0).holder
    return _slots_of(said, holder or said.partition(" ")[2]) or 1


def _slots_of(text: str, holder: str) -> int | None:
    number, _, by = text.partition(" ")
    return int(number) if by == holder and number.isascii() and number.isdigit() and len(number) < 5 else None
