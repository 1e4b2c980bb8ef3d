"""Whether workers' definitions have the fields that the entries of kinds name, asked of one worker after the other.

A worker with another release of a kind's controller may lack some: what is carried there is refused, what is read of a
status is never there. That is logged, counted, and an event on the Secret of the worker, where its operator looks; it
stops nothing, since what a mirror would lose is refused definitely (``writing_mirrors``). The management cluster's
definitions are ``kind_schemas``'.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.schemas import unknown_fields
from mirror.kube.errors import KubeError
from mirror.kube.openapi import addresses, document_of, schema_of
from mirror.runtime.environment import Environment
from mirror.workers.worker import Worker

INTERVAL_SECONDS = 60.0
AGAIN_SECONDS = 3600.0
"""What a worker serves changes with a release of a controller there."""
_MOST_KNOWN = 1000
EVENT = "InvalidKindEntry"


class WorkerSchemas:
    """What is known of the definitions of each worker.

    Addresses of documents have a hash of what is said there, so that of workers with the same release one is read.
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
        self._asked_at: dict[tuple[str, str], float] = {}
        """By worker and path of the kind; what is of workers that are gone goes with them."""
        self._said: dict[tuple[str, str], tuple[str, ...]] = {}
        self._by_address: dict[tuple[str, str], tuple[str, ...]] = {}
        """By path of the kind and address, what a document lacks."""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            if self._is_working():
                await self._look()

    async def _look(self) -> None:
        workers = {worker.name: worker for worker in self._workers()}
        for known in (self._asked_at, self._said):
            for key in [key for key in known if key[0] not in workers]:
                known.pop(key, None)
        for worker in workers.values():
            due = {path: kind for path, kind in self._kinds.items() if self._is_due(worker, path, kind)}
            if due:
                await self._ask(worker, due)

    def _is_due(self, worker: Worker, path: str, kind: DeclaredKind) -> bool:
        if not worker.is_reachable or kind.name in worker.unserved_kinds:
            return False
        asked_at = self._asked_at.get((worker.name, path))
        return asked_at is None or self._clock.monotonic() - asked_at >= AGAIN_SECONDS

    async def _ask(self, worker: Worker, kinds: Mapping[str, DeclaredKind]) -> None:
        try:
            published = await addresses(worker.client)
            for path, kind in kinds.items():
                address = published.get(document_of(kind.resource), "")
                unknown = await self._unknown(worker, path, kind, address)
                if unknown is None:
                    continue  # not published yet: a definition that has just come
                self._asked_at[worker.name, path] = self._clock.monotonic()
                self._tell(worker, path, kind, unknown)
        except KubeError as error:
            self._log.debug("schemas of a worker not read", worker=worker.name, error=error)

    async def _unknown(self, worker: Worker, path: str, kind: DeclaredKind, address: str) -> tuple[str, ...] | None:
        """What its definition lacks; None where it is not published.

        Raises:
            KubeError: the worker does not say.
        """
        if address and (path, address) in self._by_address:
            return self._by_address[path, address]
        schema = await schema_of(worker.client, kind.resource)
        if schema is None:
            return None
        unknown = tuple(map(str, unknown_fields(kind.entry, schema, path=path)))
        if address:
            if len(self._by_address) >= _MOST_KNOWN:
                self._by_address.clear()
            self._by_address[path, address] = unknown
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
