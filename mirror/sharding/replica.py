"""One of several active managers: an instance of mirroring for each share that it holds (S1, S2, S7).

What each holds is ``coordinator``'s; what an instance does, ``mirror.wiring``'s. An instance begins with its Lease and
ends with it, so that it knows nothing of before, and everything of it looks at the permit of that Lease (D28).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Protocol

from mirror.model.terms import Terms
from mirror.runtime.environment import Environment
from mirror.runtime.supervise import supervise
from mirror.sharding.coordinator import Holding
from mirror.sharding.share import Share


class Instance(Protocol):
    """One instance of mirroring, not running yet."""

    @property
    def background(self) -> Sequence[tuple[str, Callable[[], Awaitable[None]]]]:
        """What runs beside it as long as it leads, by name."""
        ...

    async def lead(self) -> None: ...


Build = Callable[[Share, Terms, Holding], AbstractAsyncContextManager[Instance]]
"""Makes an instance whose clients look at a holding's permit; leaving closes them."""


class Instances:
    """Those that run on this replica."""

    def __init__(self, build: Build, *, slots: int, terms: Terms, environment: Environment) -> None:
        """``terms``: of all slots, by whomever they are held (``Coordinator.terms``)."""
        self._build = build
        self._slots = slots
        self._terms = terms
        self._log = environment.log
        self._running: dict[Share, Instance] = {}

    def __iter__(self) -> Iterator[tuple[Share, Instance]]:
        return iter(tuple(self._running.items()))

    async def work(self, holding: Holding) -> None:
        """``coordinator.Work``: mirror what this holding gives us, until cancelled."""
        slot = holding.slot
        share = Share(slot) if slot is not None else Share(slots=self._slots)
        terms = Terms(lambda _: holding.term()) if slot is not None else self._terms
        async with self._build(share, terms, holding) as instance, asyncio.TaskGroup() as around:
            watches = [
                around.create_task(supervise(name, work, log=self._log), name=name)
                for name, work in instance.background
            ]
            try:
                with self._noted(share, instance):
                    await instance.lead()
            finally:
                # First nothing new is begun, then the watches end.
                for task in watches:
                    task.cancel()

    @contextmanager
    def _noted(self, share: Share, instance: Instance) -> Iterator[None]:
        self._running[share] = instance
        try:
            yield
        finally:
            del self._running[share]
