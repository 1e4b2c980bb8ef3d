"""An API server in memory with chosen controllers, in virtual time."""

from __future__ import annotations

import asyncio
import functools
import inspect
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, ParamSpec

from mirror.embedded import memory, virtual
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.build import build
from mirror.embedded.clocks import LoopClock
from mirror.embedded.controllers.kubelet.running import Containers, Pods
from mirror.embedded.controllers.runner import run
from mirror.embedded.controllers.settings import Settings
from mirror.embedded.faults.injector import Faults
from mirror.embedded.podlogs import PodLogs
from mirror.planes.api import Api
from mirror.runtime.clock import Clock, SystemClock

P = ParamSpec("P")
Json = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
NODES = "/api/v1/nodes"
NAMESPACES = "/api/v1/namespaces"
EVENTS = "/api/v1/namespaces/default/events"


def in_virtual_time(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """An asynchronous test in which no time is spent on waiting."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def main() -> None:
            await test(*args, **kwargs)

        virtual.run(main())

    run.__signature__ = inspect.signature(test)
    del run.__wrapped__  # else pytest takes it for a coroutine function
    return run


class World:
    """The cluster of a test."""

    def __init__(self, clock: Clock, scope: asyncio.TaskGroup, settings: Settings, pods: Pods) -> None:
        self.clock = clock
        self.pods = pods
        self.scope = scope
        self.settings = settings
        self.chance = random.Random(1)
        self.logs = PodLogs()
        self.server = build(clock=clock, random=self.chance)
        self.server.use_logs(self.logs)
        self.faults = Faults()
        self.server.faults = self.faults
        self.wire = memory.Wire("test", clock, self.server)
        self.api = Api(self.server)
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def get(self, path: str) -> Json | None:
        """An object; None if there is none."""
        try:
            return await self.api.get(path)
        except StatusError as refused:
            if refused.reason == "NotFound":
                return None
            raise

    async def names(self, path: str) -> list[str]:
        return sorted(one["metadata"]["name"] for one in await self.api.list(path))

    async def told(self, name: str, path: str = EVENTS) -> list[tuple[str, str]]:
        """Reasons and messages of the events about an object, in their order."""
        events = [one for one in await self.api.list(path) if one["involvedObject"]["name"] == name]
        events.sort(key=lambda one: int(one["metadata"]["resourceVersion"]))
        return [(one["reason"], one["message"]) for one in events]

    async def until(self, path: str, is_so: Callable[[Json | None], object], *, seconds: float = 600.0) -> Json:
        """Wait until it is so; the object, {} if it is gone."""
        tick = 0.1 if not isinstance(self.clock, SystemClock) else 0.01
        for _ in range(int(seconds / tick)):
            if is_so(found := await self.get(path)):
                return found or {}
            await asyncio.sleep(tick)
        raise TimeoutError(f"{path} did not become so: {await self.get(path)}")

    def start(self, name: str) -> None:
        """Run a controller, anew if it runs already."""
        if name in self.tasks:
            self.tasks[name].cancel()
        work = run(
            name,
            memory.client_of(self.wire, name, peer=name),
            clock=self.clock,
            containers=Containers(self.pods, self.chance, self.logs),
            settings=self.settings,
        )
        self.tasks[name] = self.scope.create_task(work, name=name)


@asynccontextmanager
async def world(
    *names: str, clock: Clock | None = None, pods: Pods = "simulated", **settings: Any
) -> AsyncIterator[World]:
    """Run the controllers of these names while the block runs."""
    failure: Exception | None = None
    async with asyncio.TaskGroup() as scope:
        made = World(clock or LoopClock(), scope, Settings(**settings), pods)
        for name in names:
            made.start(name)
        await asyncio.sleep(0.01)
        try:
            yield made
        except Exception as error:  # noqa: BLE001 - raised below: out of the scope it would come as a group
            failure = error
        finally:
            for task in made.tasks.values():
                task.cancel()
    if failure is not None:
        raise failure


def pod(name: str, *, annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    """A pod of one container; annotations without their prefix."""
    return {
        "metadata": {
            "name": name,
            "annotations": {f"e2e.jobmirror.io/{key}": value for key, value in (annotations or {}).items()},
        },
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "command": ["true"]}]} | spec,
    }
