"""``mirror managers``: which managers there are and what each does, as their Leases say (S1–S4). Rows are pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

import msgspec

from mirror.batch import times
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.kube.objects import Object
from mirror.kube.resources import LEASES
from mirror.model import names
from mirror.model.text import clean
from mirror.sharding.board import ObservedLease, observed_lease
from mirror.sharding.slots import Slot, is_member_lease, slot_of_lease

READY, NOT_READY, EXPIRED = "Ready", "NotReady", "Expired"
LEADS, ASSIGNS = "leads", "assigns"


class Row(msgspec.Struct, frozen=True, rename="camel"):
    """One manager."""

    name: str
    """Its identity: that of its pod."""
    state: str
    """Ready, NotReady; Expired: what it holds was not renewed in time, and is another's soon."""
    role: str
    """leads: it does everything; assigns: workers to Jobs; else nothing."""
    slots: tuple[Slot, ...]
    renewed: str
    """When it last renewed a Lease, by its own clock."""
    address: str


class Managers(msgspec.Struct, frozen=True):
    """All of one installation."""

    rows: tuple[Row, ...]
    nobodys: tuple[Slot, ...]
    """Slots that nobody holds."""


async def managers(home: ManagementCluster, now: datetime) -> Managers:
    """Those whose Leases are in the manager's namespace.

    Raises:
        ClusterError: Leases may not be listed.
    """
    return managers_of([one async for one in home.site.each(LEASES, namespace=home.namespace)], now)


async def no_leader(home: ManagementCluster, now: datetime) -> str:
    """That nobody leads, so that what is recorded of workers may be old; empty where somebody does, or nobody knows."""
    try:
        leases = [one async for one in home.site.each(LEASES, namespace=home.namespace)]
    except ClusterError:
        return ""
    return no_leader_of(leases, now)


def no_leader_of(leases: Iterable[Object], now: datetime) -> str:
    """The same, as these Leases say; without one of a leader there is nothing to tell of."""
    lease = next((_seen(one) for one in leases if one.metadata.name == names.LEASE), None)
    if lease is None or lease.is_live(now.timestamp()):
        return ""
    since = f", last renewed at {clean(lease.renewed)}" if lease.renewed else ""
    return (
        f"no manager leads (Lease {names.LEASE}{since}): what is recorded of workers may be old; see: mirror managers"
    )


def managers_of(leases: Iterable[Object], now: datetime) -> Managers:
    """What these Leases say at this moment, by this machine's clock; Leases of others do not count."""
    seen = {one.metadata.name: _seen(one) for one in leases}
    at = now.timestamp()
    held: dict[str, dict[str, ObservedLease]] = defaultdict(dict)
    for name, lease in seen.items():
        if lease.holder and _is_of_managers(name):
            held[lease.holder][name] = lease
    is_shared = any(is_member_lease(name) or slot_of_lease(name) is not None for name in seen)
    rows = tuple(_row(holder, held[holder], at, is_shared=is_shared) for holder in sorted(held))
    assigner = seen.get(names.LEASE)
    of = assigner.slots if assigner is not None and assigner.is_live(at) and assigner.slots is not None else 1
    slots = (Slot(index, of) for index in range(of)) if of > 1 else ()
    live = {name for name, lease in seen.items() if lease.is_live(at)}
    return Managers(rows, tuple(slot for slot in slots if slot.lease not in live))


def _row(holder: str, held: Mapping[str, ObservedLease], at: float, *, is_shared: bool) -> Row:
    member = next((lease for name, lease in held.items() if is_member_lease(name)), None)
    live = [name for name, lease in held.items() if lease.is_live(at)]
    is_ready = member is None or (member.is_ready and member.is_live(at))
    return Row(
        name=holder,
        state=EXPIRED if not live else READY if is_ready else NOT_READY,
        role="" if names.LEASE not in live else ASSIGNS if is_shared else LEADS,
        slots=tuple(sorted(filter(None, map(slot_of_lease, live)))),
        renewed=max(lease.renewed for lease in held.values()),
        address=member.address if member is not None else "",
    )


def _is_of_managers(name: str) -> bool:
    return name == names.LEASE or is_member_lease(name) or slot_of_lease(name) is not None


def _seen(lease: Object) -> ObservedLease:
    """A Lease as if we had seen each renewal of it at once."""
    seen = observed_lease(lease, 0.0)
    try:
        return replace(seen, at=times.seconds(seen.renewed))
    except times.BadTime:
        return seen
