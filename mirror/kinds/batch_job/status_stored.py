"""The source as it is stored: what of it decides the next status, and small questions about a status.

Stored conditions are kept as they are, in their order: other controllers on the management cluster write some, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import filterfalse
from operator import itemgetter
from typing import Any, Self

import msgspec

from mirror.batch import conditions, times, views
from mirror.batch.conditions import SUSPENDED, TRUE, Condition, Verdict
from mirror.batch.status_change import Spec, is_plain_progress
from mirror.batch.status_rules import check_change
from mirror.kinds import explaining
from mirror.kinds.stored_source import Status
from mirror.model import names
from mirror.model.drains import parse_drains
from mirror.model.moves import Moves, parse_moves
from mirror.model.retries import Retries, parse_retries

_COUNTERS = ("active", "succeeded", "failed")
_TIMES = ("startTime", "completionTime")
_LEFT_OUT_EMPTY = frozenset((*_COUNTERS, "completedIndexes", "conditions"))
_UNDECIDED = frozenset(
    (names.PLACED, names.MIRRORED, names.PROGRESSING, names.MOVED, names.DRAINED, names.RETRYING, SUSPENDED)
)
"""Conditions that say nothing about how the Job ends."""
WORKER_LOST, WORKER_DRAINED = "WorkerLost", "WorkerDrained"
"""Reasons of Suspended from a move until its new mirror has started; in a drain before its mirror goes, too (D14)."""
WORKER_RETURNED = "WorkerReturned"
"""Reason of Moved since a copy that was left behind counts again: what had run there may run."""
RETRIED = "RetriedElsewhere"
"""Reason of Suspended once it left a worker on which nothing of it ran, until its next mirror has started (D31)."""
_value = itemgetter(1)
_COUNT_PODS = (*_COUNTERS, "ready", "terminating", "completedIndexes", "failedIndexes")


class StoredJob(msgspec.Struct, frozen=True):
    """A source's spec and status; build it with ``of``."""

    spec: Mapping[str, object]
    """At least what ``Spec`` reads."""
    status: Mapping[str, Any]
    """In the shape that the API serves (DF20)."""
    wanted: Spec
    conditions: tuple[Condition, ...]
    true: frozenset[object]
    """The types of the conditions that are True."""

    @classmethod
    def of(cls, spec: Mapping[str, object], status: Mapping[str, object], *, wanted: Spec | None = None) -> Self:
        """From the parts of an object that the API served; ``wanted``: what is known of the spec already.

        Raises:
            BadTime: a time is none, which no API server serves.
        """
        # A time that is served as null is stored nevertheless, and the rules must know (V37).
        shaped = served(status)
        for name in _TIMES:
            if name in status and status[name] is None:
                shaped[name] = None
        listed = tuple(shaped.get("conditions", ()))
        true = frozenset([one.get("type") for one in listed if one.get("status") == TRUE])
        return cls(spec, shaped, Spec.of(spec) if wanted is None else wanted, listed, true)

    @property
    def is_suspended(self) -> bool:
        return self.wanted.suspend

    @property
    def has_started(self) -> bool:
        return _has_run(self.status, self.conditions if SUSPENDED in self.true else ()) or self.has_verdict

    @property
    def start(self) -> str | None:
        return views.optional_text(self.status.get("startTime"))

    @property
    def completion(self) -> str | None:
        return views.optional_text(self.status.get("completionTime"))

    @property
    def verdict(self) -> Verdict | None:
        return conditions.verdict(self.conditions) if self.true - _UNDECIDED else None

    @property
    def is_finished(self) -> bool:
        return not self.true.isdisjoint(conditions.FINAL)

    @property
    def placed_worker(self) -> str | None:
        """The worker that is recorded on the source (D5)."""
        return _message(self.conditions, names.PLACED) if names.PLACED in self.true else None

    @property
    def mirror_uid(self) -> str | None:
        """The uid of the mirror that is recorded on the source (D1)."""
        return _message(self.conditions, names.MIRRORED) if names.MIRRORED in self.true else None

    @property
    def has_verdict(self) -> bool:
        return self.verdict is not None

    @property
    def is_failing(self) -> bool:
        return self.verdict == conditions.FAILED

    @property
    def moves(self) -> Moves:
        """How often it was moved, and what it left behind (D14)."""
        return parse_moves(_message(self.conditions, names.MOVED) or "") if names.MOVED in self.true else Moves()

    @property
    def drains(self) -> int:
        """How many of its moves were from workers that were drained (D15)."""
        return parse_drains(_message(self.conditions, names.DRAINED) or "") if names.DRAINED in self.true else 0

    @property
    def limited_moves(self) -> int:
        """How many of its moves count against ``workers.moveLimit``: an operator's drains do not."""
        return max(0, self.moves.count - self.drains)

    @property
    def retries(self) -> Retries:
        """Whether it is tried on another worker, and where it was (D31)."""
        return retries_of(self.conditions)

    @property
    def kept_start(self) -> str:
        return self.start or ""

    @property
    def waits_after_move(self) -> bool:
        """It was moved, or is just now, and nothing of it is known to have started since.

        Not one that has its earlier copy again, since the next worker has refused it: that had started, or may have.
        """
        if (reason := self._suspended_because) != WORKER_LOST:
            return reason == WORKER_DRAINED
        moved = conditions.find(self.conditions, names.MOVED, TRUE)
        return moved is not None and moved.get("reason") != WORKER_RETURNED

    @property
    def is_leaving(self) -> bool:
        """Its mirror has stopped on a worker that is drained, and what was counted there is stored: it may go.

        Not once it has gone: on the next worker, too, it is suspended for that reason until its mirror there starts.
        """
        if self._suspended_because != WORKER_DRAINED or self.mirror_uid is None:
            return False
        return self._suspension.get("message") == leaving_text(self.placed_worker or "")

    @property
    def _suspension(self) -> Condition:
        return (conditions.find(self.conditions, SUSPENDED, TRUE) if SUSPENDED in self.true else None) or {}

    @property
    def _suspended_because(self) -> object:
        return self._suspension.get("reason")

    @property
    def obstruction_reason(self) -> str:
        """Why it waits or makes no progress (D22); empty where nothing is said."""
        if len(self.true) == len(self.conditions):
            return ""  # what explains is not True
        return explaining.reason_of(self.conditions)

    def is_true(self, type_name: str) -> bool:
        return type_name in self.true

    def refusal(self, status: Mapping[str, object]) -> str:
        """Why the API would refuse this status; empty when it accepts.

        The statuses that we make are refused only where any would be: something stored contradicts itself.
        """
        if is_plain_progress(self.status, status):
            return ""
        causes = check_change(self.wanted, self.status, status)
        if not causes:
            return ""
        listed = "; ".join(f"{cause.field}: {cause.message}" for cause in causes)
        return f"what is stored allows no such write: {listed}"


