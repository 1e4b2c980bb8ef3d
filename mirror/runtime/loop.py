"""The consumer loop: take a key, work on it, decide about trying again. The only place that does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Protocol, TypeVar

from mirror.kube.errors import (
    ApiError,
    BadAnswer,
    Conflict,
    KubeError,
    OutcomeUnknown,
    ServerFailure,
    Unreachable,
    describe,
)
from mirror.runtime.queue import Closed, Taken, WorkQueue
from mirror.telemetry.logs import Log

K = TypeVar("K", bound=Hashable)

OFTEN_EVERYBODYS = (Unreachable, OutcomeUnknown, ServerFailure, BadAnswer)
"""Errors that thousands of keys may meet at once."""
TELL_OUTAGE_SECONDS = 1.0
_OF_STORAGE = ("etcdserver: ", "rpc error: ")

IsOutage = Callable[[KubeError], bool]
"""Whether an error speaks of a server or the way to it, not of the key: others meet the same, and it ends for all at
once. Such keys are tried again as soon as one of them goes well, which one of them tries to find out every second."""
Work = Callable[[K], Awaitable[float | None]]
"""Works on a key; returns seconds after which it wants to look again, or None."""


def is_unwell(error: KubeError) -> bool:
    """For a queue of many servers: an outage is any answer, or none, that is not about what was asked.

    An internal error is: a webhook that fails for some objects goes on failing for them, while others go well. What an
    API server says when its storage is away is told apart by its words.
    """
    if not isinstance(error, ServerFailure):
        return isinstance(error, Unreachable | OutcomeUnknown | BadAnswer)
    return error.reason != "InternalError" or any(words in error.message for words in _OF_STORAGE)


def is_unreachable(error: KubeError) -> bool:
    """For a queue whose keys have upstream's backoff: nobody who knows Kubernetes was reached at all."""
    is_proxys = isinstance(error, ServerFailure) and error.code in (503, 504) and not error.reason
    return is_proxys or isinstance(error, Unreachable)


class CacheBehind(KubeError):
    """What we know is older than what we wrote: the watch will bring the rest, and the work is tried again."""


class Observer(Protocol):
    """What the loop reports."""

    def on_taken(self, waited_seconds: float) -> None: ...

    def on_worked(self, seconds: float) -> None: ...

    def on_retry(self) -> None: ...


async def consume(
    queue: WorkQueue[K], work: Work[K], *, log: Log, observer: Observer, is_outage: IsOutage = is_unwell
) -> None:
    """Work on keys until the queue is closed, then wait for those in work."""
    loop = asyncio.get_running_loop()

    told_outage_at = float("-inf")

    def is_news(key: K, error: KubeError) -> bool:
        nonlocal told_outage_at
        if isinstance(error, Conflict | CacheBehind):
            return queue.failures(key) >= 5  # it only says that our cache was behind; the watch brings what it lacked
        if isinstance(error, OFTEN_EVERYBODYS):
            if loop.time() - told_outage_at < TELL_OUTAGE_SECONDS:
                return False
            told_outage_at = loop.time()
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
            delay = queue.retry(key, at_least_seconds=min(wait or 0.0, 60.0), is_outage=is_outage(error))
            observer.on_retry()
            level = log.warning if is_news(key, error) else log.debug
            level("will try again", key=key, error=describe(error), in_seconds=round(delay, 3))
        except Exception as error:
            delay = queue.retry(key, at_least_seconds=1.0)
            observer.on_retry()
            log.error("unexpected error", key=key, error=error, in_seconds=round(delay, 3), exc_info=error)
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
