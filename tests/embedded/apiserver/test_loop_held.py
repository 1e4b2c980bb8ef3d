"""Nobody waits long for others' large requests: the event loop is never held, whatever is in a body of up to 3 MiB.

What counts is the CPU time of the loop's own thread between two turns of a ticker, so that a busy machine does not
matter. How long a request takes as a whole must grow with its size, not with the square of it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Iterable
from random import Random

import pytest

from mirror.embedded.apiserver.messages import Response
from mirror.embedded.apiserver.server import LARGEST_BODY
from mirror.embedded.apiserver.side_thread import SideThread
from tests.embedded.apiserver.asking import MAPS, Asking
from tests.embedded.apiserver.large import Large, Place, places, requests, selectors

MOST_HELD_SECONDS = 0.25
FEW, TIMES = 25_000, 16
MOST_TIMES = 48.0
"""For sixteen times as much: what grows with the size takes 16 times as long, with its square 256 times."""
MOST_ROUNDS = 6
SAMPLE = 6
"""Of nearly two thousand places, for each of which 17 requests take some ten seconds of CPU."""
_NOT_WORTH_SECONDS = 0.25
_TICK_SECONDS = 0.002
CHOSEN = ("Job spec.template.spec.containers", "CustomResourceDefinition spec.versions", "ClusterRole rules")
_LARGEST_HEAD = 2**20 - 2**12


class Watchdog:
    """Asks, and looks how much of the loop's time each request took at a stretch."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.longest = 0.0
        self._last = 0.0

    async def run(self) -> None:
        self._last = time.thread_time()
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            now = time.thread_time()
            self.longest = max(self.longest, now - self._last)
            self._last = now

    async def send(self, large: Large) -> tuple[float, float]:
        """How long the loop was held, and how much CPU time it all took, in seconds."""
        await asyncio.sleep(2 * _TICK_SECONDS)
        self.longest, began = 0.0, time.process_time()
        answer = await self.asking.raw(
            large.method, large.target, large.body, content_type=large.content_type, accept=large.accept
        )
        took = time.process_time() - began
        await asyncio.sleep(2 * _TICK_SECONDS)
        assert isinstance(answer, Response)
        assert b"unexpected error" not in answer.body, large.what
        return self.longest, took


@pytest.fixture
async def watchdog() -> AsyncIterator[Watchdog]:
    gc.collect()
    asking, thread = Asking(), SideThread()
    asking.server.use_thread(thread)
    found = Watchdog(asking)
    async with asyncio.TaskGroup() as scope:
        ticking = scope.create_task(found.run(), name="ticker")
        yield found
        ticking.cancel()
    thread.close()


def _not_too_large(larges: Iterable[Large]) -> list[Large]:
    return [one for one in larges if len(one.body) <= LARGEST_BODY]


async def _holding(watchdog: Watchdog, larges: Iterable[Large]) -> list[str]:
    """Requests that hold the loop too long."""
    found = []
    for large in larges:
        held = (await watchdog.send(large))[0]
        if held > MOST_HELD_SECONDS:
            found.append(f"{large.what}, {len(large.body) + len(large.target)} bytes: {held:.2f} s")
    return found


async def _growing(watchdog: Watchdog, place: Place) -> list[str]:
    """Requests that take far more than sixteen times as long when they are sixteen times as large.

    Others on the machine, and the collector of garbage, only ever make a request longer, so the shortest of some
    rounds counts, and nothing is collected amid a request.
    """
    small, large = await _seconds(watchdog, place, FEW), await _seconds(watchdog, place, TIMES * FEW)
    for _ in range(MOST_ROUNDS - 1):
        if not any(_is_too_much(small[what], large[what]) for what in large):
            return []
        small = _shortest(small, await _seconds(watchdog, place, FEW))
        large = _shortest(large, await _seconds(watchdog, place, TIMES * FEW))
    return [
        f"{what}: {small[what]:.3f} s and {took:.3f} s"
        for what, took in large.items()
        if _is_too_much(small[what], took)
    ]


