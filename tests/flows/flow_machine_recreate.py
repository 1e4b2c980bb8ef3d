"""Mirrors that vanish behind our back in random flows, of Jobs that start over or fail then (D11), for hypothesis."""

from __future__ import annotations

import asyncio

from doubles.managers import conditions
from flow_machine_base import NAMES
from flow_machine_moves import LASTING, WORKER, Moving
from flow_progress import StartOverLaws
from flow_world import MANAGER, job
from hypothesis import strategies as st
from hypothesis.stateful import rule

from mirror.embedded.faults.kinds import Loss, internal_error
from mirror.embedded.faults.targets import Which
from mirror.model import names

DRAIN_LOOKS = 1_000
"""Twenty seconds: where there is no other worker, it goes on where it is."""


class StartingOver(Moving):
    """All that ``Moving`` does; what is promised is judged by its laws."""

    @rule(
        name=NAMES,
        kind=st.sampled_from(sorted(LASTING)),
        said=st.sampled_from(("Recreate", "Recreate", "Fail", None)),
        worker=WORKER,
        propagation=st.sampled_from(("Background", "Foreground", "Orphan")),
        then=st.sampled_from(("", "the manager dies", "the answers to records are lost")),
        seconds=st.sampled_from((3.0, 20.0, 120.0)),
    )
    def somebody_deletes_a_mirror_on_a_quiet_day(
        self, name: str, kind: str, said: str | None, worker: str, propagation: str, then: str, seconds: float
    ) -> None:
        """On the worker, with its pods or without, of a Job that says what is to become of it."""
        annotations = {names.WORKER_ORDER: worker} | ({names.ON_MIRROR_LOSS: said} if said is not None else {})
        self._do(self._quiet_day(job(name, annotations=annotations, **LASTING[kind]), worker))
        self._do(self.world.delete(name, cluster=worker, propagation=propagation))
        if then == "the answers to records are lost":
            self._do(self._trouble(worker, then))
        self._do(asyncio.sleep(seconds))
        if then == "the manager dies":
            self._do(self._restart_manager(seconds))

    @rule(
        name=NAMES,
        said=st.sampled_from(("Recreate", "Fail", None)),
        worker=WORKER,
        fails=st.integers(1, 8),
        gap=st.sampled_from((0.02, 0.1, 0.3, 1.0)),
        seconds=st.sampled_from((3.0, 20.0, 120.0)),
    )
    def somebody_deletes_a_mirror_that_starts_again(
        self, name: str, said: str | None, worker: str, fails: int, gap: float, seconds: float
    ) -> None:
        """Its user has resumed it, that it runs again cannot be stored yet, and its pods are left to run on."""
        annotations = {names.WORKER_ORDER: worker} | ({names.ON_MIRROR_LOSS: said} if said is not None else {})
        self._do(self._quiet_day(job(name, annotations=annotations, **LASTING["endless"]), worker))
        self._do(self._and_wait(self.world.change(name, {"spec": {"suspend": True}}), 5.0))
        self._do(self._delete_unstored(name, worker, fails, gap, seconds))

    async def _delete_unstored(self, name: str, worker: str, fails: int, gap: float, seconds: float) -> None:
        storing = Which("patch", "jobs", subresource="status", peer=MANAGER)
        self.world.management.faults.arrange(internal_error(), storing, times=fails)
        await self.world.change(name, {"spec": {"suspend": False}})
        await asyncio.sleep(gap)
        assert isinstance(self.laws, StartOverLaws)
        mirror = await self.world.mirror(worker, name) or {"metadata": {"uid": None}}
        left = [pod for pod, owner in self.laws.running(worker, name).items() if owner == mirror["metadata"]["uid"]]
        await self.world.delete(name, cluster=worker, propagation="Orphan")
        await asyncio.sleep(seconds)
        self.laws.look_beside_orphans(worker, name, left)

    @rule(
        name=NAMES,
        said=st.sampled_from(("Recreate", "Fail", None)),
        worker=WORKER,
        lost=st.integers(0, 8),
        gap=st.sampled_from((0.0, 0.02, 0.3, 2.0)),
        is_deaf=st.booleans(),
        seconds=st.sampled_from((3.0, 20.0, 120.0)),
    )
    def an_operator_cancels_a_drain_as_a_mirror_goes(
        self, name: str, said: str | None, worker: str, lost: int, gap: float, is_deaf: bool, seconds: float
    ) -> None:
        """It has stopped, and the manager deletes it; pods that have run are there on, and looks are lost just then.

        ``is_deaf``: the manager does not hear of its deletion.
        """
        annotations = {names.WORKER_ORDER: worker} | ({names.ON_MIRROR_LOSS: said} if said is not None else {})
        self._do(self._quiet_day(job(name, annotations=annotations, **LASTING["counting"]), worker))
        self._do(self._cancel_drain(name, worker, lost, gap, is_deaf=is_deaf))
        self._do(asyncio.sleep(seconds))

    async def _cancel_drain(self, name: str, worker: str, lost: int, gap: float, *, is_deaf: bool) -> None:
        world, faults = self.world, self.world.workers[worker].faults
        faults.arrange(Loss.LOSE_REQUEST, Which("get", "jobs", peer=MANAGER), times=lost)
        faults.arrange(internal_error(), Which("delete", "pods"), times=100)
        await world.register(worker, drain="move-started")
        for _ in range(DRAIN_LOOKS):
            if await world.mirror(worker, name) is None:
                break
            if is_deaf and conditions(await world.source(name)).get("Suspended") == "WorkerDrained":
                faults.mute_watches(MANAGER, plural="jobs")
            await asyncio.sleep(0.02)
        await asyncio.sleep(gap)
        await world.register(worker)

    async def _restart_manager(self, seconds: float) -> None:
        await self.world.kill_manager()
        self.world.start_manager()
        await asyncio.sleep(seconds)
