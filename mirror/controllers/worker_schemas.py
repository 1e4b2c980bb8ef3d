"""Whether workers' definitions have the fields that the entries of kinds name, asked of a few workers at a time.

A worker with another release of a kind's controller may lack some: what is carried there is refused, what is read of a
status is never there. That is logged, counted, and an event on the Secret of the worker, where its operator looks. A
worker that lacks what no mirror works without gets no objects of the kind (``Worker.incomplete_kinds``), and what is
there is left alone. All else stops nothing, since what a mirror would lose is refused definitely (``writing_mirrors``).
The management cluster's definitions are ``kind_schemas``'.

A worker may be hostile (D12): what it says is told of it alone, and it keeps no other from being asked for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mirror.controllers.events import warn_about_worker
from mirror.controllers.mirroring import Mirroring
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.schemas import lacking_on_worker, unknown_fields
from mirror.kube.errors import KubeError
from mirror.kube.openapi import addresses, document_of, schema_of
from mirror.model.text import clean
from mirror.runtime.environment import Environment
from mirror.runtime.slices import in_slices
from mirror.workers.worker import Worker

INTERVAL_SECONDS = 10.0
"""Between two looks at who is due: a kind that a worker has begun to serve is read before much of it is there."""
AGAIN_SECONDS = 600.0
"""What a worker serves changes with a release of a controller there; the index alone is read, where that is the same.
A kind whose mirrors had to be listed anew is asked for at once: a definition that is replaced ends what was watched."""
SOON_SECONDS = 60.0
"""Where a worker gets nothing of a kind for its definition, or has not published it yet: the index alone is read."""
RETRY_SECONDS = 600.0
"""After an answer that tells nothing: a failure, or a document without the definition."""
ROUND_SECONDS = 30.0
"""For all questions to one worker; what is left is asked in the next round."""
AT_ONCE = 4
"""Workers that are asked at a time: each may send a document of megabytes."""
LONGEST_ADDRESS = 300
"""In characters; API servers' have a group, a version and 128 digits. By a longer one nothing is remembered."""
LONGEST_TEXT = 200
"""In characters, of the fields that are lacking."""
EVENT = "InvalidKindEntry"


@dataclass(frozen=True, slots=True)
class _Read:
    """What the document lacks that a worker had at an address."""

    address: str
    unknown: tuple[str, ...]
    lacking: tuple[str, ...]
    """The fields that no mirror works without."""


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
        self._lists: dict[tuple[str, str], int] = {}
        """How often the mirrors of the kind had been listed when it was asked last."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            if self._is_working():
                await self._look()

    async def _look(self) -> None:
        workers = {worker.name: worker for worker in self._workers()}
        gone = {name for name, worker in self._asked.items() if workers.get(name) is not worker}
        for known in (self._due_at, self._said, self._read, self._lists):
            for key in [key for key in known if key[0] in gone]:
                known.pop(key, None)
        self._asked = workers
        gate = asyncio.Semaphore(AT_ONCE)
        async with asyncio.TaskGroup() as scope:
            async for worker in in_slices(workers.values()):
                if due := self._due(worker):
                    scope.create_task(self._ask(worker, due, gate))

    def _due(self, worker: Worker) -> dict[str, DeclaredKind]:
        """The kinds that a worker is to be asked for now, by path."""
        if not worker.is_reachable:
            return {}
        now, unserved = self._clock.monotonic(), worker.unserved_kinds
        for path, kind in self._kinds.items() if unserved else ():
            if kind.name in unserved:
                self._due_at.pop((worker.name, path), None)  # as soon as it is served
        due, lists = dict[str, DeclaredKind](), worker.watches.lists()
        for path, kind in self._kinds.items():
            key, listed = (worker.name, path), lists.get(kind.resource, 0)
            is_time = now >= self._due_at.get(key, 0.0) or listed != self._lists.get(key)
            if kind.name not in unserved and (is_time or self._is_another_s_word(worker, path, kind)):
                due[path], self._lists[key] = kind, listed
        return due

    def _is_another_s_word(self, worker: Worker, path: str, kind: DeclaredKind) -> bool:
        """Whether a process that led before has found it incomplete, and this one as it should be: it may be again."""
        known = self._read.get((worker.name, path))
        return bool(worker.incomplete_kinds.get(kind.name)) and known is not None and not known.lacking

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
            if published and not address:
                self._ask_again(worker, path, SOON_SECONDS)
                continue
            try:
                read = await self._read_definition(worker, path, kind, address)
            except KubeError as error:
                self._log.debug("schema of a worker not read", worker=worker.name, kind=kind.name, error=error)
                continue
            if not any(one is worker for one in self._workers()):
                return  # its metrics are forgotten
            if read is not None:
                self._ask_again(worker, path, SOON_SECONDS if read.lacking else AGAIN_SECONDS)
                worker.note_incomplete(kind.name, clean(", ".join(read.lacking), longest=LONGEST_TEXT))
                self._tell(worker, path, kind, read)

    def _ask_again(self, worker: Worker, path: str, seconds: float) -> None:
        self._due_at[worker.name, path] = self._clock.monotonic() + seconds

    async def _read_definition(self, worker: Worker, path: str, kind: DeclaredKind, address: str) -> _Read | None:
        """What its definition lacks; None where it is not published.

        Raises:
            KubeError: the worker does not say.
        """
        key, is_kept = (worker.name, path), 0 < len(address) <= LONGEST_ADDRESS
        last = self._read.pop(key, None)
        if is_kept and last is not None and last.address == address:
            self._read[key] = last
            return last
        schema = await schema_of(worker.client, kind.resource)
        if schema is None:
            return None
        unknown = tuple(map(str, unknown_fields(kind.entry, schema, path=path)))
        read = _Read(address, unknown, lacking_on_worker(kind.entry, schema))
        if is_kept:
            self._read[key] = read
        return read

    def _tell(self, worker: Worker, path: str, kind: DeclaredKind, read: _Read) -> None:
        unknown = read.unknown
        self._unknown_fields.labels(worker.name, kind.name).set(len(unknown))
        if unknown == self._said.get((worker.name, path), ()):
            return
        self._said[worker.name, path] = unknown
        if not unknown:
            self._log.info("settings fit the kind", worker=worker.name, kind=kind.name)
            return
        for problem in unknown:
            self._log.warning("setting does not fit the kind", worker=worker.name, kind=kind.name, problem=problem)
        follows = f"; this worker gets no {kind.name} until it has these fields" if read.lacking else ""
        self._warn(worker, EVENT, f"by the definition of {kind.name} here: {'; '.join(unknown)}{follows}")


def schemas_of_workers(
    mirroring: Mirroring,
    kinds: Mapping[str, DeclaredKind],
    *,
    is_working: Callable[[], bool],
    environment: Environment,
) -> WorkerSchemas:
    """For the workers that an instance of mirroring is connected to; arguments as of ``WorkerSchemas``."""
    registry = mirroring.registry

    def warn(worker: Worker, reason: str, text: str) -> None:
        if (origin := registry.origin_of(worker.name)) is not None:
            warn_about_worker(mirroring.recorder, origin, reason, text)

    return WorkerSchemas(
        lambda: registry.workers.values(), kinds, warn=warn, is_working=is_working, environment=environment
    )
