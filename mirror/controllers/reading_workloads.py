"""Reads on a worker why its queue (Kueue) holds mirrors, where the setting ``workers.readWorkloads`` asks for it (D26).

Called by ``worker_rounds``. Only while Jobs show that they are held there is anything read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set

from mirror.controllers.sources import Sources
from mirror.kinds.queue_words import job_uid_of, why_not_admitted
from mirror.kube.errors import BadAnswer, NotServed, PageNotFound
from mirror.kube.objects import Object
from mirror.kube.resources import KUEUE_WORKLOADS, Resource
from mirror.kube.watch import list_pages
from mirror.model.keys import SourceKey
from mirror.model.reasons import Reason
from mirror.runtime.slices import in_slices
from mirror.workers.worker import Worker

INTERVAL_SECONDS = 15.0
MOST_WORKLOADS = 10_000
"""Of one worker: more is no answer that is of use (D29)."""

Held = dict[str, SourceKey]
"""Sources by the uids of their mirrors."""


class WorkloadReasons:
    """What the queues of workers say of mirrors that they hold, by the mirror's uid; bounded by those that are held."""

    def __init__(self, sources: Sources, wake: Callable[[SourceKey], object]) -> None:
        self._sources = sources
        self._wake = wake
        self._texts: dict[str, Mapping[str, str]] = {}
        """By worker."""
        self._held: dict[str, Held] = {}
        """By worker that has texts: what it held when they were read."""

    def of(self, worker: str, mirror_uid: str) -> str:
        """Why a mirror is held; empty where nobody knows."""
        return self._texts.get(worker, {}).get(mirror_uid, "")

    async def read(self, worker: Worker) -> Mapping[str, str]:
        """By the mirror's uid, of all Jobs that this worker holds.

        Raises:
            KubeError: it was not read.
        """
        held = await self._held_on(worker.name)
        if not held:
            return {}
        namespaces = {worker.namespace_of(key.namespace) for key in held.values()}
        texts = await _texts(worker, sorted(namespaces), held.keys())
        self._held[worker.name] = held
        return texts

    def report(self, worker: str, texts: Mapping[str, str]) -> None:
        """Each Job of which another text was read is looked at."""
        before, held = self._texts.get(worker, {}), self._held.get(worker, {})
        self._texts[worker] = texts
        for uid in before.keys() | texts.keys():
            if texts.get(uid) != before.get(uid) and uid in held:
                self._wake(held[uid])
        if not texts:
            del self._texts[worker]
            self._held.pop(worker, None)

    async def _held_on(self, worker: str) -> Held:
        held: Held = {}
        async for key in in_slices(self._sources.keys_on_with_reason(worker, Reason.SUSPENDED_ON_WORKER)):
            found = self._sources.get(key)
            summary = self._sources.kinds[key.kind].summary(found) if found is not None else None
            if summary is not None and summary.placed == worker and summary.mirror_uid:
                held[summary.mirror_uid] = key
        return held


async def _texts(worker: Worker, namespaces: list[str], uids: Set[str]) -> dict[str, str]:
    """Of the first version that the worker serves; none where there is no Kueue."""
    for resource in KUEUE_WORKLOADS:
        try:
            return await _texts_in(worker, resource, namespaces, uids)
        except (NotServed, PageNotFound):
            continue
    return {}


async def _texts_in(worker: Worker, resource: Resource, namespaces: list[str], uids: Set[str]) -> dict[str, str]:
    """Nothing else is kept of Workloads than the texts of those that are asked for (D29)."""
    texts, count = dict[str, str](), 0
    for namespace in namespaces:
        async for page in list_pages(worker.client, resource, namespace=namespace):
            if (count := count + len(page.objects)) > MOST_WORKLOADS:
                raise BadAnswer(f"more than {MOST_WORKLOADS} Workloads")
            for found in page.objects:
                uid = job_uid_of(found.labels)
                if uid in uids and (text := _text(found)):
                    texts[uid] = text
    return texts


def _text(found: Object) -> str:
    try:
        return why_not_admitted(found.spec_dict(), found.status_dict())
    except BadAnswer:
        return ""
