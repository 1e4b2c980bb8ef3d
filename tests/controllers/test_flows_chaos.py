"""Everything at once: random users, workers, faults and restarts; what must hold at every moment, and in the end."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from doubles.jobs import job
from doubles.refusals import Refused, forbidden
from doubles.transport import Fault, Gone
from doubles.world import World, manager_of

from mirror.batch import conditions
from mirror.model import names

pytestmark = pytest.mark.looptime

NAMES = ("a", "b", "c")
FAULTS = (
    Fault.LOSE_ANSWER,
    Fault.HANG,
    Fault.BREAK,
    Refused(500, "InternalError"),
    Refused(409, "Conflict"),
    forbidden(),
)


def has_ended(body: dict[str, object]) -> bool:
    status = body.get("status")
    return conditions.is_finished(conditions.of(status)) if isinstance(status, dict) else False


class Chaos:
    """One random history."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.random = Random(seed)

    def step(self) -> None:
        """One thing that may happen to such a system."""
        do = self.random.choice((self._user, self._user, self._job_controller, self._job_controller, self._fault))
        do()

    def _user(self) -> None:
        world, name = self.world, self.random.choice(NAMES)
        if world.management.server.find("jobs", name) is None:
            world.create(job(name, suspend=self.random.random() < 0.3))
        elif self.random.random() < 0.4:
            world.delete(name)
        else:
            is_suspended = self.random.random() < 0.5
            world.edit(lambda body: body["spec"].update(suspend=is_suspended), name)

    def _job_controller(self) -> None:
        worker, name = self.random.choice(list(self.world.workers)), self.random.choice(NAMES)
        mirror, controller = self.world.mirror(worker, name), self.world.controller(worker)
        if mirror is None or has_ended(mirror):
            return
        if mirror["spec"]["suspend"]:
            controller.suspend(name)
        elif mirror["status"].get("conditions"):
            controller.resume(name)
        elif mirror["status"].get("startTime"):
            controller.complete(name)
        else:
            controller.start(name)

    def _fault(self) -> None:
        wire = self.random.choice([self.world.management, *self.world.workers.values()])
        match self.random.randrange(5):
            case 0 if wire is not self.world.management:
                wire.go_down()
            case 1:
                wire.expire(self.random.choice(list(Gone)))
            case 2:
                wire.break_watches()
            case 3:
                wire.restore()
            case _:
                wire.arrange(
                    self.random.choice(("create", "patch", "delete", "get")), "jobs", self.random.choice(FAULTS)
                )

    def check_one_to_one(self) -> None:
        """D2: at most one mirror that may run pods, over all workers."""
        live = Counter[str]()
        for wire in self.world.workers.values():
            for mirror in wire.server.all("jobs"):
                if not mirror["metadata"].get("deletionTimestamp") and not has_ended(mirror):
                    live[mirror["metadata"]["labels"][names.SOURCE_UID]] += 1
        assert not [uid for uid, count in live.items() if count > 1]

    def check_settled(self) -> None:
        """Every source has what it should have, and nothing else is left."""
        sources = {source["metadata"]["uid"]: source for source in self.world.management.server.all("jobs")}
        found = Counter[str]()
        for wire in self.world.workers.values():
            found.update(mirror["metadata"]["labels"][names.SOURCE_UID] for mirror in wire.server.all("jobs"))
        assert found.keys() <= sources.keys(), "no mirror without a source"
        for uid, source in sources.items():
            if not has_ended(source) and not source["spec"]["suspend"]:
                assert found[uid] == 1
                name = source["metadata"]["name"]
                assert [self.world.placed(name)] == self.world.mirrors(name)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
async def test_whatever_happens_a_job_has_one_mirror_and_all_is_well_in_the_end(seed: int) -> None:
    """D2 at each moment; two restarts on the way; convergence once the faults are over."""
    world = World()
    for name in ("east", "west"):
        world.add_worker(name)
    chaos = Chaos(world, seed)
    for _ in range(3):
        async with manager_of(world) as manager:
            for _ in range(25):
                chaos.step()
                for _ in range(4):
                    await manager.settle(chaos.random.choice((0.001, 0.01, 0.5, 5.0)))
                    chaos.check_one_to_one()
    for wire in (world.management, *world.workers.values()):
        wire.restore()
    async with manager_of(world) as manager:
        await manager.settle(200)
        chaos.check_one_to_one()
        chaos.check_settled()
