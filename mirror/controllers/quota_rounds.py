"""Reads the ResourceQuotas of workers from time to time, for the score ``quota`` (``placement.quotas``).

Soft facts: what cannot be read is unknown, and unknown is neutral. A worker whose quotas were last read too long ago
counts as one without; so does one that is not reachable, which gets no Jobs anyway.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping

from mirror.batch import views
from mirror.kube.errors import BadAnswer, KubeError
from mirror.kube.objects import Object
from mirror.kube.resources import RESOURCE_QUOTAS
from mirror.kube.watch import list_pages
from mirror.placement.quotas import Amounts, free_share
from mirror.runtime.environment import Environment
from mirror.workers.worker import Worker

INTERVAL_SECONDS = 60.0
LOOK_SECONDS = 1.0
"""Between two looks at who is due: a worker that has just become reachable is read soon."""
LAPSE_SECONDS = 200.0
"""After three rounds without an answer."""
DEADLINE_SECONDS = 30.0
MOST_QUOTAS = 10_000
"""Of one worker: more is no answer that is of use (D29)."""

Report = Callable[[str, Mapping[str, float]], None]
"""Takes a worker, and by namespace of sources the share that is free."""


class QuotaRounds:
    """Goes round the workers; each on its own, so that one that hangs delays nobody (D12)."""

    def __init__(self, workers: Mapping[str, Worker], report: Report, *, environment: Environment) -> None:
        self._workers = workers
        self._report = report
        self._log = environment.log
        self._clock = environment.clock
        self._read_at: dict[str, float] = {}
        self._due_at: dict[str, float] = {}
        self._failed: set[str] = set()
        self._busy: set[str] = set()

    async def run(self) -> None:
        """Look at every reachable worker each minute, until cancelled."""
        async with asyncio.TaskGroup() as scope:
            while True:
                now = self._clock.monotonic()
                for worker in list(self._workers.values()):
                    is_due = now >= self._due_at.get(worker.name, now)
                    if is_due and worker.is_reachable and worker.name not in self._busy:
                        self._busy.add(worker.name)
                        self._due_at[worker.name] = now + INTERVAL_SECONDS
                        scope.create_task(self._look(worker), name=f"quotas of {worker.name}")
                self._lapse()
                await asyncio.sleep(LOOK_SECONDS)

    async def _look(self, worker: Worker) -> None:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                found = await self._read(worker)
        except (KubeError, TimeoutError) as error:
            if worker.name not in self._failed:
                self._log.warning("ResourceQuotas not read", worker=worker.name, error=error)
            self._failed.add(worker.name)
        else:
            self._failed.discard(worker.name)
            if self._workers.get(worker.name) is worker:
                self._read_at[worker.name] = self._clock.monotonic()
                self._report(worker.name, found)
        finally:
            self._busy.discard(worker.name)

    def _lapse(self) -> None:
        """Forget what is too old, and who is a worker no more."""
        now = self._clock.monotonic()
        for name, at in list(self._read_at.items()):
            if name not in self._workers or now - at > LAPSE_SECONDS:
                del self._read_at[name]
                self._report(name, {})
        self._failed &= self._workers.keys()
        for name in self._due_at.keys() - self._workers.keys():
            del self._due_at[name]

    async def _read(self, worker: Worker) -> Mapping[str, float]:
        """Raises KubeError."""
        quotas: defaultdict[str, list[tuple[Amounts, Amounts]]] = defaultdict(list)
        count = 0
        for namespace in worker.watches.namespaces:
            async for page in list_pages(worker.client, RESOURCE_QUOTAS, namespace=namespace):
                for found in page.objects:
                    if (count := count + 1) > MOST_QUOTAS:
                        raise BadAnswer(f"more than {MOST_QUOTAS} ResourceQuotas")
                    source_namespace = worker.source_namespace_of(found.metadata.namespace)
                    if source_namespace is not None and (amounts := _amounts_of(found)) is not None:
                        quotas[source_namespace].append(amounts)
        shares = {namespace: free_share(of_namespace) for namespace, of_namespace in quotas.items()}
        return {namespace: share for namespace, share in shares.items() if share is not None}


def _amounts_of(quota: Object) -> tuple[Amounts, Amounts] | None:
    """``hard`` and ``used`` as its controller has them; None for one of some pods only, or that is unreadable."""
    try:
        spec, status = quota.spec_dict(), quota.status_dict()
    except BadAnswer:
        return None
    if spec.get("scopes") or spec.get("scopeSelector"):
        return None
    return views.mapping(status.get("hard")), views.mapping(status.get("used"))
