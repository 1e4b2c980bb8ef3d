"""Kinds that something on the management cluster runs although their objects name us: no more are placed (D20, D25).

Controllers that do not know ``managedBy`` (Trainer before 2.3, JAXJob's) write statuses of our sources, which a rule
sees at one of them. Here it is known of its kind, for a while after it was last seen; with the worker on which that one
is placed, it is written down for who assigns in another process, and for who leads next (``Worker.kinds_run_here``).
Others may be run by a MultiKueue (``multikueue``). So is a kind whose entry names fields that its definition does not
have, without which nothing of it could be mirrored (``kind_schemas``). Used by ``observing``.
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import timedelta

from mirror.controllers.multikueue import MultiKueue
from mirror.kinds.base import Kind
from mirror.model.reasons import Obstruction, Reason
from mirror.runtime.clock import Clock
from mirror.workers.inventory import written
from mirror.workers.known_workers import Workers
from mirror.workers.worker import Worker

STOPPED_SECONDS = 600.0
MOST_SOURCES = 10_000


class StoppedKinds:
    """By name of the kind, until when it is stopped."""

    def __init__(self, clock: Clock, workers: Workers, multikueue: MultiKueue | None = None) -> None:
        self._clock = clock
        self._workers = workers
        self._multikueue = multikueue
        self._until: dict[str, float] = {}
        # Sources that had a status before they were placed: that is seen for as long as they exist, and counts once.
        self._noted: OrderedDict[str, None] = OrderedDict()

    def note(self, kind: Kind, uid: str, *, worker: Worker | None, is_new: bool) -> bool:
        """Another controller has written a source's status.

        Args:
            kind: of the source.
            uid: of the source.
            worker: on which it is placed.
            is_new: it does so now; else it may have done it at any time before.

        Returns:
            Whether the kind was not stopped before.
        """
        if not is_new and uid in self._noted:
            return False
        self._noted[uid] = None
        if len(self._noted) > MOST_SOURCES:
            self._noted.popitem(last=False)
        was_stopped = self._is_run_here(kind)
        self._until[kind.name] = self._clock.monotonic() + STOPPED_SECONDS
        if worker is not None:
            self._write_down(kind, worker)
        return not was_stopped

    def _write_down(self, kind: Kind, worker: Worker) -> None:
        """Now and then: each write of what runs it comes here."""
        now = self._clock.now()
        if worker.kinds_run_here.get(kind.name, "") < written(now + timedelta(seconds=STOPPED_SECONDS / 2)):
            worker.note_run_here(kind.name, written(now + timedelta(seconds=STOPPED_SECONDS)))

    def is_stopped(self, kind: Kind) -> bool:
        """Whether nothing of this kind is placed now."""
        return self._may_multikueue_run(kind) or bool(kind.unusable) or self._is_run_here(kind)

    def why(self, kind: Kind) -> Obstruction | None:
        """What a source of this kind waits for; None: its kind is not stopped."""
        if self._multikueue is not None and self._multikueue.may_run(kind):
            return Obstruction(Reason.MULTIKUEUE_HERE, self._multikueue.why(kind))
        if kind.unusable:
            return Obstruction(Reason.INVALID_KIND_ENTRY, _how_to_correct(kind))
        return Obstruction(Reason.KIND_RUNS_HERE, what_to_do(kind)) if self._is_run_here(kind) else None

    def _may_multikueue_run(self, kind: Kind) -> bool:
        return self._multikueue is not None and self._multikueue.may_run(kind)

    def _is_run_here(self, kind: Kind) -> bool:
        if self._until.get(kind.name, float("-inf")) > self._clock.monotonic():
            return True
        until = self._workers.run_here_until(kind.name)
        return bool(until) and until > written(self._clock.now())


def _how_to_correct(kind: Kind) -> str:
    """For people: which keys lead nowhere, and whose task it is."""
    to_do = (
        f"the operator corrects the entry of {kind.name} in the setting kinds, or installs a definition with the field"
    )
    return f"{'; '.join(kind.unusable)}: {to_do}"


def what_to_do(kind: Kind) -> str:
    """For people: what runs objects of a kind here, and how to mend it."""
    since = f"; {kind.honoured_since} or newer does" if kind.honoured_since else ""
    return (
        f"a controller on the management cluster writes statuses of {kind.name}s that are not its own, so it does not"
        f" honour {kind.managed_by_field}{since}: upgrade it, or take it away there"
    )
