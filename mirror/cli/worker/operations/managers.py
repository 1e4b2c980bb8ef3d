"""``mirror managers``: which managers there are and what each does, as their Leases say (S1–S4). Rows are pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

import msgspec

from mirror.batch import times
from mirror.cli.worker.operations.sites import ManagementCluster
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import LEASES
from mirror.model import names
from mirror.sharding.board import Seen, seen_of
from mirror.sharding.slots import Slot, slot_of_lease

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


class _Renewed(msgspec.Struct, rename="camel"):
    renew_time: str | None = None


async def managers(home: ManagementCluster, now: datetime) -> Managers:
    """Those whose Leases are in the manager's namespace.

    Raises:
        ClusterError: Leases may not be listed.
    """
    return managers_of([one async for one in home.site.each(LEASES, namespace=home.namespace)], now)


def managers_of(leases: Iterable[Object], now: datetime) -> Managers:
    """What these Leases say at this moment, by this machine's clock; Leases of others do not count."""
    seen = {one.metadata.name: (seen_of(one, _seconds(_renewed(one))), _renewed(one)) for one in leases}
    at = now.timestamp()
    held: dict[str, list[tuple[str, Seen, str]]] = defaultdict(list)
    for name, (lease, renewed) in seen.items():
        if lease.holder and _is_of_managers(name):
            held[lease.holder].append((name, lease, renewed))
    is_shared = any(name.startswith(f"{names.MEMBER_LEASE}-") or slot_of_lease(name) is not None for name in seen)
    rows = tuple(_row(holder, held[holder], at, is_shared=is_shared) for holder in sorted(held))
    assigner, _ = seen.get(names.LEASE, (None, ""))
    of = assigner.slots if assigner is not None and assigner.is_live(at) and assigner.slots is not None else 1
    slots = (Slot(index, of) for index in range(of)) if of > 1 else ()
    live = {name for name, (lease, _) in seen.items() if lease.is_live(at)}
    return Managers(rows, tuple(slot for slot in slots if slot.lease not in live))


def _row(holder: str, held: list[tuple[str, Seen, str]], at: float, *, is_shared: bool) -> Row:
    by_name = {name: lease for name, lease, _ in held}
    member = next((lease for name, lease in by_name.items() if name.startswith(f"{names.MEMBER_LEASE}-")), None)
    has_main = names.LEASE in by_name and by_name[names.LEASE].is_live(at)
    slots = (slot_of_lease(name) for name, lease in by_name.items() if lease.is_live(at))
    is_live = any(lease.is_live(at) for lease in by_name.values())
    is_ready = member is None or (member.is_ready and member.is_live(at))
    return Row(
        name=holder,
        state=EXPIRED if not is_live else READY if is_ready else NOT_READY,
        role="" if not has_main else ASSIGNS if is_shared else LEADS,
        slots=tuple(sorted(slot for slot in slots if slot is not None)),
        renewed=max(renewed for _, _, renewed in held),
        address=member.address if member is not None else "",
    )


def _is_of_managers(name: str) -> bool:
    return name == names.LEASE or name.startswith(f"{names.MEMBER_LEASE}-") or slot_of_lease(name) is not None


def _renewed(lease: Object) -> str:
    try:
        return msgspec.json.decode(lease.spec, type=_Renewed).renew_time or ""
    except JUNK:
        return ""


def _seconds(time: str) -> float:
    try:
        return times.seconds(time)
    except times.BadTime:
        return 0.0
