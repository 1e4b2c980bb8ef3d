"""A world in which Drills are served and run beside Jobs, and what must hold for them at every write (D2, D7, D24)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from doubles.drills import DRILLS, KINDS, StoredDrill, definition, run_drills
from flow_invariants import MANAGEMENT, Invariants, decoded
from flow_settled import LOOK_SECONDS
from flow_world import FlowWorld

from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.messages import Answer, Request
from mirror.embedded.apiserver.storage.records import Event
from mirror.embedded.faults.targets import Target
from mirror.kinds.registry import Kinds
from mirror.model import names
from mirror.placement.policy import PlacementPolicy, Score
from mirror.planes.api import Json
from mirror.planes.plane import ControlPlane, NotRunning

READINESS = PlacementPolicy(scores=((Score.LOAD, 1.0), (Score.READINESS, 2.0)))
"""In the histories of this world, workers whose pods are not ready rank behind."""

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
STORED_AS = f"{DRILLS.plural}.{DRILLS.group}"
LONGEST_SECONDS = 3600.0


class DrillWorld(FlowWorld):
    """``FlowWorld`` whose manager knows both kinds."""

    mirrored: ClassVar[Kinds] = KINDS
    undefined: ClassVar[frozenset[str]] = frozenset()
    """Clusters that do not serve Drills yet."""

    def __init__(self, scope: asyncio.TaskGroup, workers: Sequence[str], **settings: Any) -> None:
        super().__init__(scope, workers, kinds=self.mirrored, placement=READINESS, **settings)
        self._controllers: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await super().start()
        for plane in self.planes.values():
            if plane.name not in self.undefined:
                await plane.api.create(DEFINITIONS, definition())
            self._controllers.append(self._scope.create_task(run_drills(_Cluster(plane)), name=f"drills {plane.name}"))

    async def stop(self) -> None:
        for task in self._controllers:
            task.cancel()
        await super().stop()

    async def drills(self, cluster: str = MANAGEMENT) -> list[Json]:
        """All of a cluster."""
        return await self.planes[cluster].api.list(DRILLS.path())


class _Cluster:
    """For the controller of Drills; one that is down has none."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane

    async def list(self, path: str) -> list[Json]:
        try:
            return await self._plane.api.list(path)
        except (NotRunning, StatusError):  # down, or Drills are not served there
            return []

    async def merge(self, path: str, body: Json) -> object:
        try:
            return await self._plane.api.merge(path, body)
        except NotRunning:
            return None


class DrillInvariants(Invariants):
    """``Invariants``, and those of Drills."""

    def __init__(self, world: FlowWorld) -> None:
        super().__init__(world)
        self._unfinished: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        """Mirrors of Drills that may run, as (worker, uid), by the uid of their source."""
        for plane in world.planes.values():
            self._events(plane, STORED_AS)

    def _listener(self, plane: ControlPlane) -> Callable[[Request, Target, Answer], None]:
        look = super()._listener(plane)

        def on_answer(request: Request, target: Target, answer: Answer) -> None:
            look(request, target, answer)
            if request.method != "GET":
                for event in self._events(plane, STORED_AS):
                    self._look_at_drill(plane, event)

        return on_answer

    def _look_at_drill(self, plane: ControlPlane, event: Event) -> None:
        old = None if event.previous is None else decoded(event.previous.raw)
        new = None if event.is_deletion else decoded(event.record.raw)
        if plane.name == MANAGEMENT:
            if old is not None and new is not None and is_over(old) and not is_over(new):
                self._wrong(f"D7: Drill {new['metadata']['name']} was over, and is not any more")
            return
        body, mirror = new or old or {}, (plane.name, event.record.uid)
        source = (body.get("metadata", {}).get("labels") or {}).get(names.SOURCE_UID, "")
        if not source:
            return
        if new is None or is_over(new):
            self._unfinished[source].discard(mirror)
            return
        self._unfinished[source].add(mirror)
        if len(self._unfinished[source]) > 1:
            self._wrong(f"D2: Drill {body['metadata']['name']} has mirrors {sorted(self._unfinished[source])}")


async def settle_drills(world: DrillWorld) -> None:
    """Wait until each Drill that may run is over, as its mirror is, and no mirror is without its source.

    Raises:
        AssertionError: that takes too long.
    """
    now = asyncio.get_running_loop().time
    ends_at = now() + LONGEST_SECONDS
    while problems := await _disagreements(world):
        assert now() < ends_at, f"Drills not settled after {LONGEST_SECONDS:g} s: {problems}"
        await asyncio.sleep(LOOK_SECONDS)


async def _disagreements(world: DrillWorld) -> list[str]:
    sources = {one["metadata"]["uid"]: one for one in await world.drills()}
    problems, mirrored = list[str](), dict[str, Json]()
    for worker in world.workers:
        for mirror in await world.drills(worker):
            labels, name = mirror["metadata"].get("labels") or {}, mirror["metadata"]["name"]
            if names.SOURCE_UID not in labels:
                continue  # a stranger's
            if labels[names.SOURCE_UID] not in sources:
                problems.append(f"{name} on {worker} has no source")
            mirrored[mirror["metadata"]["uid"]] = mirror
    for source in sources.values():
        stored, name = StoredDrill(source["spec"], source.get("status") or {}), source["metadata"]["name"]
        if not stored.is_finished and not stored.is_suspended:
            problems.append(f"{name} is not over")
        mirror = mirrored.get(stored.mirror_uid or "")
        if mirror is not None and is_over(mirror) and not stored.is_finished:
            problems.append(f"{name} is over on its worker only")
    return problems


def is_over(body: Json) -> bool:
    return StoredDrill(body["spec"], body.get("status") or {}).is_finished
