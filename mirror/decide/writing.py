"""The one write to a source: which annotations go with it, and when one has to wait (D5, D21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.batch.syntax import LONGEST_ANNOTATIONS
from mirror.decide.plan import WriteSource
from mirror.decide.snapshot import Snapshot
from mirror.model import names

WAITING_WRITE_SECONDS = 10.0
MOST_BYTES_OF_A_CHARACTER = 4


def source_write(
    seen: Snapshot,
    *,
    status: Mapping[str, Any] | None = None,
    waiting: str | None = None,
    records: str | None = None,
    clears: bool = False,
    mirror_uid: str | None = None,
    records_mirror: bool = False,
    more: bool = False,
    cut: int = 0,
) -> tuple[tuple[WriteSource, ...], float | None]:
    """The write that brings the source to this state, if it is not there yet.

    Returns it (or nothing) and after how many seconds to look again, because ``waiting-because`` was written less than
    ten seconds ago and may only then be changed. ``mirror_uid`` is recorded with a status that is written anyway, and
    at once where another uid is recorded or with ``records_mirror``.
    """
    stored = seen.source.found.annotations
    placed = records or (None if clears else seen.source.placed)
    changes: list[tuple[str, str | None]] = []
    if stored.get(names.ASSIGNED_WORKER) != placed:
        changes.append((names.ASSIGNED_WORKER, placed))
    if names.HELD in stored and not seen.source.is_suspended:
        changes.append((names.HELD, None))  # somebody released it before us; the next suspension is a user's
    is_mirrored_status = mirror_uid is not None and status is not None
    known = seen.source.stored.mirror_uid
    if mirror_uid is not None and known != mirror_uid and (status is not None or known or records_mirror):
        status = seen.source.stored.mirrored_status(status, mirror_uid, seen.now)
    recorded = stored.get(names.MIRROR_UID)
    if mirror_uid is not None and recorded != mirror_uid and (status is not None or recorded is not None):
        changes.append((names.MIRROR_UID, mirror_uid))
    later, shows_waiting = None, False
    if stored.get(names.WAITING_BECAUSE) != waiting:
        since_last = seen.monotonic - seen.memory.waiting_written_at
        shows_waiting = waiting is None or status is not None or since_last >= WAITING_WRITE_SECONDS
        if shows_waiting:
            changes.append((names.WAITING_BECAUSE, waiting))
        else:
            later = WAITING_WRITE_SECONDS - since_last
    if changes and not _have_room(stored, changes):
        # Annotations are for people; what counts is the status, which must be written whatever the user has in them.
        changes = [(name, value) for name, value in changes if value is None]
        if shows_waiting and waiting is not None and placed is None:
            status = seen.source.stored.waiting_status(status, waiting, seen.now) or status
    if status is None and not changes:
        return (), later
    write = WriteSource(
        status,
        tuple(changes),
        records=records,
        clears=clears,
        shows_waiting=shows_waiting,
        is_mirrored_status=is_mirrored_status,
        more=more,
        cut=cut,
    )
    return (write,), later


def _have_room(stored: Mapping[str, str], changes: list[tuple[str, str | None]]) -> bool:
    """Whether the API server takes so many bytes of annotations."""
    annotations = {**stored, **dict(changes)}
    characters = sum(len(name) + len(value) for name, value in annotations.items() if value is not None)
    if characters * MOST_BYTES_OF_A_CHARACTER <= LONGEST_ANNOTATIONS:
        return True
    sizes = (len(name.encode()) + len(value.encode()) for name, value in annotations.items() if value is not None)
    return sum(sizes) <= LONGEST_ANNOTATIONS
