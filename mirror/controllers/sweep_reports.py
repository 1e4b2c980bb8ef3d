"""What sweeps say of a worker's mirrors, once for as long as it is so (D10). Called by ``sweeping``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum

from mirror.controllers.events import warn_about_worker
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.text import clean
from mirror.runtime.environment import Environment
from mirror.runtime.event_recorder import EventRecorder
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker

LONGEST_NAMED = 120


class WhyGone(Enum):
    """Why a mirror has no source on its worker, by what the management cluster said."""

    ABSENT = "absent"
    ELSEWHERE = "elsewhere"
    """It is recorded on another worker, and may run there, too."""


class SweepReports:
    """Events about workers, and which of their mirrors a sweep has left."""

    def __init__(self, registry: Registry, recorder: EventRecorder, environment: Environment, *, origin: str) -> None:
        self._registry = registry
        self._recorder = recorder
        self._log = environment.log
        self._metrics = environment.metrics
        self._origin = origin
        # The uids of the mirrors that the last sweep of a worker left, since they were too many; of workers that exist.
        self._halted: dict[str, Mapping[str, WhyGone]] = {}
        # Workers whose mirrors of another management cluster were reported; of workers that exist.
        self._shared: set[str] = set()

    def keep_only(self, workers: Collection[str]) -> None:
        """Others are not registered any more."""
        self._halted = {name: left for name, left in self._halted.items() if name in workers}
        self._shared.intersection_update(workers)

    def halted_on(self, worker: str) -> Mapping[str, WhyGone]:
        """The uids of what the last sweep of a worker left, and why each has no source."""
        return self._halted.get(worker, {})

    def refused(self, worker: Worker, refusals: Sequence[str]) -> None:
        """Their sources are gone, which leaves only the operator to report it to: their pods go on running."""
        if refusals:
            text = f"mirrors whose Job is gone stay on this worker, which refuses to delete them: {refusals[0]}"
            self._warn(worker, "MirrorNotDeleted", text)

    def not_halted(self, worker: Worker) -> None:
        """What was to go is not too much, or nothing was."""
        self._halted.pop(worker.name, None)

    def halted(self, worker: Worker, going: Mapping[str, WhyGone], mirrors: int) -> None:
        """More were to go than one sweep may delete; reported anew where their number is another."""
        before, count = self._halted.get(worker.name, {}), len(going)
        self._halted[worker.name] = going
        if len(before) == count:
            return
        self._metrics.worker(worker.name).sweep_halted.inc()
        elsewhere = sum(why is WhyGone.ELSEWHERE for why in going.values())
        what = f"{count} of {mirrors} mirrors on this worker have no source"
        if elsewhere:
            twice = f"{elsewhere} of them, which may run twice"
            what = f"{what} here: none, or one that is recorded on another worker ({twice})"
        text = (
            f"{what}: more than one sweep may delete; "
            f"none was deleted. If their sources are really gone, delete them there (label {names.ORIGIN})"
        )
        self._log.error("sweep halted", worker=worker.name, count=count, elsewhere=elsewhere, mirrors=mirrors)
        self._warn(worker, "SweepHalted", text)

    def others(self, worker: Worker, found: Sequence[Object]) -> None:
        """Once for each worker: another management cluster uses our origin there, by mistake."""
        if not found:
            self._shared.discard(worker.name)
        elif worker.name not in self._shared:
            self._shared.add(worker.name)
            others = sorted({one.labels[names.MANAGEMENT_UID] for one in found})
            text = (
                f"{len(found)} mirrors on this worker have our origin {self._origin} and are of another "
                f"management cluster ({clean(', '.join(others), longest=LONGEST_NAMED)}): they are left alone. "
                "Give each management cluster an origin of its own (setting origin)"
            )
            self._log.error("origin shared", worker=worker.name, count=len(found), management_uids=others[:3])
            self._warn(worker, "OriginShared", text)

    def _warn(self, worker: Worker, reason: str, text: str) -> None:
        if (origin := self._registry.origin_of(worker.name)) is not None:
            warn_about_worker(self._recorder, origin, reason, text)
