"""Tells when a Job controller has had time to react: it is measured, not assumed, since machines are busy at times.

A canary's status is written wrong, and right again by the controller a batch later (K2), as it reacts to pods. When a
pulse that began after the last change of a scenario is over, the controller has seen that change, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from e2e.controlplane.client import Client
from e2e.job_scenarios.bodies import job
from e2e.job_scenarios.sightings import Place, Sightings

_CANARIES = 3
_STAGGER_SECONDS = 0.35
_WRONG = 7
_LONGEST_SECONDS = 600.0
"""A controller that is down, or is killed all the time, has no pulse."""


class Pulse:
    """Several canaries, one after the other, for ever. Make one with ``beating``."""

    def __init__(self, client: Client, sightings: Sightings, namespace: str) -> None:
        self._client = client
        self._sightings = sightings
        self._namespace = namespace
        self._latest = 0.0
        """When the latest pulse that is over began, by the monotonic clock."""
        self._beat = asyncio.Condition()

    @classmethod
    @asynccontextmanager
    async def beating(cls, client: Client, sightings: Sightings, namespace: str) -> AsyncIterator[Pulse]:
        """Beat until the block is left."""
        pulse = cls(client, sightings, namespace)
        async with asyncio.TaskGroup() as scope:
            tasks = [scope.create_task(pulse._run(number), name=f"canary {number}") for number in range(_CANARIES)]
            try:
                yield pulse
            finally:
                for task in tasks:
                    task.cancel()

    async def since(self, moment: float) -> None:
        """Return when a pulse that began after this moment of the monotonic clock is over.

        Raises:
            TimeoutError: there is none.
        """
        try:
            async with asyncio.timeout(_LONGEST_SECONDS), self._beat:
                await self._beat.wait_for(lambda: self._latest > moment)
        except TimeoutError:
            raise TimeoutError("the controller has no pulse") from None

    async def _run(self, number: int) -> None:
        name, jobs = f"canary-{number}", f"/apis/batch/v1/namespaces/{self._namespace}/jobs"
        made = await self._client.create(jobs, job(name, parallelism=0, completions=1))
        await self._seen_right(name, int(made["metadata"]["resourceVersion"]))
        await asyncio.sleep(number * _STAGGER_SECONDS)
        while True:
            began = time.monotonic()
            wrong = await self._client.merge(f"{jobs}/{name}/status", {"status": {"active": _WRONG}})
            await self._seen_right(name, int(wrong["metadata"]["resourceVersion"]))
            self._latest = max(self._latest, began)
            async with self._beat:
                self._beat.notify_all()

    async def _seen_right(self, name: str, after_version: int) -> None:
        """Wait until the canary's status is right in a later version than this."""

        def is_right(place: Place) -> bool:
            found = place.jobs.get(name)
            if found is None or int(found["metadata"]["resourceVersion"]) <= after_version:
                return False
            return "startTime" in found["status"] and "active" not in found["status"]

        await self._sightings.until(self._namespace, is_right, seconds=_LONGEST_SECONDS)
