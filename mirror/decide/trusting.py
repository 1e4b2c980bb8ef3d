"""Records that users can write, where a kind has no conditions: believed as far as something confirms them (D18, D25).

The worker that has the mirror is right, and before there is one what this process has recorded. A record that nothing
confirms names at least a worker that could have been chosen. One of the ``rules``.
"""

from __future__ import annotations

from mirror.decide.plan import EmitEvent, Plan
from mirror.decide.snapshot import Snapshot
from mirror.decide.writing import source_write
from mirror.model.reasons import Obstruction, Reason

LOOK_SECONDS = 15.0


def trust_record(seen: Snapshot) -> Plan | None:
    """A record that somebody has changed is put right, or not followed (D25)."""
    trust, source = seen.trust, seen.source
    if trust is None or source.placed == (trust.known or None):
        return None
    if trust.known:
        return _restore(seen, trust.known)
    if seen.worker is None or not seen.worker.is_reachable or seen.mirror is not None:
        return None  # nothing can be made there now, and nothing else is looked at before its worker is back
    if source.has_started:
        if trust.all_seen:
            return None
        why = f"worker {source.placed} has no mirror of it, and another one, which is unreachable, may have it"
        write, later = source_write(seen, waiting=Obstruction(Reason.MIRROR_NOT_FOUND, why))
        return Plan(why, write, min(LOOK_SECONDS, later or LOOK_SECONDS))
    if trust.is_allowed or seen.memory.look is not None:
        return None
    text = f"its record names worker {source.placed}, which it may not be placed on; it is placed anew"
    write, later = source_write(seen, status=source.stored.placed_status(None, seen.now), clears=True)
    return Plan(text, (*write, EmitEvent(Reason.RECORD_CHANGED, text)), later)


def _restore(seen: Snapshot, worker: str) -> Plan:
    stored = seen.source.stored
    status = stored.placed_status(worker, seen.now)
    if uid := seen.memory.mirror_uid:
        status = stored.mirrored_status(status, uid, seen.now)
    text = f"its record was changed; it is on worker {worker}"
    write, later = source_write(seen, status=status, records=worker)
    return Plan(text, (*write, EmitEvent(Reason.RECORD_CHANGED, text)), later)
