"""How far statuses are behind, in ``mirror get``: asked while Jobs are listed, and never a reason to fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from mirror.cli.user import get
from mirror.cli.user.cluster import Cluster
from mirror.cli.user.failures import Failure, OutOfReach
from mirror.cli.user.get import Lags, Wanted
from mirror.cli.user.naming import Chosen
from mirror.cli.user.options import Where
from mirror.kinds.base import Kind
from mirror.kinds.registry import JOB
from mirror.model.views import JobView
from tests.doubles.drills import DRILL

UNDER_WAY = JobView(kind="Job", namespace="n", name="a", uid="1", state="Running", worker="east")
DRILLING = JobView(kind="Drill", namespace="n", name="d", uid="4", state="Running", worker="east")
WAITING = JobView(kind="Job", namespace="n", name="b", uid="2", state="Waiting")
OVER = JobView(
    kind="Job", namespace="n", name="c", uid="3", state="Complete", worker="east", finished="2026-03-01T11:00:00Z"
)
BOTH = Wanted(chosen=Chosen((JOB, DRILL)))
WHERE = cast("Where", None)
CLUSTER = cast("Cluster", SimpleNamespace(namespace="n"))


class Manager:
    """Knows a lag of each Job that is under way; may refuse or be silent."""

    def __init__(self) -> None:
        self.is_away = self.is_silent = self.refuses = self.is_down = False
        self.silent_of: set[str] = set()
        self.asked: list[tuple[str, str | None]] = []
        self.left = 0

    @asynccontextmanager
    async def connected(self, where: Where, cluster: Cluster) -> AsyncIterator[Manager]:
        if self.is_away:
            raise Failure("access is not enabled")
        try:
            yield self
        finally:
            self.left += 1

    async def jobs(self, kind: Kind, namespace: str | None) -> list[JobView]:
        self.asked.append((kind.name, namespace))
        if self.is_silent or kind.name in self.silent_of:
            await asyncio.Event().wait()
        if self.is_down:
            raise OutOfReach("manager is unreachable: connection refused")
        if self.refuses:
            raise Failure("it does not mirror this kind")
        return [msgspec.structs.replace(UNDER_WAY, lag_seconds=0.5)]


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Manager:
    known = Manager()
    monkeypatch.setattr(get, "manager", known.connected)
    return known


async def turns() -> None:
    """Enough of the loop for whatever was begun to ask."""
    for _ in range(5):
        await asyncio.sleep(0)


async def listed(seen: list[JobView]) -> list[float | None]:
    async with Lags(WHERE, CLUSTER, Wanted()) as lags:
        lags.saw(JOB, seen)
        return [view.lag_seconds for view in await lags.added_to(seen)]


async def test_it_is_asked_while_others_are_still_listed(manager: Manager) -> None:
    async with Lags(WHERE, CLUSTER, Wanted()) as lags:
        lags.saw(JOB, [WAITING])
        await turns()
        assert manager.asked == []
        lags.saw(JOB, [UNDER_WAY])
        lags.saw(JOB, [UNDER_WAY])
        await turns()
        assert manager.asked == [("Job", "n")], "once, and before the list has ended"
        assert [view.lag_seconds for view in await lags.added_to([WAITING, UNDER_WAY])] == [None, 0.5]


async def test_of_kinds_of_which_nothing_is_under_way_it_is_not_asked(manager: Manager) -> None:
    """It mirrors twenty kinds perhaps, and lets each user list so many at a time."""
    async with Lags(WHERE, CLUSTER, BOTH) as lags:
        lags.saw(JOB, [UNDER_WAY])
        assert [view.lag_seconds for view in await lags.added_to([UNDER_WAY])] == [0.5]
        assert manager.asked == [("Job", "n")]


async def test_a_kind_that_it_does_not_answer_for_costs_no_other_its_lag(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(get, "LAG_SECONDS", 0.01)
    manager.silent_of.add("Drill")
    async with Lags(WHERE, CLUSTER, BOTH) as lags:
        lags.saw(JOB, [UNDER_WAY])
        lags.saw(DRILL, [DRILLING])
        assert [view.lag_seconds for view in await lags.added_to([UNDER_WAY, DRILLING])] == [0.5, None]
    assert manager.asked == [("Job", "n"), ("Drill", "n")]


async def test_of_all_namespaces_it_is_asked_for_all(manager: Manager) -> None:
    async with Lags(WHERE, CLUSTER, Wanted(everywhere=True)) as lags:
        lags.saw(JOB, [UNDER_WAY])
        await lags.added_to([UNDER_WAY])
    assert manager.asked == [("Job", None)]


async def test_it_is_not_asked_where_nothing_is_under_way(manager: Manager) -> None:
    assert await listed([WAITING, OVER]) == [None, None]
    assert manager.asked == []


async def test_a_manager_that_is_away_or_refuses_is_no_failure(manager: Manager) -> None:
    manager.is_away = True
    assert await listed([UNDER_WAY]) == [None]
    manager.is_away, manager.refuses = False, True
    assert await listed([UNDER_WAY]) == [None]


async def test_a_manager_that_cannot_be_reached_is_told_of_since_statuses_may_be_old(manager: Manager) -> None:
    """One that serves no users is not: nobody could tell the difference between it and none."""
    notes = []
    for is_down in (False, True):
        manager.is_away, manager.is_down = not is_down, is_down
        async with Lags(WHERE, CLUSTER, BOTH) as lags:
            lags.saw(JOB, [UNDER_WAY])
            lags.saw(DRILL, [DRILLING])
            assert await lags.added_to([UNDER_WAY, DRILLING]) == [UNDER_WAY, DRILLING]
            notes.append(lags.unreachable)
    assert notes == ["", "manager is unreachable: connection refused"]


async def test_a_silent_manager_is_given_up(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(get, "LAG_SECONDS", 0.01)
    manager.is_silent = True
    assert await listed([UNDER_WAY]) == [None]
    assert manager.left == 1, "the connection is closed"
    assert len(asyncio.all_tasks()) == 1


async def test_a_list_that_fails_leaves_no_question_open(manager: Manager) -> None:
    manager.is_silent = True

    async def fail() -> None:
        async with Lags(WHERE, CLUSTER, Wanted()) as lags:
            lags.saw(JOB, [UNDER_WAY])
            await turns()
            raise Failure("forbidden")

    with pytest.raises(Failure, match="forbidden"):
        await fail()
    assert (manager.left, len(asyncio.all_tasks())) == (1, 1)
