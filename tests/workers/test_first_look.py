"""Until a worker's pods and old warnings are known, that nothing is seen of a source means nothing (D22)."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from mirror.runtime.informers import Informers
from mirror.workers.first_look import FirstLook
from mirror.workers.pod_lookups import PodLookups

pytestmark = pytest.mark.looptime


class Listed:
    async def wait_until_synced(self) -> None:
        return None


class Lookups:
    """Takes ``seconds`` for what was asked for at first, with ``later`` warnings, one a second, after that."""

    def __init__(self, seconds: float, later: int = 0) -> None:
        self.asked, self._seconds, self._later = 1, seconds, later

    async def wait_until_empty(self) -> None:
        await asyncio.sleep(self._seconds)
        self._seconds = 0.0
        if self._later:
            self._later -= 1
            self.asked += 1


@pytest.mark.parametrize(
    ("lookups", "least", "most"),
    [
        pytest.param(Lookups(0.0), 2, 2.5, id="nothing is warned of"),
        pytest.param(Lookups(12.0), 12, 15, id="old warnings are looked up for twelve seconds"),
        pytest.param(Lookups(0.0, later=3), 8, 8.5, id="warnings come for a while"),
        pytest.param(Lookups(500.0), 30, 30.5, id="a worker that does not answer"),
        pytest.param(Lookups(0.0, later=1000), 30, 30.5, id="warnings without end"),
    ],
)
async def test_the_first_look_ends_once_old_warnings_are_looked_up_and_in_any_case(
    lookups: Lookups, least: float, most: float
) -> None:
    """What is shown of a source is kept until then, and its source is looked at again."""
    changed: list[str] = []
    look, loop = FirstLook(changed.append), asyncio.get_running_loop()
    started = loop.time()
    assert look.keeps("uid")
    await look.run(cast("Informers", Listed()), cast("PodLookups", lookups))
    assert least <= loop.time() - started <= most
    assert changed == ["uid"]
    assert not look.keeps("uid")