def _shortest(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    return {what: min(before[what], took) for what, took in now.items()}


async def _seconds(watchdog: Watchdog, place: Place, size: int) -> dict[str, float]:
    """What each request took, of the life of one object that is large from its beginning to its end."""
    found = {}
    gc.disable()
    try:
        for one in requests(place, size):
            gc.collect()
            found[one.what] = (await watchdog.send(one))[1]
    finally:
        gc.enable()
    return found


def _is_too_much(few: float, many: float) -> bool:
    return many > max(MOST_TIMES * few, _NOT_WORTH_SECONDS)


async def _named(asking: Asking, name: str) -> Place:
    return next(one for one in await places(asking) if str(one) == name)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", [*(pytest.param(name, marks=pytest.mark.slow) for name in CHOSEN[:2]), CHOSEN[2]])
async def test_a_large_request_does_not_hold_the_loop(watchdog: Watchdog, name: str) -> None:
    """However something large is created, changed, applied, shown or deleted."""
    place = await _named(watchdog.asking, name)
    assert await _holding(watchdog, requests(place, 60_000)) == []


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_a_large_query_does_not_hold_the_loop(watchdog: Watchdog) -> None:
    """Conditions are read, and held against the objects, beside it."""
    for number in range(100):
        await watchdog.asking.map(f"m{number}")
    assert await _holding(watchdog, selectors(MAPS, 250_000)) == []


_LOOPS = "self.l.all(x, self.l.all(y, self.l.exists(z, z + y + x < 0 || self.l == self.l || x >= 0)))"
_WORK = {
    "loops in loops": _LOOPS,
    "a list for each item": "self.l.map(x, self.l.map(y, [x, y])).size() > 0",
    "lists that are compared": "self.l.all(x, self.l.all(y, self.l == self.l))",
    "a text for each item": "self.l.map(x, string(x) + 'x').join(',').split('x').size() > 0",
    "long ranges": "lists.range(self.l.size() * 100).all(x, lists.range(1000).all(y, y >= 0))",
}


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("rule", _WORK.values(), ids=list(_WORK))
async def test_a_rule_of_a_definition_does_not_hold_the_loop(watchdog: Watchdog, rule: str) -> None:
    """However long it takes for an object that is small, or large: it ends, and others are served meanwhile."""
    numbers = {"type": "array", "items": {"type": "integer"}}
    spec = {
        "type": "object",
        "properties": {"l": numbers},
        "x-kubernetes-validations": [{"rule": rule}, {"rule": f"!({rule})"}],
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
    }
    names = {"plural": "rules", "kind": "Rule"}
    definition = {
        "metadata": {"name": "rules.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    crds, objects = (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/example.com/v1/namespaces/default/",
    )
    await watchdog.asking.ok("POST", crds, definition)
    await asyncio.sleep(_TICK_SECONDS)
    for count in (1_000, 40_000):
        made = {"apiVersion": "example.com/v1", "kind": "Rule", "metadata": {"name": "r"}, "spec": {"l": [7] * count}}
        body = json.dumps(made).encode()
        assert (
            await _holding(watchdog, [Large(f"{count} items", "POST", f"{objects}rules", body, "application/json")])
        ) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_no_request_holds_the_loop(watchdog: Watchdog) -> None:
    """Lists, maps and strings of all kinds, some by chance, as large as they may come."""
    found = []
    for place in Random(1).sample(await places(watchdog.asking), SAMPLE):
        larges = _not_too_large(requests(place, LARGEST_BODY - 2**12))
        found += [f"{place}: {one}" for one in await _holding(watchdog, larges)]
    found += await _holding(watchdog, selectors(MAPS, _LARGEST_HEAD))
    assert found == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_no_request_takes_more_than_its_share(watchdog: Watchdog) -> None:
    """How long a request takes grows with the size of any list, map or string in it, not with the square of it."""
    found = []
    for place in Random(2).sample(await places(watchdog.asking), SAMPLE):
        found += [f"{place}: {one}" for one in await _growing(watchdog, place)]
    assert found == []
