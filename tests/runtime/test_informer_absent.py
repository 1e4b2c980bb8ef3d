"""An informer of what a cluster may serve or not (D23): nobody waits for it, nothing of it is forgotten."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from doubles.jobs import job
from doubles.refusals import Refused, forbidden
from doubles.transport import Wire, client_of, wire_to

from mirror.kube.errors import KubeError
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS
from mirror.runtime.informer import ABSENT_SECONDS, Change, Informer, InformerHooks, Phase, Scope
from mirror.runtime.store import Store

pytestmark = pytest.mark.looptime

NOT_SERVED = Refused(404, "NotFound")


class Watched:
    """An informer of something optional, and what it has told."""

    def __init__(self, wire: Wire, wait_until_served: Callable[[], Awaitable[None]] | None = None) -> None:
        self.store = Store()
        self.changes: list[tuple[str, Change]] = []
        self.troubles: list[KubeError] = []
        self.absences: list[KubeError] = []
        self.healthy = 0
        client = client_of(wire)
        hooks = InformerHooks(
            self._on_change,
            on_trouble=self.troubles.append,
            on_healthy=self._on_healthy,
            on_absent=self.absences.append,
            wait_until_served=wait_until_served,
        )
        self.informer = Informer(Scope(JOBS), self.store, client=lambda: client, hooks=hooks)

    def _on_healthy(self) -> None:
        self.healthy += 1

    def _on_change(self, old: Object | None, new: Object | None, change: Change) -> None:
        found = new or old
        assert found is not None
        self.changes.append((found.metadata.name, change))


@asynccontextmanager
async def watching(
    wire: Wire, wait_until_served: Callable[[], Awaitable[None]] | None = None
) -> AsyncIterator[Watched]:
    watched = Watched(wire, wait_until_served)
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(watched.informer.run(), name="informer")
        await asyncio.sleep(0.1)
        yield watched
        task.cancel()


@pytest.mark.parametrize(
    "refused", [NOT_SERVED, forbidden()], ids=["it is not served", "nobody may look whether it is"]
)
async def test_nobody_waits_for_what_is_not_served(refused: Refused) -> None:
    """CR8, CR11: it is said once, asked for rarely, and followed from when it is there."""
    wire = wire_to("c")
    wire.server.put("jobs", job("a"))
    wire.arrange("watch", "jobs", refused, times=4)
    async with watching(wire) as watched:
        assert watched.informer.is_synced
        assert watched.informer.is_absent
        assert watched.informer.describe().phase is Phase.ABSENT
        await asyncio.sleep(3 * ABSENT_SECONDS)
        assert len(wire.sent) == 4
        assert (len(watched.absences), watched.troubles) == (1, [])
        await asyncio.sleep(ABSENT_SECONDS)
        assert not watched.informer.is_absent
        assert watched.changes == [("a", Change.LISTED)]


async def test_what_was_known_stays_while_it_is_not_served() -> None:
    """CR9: and what went meanwhile is told as missing, not as deleted, by the first list."""
    wire = wire_to("c")
    for name in ("a", "b"):
        wire.server.put("jobs", job(name))
    async with watching(wire) as watched:
        wire.arrange("watch", "jobs", NOT_SERVED, times=math.inf)
        wire.end_watches()
        await asyncio.sleep(100)
        assert watched.informer.is_absent
        assert len(list(watched.store)) == 2
        wire.server.remove("jobs", "a")
        wire.restore()
        await asyncio.sleep(ABSENT_SECONDS)
        assert not watched.informer.is_absent
        assert watched.changes[2:] == [("a", Change.MISSING)]


async def test_a_right_that_is_taken_away_is_trouble() -> None:
    """Where objects were seen, a refusal is no absence."""
    wire = wire_to("c")
    wire.server.put("jobs", job("a"))
    async with watching(wire) as watched:
        wire.arrange("watch", "jobs", forbidden(), times=2)
        wire.end_watches()
        await asyncio.sleep(10)
        assert [type(error).__name__ for error in watched.troubles] == ["Forbidden", "Forbidden"]
        assert watched.absences == []


async def test_a_refusal_is_over_once_it_is_not_served() -> None:
    """Whoever was told of the refusal hears so once, and nothing of each look after that."""
    wire = wire_to("c")
    wire.arrange("watch", "jobs", NOT_SERVED, times=1)
    wire.arrange("watch", "jobs", Refused(401, "Unauthorized"), times=1)
    wire.arrange("watch", "jobs", NOT_SERVED, times=3)
    async with watching(wire) as watched:
        await asyncio.sleep(2 * ABSENT_SECONDS)
        assert [type(error).__name__ for error in watched.troubles] == ["Unauthorized"]
        assert (watched.informer.is_absent, watched.healthy) == (True, 1)
        await asyncio.sleep(ABSENT_SECONDS)
        assert (watched.informer.is_absent, watched.healthy) == (True, 1)


async def test_who_waits_for_all_hears_when_it_is_found_anew() -> None:
    """Nothing is taken for granted when another process begins to lead; that it is still not served ends the wait."""
    wire = wire_to("c")
    wire.arrange("watch", "jobs", NOT_SERVED, times=math.inf)
    async with watching(wire) as watched:
        assert (watched.informer.is_synced, watched.healthy) == (True, 0)
    watched.informer.expire()
    assert not watched.informer.is_synced
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(watched.informer.run(), name="informer")
        await asyncio.sleep(0.1)
        assert (watched.informer.is_synced, watched.healthy, len(watched.absences)) == (True, 1, 1)
        task.cancel()


async def test_a_nudge_asks_at_once() -> None:
    """Somebody knows more."""
    wire = wire_to("c")
    wire.arrange("watch", "jobs", NOT_SERVED, times=1)
    async with watching(wire) as watched:
        assert watched.informer.is_absent
        watched.informer.nudge()
        await asyncio.sleep(0.1)
        assert not watched.informer.is_absent


async def test_who_knows_better_says_when_to_list_again() -> None:
    """However long that takes; a nudge is for who does."""
    wire = wire_to("c")
    wire.arrange("watch", "jobs", NOT_SERVED, times=2)
    turn = asyncio.Event()

    async def wait_until_served() -> None:
        await turn.wait()
        turn.clear()

    async with watching(wire, wait_until_served) as watched:
        watched.informer.nudge()
        await asyncio.sleep(10 * ABSENT_SECONDS)
        assert (len(wire.sent), watched.informer.is_absent, watched.informer.is_synced) == (1, True, True)
        turn.set()
        await asyncio.sleep(10 * ABSENT_SECONDS)
        assert (len(wire.sent), watched.informer.is_absent) == (2, True)
        turn.set()
        await asyncio.sleep(1)
        assert not watched.informer.is_absent
        assert len(watched.absences) == 1
