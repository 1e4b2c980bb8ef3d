"""The consumer loop: take a key, work on it, decide about trying again. The only place that does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Protocol, TypeVar

from mirror.kube.errors import ApiError, BadAnswer, Conflict, KubeError, OutcomeUnknown, ServerFailure, Unreachable
from mirror.runtime.queue import Closed, Taken, WorkQueue
from mirror.telemetry.logs import Log

K = TypeVar("K", bound=Hashable)

OUTAGE = (Unreachable, OutcomeUnknown, ServerFailure, BadAnswer)
"""Errors that speak of a server or the way to it, not of the key: others meet the same, and it ends for all at once."""
TELL_OUTAGE_SECONDS = 1.0

Work = Callable[[K], Awaitable[float | None]]
"""Works on a key; returns seconds after which it wants to look again, or None."""


class CacheBehind(KubeError):
    """What we know is older than what we wrote: the watch will bring the rest, and the work is tried again."""


class Observer(Protocol):
    """What the loop reports."""

    def on_taken(self, waited_seconds: float) -> None: ...

    def on_worked(self, seconds: float) -> None: ...

    def on_retry(self) -> None: ...


async def consume(queue: WorkQueue[K], work: Work[K], *, log: Log, observer: Observer) -> None:
    """Work on keys until the queue is closed, then wait for those in work."""
    loop = asyncio.get_running_loop()

    told_outage_at = float("-inf")

    def is_news(key: K, error: KubeError) -> bool:
        nonlocal told_outage_at
        if isinstance(error, Conflict | CacheBehind):
            return queue.failures(key) >= 5  # it only says that our cache was behind; the watch brings what it lacked
        if isinstance(error, OUTAGE) and loop.time() - told_outage_at < TELL_OUTAGE_SECONDS:
            return False  # thousands of keys may meet it
        told_outage_at = loop.time() if isinstance(error, OUTAGE) else told_outage_at
        return True

    async def one_after_the_other(first: Taken[K]) -> None:
        """A key, and those after it for which there is room by then; a task for each would cost as much as the rest."""
        taken: Taken[K] | None = first
        while taken is not None:
            key, started = taken.key, loop.time()
            observer.on_taken(taken.waited_seconds)
            try:
                await _work_on(key)
            except BaseException:
                queue.done(key)
                raise
            taken = queue.done_and_take(key)
            observer.on_worked(loop.time() - started)
            await asyncio.sleep(0)  # work that awaits nothing must not keep the loop to itself

    async def _work_on(key: K) -> None:
        try:
            again = await work(key)
        except KubeError as error:
            wait = error.retry_after_seconds if isinstance(error, ApiError) else None
            delay = queue.retry(key, at_least_seconds=min(wait or 0.0, 60.0), is_outage=isinstance(error, OUTAGE))
            observer.on_retry()
            level = log.warning if is_news(key, error) else log.debug
            level("will try again", key=key, error=f"{type(error).__name__}: {error}", in_seconds=round(delay, 3))
        except Exception as error:  # noqa: BLE001 - a bug in one key's work must not end everybody's
            delay = queue.retry(key, at_least_seconds=1.0)
            observer.on_retry()
            log.error("unexpected error", key=key, error=error, in_seconds=round(delay, 3), traceback=True)
        else:
            queue.forget(key)
            if again is not None:
                queue.add_after(key, again)

    async with asyncio.TaskGroup() as scope:
        while True:
            try:
                taken = await queue.take()
            except Closed:
                return
            scope.create_task(one_after_the_other(taken), name="work on keys")
