"""What ``mirror demo`` and ``mirror dev`` have in common: the manager beside embedded clusters, logs out of the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from mirror import app
from mirror.model.endings import CannotStart
from mirror.settings.schema import Logging, Settings
from mirror.telemetry.logs import set_up_logging
from mirror.telemetry.metrics import Metrics

T = TypeVar("T")

READY_SECONDS = 20.0
_LOOK_SECONDS = 0.02


@contextmanager
def logs_into(path: Path) -> Iterator[Path]:
    """Write our log lines to this file, and none to the terminal."""
    with path.open("a") as file:
        set_up_logging(Logging(), file)
        try:
            yield path
        finally:
            set_up_logging(Logging(level="error"))


@asynccontextmanager
async def manager(
    settings: Settings,
    workers: int,
    *,
    metrics: Metrics,
    stop: asyncio.Event,
    on_page: Callable[[int], None] = lambda _: None,
) -> AsyncIterator[None]:
    """Run ``mirror.app`` while the block runs, which begins once it leads and all workers are ready.

    Args:
        settings: its settings.
        workers: how many there are.
        metrics: what it counts.
        stop: ends it, and the wait for it; set at the end of the block.
        on_page: gets the port of the page, if the settings want one.

    Raises:
        MustEnd: it could not go on, or was not ready in time (in a group, as of any task).
    """
    async with asyncio.TaskGroup() as scope:
        scope.create_task(app.run(settings, metrics=metrics, stop=stop, on_page=on_page), name="manager")
        try:
            try:
                async with asyncio.timeout(READY_SECONDS):
                    while not (_is_ready(metrics, workers) or stop.is_set()):  # noqa: ASYNC110 - gauges tell nobody
                        await asyncio.sleep(_LOOK_SECONDS)
            except TimeoutError:
                raise CannotStart(f"the manager was not ready within {READY_SECONDS:g} s; see its log") from None
            yield
        finally:
            stop.set()


async def unless_stopped(work: Awaitable[T], stop: asyncio.Event) -> T | None:
    """The result of the work; None if a signal stopped it first."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        if not working.done():
            working.cancel()
        await asyncio.wait({working, stopping})
    return None if working.cancelled() else working.result()


def _is_ready(metrics: Metrics, workers: int) -> bool:
    families = metrics.registry.collect()
    up = sum(sample.value for one in families if one.name == "jobmirror_worker_up" for sample in one.samples)
    return up >= workers and bool(metrics.registry.get_sample_value("jobmirror_leader"))
