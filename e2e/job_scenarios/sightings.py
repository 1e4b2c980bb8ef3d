"""What one control plane's Jobs, pods and events look like now, by namespace, and when that last changed.

Three watches serve every scenario of a side: scripts wait on it, and traces take from it who is who. Not here: what the
controller wrote (``writes``).
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from e2e.controlplane.client import Client, Json

_PATHS = {"jobs": "/apis/batch/v1/jobs", "pods": "/api/v1/pods", "events": "/api/v1/events"}


@dataclass(slots=True)
class Place:
    """One namespace as seen last."""

    jobs: dict[str, Json] = field(default_factory=dict)
    pods: dict[str, Json] = field(default_factory=dict)
    events: dict[str, Json] = field(default_factory=dict)
    """By name, also those that are gone."""
    job_births: list[Json] = field(default_factory=list)
    """Every Job that ever was, as it was seen first, in the order of creation."""
    pod_births: list[Json] = field(default_factory=list)
    changed_at: float = 0.0
    """By the monotonic clock."""
    news: asyncio.Condition = field(default_factory=asyncio.Condition)


class Sightings:
    """Everything on one control plane. Make one with ``watching``."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._controller_writes = 0
        """How many changes were seen that only a Job controller makes in a scenario: a clock for those who kill it."""
        self._controller_wrote = asyncio.Condition()
        self._places: defaultdict[str, Place] = defaultdict(Place)

    @classmethod
    @asynccontextmanager
    async def watching(cls, client: Client) -> AsyncIterator[Sightings]:
        """Watch until the block is left."""
        sightings = cls(client)
        async with asyncio.TaskGroup() as scope:
            tasks = [
                scope.create_task(sightings._watch(kind, path), name=f"watch {kind}") for kind, path in _PATHS.items()
            ]
            try:
                yield sightings
            finally:
                for task in tasks:
                    task.cancel()

    def __getitem__(self, namespace: str) -> Place:
        return self._places[namespace]

    async def until(self, namespace: str, condition: Callable[[Place], object], *, seconds: float) -> None:
        """Wait until the namespace fulfils the condition.

        Raises:
            TimeoutError: it does not in time; the text shows its Jobs' statuses and pods.
        """
        place = self[namespace]
        try:
            async with asyncio.timeout(seconds), place.news:
                await place.news.wait_for(lambda: condition(place))
        except TimeoutError:
            raise TimeoutError(f"{namespace} is not so after {seconds} s: {_shown(place)}") from None

    async def are_current(self, namespace: str) -> bool:
        """Whether the watches have shown what is there: on a busy machine one may be seconds behind the others."""
        place = self[namespace]
        for kind, seen in (("jobs", place.jobs), ("pods", place.pods)):
            collection = _PATHS[kind].rpartition("/")
            listed = await self._client.get(f"{collection[0]}/namespaces/{namespace}/{collection[2]}")
            if _versions(listed["items"]) != _versions(seen.values()):
                return False
        return True

    async def controller_writes(self, count: int, *, seconds: float) -> None:
        """Return as soon as so many more writes of the controller have been seen; late if there is nothing to write."""
        wanted = self._controller_writes + count
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._controller_wrote:
                await self._controller_wrote.wait_for(lambda: self._controller_writes >= wanted)

    async def _watch(self, kind: str, path: str) -> None:
        while True:
            listed = await self._client.get(path)
            for lost in self._lost(kind, listed["items"]):
                await self._note(kind, "DELETED", lost)
            for item in sorted(listed["items"], key=_version):
                await self._note(kind, "ADDED", item)
            async for event in self._client.watch(path, listed["metadata"]["resourceVersion"]):
                await self._note(kind, event["type"], event["object"])

    def _lost(self, kind: str, listed: list[Json]) -> list[Json]:
        """What has gone between two watches."""
        if kind == "events":
            return []
        there = {found["metadata"]["uid"] for found in listed}
        seen = [found for place in self._places.values() for found in getattr(place, kind).values()]
        return [found for found in seen if found["metadata"]["uid"] not in there]

    async def _note(self, kind: str, change: str, found: Json) -> None:
        place = self[found["metadata"]["namespace"]]
        name = found["metadata"]["name"]
        is_of_controller = _is_of_controller(place, kind, change, found)
        match kind:
            case "jobs":
                _keep(place.jobs, place.job_births, change, found)
            case "pods":
                _keep(place.pods, place.pod_births, change, found)
            case _ if change != "DELETED":
                place.events[name] = found
        place.changed_at = time.monotonic()
        async with place.news:
            place.news.notify_all()
        if is_of_controller:
            self._controller_writes += 1
            async with self._controller_wrote:
                self._controller_wrote.notify_all()


def _keep(now: dict[str, Json], births: list[Json], change: str, found: Json) -> None:
    if change == "DELETED":
        now.pop(found["metadata"]["name"], None)
        return
    if change == "ADDED" and all(born["metadata"]["uid"] != found["metadata"]["uid"] for born in births):
        births.append(found)
    now[found["metadata"]["name"]] = found


def _is_of_controller(place: Place, kind: str, change: str, found: Json) -> bool:
    """Whether this change is a new status of a Job, a pod made by it, or a pod that lost a finalizer."""
    metadata = found["metadata"]
    known = (place.jobs if kind == "jobs" else place.pods).get(metadata["name"])
    if kind == "jobs":
        return known is not None and known.get("status") != found.get("status")
    if kind != "pods":
        return False
    if known is None:
        return change == "ADDED" and "generateName" in metadata
    return len(metadata.get("finalizers", [])) < len(known["metadata"].get("finalizers", []))


def _versions(found: Iterable[Json]) -> set[tuple[str, str]]:
    return {(one["metadata"]["uid"], one["metadata"]["resourceVersion"]) for one in found}


def _version(found: Json) -> int:
    return int(found["metadata"]["resourceVersion"])


def _shown(place: Place) -> Json:
    return {
        "jobs": {name: job.get("status") for name, job in place.jobs.items()},
        "pods": {
            name: (
                pod["status"].get("phase"),
                pod["metadata"].get("finalizers"),
                "deletionTimestamp" in pod["metadata"],
            )
            for name, pod in place.pods.items()
        },
    }
