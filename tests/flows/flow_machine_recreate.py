"""Mirrors that vanish behind our back in random flows, of Jobs that start over or fail then (D11), for hypothesis."""

from __future__ import annotations

import asyncio

from flow_machine_base import NAMES
from flow_machine_moves import LASTING, WORKER, Moving
from flow_world import job
from hypothesis import strategies as st
from hypothesis.stateful import rule

from mirror.model import names


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

    async def _restart_manager(self, seconds: float) -> None:
        await self.world.kill_manager()
        self.world.start_manager()
        await asyncio.sleep(seconds)
