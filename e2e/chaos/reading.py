"""What sources and copies say of themselves, read as the API has it: nothing of ``mirror``'s own code is asked. Pure.

Used by the rules of ``judging`` and by ``counting``. Not here: when they said it (``story``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from e2e.chaos.history import Json
from e2e.chaos.kinds import MirroredKind, condition
from mirror.model import names

_MOVED = re.compile(r"move ([0-9]+), from (\S+) to (\S+?)(?:; left behind: (.*))?")
_COPY = re.compile(r"(\S+) \(uid ([^\s,)]+)(?:, (\w+))?\)")
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class LeftCopy:
    """A copy that a source says it left on a worker."""

    worker: str
    uid: str
    """``unknown``: whichever is there."""
    promise: str = ""
    """Why it does not run any more, as ``fenced``; empty: it may run."""


@dataclass(frozen=True, slots=True)
class Moves:
    """What a source says of its moves (D14)."""

    count: int = 0
    origin: str = ""
    to: str = ""
    left: tuple[LeftCopy, ...] = ()
    reason: str = ""
    drains: int = 0
    """How many of them left a drained worker, which no limit holds back."""

    @property
    def why(self) -> str:
        """Of the last one: ``drained``, ``started over``, ``lost``, or what was promised of the copy that it left."""
        if self.reason == "WorkerDrained":
            return "drained"
        left = next((one for one in reversed(self.left) if one.worker == self.origin), None)
        if left is None:
            return "started over" if self.origin == self.to else "lost"
        return left.promise or "lost"

    def has_left(self, worker: str, uid: str) -> bool:
        """Whether the copy of this uid was left on this worker."""
        return any((one.worker, one.uid) == (worker, uid) for one in self.left)

    def left_copy(self, worker: str, uid: str) -> LeftCopy | None:
        """What it says of the copy of this uid, or of whichever is there, if it was left on this worker."""
        return next((one for one in self.left if one.worker == worker and one.uid in (uid, _UNKNOWN)), None)

    def may_have_left(self, worker: str, uid: str) -> bool:
        """The same, or whichever is there was left."""
        return self.left_copy(worker, uid) is not None


def moves_of(body: Json) -> Moves:
    """From its condition ``jobmirror.io/Moved``."""
    said = condition(body, names.MOVED) or {}
    found = _MOVED.fullmatch(str(said.get("message", "")))
    if found is None:
        return Moves()
    left = tuple(LeftCopy(*groups) for groups in _COPY.findall(found[4] or ""))
    drains = int(str((condition(body, names.DRAINED) or {}).get("message", "0")).split()[0])
    return Moves(int(found[1]), found[2], found[3], left, str(said.get("reason", "")), drains)


@dataclass(frozen=True, slots=True)
class Moving:
    """A version of a source that counts one more move."""

    at: float
    body: Json
    said: Moves
    before: Json
    """The version before, or the same."""

    @property
    def why(self) -> str:
        """As its source says it, but ``expired`` where its lease was seen to have ended it, not a lost worker."""
        is_expired = "lease" in str((condition(self.body, "Suspended") or {}).get("message", ""))
        return "expired" if is_expired and self.said.why == "fenced" else self.said.why


def moves_in(bodies: Iterator[tuple[float, Json]]) -> Iterator[Moving]:
    """Each move that these versions of one source count, in their order."""
    before, counted = None, 0
    for at, body in bodies:
        now = moves_of(body)
        if now.count > counted:
            yield Moving(at, body, now, before or body)
        before, counted = body, now.count


def placed_on(body: Json) -> str:
    """The worker that is recorded on a source."""
    return _message(body, names.PLACED)


def recorded_uid(body: Json) -> str:
    """The uid of its copy there, as far as it is recorded."""
    return _message(body, names.MIRRORED)


def annotation(body: Json, name: str) -> str:
    """One of its annotations, or nothing."""
    return str((body.get("metadata", {}).get("annotations") or {}).get(name, ""))


def is_going(body: Json) -> bool:
    """Whether it is being deleted."""
    return "deletionTimestamp" in body["metadata"]


def is_ended_by_lease(body: Json, kind: MirroredKind, source: Json) -> bool:
    """Whether a copy has ended by a deadline, which is that of a fence, and not the one that its user wants (D14)."""
    ended = kind.end(body) or {}
    if ended.get("reason") != "DeadlineExceeded" or not annotation(body, names.FENCE):
        return False
    wanted = source.get("spec", {}).get("activeDeadlineSeconds")
    return wanted is None or body["spec"].get("activeDeadlineSeconds", 0) < wanted


def is_completed_for(source: Json, copy: Json, kind: MirroredKind) -> bool:
    """Whether a copy has done all that its source wants, which may have been scaled up since."""
    wanted, done = source["spec"].get("completions"), copy["spec"].get("completions")
    return condition(copy, kind.complete) is not None and (wanted is None or (done is not None and done >= wanted))


def has_proved_unstarted(source: Json, uid: str) -> bool:
    """Whether a source says that nothing of the copy of this uid ever ran (D31)."""
    said = condition(source, names.RETRYING) or {}
    return f"mirror {uid}" in str(said.get("message", "")).split("; ")


def is_leaving(source: Json, uid: str) -> bool:
    """Whether a source says that the copy of this uid has stopped for a drain, and goes (D15)."""
    shown = condition(source, "Suspended") or {}
    return shown.get("reason") == "WorkerDrained" and recorded_uid(source) == uid


def has_started(source: Json, kind: MirroredKind) -> bool:
    """Whether a source says that something of it has run: a time, a counter, or a condition that leads to an end.

    From a move on until its new copy has started those are of before (D14).
    """
    status = source.get("status") or {}
    if (condition(source, "Suspended") or {}).get("reason") in ("WorkerLost", "WorkerDrained"):
        return False
    said = (condition(source, name) for name in filter(None, (*kind.ends, *kind.ends.values())))
    return any(value for name, value in status.items() if name != "conditions") or any(said)


def has_stopped(copy: Json, kind: MirroredKind) -> bool:
    """Whether a copy is suspended, and has no pods."""
    status = copy.get("status") or {}
    return kind.is_suspended(copy) and not any(status.get(field) for field in ("active", "terminating"))


def _message(body: Json, kind: str) -> str:
    found = condition(body, kind)
    return str(found.get("message", "")) if found else ""


def is_elastic(body: Json) -> bool:
    """Whether it has indexes and is as large as it is parallel: then it may get another size, and successes fewer."""
    spec = body["spec"]
    has_indexes = spec.get("completionMode") == "Indexed" and spec.get("completions") is not None
    return has_indexes and spec["completions"] == spec.get("parallelism")


def indexes_of(body: Json, text: str) -> set[int]:
    """Those of a text that an object of this size has; it had more before it was made smaller."""
    found = indexes(text)
    return {one for one in found if one < body["spec"]["completions"]} if is_elastic(body) else found


def lease_end(copy: Json) -> float | None:
    """When its deadline ends a copy, by its worker's clock; None: it has none, or has not started."""
    started, lasts = (copy.get("status") or {}).get("startTime"), copy["spec"].get("activeDeadlineSeconds")
    return datetime.fromisoformat(started).timestamp() + lasts if started and lasts else None


def least_succeeded(body: Json, status: Json) -> int:
    """How many successes an object of this size has at least, which had this status: those of its indexes are left."""
    if is_elastic(body):
        return len(indexes_of(body, status.get("completedIndexes", "")))
    return int(status.get("succeeded", 0))


def indexes(text: str) -> set[int]:
    """Those of a text such as ``0-2,5``."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found
