"""Large Jobs are compared beside the loop, one after the other (D29)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from mirror.access import comparing
from mirror.access.answers import StatusError
from mirror.access.comparing import Comparing
from mirror.kinds.base import BadDraft
from mirror.kinds.batch_job import differences


async def test_what_is_large_goes_to_a_thread_and_what_is_small_does_not() -> None:
    """The loop goes on meanwhile."""
    comparing_, here = Comparing(), threading.get_ident()
    assert await comparing_.run(threading.get_ident, comparing.SMALL_BYTES) == here
    assert await comparing_.run(threading.get_ident, comparing.SMALL_BYTES + 1) != here


async def test_few_wait_and_what_was_given_up_counts_until_it_has_ended() -> None:
    """A thread cannot be stopped: who asks and leaves, again and again, must not have any number of them run."""
    work, end = Comparing(), threading.Event()
    waiting = [asyncio.create_task(work.run(end.wait, 10**6)) for _ in range(comparing.MOST_WAITING)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    with pytest.raises(StatusError, match="too many large Jobs"):
        await work.run(lambda: None, 10**6)
    end.set()
    async with asyncio.timeout(60):
        while True:
            try:
                await work.run(lambda: None, 10**6)
                break
            except StatusError:
                await asyncio.sleep(0)


def test_a_draft_of_thousands_of_containers_is_refused_before_it_is_decoded() -> None:
    """Comparing takes some ten microseconds for each value, and no API server has looked at it."""
    containers = b",".join([b"{}"] * 480_000)
    body = b'{"apiVersion":"batch/v1","kind":"Job","metadata":{},"spec":{"template":{"spec":{"containers":[%s]}}}}'
    with pytest.raises(BadDraft, match="more than 20000 values"):
        differences.draft(body % containers)
