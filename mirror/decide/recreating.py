"""A source whose mirror vanished behind our back starts over, where its user wants that (D11). Pure.

``rules`` asks once a live look has shown that the mirror is gone. What is proved before another one is made: nothing
has the name of the mirror there, and of two looks at pods, some seconds apart, neither has found one that runs. Then
one write says that the source starts over; from there on it is as after a move (``docs/decisions/0024-recreate.md``).
"""

from __future__ import annotations

from msgspec.structs import replace

from mirror.decide.fencing import marked
from mirror.decide.plan import DeleteMirror, FindMirror, Plan, WriteSource
from mirror.decide.snapshot import Look, Snapshot, Source
from mirror.decide.writing import source_write
from mirror.model import names
from mirror.model.losses import OnMirrorLoss
from mirror.model.reasons import Obstruction, Reason

LOOK_SECONDS = 10.0
SETTLED_SECONDS = 5.0
"""Its worker's Job controller may have made a pod by what it had cached: for so long no look may find one."""


def is_to_start_over(source: Source) -> bool:
    """Whether its user wants it, and its kind can; how it ends must not be known."""
    wanted = source.found.annotations.get(names.ON_MIRROR_LOSS) == OnMirrorLoss.RECREATE
    return wanted and source.kind.can_move and not source.stored.has_verdict and not source.is_finished


def limit_text(seen: Snapshot) -> str:
    """Why one that should start over does not; empty: it does, or should not."""
    if is_to_start_over(seen.source) and seen.source.stored.limited_moves >= seen.policy.move_limit:
        return " (it has started over as often as workers.moveLimit allows)"
    return ""


def start_over(seen: Snapshot) -> Plan | None:
    """Its mirror is gone after it had started: another one is made once nothing of it runs. None: it fails."""
    source, worker, memory = seen.source, seen.worker, seen.memory
    if worker is None or not is_to_start_over(source) or limit_text(seen):
        return None
    text = f"the mirror on worker {worker.name} has vanished; the Job starts over"
    if source.is_suspended:
        write, later = source_write(seen, status=source.stored.suspended_status(seen.now))
        return Plan(f"{text} once it is resumed", write, later)
    if seen.mirror is not None:
        delete = DeleteMirror(worker.name, seen.mirror.metadata.uid, because="it is not the mirror that ran")
        is_going = seen.mirror.metadata.deletion_timestamp is not None
        return Plan(f"{text} once what replaced it is gone", () if is_going else (delete,), LOOK_SECONDS)
    left, find = memory.pods_left, FindMirror(worker.name, seen.recorded_uid, counts_pods=True)
    if memory.look is Look.FOREIGN:
        text += ", once nothing else has its name there"
        return _wait(seen, text, find, memory.read_at)
    if left is None:
        return Plan("whether pods of the vanished mirror run", (find,), LOOK_SECONDS)
    if left.refused:
        text += f" once it is known that none of its pods run, which the worker does not tell ({left.refused})"
        return _wait(seen, text, find, left.looked_at)
    if left.none_since is None:
        return _wait(seen, f"{text} once its pods there have ended", find, left.looked_at)
    if left.looked_at - left.none_since < SETTLED_SECONDS:
        wait = left.none_since + SETTLED_SECONDS - seen.monotonic
        if wait > 0:
            return Plan("whether pods of the vanished mirror still appear", (), wait)
        return Plan("whether pods of the vanished mirror have appeared", (find,), LOOK_SECONDS)
    return _begin(seen, worker.name)


def _wait(seen: Snapshot, text: str, find: FindMirror, looked_at: float) -> Plan:
    write, later = source_write(seen, waiting=Obstruction(Reason.MIRROR_NOT_FOUND, text))
    left = looked_at + LOOK_SECONDS - seen.monotonic
    if left > 0:
        return Plan(text, write, min(left, later or left))
    return Plan(text, (*write, find), min(LOOK_SECONDS, later or LOOK_SECONDS))


def _begin(seen: Snapshot, worker: str) -> Plan:
    """In one write: nothing of it is known to run, and it has no mirror."""
    stored = seen.source.stored
    because = f"the mirror on worker {worker} has vanished"
    status = stored.moved_status(stored.moves.moved(worker, worker, None, is_gone=True), seen.now, because=because)
    if status is None:
        why = "what is stored in its status does not allow it to start over"
        write, later = source_write(seen, waiting=Obstruction(Reason.STATUS_REFUSED, why))
        return Plan(why, write, later)
    write, _ = source_write(seen, status=marked(seen, status), records=worker)
    write = tuple(replace(one, moves_from=worker) if isinstance(one, WriteSource) else one for one in write)
    return Plan(f"{because}; it starts over there", write, remember={"first_create": True})
