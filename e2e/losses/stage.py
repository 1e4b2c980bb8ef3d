"""One loss of a worker on real control planes, which many stories share: it takes minutes until anything moves.

A *story* is an async generator: it gives the ``Act`` that it waits for, and goes on once that has begun. All stories
of an act go on at once, each with Jobs of its own, and the next act begins when all are done with it. Not here: the
stories (``moving``, ``returning``, ``staying``, ``progress``, ``cronjobs``), and what is printed of Jobs (``shown``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from e2e.controlplane.client import Json
from e2e.jobs import Scene, job, placed_on, runs, uid
from e2e.losing import MOVED_SECONDS, until_reached
from e2e.manager import ManagerProcess
from e2e.proxy import Proxy

LOST_AFTER_SECONDS = 90
"""More than the minute after which it is shown that a worker is unreachable, by what looking at that takes."""


class Act(IntEnum):
    """What has just happened. They come in this order; before the first one all is well."""

    LOST = 1
    """``east`` is unreachable, for less than a minute."""
    HELD = 2
    """All workers are unreachable, ``east`` for about a minute."""
    MOVED = 3
    """``east`` is lost, and the other workers are back."""
    FULL = 4
    """What moves has moved, and ``west`` takes no more."""
    BACK = 5
    """``east`` is back."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What all stories share. On ``north`` there is no Job controller, and no statuses may be seeded."""

    manager: ManagerProcess
    scene: Scene
    proxies: Mapping[str, Proxy]
    """By worker: what is between the manager and it."""

    def job(self, name: str, policy: str = "Reschedule", *, annotations: Json | None = None, **more: object) -> Json:
        """A Job that likes ``east`` best, with pods that do not end; what else can be said is as for ``jobs.job``."""
        said = {"worker-order": "east,west", "on-worker-loss": policy, **(annotations or {})}
        fields: Json = {"run_for": "never", **more}
        return job(name, self.manager.managed_by, annotations=said, **fields)

    async def run(self, body: Json, *, worker: str = "east", pods: int = 1) -> str:
        """Create this Job, and wait until it runs; the uid of its mirror."""
        name = body["metadata"]["name"]
        await self.scene.create(body)
        await self.scene.source_until(name, runs(pods))
        found = await self.scene.mirrors(name)
        assert list(found) == [worker]
        return uid(found[worker])

    async def annotate(self, name: str, **annotations: str) -> None:
        """As its user does; without the prefix, and with underscores."""
        said = {f"jobmirror.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.scene.patch(name, {"metadata": {"annotations": said}})

    async def until_moved(self, name: str, to: str = "west") -> Json:
        """Wait until the Job is recorded on another worker."""
        return await self.scene.source_until(name, lambda found: placed_on(found) == to, seconds=MOVED_SECONDS)


Story = Callable[[Loss], AsyncGenerator[Act, None]]


async def play(loss: Loss, stories: Sequence[Story], begin: Mapping[Act, Callable[[Loss], Awaitable[None]]]) -> None:
    """All stories, from their beginnings to their ends; ``begin`` makes what is so in each act.

    Raises:
        AssertionError: stories went wrong; the text has what each of them says.
    """
    running = [_Running(story.__name__, story(loss)) for story in stories]
    try:
        await _go_on(running, None)
        for act in Act:
            await begin[act](loss)
            await _go_on(running, act)
    finally:
        for one in running:
            await one.story.aclose()
    wrong = [f"{one.name}: {type(one.wrong).__name__}: {one.wrong}" for one in running if one.wrong is not None]
    assert not wrong, "\n\n".join(wrong)
    assert all(one.is_over for one in running), "a story waits for an act that is over"


@dataclass(slots=True)
class _Running:
    name: str
    story: AsyncGenerator[Act, None]
    waits_for: Act | None = None
    wrong: Exception | None = None
    is_over: bool = False

    async def go_on(self) -> None:
        try:
            self.waits_for = await anext(self.story)
        except StopAsyncIteration:
            self.is_over = True
        except Exception as error:  # noqa: BLE001 - the other stories go on, and this one is raised at the end
            self.wrong, self.is_over = error, True


async def _go_on(running: Sequence[_Running], act: Act | None) -> None:
    async with asyncio.TaskGroup() as scope:
        for one in running:
            if not one.is_over and one.waits_for == act:
                scope.create_task(one.go_on(), name=one.name)


async def lose_east(loss: Loss) -> None:
    """Nobody closes its connections for it."""
    loss.proxies["east"].refuse()


async def lose_the_others(loss: Loss) -> None:
    """The manager reaches no worker."""
    for name in ("west", "north"):
        loss.proxies[name].refuse()
    for name in loss.proxies:
        await until_reached(loss.manager, name, is_so=False)


async def bring_the_others_back(loss: Loss) -> None:
    """East is the only one that is lost."""
    for name in ("west", "north"):
        await loss.proxies[name].resume()
        await until_reached(loss.manager, name)


async def fill_west(loss: Loss) -> None:
    """It has more Jobs than it is to have, and the manager knows."""
    await loss.manager.annotate_worker("west", {"capacity": "1"})
    await loss.scene.until_jobs_wait(loss.manager.managed_by, "at capacity", {"worker-selector": "name=west"})


async def bring_east_back(loss: Loss) -> None:
    """Whatever becomes of its Jobs now."""
    await loss.proxies["east"].resume()


BEGINNINGS: Mapping[Act, Callable[[Loss], Awaitable[None]]] = {
    Act.LOST: lose_east,
    Act.HELD: lose_the_others,
    Act.MOVED: bring_the_others_back,
    Act.FULL: fill_west,
    Act.BACK: bring_east_back,
}
