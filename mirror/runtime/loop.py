"""The consumer loop: take a key, work on it, decide about trying again. The only place that does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, assert_never

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
LOG_OUTAGE_SECONDS = 1.0
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


@dataclass(frozen=True, slots=True)
class Done:
    """The work on a key went well."""

    again_after_seconds: float | None


@dataclass(frozen=True, slots=True)
class Failed:
    """It met an error of a cluster, or of the way to it."""

    error: KubeError


@dataclass(frozen=True, slots=True)
class Broken:
    """A bug: it must not end everybody's work."""

    error: Exception


Outcome = Done | Failed | Broken


async def consume(
    queue: WorkQueue[K], work: Work[K], *, log: Log, observer: Observer, is_outage: IsOutage = is_unwell
) -> None:
    """Work on keys until the queue is closed, then wait for those in work."""
    consumer = _Consumer(queue, work, log, observer, is_outage)
    async with asyncio.TaskGroup() as scope:
        while True:
            try:
                taken = await queue.take()
            except Closed:
                return
            scope.create_task(consumer.work_on_some(taken), name="work on keys")


class _Consumer(Generic[K]):
    """What becomes of a key: it is taken, worked on, and by the outcome forgotten, delayed or tried again."""

    def __init__(self, queue: WorkQueue[K], work: Work[K], log: Log, observer: Observer, is_outage: IsOutage) -> None:
        self._queue = queue
        self._work = work
        self._log = log
        self._observer = observer
        self._is_outage = is_outage
        self._loop = asyncio.get_running_loop()
        self._outage_logged_at = float("-inf")

    async def work_on_some(self, first: Taken[K]) -> None:
        """A key, and those after it for which there is room by then; a task for each would cost as much as the rest."""
        taken: Taken[K] | None = first
        while taken is not None:
            key, started = taken.key, self._loop.time()
            self._observer.on_taken(taken.waited_seconds)
            try:
                self._settle(key, await self._attempt(key))
            except BaseException:
                self._queue.done(key)
                raise
            taken = self._queue.done_and_take(key)
            self._observer.on_worked(self._loop.time() - started)
            await asyncio.sleep(0)  # work that awaits nothing must not keep the loop to itself

    async def _attempt(self, key: K) -> Outcome:
        try:
            return Done(await self._work(key))
        except KubeError as error:
            return Failed(error)
        except Exception as error:  # noqa: BLE001 - see ``Broken``
            return Broken(error)

    def _settle(self, key: K, outcome: Outcome) -> None:
        """Decide whether, and when, a key is worked on again."""
        match outcome:
            case Done(again):
                self._queue.forget(key)
                if again is not None:
                    self._queue.add_after(key, again)
            case Failed(error):
                wait = error.retry_after_seconds if isinstance(error, ApiError) else None
                at_least = min(wait or 0.0, 60.0)
                delay = self._queue.retry(key, at_least_seconds=at_least, is_outage=self._is_outage(error))
                self._observer.on_retry()
                level = self._log.warning if self._is_news(key, error) else self._log.debug
                level("will try again", key=key, error=describe(error), in_seconds=round(delay, 3))
            case Broken(bug):
                delay = self._queue.retry(key, at_least_seconds=1.0)
                self._observer.on_retry()
                self._log.error("unexpected error", key=key, error=bug, in_seconds=round(delay, 3), exc_info=bug)
            case _:
                assert_never(outcome)

    def _is_news(self, key: K, error: KubeError) -> bool:
        """Whether people should see it: thousands of keys may meet one outage."""
        if isinstance(error, Conflict | CacheBehind):
            return self._queue.failures(key) >= 5  # our cache was behind; the watch brings what it lacked
        if isinstance(error, OFTEN_EVERYBODYS):
            if self._loop.time() - self._outage_logged_at < LOG_OUTAGE_SECONDS:
                return False
            self._outage_logged_at = self._loop.time()
        return True
