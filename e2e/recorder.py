"""Writes down every mirror that workers ever had, by watching: what D2 promises shows only in the whole history.

Used by tests that kill and cut while Jobs run. Not here: what the history must look like.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp

from e2e.controlplane.client import Json, StatusError
from e2e.controlplane.plane import ControlPlane
from mirror.kube.resources import JOBS, Resource
from mirror.model import names

_RETRY_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Mirror:
    """One object that a worker had."""

    worker: str
    uid: str
    source_uid: str


class Recorder:
    """The mirrors in one namespace of several workers. Make one with ``watching``."""

    def __init__(self) -> None:
        self.mirrors: set[Mirror] = set()
        self.most_at_once: defaultdict[str, int] = defaultdict(int)
        """By source uid, the most mirrors of it that existed at the same time."""
        self._existing: set[Mirror] = set()

    @classmethod
    @asynccontextmanager
    async def watching(
        cls, workers: Iterable[ControlPlane], namespace: str, *, kinds: Iterable[Resource] = (JOBS,)
    ) -> AsyncIterator[Recorder]:
        """Record until the block is left; also what was there before."""
        recorder = cls()
        kinds = list(kinds)
        started = {(worker, kind.path(namespace)): asyncio.Event() for worker in workers for kind in kinds}
        async with asyncio.TaskGroup() as scope:
            tasks = [
                scope.create_task(recorder._record(worker, path, event), name=f"record {path} of {worker.name}")
                for (worker, path), event in started.items()
            ]
            try:
                for event in started.values():
                    await event.wait()
                yield recorder
            finally:
                for task in tasks:
                    task.cancel()

    def by_source(self) -> dict[str, list[Mirror]]:
        """Every mirror that each source ever had, by the source's uid."""
        found: defaultdict[str, list[Mirror]] = defaultdict(list)
        for mirror in self.mirrors:
            found[mirror.source_uid].append(mirror)
        return dict(found)

    async def _record(self, worker: ControlPlane, path: str, started: asyncio.Event) -> None:
        client, version, mine = worker.client(), "", set[Mirror]()
        while True:
            try:
                if not version:
                    listed = await client.get(path)
                    version = listed["metadata"]["resourceVersion"]
                    found = {self._note(worker.name, "ADDED", item) for item in listed["items"]}
                    self._existing -= mine - found
                    mine = found
                    started.set()
                async for event in client.watch(path, version):
                    version = event["object"]["metadata"]["resourceVersion"]
                    mine.add(self._note(worker.name, event["type"], event["object"]))
            except (aiohttp.ClientError, TimeoutError, StatusError) as error:
                # The API server is being killed: go on from the same version, unless it has forgotten that one.
                if isinstance(error, StatusError) and error.status == HTTPStatus.GONE:
                    version = ""
                await asyncio.sleep(_RETRY_SECONDS)

    def _note(self, worker: str, kind: str, found: Json) -> Mirror:
        metadata: dict[str, Any] = found["metadata"]
        # A mirror has no owner: what a controller owns has copies of its labels, as a PipelineRun's TaskRuns have.
        is_copy = any(owner.get("controller") for owner in metadata.get("ownerReferences", ()))
        source_uid = "" if is_copy else metadata.get("labels", {}).get(names.SOURCE_UID, "")
        mirror = Mirror(worker, metadata["uid"], source_uid)
        if kind == "DELETED":
            self._existing.discard(mirror)
            return mirror
        self.mirrors.add(mirror)
        self._existing.add(mirror)
        count = sum(other.source_uid == source_uid for other in self._existing)
        self.most_at_once[source_uid] = max(self.most_at_once[source_uid], count)
        return mirror
