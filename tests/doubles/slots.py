"""Several active managers without their Leases: an instance of mirroring for each slot, and who assigns (S1, S2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from doubles.world import RunningManager, World, manager_of
from mirror.model import names
from mirror.model.terms import Terms
from mirror.sharding.share import Share
from mirror.sharding.slots import Slot, slot_of_worker

SLOTS = 2
WORKERS = ("east", "north")
"""One in each slot."""


@dataclass
class Board:
    """What the Leases of slots say: their terms, by index; ``shown``: as a watch shows them that may be late."""

    terms: dict[int, str] = field(default_factory=lambda: dict.fromkeys(range(SLOTS), "t1"))
    shown: dict[int, str] | None = None
    holders: dict[int, str] = field(default_factory=dict)

    def of(self, worker: str) -> str:
        shown = self.terms if self.shown is None else self.shown
        return shown.get(slot_of_worker(worker, SLOTS).index, "") if worker else ""

    async def read(self, worker: str) -> str:
        return self.terms.get(slot_of_worker(worker, SLOTS).index, "")

    def holder(self, worker: str) -> str:
        return self.holders.get(slot_of_worker(worker, SLOTS).index, "")

    @property
    def known(self) -> Terms:
        """By whoever assigns."""
        return Terms(self.of, read=self.read, holder=self.holder)


def index_of(worker: str) -> int:
    """Of its slot."""
    return slot_of_worker(worker, SLOTS).index


@asynccontextmanager
async def replicas(world: World, *, slots: tuple[int, ...] = (0, 1), **changes: Any) -> AsyncIterator[RunningManager]:
    """Holders of these slots, and who assigns, which is given."""
    async with AsyncExitStack() as stack:
        for index in slots:
            await stack.enter_async_context(holder_of(world, index, **changes))
        yield await stack.enter_async_context(assigner_of(world, **changes))


def holder_of(
    world: World, index: int, term: str = "t1", **changes: Any
) -> AbstractAsyncContextManager[RunningManager]:
    return manager_of(world, share=Share(Slot(index, SLOTS)), terms=Terms(lambda worker: term), **changes)


def assigner_of(
    world: World, term: str = "t1", *, board: Board | None = None, **changes: Any
) -> AbstractAsyncContextManager[RunningManager]:
    """``term``: in which all slots are held, as far as it knows; ``board``: what it can know of them."""
    terms = Terms(lambda worker: term if worker else "") if board is None else board.known
    return manager_of(world, share=Share(slots=SLOTS), terms=terms, **changes)


def world_of(workers: tuple[str, ...] = WORKERS, **annotations: str) -> World:
    world = World()
    for name in workers:
        world.add_worker(name, annotations=annotations)
    return world


def reason_of(world: World, name: str = "train") -> str:
    """Of the record of its worker."""
    listed = world.source(name)["status"]["conditions"]
    return str(next(one["reason"] for one in listed if one["type"] == names.PLACED))