def leaving_text(worker: str) -> str:
    """What a source says of a worker that it is about to leave, since that is drained: the mirror there may go."""
    return f"Worker {worker} is drained; the copy there has stopped and is deleted"


def served(status: Mapping[str, object]) -> Status:
    """The status in the shape that the API serves (DF20); fields that we do not know stay.

    Raises:
        BadTime: a time is none.
    """
    shaped = without_empty(status)
    for name in _TIMES:
        if isinstance(time := shaped.get(name), str):
            shaped[name] = times.stored(time)
    listed = [_served_condition(one) for one in conditions.of(shaped)]
    if listed:
        shaped["conditions"] = listed
    else:
        shaped.pop("conditions", None)
    if (uncounted := shaped.get("uncountedTerminatedPods")) and isinstance(uncounted, Mapping):
        shaped["uncountedTerminatedPods"] = {name: list(uids) for name, uids in uncounted.items() if uids}
    return shaped


def without_empty(status: Mapping[str, object]) -> Status:
    """The same of a status whose parts are in that shape, as the parts of all that we compute are."""
    shaped = dict(status)
    for name in filterfalse(status.get, status):
        if shaped[name] is None or name in _LEFT_OUT_EMPTY:
            del shaped[name]
    return shaped


def _served_condition(condition: Condition) -> Condition:
    shaped = dict(filter(_value, condition.items()))
    probed, changed = shaped.get("lastProbeTime"), shaped.get("lastTransitionTime")
    at = times.stored(changed) if isinstance(changed, str) else None
    if probed == changed:  # as kube-controller-manager sets them
        shaped["lastProbeTime"] = at
    else:
        shaped["lastProbeTime"] = times.stored(probed) if isinstance(probed, str) else None
    shaped["lastTransitionTime"] = at
    return shaped


def verdict(status: Mapping[str, object]) -> Verdict | None:
    """How the Job ends or has ended, as far as it is known."""
    return conditions.verdict(conditions.of(status))


def has_started(status: Mapping[str, object]) -> bool:
    """Whether anything of the Job has run, or been decided: a startTime, any counter, or a verdict (D11)."""
    return _has_run(status, conditions.of(status)) or verdict(status) is not None


def _has_run(status: Mapping[str, object], listed: Sequence[Condition]) -> bool:
    """``listed``: its conditions, which may be left out where it is not suspended."""
    if any(map(status.get, _COUNT_PODS)):
        return True
    if any(views.mapping(status.get("uncountedTerminatedPods")).values()):
        return True
    start = status.get("startTime")
    return bool(start) and not (listed and _is_kept_start(start, listed))


def _is_kept_start(start: object, listed: Sequence[Condition]) -> bool:
    """Whether the API has kept it of a mirror of which nothing ran (V37): until the next one starts it is suspended."""
    return retries_of(listed).start == start and conditions.is_true(listed, SUSPENDED)


def retries_of(listed: Sequence[Condition]) -> Retries:
    """What the conditions of a source say of its retries."""
    found = conditions.find(listed, names.RETRYING)
    return Retries() if found is None else parse_retries(found.get("status"), found.get("message"))


def placed_worker(status: Mapping[str, object]) -> str | None:
    """The worker that is recorded on the source (D5)."""
    return _message(conditions.of(status), names.PLACED)


def _message(listed: Sequence[Condition], type_name: str) -> str | None:
    found = conditions.find(listed, type_name, TRUE)
    return views.text(found.get("message")) or None if found else None
