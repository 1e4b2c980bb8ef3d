"""One scenario's namespace on one side: what its script can do there, one stimulus at a time.

After each stimulus the stage waits until the controller had time to react (``pulse``), nothing has changed since, and
all of it was seen here, so that the next one meets a controller at rest. Nothing plays the kubelet but the script.
Not here: what is made of it (``trace``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from e2e.controlplane.client import Client, Json, StatusError
from e2e.job_scenarios import bodies
from e2e.job_scenarios.pulse import Pulse
from e2e.job_scenarios.sightings import Place, Sightings

_QUIET_SECONDS = 0.3
_QUIET_LAGS = 4.0
_MOST_QUIET_SECONDS = 6.0
"""What one sync writes comes in quicker succession than this; the later the controller, the longer it may take."""
_RESTLESS_SECONDS = 180.0
_WAIT_SECONDS = 180.0
_BELONGING = ("labels", "ownerReferences", "finalizers")
STRATEGIC = "application/strategic-merge-patch+json"

JobCondition = Callable[[Json], object]


@dataclass(frozen=True, slots=True)
class Step:
    """One stimulus: when it was given, and which."""

    began: datetime
    label: str


class Surroundings(Protocol):
    """What a stage stands on."""

    client: Client
    sightings: Sightings
    pulse: Pulse

    def outage(self) -> AbstractAsyncContextManager[None]:
        """The Job controller is down within the block."""
        ...


CatchUp = Callable[["Stage"], Awaitable[None]]
"""Called before each step, and at the end, when the controller should be at rest."""


class Stage:
    """The namespace and the script's handles on it. Most scenarios have one Job, ``job``."""

    def __init__(self, side: Surroundings, namespace: str, *, catch_up: CatchUp | None = None) -> None:
        self._side = side
        self.namespace = namespace
        self.client = side.client
        self.steps: list[Step] = []
        self._catch_up = catch_up
        self._depth = 0
        self.had_outage = False
        self._is_outage = False

    # -- what is there ------------------------------------------------------------------------------------------------

    @property
    def place(self) -> Place:
        """Everything in the namespace."""
        return self._side.sightings[self.namespace]

    def job(self, name: str = "job") -> Json:
        """The Job as seen last."""
        return self.place.jobs[name]

    def all_pods(self) -> list[str]:
        """Every pod that is there, oldest first."""
        return [name for name in map(_name, self.place.pod_births) if name in self.place.pods]

    async def pods(self, count: int, name: str = "job") -> list[str]:
        """Wait until the Job has exactly so many active pods, and give them: by index, then oldest first."""
        await self.until_place(lambda place: len(_active(place, name)) == count)
        order = {_name(born): number for number, born in enumerate(self.place.pod_births)}
        return sorted(map(_name, _active(self.place, name)), key=lambda pod: (self._index(pod), order[pod]))

    async def until(self, condition: JobCondition, name: str = "job", *, seconds: float = _WAIT_SECONDS) -> None:
        """Wait until the Job fulfils the condition and all is quiet."""
        await self.until_place(lambda place: name in place.jobs and condition(place.jobs[name]), seconds=seconds)

    async def until_place(self, condition: Callable[[Place], object], *, seconds: float = _WAIT_SECONDS) -> None:
        """Wait until the namespace fulfils the condition and all is quiet."""
        await self._side.sightings.until(self.namespace, condition, seconds=seconds)
        await self.settle()

    async def until_caught_up(self, condition: Callable[[Place], object], *, seconds: float) -> None:
        """Wait until the namespace fulfils the condition, without waiting for quiet."""
        await self._side.sightings.until(self.namespace, condition, seconds=seconds)

    async def until_gone(self, name: str = "job") -> None:
        """Wait until there is no Job of this name, and all is quiet."""
        await self.until_place(lambda place: name not in place.jobs)

    async def until_event(self, reason: str, count: int = 1) -> None:
        """Wait until so many events of this reason have been stored, and all is quiet."""

        def told(place: Place) -> int:
            return sum(one.get("count", 1) for one in place.events.values() if one["reason"] == reason)

        await self.until_place(lambda place: told(place) >= count)

    async def settle(self) -> None:
        """Wait until the controller is at rest.

        Raises:
            TimeoutError: it never is.
        """
        began = time.monotonic()
        while time.monotonic() < began + _RESTLESS_SECONDS:
            changed_at = self.place.changed_at
            lag = 0.0 if self._is_outage else await self._side.pulse.since(max(began, changed_at))
            await asyncio.sleep(min(_QUIET_SECONDS + _QUIET_LAGS * lag, _MOST_QUIET_SECONDS))
            if self.place.changed_at == changed_at and await self._side.sightings.are_current(self.namespace):
                return
        raise TimeoutError(f"{self.namespace} does not come to rest")

    # -- stimuli ------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def stimulus(self, label: str) -> AsyncIterator[None]:
        """What happens in the block is one stimulus: the controller may be at work meanwhile, and rests afterwards."""
        if self._depth == 0:
            if self._catch_up is not None:
                await self._catch_up(self)
            self.steps.append(Step(datetime.now(UTC), label))
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
        if self._depth == 0:
            await self.settle()

    async def finish(self) -> None:
        """The script is over: one last look."""
        await self.settle()
        if self._catch_up is not None:
            await self._catch_up(self)

    @asynccontextmanager
    async def outage(self, label: str = "the controller is down meanwhile") -> AsyncIterator[None]:
        """The Job controller is killed, and started again after the block; all that happens there is one stimulus."""
        async with self.stimulus(label):
            self.had_outage = True
            async with self._side.outage():
                self._is_outage = True
                yield
                self._is_outage = False

    async def create(self, body: Json) -> Json:
        """Create a Job."""
        async with self.stimulus(f"create {body['metadata']['name']}"):
            return await self.client.create(self._jobs(), body)

    async def create_pod(self, body: Json, status: Json | None = None) -> Json:
        """Create a pod that the controller did not ask for, perhaps with a status.

        One that has both an owner and a status gets the status while it is nobody's: no controller sees it without.
        """
        metadata = body["metadata"]
        path = f"{self._pods()}/{metadata['name']}"
        async with self.stimulus(f"create pod {metadata['name']}"):
            if status is None:
                return await self.client.create(self._pods(), body)
            belongs = {key: metadata[key] for key in _BELONGING if metadata["ownerReferences"]}
            alone = {key: value for key, value in metadata.items() if key not in belongs}
            made = await self.client.create(self._pods(), {**body, "metadata": alone})
            made = await self.client.merge(f"{path}/status", {"status": status})
            return await self.client.merge(path, {"metadata": belongs}) if belongs else made

    async def suspend(self, name: str = "job") -> None:
        """Suspend the Job."""
        await self.change(name, suspend=True)

    async def resume(self, name: str = "job") -> None:
        """Resume the Job."""
        await self.change(name, suspend=False)

    async def change(self, name: str = "job", **spec: Any) -> None:
        """Change fields of the Job's spec, under their API names."""
        await self.patch({"spec": spec}, name)

    async def patch(self, body: Json, name: str = "job") -> None:
        """Merge this into the Job."""
        async with self.stimulus(f"patch {name} {body}"):
            await self.client.merge(f"{self._jobs()}/{name}", body)

    async def write_status(self, status: Json, name: str = "job") -> None:
        """Merge this into the Job's status, as somebody else than the controller would."""
        async with self.stimulus(f"write status of {name}"):
            await self.client.merge(f"{self._jobs()}/{name}/status", {"status": status})

    async def delete(self, name: str = "job", *, propagation: str = "Background") -> None:
        """Delete the Job."""
        async with self.stimulus(f"delete {name} {propagation}"):
            await self.client.delete(f"{self._jobs()}/{name}", propagation=propagation)

    async def delete_while_held(self, name: str = "job", *, propagation: str) -> None:
        """Delete a ``HELD`` Job so that its controller sees it before the garbage collector does, then let go.

        Which of the two is first otherwise is chance: a pod whose deletion is seen first counts as failed (J2, A12).
        """
        await self.delete(name)
        await self.delete(name, propagation=propagation)
        await self.let_go(name)

    async def let_go(self, name: str = "job") -> None:
        """Nobody holds the Job any more."""
        async with self.stimulus(f"let {name} go"):
            body = {"metadata": {"$deleteFromPrimitiveList/finalizers": bodies.HELD["finalizers"]}}
            await self.client.call("PATCH", f"{self._jobs()}/{name}", body, STRATEGIC)

    # -- stimuli to pods: the kubelet ---------------------------------------------------------------------------------

    async def run(self, *pods: str, is_ready: bool = True) -> None:
        """They run now, ready or not."""
        await self._report(
            "run" if is_ready else "run not ready", pods, lambda pod: bodies.running(pod, is_ready=is_ready)
        )

    async def succeed(self, *pods: str) -> None:
        """They end well."""
        await self._report("succeed", pods, lambda pod: bodies.ended(pod, "Succeeded", exit_code=0))

    async def fail(
        self,
        *pods: str,
        exit_code: int = 1,
        container: str | None = None,
        conditions: Mapping[str, str] | None = None,
        seconds_ago: float = 0.0,
    ) -> None:
        """They end badly; see ``bodies.ended``."""

        def status(pod: Json) -> Json:
            return bodies.ended(
                pod,
                "Failed",
                exit_code=exit_code,
                container=container,
                conditions=conditions,
                seconds_ago=seconds_ago,
            )

        await self._report(f"fail with {exit_code}", pods, status)

    async def restart(self, count: int, *pods: str, phase: str = "Running") -> None:
        """Their container has been restarted so often."""
        await self._report(f"restarted {count} times", pods, lambda pod: bodies.restarted(pod, count, phase=phase))

    async def bind(self, pod: str) -> None:
        """It gets a node."""
        target = {"apiVersion": "v1", "kind": "Node", "name": bodies.NODE}
        async with self.stimulus(f"bind {pod}"):
            await self.client.create(f"{self._pods()}/{pod}/binding", {"metadata": {"name": pod}, "target": target})

    async def remove(self, *pods: str) -> None:
        """Delete pods as a user would: those on a node stay until they are ``gone``."""
        async with self.stimulus(f"delete {' '.join(pods)}"):
            await asyncio.gather(*(self.client.call("DELETE", f"{self._pods()}/{pod}", {}) for pod in pods))

    async def gone(self, *pods: str) -> None:
        """Their node says that they are no more; what still has a finalizer stays nevertheless."""
        async with self.stimulus(f"gone {' '.join(pods)}"):
            await asyncio.gather(*map(self._force, pods))

    async def all_gone(self) -> None:
        """Every pod that is there is no more, as ``gone``."""
        async with self.stimulus("all pods gone"):
            await self.gone(*self.all_pods())

    async def relabel(self, pod: str, labels: Mapping[str, str | None]) -> None:
        """Change its labels."""
        await self.patch_pod(pod, {"metadata": {"labels": dict(labels)}})

    async def patch_pod(self, pod: str, body: Json) -> None:
        """Merge this into the pod."""
        async with self.stimulus(f"patch {pod} {body}"):
            await self.client.merge(f"{self._pods()}/{pod}", body)

    # -- private ------------------------------------------------------------------------------------------------------

    async def _report(self, label: str, pods: tuple[str, ...], status: Callable[[Json], Json]) -> None:
        async def one(pod: str) -> None:
            body = {"status": status(self.place.pods[pod])}
            await self.client.merge(f"{self._pods()}/{pod}/status", body)

        async with self.stimulus(f"{label} {' '.join(pods)}"):
            await asyncio.gather(*map(one, pods))

    async def _force(self, pod: str) -> None:
        while True:
            try:
                await self.client.call("DELETE", f"{self._pods()}/{pod}", {"gracePeriodSeconds": 0})
                return
            except StatusError as error:
                if error.status == 404:  # its last finalizer went while it was being deleted already
                    return
                if error.status != 409:
                    raise

    def _index(self, pod: str) -> int:
        return index_of(self.place.pods[pod]) or 0

    def _jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"


