"""Counts and reports a move, before the copy on the next worker is made (D14). Called by ``writing_mirrors``."""

from __future__ import annotations

from mirror.controllers.write_context import WriteContext
from mirror.decide.seeding import is_to_be_seeded
from mirror.decide.snapshot import Snapshot


def report_move(context: WriteContext, seen: Snapshot) -> None:
    """Before the create: the answers to it, and to the record of the move, may be lost, and each overlap counts."""
    memories, uid, stored = context.state.memories, seen.source.uid, seen.source.stored
    moves = stored.moves
    told, now = memories.of(uid).moves_told, (moves.count, moves.to)
    if not stored.waits_after_move or stored.is_leaving or told == now:
        return
    memories.set(uid, moves_told=now)
    is_second = moves.is_start_over or any(one.worker != moves.to for one in moves.left_behind)  # there it goes first
    if is_second and told[0] != moves.count:  # else it was refused where it was to go
        context.environment.metrics.secondary_mirrors.labels(moves.why).inc()
    anew = "; what ran so far runs again" if stored.has_seed and not is_to_be_seeded(seen) else ""
    context.record_event(seen, "MirrorRecreated" if moves.is_start_over else "Moved", moves.event + anew)
