"""Requests whose steps run beside the event loop: what others do meanwhile is neither lost nor overwritten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import pytest

from mirror.embedded.apiserver.side_thread import LARGE_BYTES, MOST_WAITING, SideThread
from mirror.planes.plane import control_plane
from mirror.planes.serving import served
from mirror.planes.shape import NONE, Shape
from tests.embedded.apiserver.asking import MAPS, MERGE, Asking

T = TypeVar("T")
LAST = 3
"""Of the steps of a create: read and completed, prepared and judged, and as it will be shown."""
LARGE = {"data": {"k": "v" * LARGE_BYTES}}


class Halted(SideThread):
    """Steps wait until they are let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.may_go = asyncio.Event()
        self.steps = 0

    async def run(self, step: Callable[[], T]) -> T:
        self.steps += 1
        self.asked.set()
        await self.may_go.wait()
        return await super().run(step)


@pytest.fixture
async def thread() -> AsyncIterator[Halted]:
    found = Halted()
    yield found
    found.close()


@pytest.fixture
async def asking(thread: Halted) -> Asking:
    found = Asking()
    found.server.use_thread(thread)
    return found


async def _meanwhile(asking: Asking, thread: Halted, large: Any, small: Any) -> Any:
    """What the large request gives if the small one is carried out while a step of it is waiting."""
    async with asyncio.TaskGroup() as scope:
        task = scope.create_task(large, name="large")
        await thread.asked.wait()
        await small
        thread.may_go.set()
    return task.result()


async def test_small_requests_stay_in_the_loop(asking: Asking, thread: Halted) -> None:
    """They would wait for ever here."""
    await asking.map("m")
    await asking.ok("PATCH", f"{MAPS}/m", {"data": {"a": "b"}}, content_type=MERGE)
    await asking.ok("GET", MAPS)
    await asking.ok("DELETE", f"{MAPS}/m")
    assert thread.steps == 0


async def test_a_change_that_comes_between_is_kept(asking: Asking, thread: Halted) -> None:
    """The large one starts over with what is there then."""
    await asking.map("m")
    large = asking.ok("PATCH", f"{MAPS}/m", LARGE, content_type=MERGE)
    small = asking.ok("PATCH", f"{MAPS}/m", {"data": {"a": "b"}}, content_type=MERGE)
    found = await _meanwhile(asking, thread, large, small)
    assert found["data"] == {"a": "b", **LARGE["data"]}


async def test_an_update_of_what_has_changed_meanwhile_is_a_conflict(asking: Asking, thread: Halted) -> None:
    """It says which version it replaces."""
    made = await asking.map("m")
    large = asking.ask("PUT", f"{MAPS}/m", {**made, **LARGE})
    small = asking.ok("PATCH", f"{MAPS}/m", {"data": {"a": "b"}}, content_type=MERGE)
    status, _ = await _meanwhile(asking, thread, large, small)
    assert status == 409


async def test_of_two_that_are_created_the_first_stays(asking: Asking, thread: Halted) -> None:
    """Be it that the other began earlier."""
    large = asking.ask("POST", MAPS, {"metadata": {"name": "m"}, **LARGE})
    status, _ = await _meanwhile(asking, thread, large, asking.map("m"))
    assert status == 409
    assert "data" not in await asking.ok("GET", f"{MAPS}/m")


async def test_nothing_comes_into_a_namespace_that_went_meanwhile(asking: Asking, thread: Halted) -> None:
    """The last look at it is when the object is stored."""
    await asking.ok("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
    thread.may_go.set()
    steps = 0

    async def run(step: Callable[[], T]) -> T:
        nonlocal steps
        steps += 1
        found = step()
        if steps == LAST:
            await asking.ok("DELETE", "/api/v1/namespaces/n")
        return found

    thread.run = run
    status, _ = await asking.ask("POST", "/api/v1/namespaces/n/configmaps", {"metadata": {"name": "m"}, **LARGE})
    assert (status, steps) == (403, LAST)


async def test_too_many_large_requests_are_refused(asking: Asking, thread: Halted) -> None:
    """With 429, while small ones are answered."""

    class Full(Halted):
        is_full = True

    asking.server.use_thread(Full())
    status, reason, _ = await asking.refused("POST", MAPS, {"metadata": {"name": "m"}, **LARGE})
    assert (status, reason) == (429, "TooManyRequests")
    await asking.map("m")


async def test_the_queue_is_full_when_many_wait() -> None:
    """As many as MOST_WAITING says."""
    thread = SideThread()
    waiting = [asyncio.create_task(thread.run(int), name=f"step {n}") for n in range(MOST_WAITING)]
    await asyncio.sleep(0)
    assert thread.is_full
    await asyncio.gather(*waiting)
    assert not thread.is_full
    thread.close()


async def test_a_step_after_the_end_runs_in_the_loop() -> None:
    """A server may go on in memory when its port is closed."""
    thread = SideThread()
    thread.close()
    assert await thread.run(lambda: 1) == 1


async def test_only_a_control_plane_that_is_served_has_a_thread() -> None:
    """In memory time may be virtual, which waits for no thread."""
    async with control_plane(Shape(controllers=NONE)) as plane:
        assert plane.server.dependencies.side_thread is None
        async with served(plane):
            assert plane.server.dependencies.side_thread is not None
            await plane.restart()
            assert plane.server.dependencies.side_thread is not None
        assert plane.server.dependencies.side_thread is None
