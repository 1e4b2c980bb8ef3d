"""MPIJobs and PyTorchJobs whose ``managedBy`` a user changes while they are mirrored (D1, D20, D25).

mpi-operator lets it be changed, and training-operator 1.9.4 does not see to it that it stays: the operator on the
management cluster takes the object at once, and leaves it again as soon as the value is ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from declared_world import told
from flow_drills import DEFINITIONS
from flow_invariants import Invariants
from flow_world import FlowWorld, flow_world

from mirror.embedded import virtual
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.kinds.declared.choosing import kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.model import names
from mirror.settings.kinds import KindEntry

Json = dict[str, Any]
KINDS = kinds_of([KindEntry(kind="MPIJob"), KindEntry(kind="PyTorchJob")])
OWN = {"MPIJob": "kubeflow.org/mpi-operator", "PyTorchJob": "kubeflow.org/training-operator"}
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
WORKERS = ("east", "west")
OURS = "ours"


def kind_of(name: str) -> DeclaredKind:
    kind = KINDS[name]
    assert isinstance(kind, DeclaredKind)
    return kind


def definition(kind: DeclaredKind) -> Json:
    """Whatever it holds."""
    its = kind.resource
    schema = {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}
    version = {"name": its.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": its.group, "scope": "Namespaced", "names": {"plural": its.plural, "kind": its.kind}}
    versions = [version | {"subresources": {"status": {}}}]
    return {"metadata": {"name": f"{its.plural}.{its.group}"}, "spec": {**spec, "versions": versions}}


class KubeflowWorld(FlowWorld):
    """Whose manager mirrors both, and whose clusters have their operators."""

    def __init__(self, scope: asyncio.TaskGroup, workers: tuple[str, ...], **settings: Any) -> None:
        super().__init__(scope, workers, kinds=KINDS, **settings)
        self._operators: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await super().start()
        for plane in self.planes.values():
            for name in OWN:
                await plane.api.create(DEFINITIONS, definition(kind_of(name)))
            self._operators.append(self._scope.create_task(self._operate(plane.name), name=f"operator {plane.name}"))

    async def stop(self) -> None:
        for task in self._operators:
            task.cancel()
        await super().stop()

    async def _operate(self, cluster: str) -> None:
        """Run what names nobody, or the operator itself: say that it runs, and count the looks."""
        api = self.planes[cluster].api
        while True:
            await asyncio.sleep(1)
            for name, own in OWN.items():
                kind = kind_of(name)
                for found in await api.list(kind.resource.path()):
                    if found["spec"]["runPolicy"].get("managedBy", own) == own:
                        looks = (found.get("status") or {}).get("looks", 0) + 1
                        running = {"type": "Running", "status": "True", "reason": "Running", "message": cluster}
                        status = {"startTime": "2026-01-01T00:00:00Z", "conditions": [running], "looks": looks}
                        try:
                            await api.merge(
                                kind.resource.path("default", found["metadata"]["name"], "status"), {"status": status}
                            )
                        except StatusError:
                            continue


class Life:
    """One object, and what users do to it."""

    def __init__(self, world: FlowWorld, name: str) -> None:
        self.world, self.kind = world, kind_of(name)
        self.path = self.kind.resource.path("default")

    @property
    def ours(self) -> str:
        return self.kind.managed_by_value or names.DEFAULT_MANAGED_BY

    async def create(self, name: str = "train", managed_by: str | None = OURS) -> None:
        policy = {"managedBy": self.ours if managed_by == OURS else managed_by} if managed_by else {}
        body = {"apiVersion": self.kind.resource.api_version, "kind": self.kind.name, "metadata": {"name": name}}
        await self.world.management.api.create(self.path, {**body, "spec": {"runPolicy": policy}})

    async def begin(self) -> None:
        await self.create()
        await self.world.until(self.runs_there)

    async def name(self, value: str | None, name: str = "train") -> None:
        """Who runs it from now on."""
        patch = {"spec": {"runPolicy": {"managedBy": value}}}
        await self.world.management.api.merge(f"{self.path}/{name}", patch)

    async def source(self) -> Json:
        return await self.world.management.api.get(f"{self.path}/train")

    async def where(self) -> list[str]:
        return [one for one in WORKERS if await self.world.planes[one].api.list(self.path)]

    async def runs_there(self) -> bool:
        return told(await self.source()).get("Running") in WORKERS

    async def is_gone_there(self) -> bool:
        return not await self.where()


def flow(test: Callable[[Life], Awaitable[None]]) -> Callable[[str], None]:
    """For each kind, in a world of its own."""

    async def main(name: str) -> None:
        async with flow_world(*WORKERS, form=KubeflowWorld) as world:
            laws = Invariants(world)
            await asyncio.sleep(5)
            await test(Life(world, name))
            laws.check()

    def run(name: str) -> None:
        virtual.run(main(name))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return pytest.mark.parametrize("name", sorted(OWN))(run)


@pytest.mark.slow
@flow
async def test_the_operator_here_has_it_and_its_mirror_goes(life: Life) -> None:
    """By a value of its own or none; the status is its operator's from then on, and is not fought over."""
    await life.begin()
    await life.name(OWN[life.kind.name])
    await life.world.until(life.is_gone_there, seconds=20)
    await asyncio.sleep(60)
    source = await life.source()
    assert told(source)["Running"] == "management"
    assert source["status"]["looks"] > 50
    assert await life.where() == []
    listed = await life.world.management.api.list("/api/v1/events")
    (text,) = [one["message"] for one in listed if one["reason"] == "ManagedByChanged"]
    assert text.startswith(f"spec.runPolicy.managedBy is {OWN[life.kind.name]} now, so that another controller runs it")


@pytest.mark.slow
@flow
async def test_one_that_is_handed_back_is_not_run_a_second_time(life: Life) -> None:
    """What the operator here has begun may run on: it is left alone, nothing is failed, and no mirror is made."""
    await life.begin()
    await life.name(None)
    await life.world.until(life.is_gone_there, seconds=20)
    await asyncio.sleep(10)
    await life.name(life.ours)
    await asyncio.sleep(120)
    source = await life.source()
    assert await life.where() == []
    assert "Failed" not in told(source)
    why = source["metadata"]["annotations"][names.WAITING_BECAUSE]
    assert why == f"another controller writes this {life.kind.name}'s status"
    assert "StatusConflict" in await life.world.events()


@flow
async def test_who_hands_one_back_does_not_stop_its_kind(life: Life) -> None:
    """What a status says was written while the object named somebody else: others are placed all the same."""
    await life.create("first", None)
    await asyncio.sleep(5)
    await life.name(life.ours, "first")
    await asyncio.sleep(5)
    assert "StatusConflict" in await life.world.events()
    await life.create()
    await life.world.until(life.runs_there)
    assert "KindRunsHere" not in await life.world.events()


@pytest.mark.slow
@flow
async def test_an_operator_that_takes_what_names_us_stops_its_kind(life: Life) -> None:
    """One whose spec has never changed has always named us; so it is not honoured here (D20)."""
    for worker in WORKERS:
        await life.world.register(worker, cordoned="true")
    await life.create("first")
    path = f"{life.path}/first/status"
    await life.world.management.api.merge(path, {"status": {"startTime": "2026-01-01T00:00:00Z"}})
    for worker in WORKERS:
        await life.world.register(worker)
    await life.create()
    await asyncio.sleep(30)
    assert await life.where() == []
    assert "KindRunsHere" in await life.world.events()
