"""Two managers in two namespaces of one cluster act on the same Jobs, by mistake: each keeps to its own (D2).

Each has its own Lease and workers, and a worker's name may mean two clusters. One of the ``rules``.
"""

from __future__ import annotations

from mirror.batch import times
from mirror.batch.syntax import label_problems
from mirror.decide.plan import Plan, ReportOtherManager
from mirror.decide.snapshot import Snapshot
from mirror.kinds.asking import manager_of
from mirror.model.text import clean

MARKED_WITHIN_SECONDS = 10.0
LONGEST_NAMESPACE = 63


def leave_other_managers(seen: Snapshot) -> Plan | None:
    """A source whose worker another manager has recorded is that one's: nothing is written to it or for it (D2)."""
    other, source = seen.memory.other_manager, seen.source
    if not other:
        return None if source.kind.keeps_metadata_in_status else _await_mark(seen)
    if source.placed is None or source.is_finished:
        return None
    why = _text(other, seen.policy.manager, source.placed)
    is_told = seen.memory.manager_told == other
    return Plan(why, () if is_told else (ReportOtherManager(other, why),), None, {"manager_told": other})


def _await_mark(seen: Snapshot) -> Plan | None:
    """Of this kind the mark comes with a request of its own, and records of earlier versions do not say it (D25)."""
    source = seen.source
    if not seen.policy.manager or source.placed is None or source.is_finished:
        return None
    if manager_of(source.kind, source.found) is not None or seen.memory.recorded_on == source.placed:
        return None
    left = MARKED_WITHIN_SECONDS - _placed_for_seconds(seen)
    return Plan("it was just recorded, and not by this process", (), left) if left > 0 else None


def _text(other: str, manager: str, worker: str) -> str:
    """Whoever may annotate a Job may put anything there: only a name of a namespace comes into a command."""
    text = (
        f"the manager in namespace {clean(other, longest=LONGEST_NAMESPACE)} has placed it on its worker {worker}, and "
        f"this one, in namespace {manager}, leaves it alone: each needs a managedBy, or namespaces, of its own"
    )
    if not label_problems(other):
        text += f"; if it has moved here: mirror take-over {other} --namespace {manager}"
    return text


def _placed_for_seconds(seen: Snapshot) -> float:
    try:
        placed_at = times.seconds(seen.source.kind.progress(seen.source.found).placed_at)
    except times.BadTime:
        return MARKED_WITHIN_SECONDS
    return abs(seen.now.timestamp() - placed_at)
