"""Progress goes along with a move: a new mirror is held, its status seeded, then it runs (D14, decision 0022). Pure.

All states are on the mirror, so that a crash, a lost answer or another manager between two steps changes nothing.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mirror.decide.fencing import lease_of_resume
from mirror.decide.following import problem_and_patch
from mirror.decide.plan import PatchMirror, Plan, SeedMirror
from mirror.decide.snapshot import Snapshot
from mirror.decide.writing import source_write
from mirror.kinds.base import Changes
from mirror.kinds.queueing import queue_of
from mirror.model import names

REFUSED_LOOK_SECONDS = 60.0


def is_to_be_seeded(seen: Snapshot) -> bool:
    """Whether the mirror that is made now is held first: it was moved, and there is something to go along.

    One with a queue's label is resumed by its worker's queue whenever that likes, so it is not held.
    """
    stored = seen.source.stored
    return seen.policy.seed_progress and stored.waits_after_move and stored.has_seed and not queue_of(seen.source.found)


def seed_held_mirror(seen: Snapshot) -> Plan | None:
    """Its mirror is held until it has what its source has counted; nothing of it reaches the source before (D14)."""
    worker, mirror, source = seen.worker, seen.mirror, seen.source
    if worker is None or mirror is None or mirror.metadata.deletion_timestamp is not None:
        return None
    if not source.kind.is_held_for_seed(mirror):
        return None
    status = source.stored.seeded_status(mirror)
    if status is not None and not seen.memory.seed_refused:
        return Plan("its mirror gets what was counted", (SeedMirror(worker.name, status),))
    is_refused = status is not None
    problem, patches = problem_and_patch(seen)
    if problem is not None:
        write, later = source_write(seen, waiting=problem)
        return Plan(problem.text, write, min(later or REFUSED_LOOK_SECONDS, REFUSED_LOOK_SECONDS))
    found = next((one.changes for one in patches if isinstance(one, PatchMirror)), Changes(digest="seed"))
    annotations = dict(mirror.annotations) | {names.SEED: names.SEED_REFUSED if is_refused else names.SEED_DONE}
    changes = replace(found, operations=_with_annotations(found, annotations), only_note=False)
    why = "its mirror does not take what was counted, and runs" if is_refused else "its mirror has what was counted"
    return Plan(why, (PatchMirror(worker.name, changes, lease_of_resume(seen)),))


def _with_annotations(changes: Changes, annotations: dict[str, str]) -> tuple[dict[str, Any], ...]:
    """The operations, of which the one about annotations keeps what it says but for the state of the seed."""
    path, kept, sent = "/metadata/annotations", [], annotations
    for one in changes.operations:
        if one["path"] == path:
            sent = dict(one["value"]) | {names.SEED: annotations[names.SEED]}
        else:
            kept.append(dict(one))
    return (*kept, {"op": "add", "path": path, "value": sent})
