"""What goes along with a source is read and copied while its worker is recorded: no mirror waits for it (D27).

Best effort, bounded in number, bytes and time: whatever is not done, or did not go well, ``dependencies`` does before
the mirror is created. A copy that was made for a record which is refused carries a note, and goes by the sweep. Used by
``writing_mirrors``; the reads are ``originals``', the copies ``dependencies``'.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mirror.controllers.refusing import WorkerRefusal
from mirror.decide.dependencies import Contents, Name
from mirror.decide.snapshot import Snapshot
from mirror.kube.errors import KubeError
from mirror.model.reasons import Obstruction
from mirror.runtime.clock import Clock
from mirror.workers.worker import Worker

if TYPE_CHECKING:
    from mirror.controllers.dependencies import Dependencies

Copied = Mapping[Name, bool | WorkerRefusal]
"""Whether a copy is ours, or somebody else's; or why there is none."""

READ_SECONDS = 1.0
COPY_SECONDS = 1.0
FRESH_SECONDS = 1.0
"""What was read is used for so long after it was."""
LATE_SECONDS = 30.0
"""Nothing is copied ahead for so long to a worker that took longer than ``COPY_SECONDS``: others wait behind (D12)."""
MOST_SOURCES = 64
MOST_BYTES = 64 * 1024
"""Of one source; what is larger is read when it is needed."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done for one source."""

    read_at: float
    originals: Mapping[Name, Contents]
    worker: str
    copied: Copied


class Ahead:
    """Invariant: at most ``MOST_SOURCES`` are in ``_done``, by uid; ``_late`` names workers until when they are."""

    def __init__(self, dependencies: Dependencies, clock: Clock) -> None:
        self._dependencies = dependencies
        self._clock = clock
        self._done: OrderedDict[str, Done] = OrderedDict()
        self._late: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._done)

    async def begin(self, seen: Snapshot, worker: Worker | None) -> None:
        """Read what goes along with a source, and copy it to the worker that is being recorded."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                originals = await self._dependencies.originals.of_source(seen.source.kind, seen.source.found)
        except (KubeError, TimeoutError):
            return
        read_at = self._clock.monotonic()
        if isinstance(originals, Obstruction) or sum(one.size for one in originals.values()) > MOST_BYTES:
            return
        copied: Copied = {}
        if worker is not None and self._late.get(worker.name, 0.0) <= read_at:
            copied = await self._copy(seen, worker, originals)
        if originals:
            self._done[seen.source.uid] = Done(read_at, originals, worker.name if worker else "", copied)
        if len(self._done) > MOST_SOURCES:
            self._done.popitem(last=False)

    async def _copy(self, seen: Snapshot, worker: Worker, originals: Mapping[Name, Contents]) -> Copied:
        try:
            async with asyncio.timeout(COPY_SECONDS):
                results = await self._dependencies.copy_lacking(seen, worker, originals)
        except TimeoutError:
            self._late[worker.name] = self._clock.monotonic() + LATE_SECONDS
            return {}
        return {name: result for name, result in results.items() if not isinstance(result, KubeError)}

    def take(self, uid: str) -> Done | None:
        """What was done for a source, unless it was too long ago."""
        done = self._done.pop(uid, None)
        return done if done is not None and self._clock.monotonic() - done.read_at < FRESH_SECONDS else None

    def forget(self, uid: str) -> None:
        """No mirror of this source is created now."""
        self._done.pop(uid, None)

    def forget_old(self) -> None:
        """What was done for sources that went before their mirrors were made."""
        now = self._clock.monotonic()
        for uid in [uid for uid, done in self._done.items() if now - done.read_at >= FRESH_SECONDS]:
            del self._done[uid]
        for worker in [worker for worker, until in self._late.items() if until <= now]:
            del self._late[worker]
