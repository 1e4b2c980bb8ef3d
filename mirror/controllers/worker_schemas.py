"""Whether workers' definitions have the fields that the entries of kinds name, asked of a few workers at a time.

A worker with another release of a kind's controller may lack some: what is carried there is refused, what is read of a
status is never there. That is logged, counted, and an event on the Secret of the worker, where its operator looks; it
stops nothing, since what a mirror would lose is refused definitely (``writing_mirrors``). The management cluster's
definitions are ``kind_schemas``'.

A worker may be hostile (D12): what it says is told of it alone, and it keeps no other from being asked for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.schemas import unknown_fields
from mirror.kube.errors import KubeError
from mirror.kube.openapi import addresses, document_of, schema_of
from mirror.runtime.environment import Environment
from mirror.workers.worker import Worker

INTERVAL_SECONDS = 60.0
AGAIN_SECONDS = 3600.0
"""What a worker serves changes with a release of a controller there."""
RETRY_SECONDS = 600.0
"""After an answer that tells nothing: a failure, or a definition that is not published (yet)."""
ROUND_SECONDS = 30.0
"""For all questions to one worker; what is left is asked in the next round."""
AT_ONCE = 4
"""Workers that are asked at a time: each may send a document of megabytes."""
LONGEST_ADDRESS = 300
"""In characters; API servers' have a group, a version and 128 digits. By a longer one nothing is remembered."""
EVENT = "InvalidKindEntry"


@dataclass(frozen=True, slots=True)
class _Read:
    """What the document lacks that a worker had at an address."""

    address: str
    unknown: tuple[str, ...]


class WorkerSchemas:
    """What is known of the definitions of each worker.

    Addresses of documents have a hash of what is said there: one that was read is read again when it is another one.
    It is the worker's word, so that it counts for this worker only.
    """

    def __init__(
        self,
        workers: Callable[[], Iterable[Worker]],
        kinds: Mapping[str, DeclaredKind],
        *,
        warn: Callable[[Worker, str, str], None],
        is_working: Callable[[], bool],
        environment: Environment,
    ) -> None:
        """Begin with nothing known.

        Args:
            workers: those that are registered.
            kinds: by their paths in the settings.
            warn: records an event about a worker: its reason and its text.
            is_working: whether this process is the one that mirrors; others ask nobody.
            environment: its log names the paths, and its metrics count them.
        """
        self._workers = workers
        self._kinds = dict(kinds)
        self._warn = warn
        self._is_working = is_working
        self._clock, self._log = environment.clock, environment.log
        self._unknown_fields = environment.metrics.kind_unknown_fields
        self._asked: dict[str, Worker] = {}
        """Those of the last round, by name: one of the same name may be another one since."""
        self._due_at: dict[tuple[str, str], float] = {}
        """By worker and path of the kind, as all of these; what is of workers that are gone goes with them."""
        self._said: dict[tuple[str, str], tuple[str, ...]] = {}
        self._read: dict[tuple[str, str], _Read] = {}

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            if self._is_working():
                await self._look()

    async def _look(self) -> None:
        workers = {worker.name: worker for worker in self._workers()}
        gone = {name for name, worker in self._asked.items() if workers.get(name) is not worker}
        for known in (self._due_at, self._said, self._read):
            for key in [key for key in known if key[0] in gone]:
                known.pop(key, None)
        self._asked = workers
        gate = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as scope:
            for worker in workers.values():
                due = {path: kind for path, kind in self._kinds.items() if self._is_due(worker, path, kind)}
                if due:
                    scope.create_task(self._ask(worker, due, gate))

    def _is_due(self, worker: Worker, path: str, kind: DeclaredKind) -> bool:
        if not worker.is_reachable or kind.name in worker.unserved_kinds:
            return False
        return self._clock.monotonic() >= self._due_at.get((worker.name, path), 0.0)

    async def _ask(self, worker: Worker, kinds: Mapping[str, DeclaredKind], gate: asyncio.Semaphore) -> None:
        async with gate:
            try:
                async with asyncio.timeout(ROUND_SECONDS):
                    await self._ask_index(worker, kinds)
            except (KubeError, TimeoutError) as error:
                self._log.debug("schemas of a worker not read", worker=worker.name, error=error)

    async def _ask_index(self, worker: Worker, kinds: Mapping[str, DeclaredKind]) -> None:
        """Ask for the index, then for what is not known as it is there.

        Raises:
            KubeError: the worker does not say what it publishes.
        """
        try:
            published = await addresses(worker.client)
        except (KubeError, asyncio.CancelledError):
            for path in kinds:
                self._ask_again(worker, path, RETRY_SECONDS)
            raise
        for path, kind in kinds.items():
            self._ask_again(worker, path, RETRY_SECONDS)  # also where it does not answer in time
            address = published.get(document_of(kind.resource), "")
            try:
                unknown = await self._unknown(worker, path, kind, address)
            except KubeError as error:
                self._log.debug("schema of a worker not read", worker=worker.name, kind=kind.name, error=error)
                continue
            if not any(one is worker for one in self._workers()):
                return  # its metrics are forgotten
            if unknown is not None:
                self._ask_again(worker, path, AGAIN_SECONDS)
                self._tell(worker, path, kind, unknown)

    def _ask_again(self, worker: Worker, path: str, seconds: float) -> None:
        self._due_at[worker.name, path] = self._clock.monotonic() + seconds

    async def _unknown(self, worker: Worker, path: str, kind: DeclaredKind, address: str) -> tuple[str, ...] | None:
        """What its definition lacks; None where it is not published.

        Raises:
            KubeError: the worker does not say.
        """
        key, is_kept = (worker.name, path), 0 < len(address) <= LONGEST_ADDRESS
        last = self._read.pop(key, None)
        if is_kept and last is not None and last.address == address:
            self._read[key] = last
            return last.unknown
        schema = await schema_of(worker.client, kind.resource)
        if schema is None:
            return None
        unknown = tuple(map(str, unknown_fields(kind.entry, schema, path=path)))
        if is_kept:
            self._read[key] = _Read(address, unknown)
        return unknown

    def _tell(self, worker: Worker, path: str, kind: DeclaredKind, unknown: tuple[str, ...]) -> None:
        self._unknown_fields.labels(worker.name, kind.name).set(len(unknown))
        if unknown == self._said.get((worker.name, path), ()):
            return
        self._said[worker.name, path] = unknown
        if not unknown:
            self._log.info("settings fit the kind", worker=worker.name, kind=kind.name)
            return
        for problem in unknown:
            self._log.warning("setting does not fit the kind", worker=worker.name, kind=kind.name, problem=problem)
        self._warn(worker, EVENT, f"by the definition of {kind.name} here: {'; '.join(unknown)}")
