"""One control plane in this process: the API server with its storage, and the controllers beside it.

``control_plane`` starts one in the running loop and ends it with the block; it can be killed and started again on the
way. Everything inside talks in memory; ``serving`` opens it to the network. Not here: what controllers do
(``embedded.controllers``, ``jobcontroller``), and what can go wrong on the way to it (``embedded.faults``).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from mirror.embedded.apiserver.build import build
from mirror.embedded.apiserver.messages import ADMIN, AUTHENTICATED_GROUP, MASTERS_GROUP, Answer, Request, User
from mirror.embedded.apiserver.registry.event_expiry import Expiry as EventExpiry
from mirror.embedded.apiserver.server import ApiServer
from mirror.embedded.apiserver.side_thread import SideThread
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.sqlite import SqliteJournal
from mirror.embedded.clocks import SkewedClock
from mirror.embedded.controllers.kubelet.running import Containers
from mirror.embedded.controllers.runner import run
from mirror.embedded.faults.injector import Faults
from mirror.embedded.faults.kinds import Dropped, Expiry
from mirror.embedded.memory import Wire, client_of
from mirror.embedded.podlogs import PodLogs
from mirror.jobcontroller.controller_conflict import ControllerConflict
from mirror.jobcontroller.metrics import JobMetrics
from mirror.jobcontroller.process import JobControllerComponent, JobControllerSettings
from mirror.kube.client import Client
from mirror.planes.api import Api
from mirror.planes.shape import JOB, Shape
from mirror.runtime.clock import Clock, SystemClock
from mirror.runtime.environment import Environment
from mirror.runtime.supervise import supervise
from mirror.settings.schema import LeaderElection
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics


class NotRunning(RuntimeError):
    """The control plane was killed, and not started again."""


class ControlPlane:
    """A control plane; made by ``control_plane``.

    Invariant: ``wire.server`` is set exactly while it runs, and so is a task for each controller in ``_tasks``.
    """

    def __init__(self, shape: Shape, *, clock: Clock, chance: random.Random, scope: asyncio.TaskGroup) -> None:
        self.shape = shape
        self.name = shape.name
        self.clock = SkewedClock(clock)
        """The control plane's; set ``ahead_seconds`` to let it be wrong."""
        self.faults = Faults()
        self.wire = Wire(shape.name, self.clock)
        self.metrics = Metrics()
        """The Job controller's."""
        self.logs = PodLogs()
        """What containers have written."""
        self.log = get_log("embedded", cluster=shape.name)
        self._side_thread: SideThread | None = None
        self._chance = chance
        self._scope = scope
        self._tasks: list[asyncio.Task[None]] = []
        self._has_run_jobs = False
        self._storage: Storage | None = None
        self._server: ApiServer | None = None

    @property
    def server(self) -> ApiServer:
        """The API server.

        Raises:
            NotRunning: it was killed.
        """
        if self._server is None:
            raise NotRunning(self.name)
        return self._server

    @property
    def storage(self) -> Storage:
        """Every object; it may be looked at freely.

        Raises:
            NotRunning: it was killed.
        """
        if self._storage is None:
            raise NotRunning(self.name)
        return self._storage

    @property
    def is_running(self) -> bool:
        """Whether it has been started and not killed."""
        return self._server is not None

    @property
    def api(self) -> Api:
        """Requests of the administrator, for tests and scripts; faults do not meet them."""
        return Api(self.server)

    def client(self, name: str = "", *, user: User | None = ADMIN, peer: str = "", token: str = "") -> Client:
        """A client as our controllers have it, over memory; faults know it as ``peer``. The caller closes it."""
        return client_of(self.wire, name or self.name, user=user, peer=peer, token=token, clock=self.clock.of)

    async def handle(self, request: Request) -> Answer:
        """For transports: the API server that runs now, or None."""
        if self._server is None:
            raise Dropped(was_sent=False)
        return await self._server.handle(request)

    # -- its life ------------------------------------------------------------------------------------------------------

    def use_thread(self, thread: SideThread | None) -> None:
        """Work on large requests beside the event loop, see ``apiserver.side_thread``; None: in it."""
        self._side_thread = thread
        if self._server is not None:
            self._server.use_thread(thread)

    def start(self) -> None:
        """Start what does not run."""
        if self._server is not None:
            return
        if self._storage is None:
            self._storage = Storage(SqliteJournal(self.shape.data) if self.shape.data else None)
        server = build(
            clock=self.clock,
            random=self._chance,
            gates=self.shape.gates,
            storage=self._storage,
            authorization=self.shape.authorization,
            tokens=self.shape.tokens,
        )
        server.faults = self.faults
        server.use_logs(self.logs)
        server.use_thread(self._side_thread)
        self._server = self.wire.server = server
        if self.shape.controllers:
            expiry = EventExpiry(server.storage, server.registry, self.clock).run()
            self._tasks.append(self._scope.create_task(expiry, name=f"event expiry of {self.name}"))
        for name in self.shape.controllers:
            label = f"{name} of {self.name}"
            work = self._run_jobs if name == JOB else self._controller(name)
            self._tasks.append(self._scope.create_task(supervise(label, work, log=self.log), name=label))

    async def kill(self) -> None:
        """End it as a crash does: connections break, nothing is said goodbye to. What was answered is kept."""
        if self._server is not None:
            self._server.close()
        self._server = self.wire.server = None
        self.faults.break_connections()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._storage is not None and self.shape.data:
            self._storage.close()
            self._storage = None

    async def restart(self, *, keeps_data: bool = True) -> None:
        """Kill it if it runs, and start it; without its data it is another cluster under the same address."""
        await self.kill()
        if not keeps_data:
            self._storage = None
            if self.shape.data:
                for suffix in ("", "-wal", "-shm"):
                    self.shape.data.with_name(self.shape.data.name + suffix).unlink(missing_ok=True)
        self.start()

    def expire(self, form: Expiry = Expiry.BY_EVENT) -> None:
        """Forget the history: open watches end, and a watch from an earlier version gets 410."""
        self.faults.expire_watches(form)
        if self._storage is not None:
            self._storage.compact(self._storage.version)

    async def stop(self) -> None:
        """End it for good."""
        await self.kill()
        if self._storage is not None:
            self._storage.close()
            self._storage = None

    # -- controllers ---------------------------------------------------------------------------------------------------

    def _controller(self, name: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def work() -> None:
            client = self._own_client(name)
            try:
                await run(
                    name,
                    client,
                    clock=self.clock,
                    containers=Containers(self.shape.pods, self._chance, self.logs),
                    settings=self.shape.controller_settings,
                )
            finally:
                await client.close()

        return work

    async def _run_jobs(self) -> None:
        """Our Job controller; one that would have to fight ends alone (D20)."""
        client = self._own_client(JOB)
        if self._has_run_jobs:
            self.metrics = Metrics()  # a second Job controller cannot share those of the first
        self._has_run_jobs = True
        settings = JobControllerSettings(
            constants=self.shape.constants,
            gates=self.shape.gates,
            leader_election=LeaderElection(enabled=False),
        )
        part = JobControllerComponent(
            client,
            settings,
            environment=Environment(self.clock, get_log("jobs", cluster=self.name), self.metrics),
            metrics=JobMetrics(self.metrics),
        )
        try:
            await part.run(asyncio.Event())
        except* ControllerConflict as group:
            self.log.error("the job controller has ended", because=group.exceptions[0])
            await asyncio.Event().wait()
        finally:
            await client.close()

    def _own_client(self, controller: str) -> Client:
        user = User(f"system:serviceaccount:kube-system:{controller}-controller", (MASTERS_GROUP, AUTHENTICATED_GROUP))
        return client_of(self.wire, self.name, user=user, peer=controller)


@asynccontextmanager
async def control_plane(
    shape: Shape | None = None, *, clock: Clock | None = None, chance: random.Random | None = None
) -> AsyncIterator[ControlPlane]:
    """Run a control plane while the block runs; it answers at once.

    Args:
        shape: what it is made of; by default everything.
        clock: whose time it keeps; the machine's by default, ``clocks.LoopClock`` in virtual time.
        chance: where uids and suffixes of names come from; with a seed, runs repeat.
    """
    failure: BaseException | None = None
    async with asyncio.TaskGroup() as scope:
        plane = ControlPlane(
            shape or Shape(), clock=clock or SystemClock(), chance=chance or random.SystemRandom(), scope=scope
        )
        plane.start()
        try:
            yield plane
        except Exception as error:  # noqa: BLE001 - raised below: out of the scope it would come as a group
            failure = error
        finally:
            await plane.stop()
    if failure is not None:
        raise failure
