"""The one write to a source: which annotations go with it, and when one has to wait (D5, D21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mirror.batch.syntax import LONGEST_ANNOTATIONS
from mirror.decide.plan import Action, EmitEvent, WriteSource
from mirror.decide.snapshot import Snapshot
from mirror.kinds.asking import annotates_apart
from mirror.kinds.stored_source import NextStatus
from mirror.model import names
from mirror.model.reasons import UNWRITABLE, Obstruction
from mirror.model.terms import manager_in, with_manager

WAITING_WRITE_SECONDS = 10.0
MOST_BYTES_OF_A_CHARACTER = 4


@dataclass(frozen=True, slots=True)
class FromMirror:
    """What a mirror brings to its source."""

    uid: str
    """Recorded with a status that is written anyway, and at once where another uid is recorded."""
    following: NextStatus
    is_recorded_at_once: bool = False
    """Whether the uid alone is reason enough to write."""


def source_write(
    seen: Snapshot,
    *,
    status: Mapping[str, Any] | None = None,
    waiting: Obstruction | None = None,
    records: str | None = None,
    clears: bool = False,
    mirror: FromMirror | None = None,
) -> tuple[tuple[Action, ...], float | None]:
    """The write that brings the source to this state, if it is not there yet.

    Returns it (or nothing), with the event about a new reason, and after how many seconds to look again, because
    ``waiting-because`` was written less than ten seconds ago and may only then be changed. ``status`` is for what no
    mirror brings; ``clears``: the recorded worker is forgotten.
    """
    stored, is_apart = seen.source.found.annotations, annotates_apart(seen.source.kind)
    placed = records or (None if clears else seen.source.placed)
    changes: list[tuple[str, str | None]] = []
    if stored.get(names.ASSIGNED_WORKER) != placed:
        changes.append((names.ASSIGNED_WORKER, placed))
    manager = seen.policy.manager
    if placed and stored.get(names.MANAGER) != manager and manager and not seen.source.is_finished:
        changes.append((names.MANAGER, manager))
    if names.HELD in stored and not seen.source.is_suspended:
        changes.append((names.HELD, None))  # somebody released it before us; the next suspension is a user's
    leaves = clears or (records is not None and seen.source.placed not in (None, records))
    if leaves and names.MIRROR_UID in stored:
        changes.append((names.MIRROR_UID, None))  # of the mirror on the worker that it leaves
    status = status if mirror is None else mirror.following.status
    is_mirrored_status = mirror is not None and status is not None
    uid, known = mirror.uid if mirror is not None else None, seen.source.stored.mirror_uid
    if mirror is not None and known != uid and (status is not None or known or mirror.is_recorded_at_once):
        status = seen.source.stored.mirrored_status(status, mirror.uid, seen.now)
    # Where annotations take a request of their own it goes with others, or not at all: the condition has it, too.
    is_worth_it = names.MIRROR_UID in stored or (bool(changes) if is_apart else status is not None)
    if uid is not None and stored.get(names.MIRROR_UID) != uid and is_worth_it:
        changes.append((names.MIRROR_UID, uid))
    told = _explanation(seen, waiting, status, is_placed=placed is not None)
    status = _named(seen, told.status, placed) if is_apart else told.status
    if told.is_due and stored.get(names.WAITING_BECAUSE) != told.text:
        changes.append((names.WAITING_BECAUSE, told.text))
    if is_apart and records is not None:
        changes = []  # they follow the mirror, which does not wait for a request more: the record says whose it is
    if changes and not _have_room(stored, changes):
        # Annotations are for people; what counts is the status, which must be written whatever the user has in them.
        changes = [(name, value) for name, value in changes if value is None]
    if status is None and not changes:
        return (), told.later
    write = WriteSource(
        status,
        tuple(changes),
        records=records,
        clears=clears,
        shows_waiting=told.is_due,
        reports=told.events[0].reason if told.events else "",
        is_mirrored_status=is_mirrored_status,
        more=mirror is not None and mirror.following.more,
        cut=mirror.following.cut if mirror is not None else 0,
    )
    return (write, *told.events), told.later


def _named(seen: Snapshot, status: Mapping[str, Any] | None, placed: str | None) -> Mapping[str, Any] | None:
    """The status that is written, with whose record it is: the annotation that says so may come late (D2, D25).

    That is no reason to write, but where another manager's name stands there: the source was taken over from it.
    """
    manager, stored = seen.policy.manager, seen.source.stored.status
    if not placed or not manager or seen.source.is_finished:
        return status
    if status is None and manager_in(stored) in ("", manager):
        return None
    return with_manager(stored if status is None else status, manager)


def shown_obstruction(seen: Snapshot) -> Obstruction | None:
    """What the source says now that keeps it from its worker, or from progress there."""
    text = seen.source.found.annotations.get(names.WAITING_BECAUSE)
    return Obstruction(seen.source.stored.obstruction_reason, text) if text is not None else None


class _Explanation(msgspec.Struct, frozen=True):
    """How a reason to wait gets into the write."""

    status: Mapping[str, Any] | None
    text: str | None = None
    is_due: bool = False
    """It is another than is shown, and may be written now."""
    later: float | None = None
    """Seconds until it may be written, if not now."""
    events: tuple[EmitEvent, ...] = ()


def _explanation(
    seen: Snapshot, why: Obstruction | None, status: Mapping[str, Any] | None, *, is_placed: bool
) -> _Explanation:
    """The status with the condition that says why it waits, and the event where the reason is a new one (D21, D22)."""
    stored = seen.source.stored
    text, reason = (why.text, why.reason) if why is not None else (None, "")
    has_condition = reason not in UNWRITABLE
    shown_text, shown_reason = seen.source.found.annotations.get(names.WAITING_BECAUSE), stored.obstruction_reason
    if text == shown_text and (reason == shown_reason or not has_condition):
        return _Explanation(status)
    since_last = seen.monotonic - seen.memory.waiting_written_at
    if why is not None and status is None and since_last < WAITING_WRITE_SECONDS:
        return _Explanation(None, later=WAITING_WRITE_SECONDS - since_last)
    if has_condition and (reason or why is None):
        status = stored.explained_status(status, why, is_placed=is_placed, now=seen.now) or status
    events: tuple[EmitEvent, ...] = ()
    known = ("", shown_reason, seen.memory.reported_reason)
    if why is not None and has_condition and reason not in known and text != shown_text:
        events = (EmitEvent(reason, why.message),)
    return _Explanation(status, text, is_due=True, events=events)


def _have_room(stored: Mapping[str, str], changes: list[tuple[str, str | None]]) -> bool:
    """Whether the API server takes so many bytes of annotations."""
    annotations = {**stored, **dict(changes)}
    characters = sum(len(name) + len(value) for name, value in annotations.items() if value is not None)
    if characters * MOST_BYTES_OF_A_CHARACTER <= LONGEST_ANNOTATIONS:
        return True
    sizes = (len(name.encode()) + len(value.encode()) for name, value in annotations.items() if value is not None)
    return sum(sizes) <= LONGEST_ANNOTATIONS
