"""Tells when a Job controller has had time to react: it is measured, not assumed, since machines are busy at times.

A canary's pod becomes ready or not, and its status is written wrong; the controller writes it right a batch later (K2).
When a pulse that began after the last change of a scenario is over, both its watches have shown that change, too.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from e2e.controlplane.client import Client, Json
from e2e.job_scenarios.bodies import job, running
from e2e.job_scenarios.sightings import Place, Sightings

_CANARIES = 3
_STAGGER_SECONDS = 0.35
_WRONG = 7
_BATCH_SECONDS = 1.0
_LONGEST_SECONDS = 600.0
"""A controller that is down, or is killed all the time, has no pulse."""


class Pulse:
    """Several canaries, one after the other, for as long as it is ``beating``."""

    def __init__(self, client: Client, sightings: Sightings, namespace: str) -> None:
        self._client = client
        self._sightings = sightings
        self._namespace = namespace
        self._latest = 0.0
        """When the latest pulse that is over began, by the monotonic clock."""
        self._lags: deque[float] = deque([0.0], maxlen=_CANARIES)
        """By how much the latest pulses took longer than a batch."""
        self._beat = asyncio.Condition()

    @asynccontextmanager
    async def beating(self) -> AsyncIterator[None]:
        """Beat until the block is left."""
        async with asyncio.TaskGroup() as scope:
            tasks = [scope.create_task(self._run(number), name=f"canary {number}") for number in range(_CANARIES)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    async def since(self, moment: float) -> float:
        """Return when a pulse that began after this moment of the monotonic clock is over, and the lag in seconds.

        Raises:
            TimeoutError: there is none.
        """
        try:
            async with asyncio.timeout(_LONGEST_SECONDS), self._beat:
                await self._beat.wait_for(lambda: self._latest > moment)
        except TimeoutError:
            raise TimeoutError("the controller has no pulse") from None
        return max(self._lags)

    async def _run(self, number: int) -> None:
        name, jobs = f"canary-{number}", f"/apis/batch/v1/namespaces/{self._namespace}/jobs"
        await self._client.create(jobs, job(name))
        await self._until_right(name, is_ready=False)
        pod = await self._pod_of(name)
        pods = f"/api/v1/namespaces/{self._namespace}/pods/{pod['metadata']['name']}/status"
        await asyncio.sleep(number * _STAGGER_SECONDS)
        for is_ready in itertools.cycle((True, False)):
            began = time.monotonic()
            await self._client.merge(pods, {"status": running(pod, is_ready=is_ready)})
            await self._client.merge(f"{jobs}/{name}/status", {"status": {"active": _WRONG}})
            await self._until_right(name, is_ready=is_ready)
            self._latest = max(self._latest, began)
            self._lags.append(max(0.0, time.monotonic() - began - _BATCH_SECONDS))
            async with self._beat:
                self._beat.notify_all()

    async def _until_right(self, name: str, *, is_ready: bool) -> None:
        """Wait until the canary's status is that of its one pod."""

        def is_right(place: Place) -> bool:
            status = place.jobs.get(name, {}).get("status", {})
            return bool(status.get("active") == 1 and status.get("ready") == is_ready)

        await self._sightings.until(self._namespace, is_right, seconds=_LONGEST_SECONDS)

    async def _pod_of(self, name: str) -> Json:
        """The canary's one pod; its watch may be later than that of Jobs."""

        def found(place: Place) -> list[Json]:
            return [pod for pod in place.pods.values() if _job_of(pod) == name]

        await self._sightings.until(self._namespace, found, seconds=_LONGEST_SECONDS)
        (pod,) = found(self._sightings[self._namespace])
        return pod


def _job_of(pod: Json) -> str:
    return str(pod["metadata"]["labels"].get("job-name", ""))
