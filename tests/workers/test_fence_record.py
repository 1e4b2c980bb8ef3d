"""Until when leases on a worker may last, and by which clock: ``fencedUntil`` and ``fenceClock`` (D14)."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from mirror.workers.fence_record import FenceRecord
from mirror.workers.inventory import Entry, WorkerInventory

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Record:
    """``InventoryRecord``, of which all is written at once."""

    def __init__(self) -> None:
        self.known = WorkerInventory({})
        self.written = 0

    def put(self, worker: str, entry: Entry) -> None:
        self.known.put(worker, entry)

    def is_written(self, worker: str) -> bool:
        return False

    async def write(self) -> None:
        self.written += 1


def cover(fences: FenceRecord, minutes: float, *, clock: float) -> None:
    until = NOW + timedelta(minutes=minutes)
    asyncio.run(fences.cover("east", until, ahead=until, clock_offset=clock))


def test_a_renewal_does_not_hide_that_the_clock_has_moved() -> None:
    """Other leases were counted by the clock of before: whoever looks next finds that out, after a renewal too."""
    record = Record()
    fences = FenceRecord(record)
    cover(fences, 30, clock=0.0)
    cover(fences, 40, clock=-600.0)
    assert fences.has_clock_moved("east", -600.0)
    assert fences.until("east") == NOW + timedelta(minutes=40, seconds=1)


def test_a_clock_that_drifts_has_not_moved() -> None:
    """What differs by less than leases allow for is taken over with each round of renewals."""
    fences = FenceRecord(Record())
    for minutes, clock in ((30, 0.0), (40, 20.0), (50, 40.0)):
        cover(fences, minutes, clock=clock)
    assert not fences.has_clock_moved("east", 60.0)
    assert fences.has_clock_moved("east", 71.0)
