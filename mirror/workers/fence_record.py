"""Until when leases on workers may last, in their entries of ``jobmirror-workers`` (D14); ``controllers.leases`` asks.

Invariant: it is stored before a lease is sent that may end later, by whoever leads.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from mirror.workers.inventory_record import InventoryRecord

CLOCK_MOVED_SECONDS = 30.0
"""By so much a worker's clock may be another than at the last round of renewals."""
SETTLING_SECONDS = 90.0


class FenceRecord:
    """Reads and writes those fields."""

    def __init__(self, record: InventoryRecord) -> None:
        self._record = record

    def until(self, worker: str) -> datetime | None:
        """By our clock; None: no lease was ever sent there."""
        return parse_time(self._record.known.entry(worker).fenced_until)

    def unsettled_until(self, worker: str) -> datetime | None:
        return parse_time(self._record.known.entry(worker).fence_unsettled_until)

    async def cover(self, worker: str, until: datetime, *, ahead: datetime, clock_offset: float | None) -> None:
        """Return once it is stored that leases there may last until then.

        Args:
            worker: whose.
            until: when the one ends that is about to be sent.
            ahead: what to store if not even that is; later, so that it need not be stored for each lease.
            clock_offset: of the worker's clock, as it is now.

        Raises:
            KubeError: it could not be stored.
        """
        known = self.until(worker)
        if known is None or known < until:
            entry = self._record.known.entry(worker)
            clock = entry.fence_clock
            if clock_offset is not None and not self.has_clock_moved(worker, clock_offset):
                clock = clock_offset  # one that has moved is noted as that first: other leases were counted by it
            ends = _written(max(until, ahead))
            self._record.put(worker, msgspec.structs.replace(entry, fenced_until=ends, fence_clock=clock))
        if not self._record.is_written(worker):
            await self._record.write()

    def has_clock_moved(self, worker: str, clock_offset: float) -> bool:
        """Since leases were last sent there."""
        known = self._record.known.entry(worker)
        return known.fence_clock is not None and abs(clock_offset - known.fence_clock) > CLOCK_MOVED_SECONDS

    async def note_clock_moved(self, worker: str, clock_offset: float, *, now: datetime, ttl_seconds: float) -> None:
        """What leases there were counted by is wrong: until all were renewed nobody counts on them.

        Raises:
            KubeError: it could not be stored.
        """
        entry = self._record.known.entry(worker)
        later = max(0.0, (entry.fence_clock or 0.0) - clock_offset)  # set back, it ends them later by that
        until = max(self.until(worker) or now, now + timedelta(seconds=ttl_seconds)) + timedelta(seconds=later)
        settled = now + timedelta(seconds=ttl_seconds / 3 + SETTLING_SECONDS)
        changed = msgspec.structs.replace(
            entry,
            fenced_until=_written(until),
            fence_clock=clock_offset,
            fence_unsettled_until=_written(settled),
        )
        self._record.put(worker, changed)
        await self._record.write()


def _written(moment: datetime) -> str:
    """In whole seconds, not before."""
    return (moment + timedelta(seconds=1)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime | None:
    """RFC 3339 as an entry has it; None: there is none, or it makes no sense."""
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found