# -- questions --------------------------------------------------------------------------------------------------------


def has(kind: str, status: str = "True") -> JobCondition:
    """A question: has the Job such a condition?"""

    def answer(job: Json) -> bool:
        conditions = job.get("status", {}).get("conditions", [])
        return any(one["type"] == kind and one["status"] == status for one in conditions)

    return answer


def counts(**wanted: int) -> JobCondition:
    """A question: are these counters of the status so?"""
    return lambda job: all(job.get("status", {}).get(name, 0) == value for name, value in wanted.items())


def index_of(pod: Json) -> int | None:
    """Its completion index, if it has one."""
    text = pod["metadata"].get("annotations", {}).get(bodies.INDEX, "")
    return int(text) if text.isdecimal() else None


def _active(place: Place, job: str) -> list[Json]:
    """The pods of the Job that neither ended nor are being deleted."""
    owner = place.jobs.get(job, {}).get("metadata", {}).get("uid")
    return [pod for pod in place.pods.values() if _is_active(pod) and _controller(pod) == owner]


def _is_active(pod: Json) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") not in ("Succeeded", "Failed")


def _controller(pod: Json) -> str | None:
    references = pod["metadata"].get("ownerReferences", [])
    return next((one["uid"] for one in references if one.get("controller")), None)


def _name(found: Json) -> str:
    return str(found["metadata"]["name"])
