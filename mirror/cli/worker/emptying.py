"""``mirror worker cordon``, ``uncordon``, ``drain``, ``remove``: what they say. What they do is ``workers.leaving``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import click

from mirror.cli.user.failures import Failure
from mirror.cli.user.running import progress
from mirror.cli.worker import clusters
from mirror.cli.worker.clusters import Where
from mirror.model.text import clean
from mirror.workers import leaving
from mirror.workers.leaving import Progress
from mirror.workers.overview import Tally


async def cordon(where: Where, name: str) -> None:
    """No new Jobs."""
    async with clusters.home(where) as home:
        is_new = await leaving.cordon(home, name)
    click.echo(f"✓ worker {name} is cordoned" if is_new else f"✓ worker {name} was cordoned already")


async def uncordon(where: Where, name: str) -> None:
    """New Jobs again."""
    async with clusters.home(where) as home:
        is_new = await leaving.uncordon(home, name)
    click.echo(f"✓ worker {name} takes Jobs again" if is_new else f"✓ worker {name} was neither cordoned nor drained")


async def drain(where: Where, name: str, *, timeout_seconds: float | None) -> None:
    """No new Jobs, and wait for those that are there.

    Raises:
        Failure: some are left.
    """
    async with clusters.home(where) as home:
        with _told(name) as progressed:
            counted = await leaving.drain(home, name, progressed, timeout_seconds=timeout_seconds)
    if left := counted.on(name):
        raise Failure(
            f"worker {name} gets no new Jobs, and {left} unfinished are still there: {counted.some_on(name)}; "
            f"say it again to go on waiting"
        )
    click.echo(f"✓ worker {name} is empty: mirror worker remove {name}")


async def remove(where: Where, name: str, *, is_forced: bool, worker_context: str) -> None:
    """Its Secret goes and, if wanted, what was made there."""
    async with contextlib.AsyncExitStack() as stack:
        home = await stack.enter_async_context(clusters.home(where))
        worker = await stack.enter_async_context(clusters.worker(where, worker_context)) if worker_context else None
        if worker is not None:
            await leaving.check_clean_up(home, worker, name)
        with progress(f"removing worker {name}"):
            await leaving.remove(home, name, is_forced=is_forced)
            click.echo(f"✓ worker {name} is unregistered")
            if worker is not None:
                await leaving.clean_up(home, worker, where.namespace, lambda step: click.echo(f"✓ {clean(step)}"))


@contextlib.contextmanager
def _told(name: str) -> Iterator[Progress]:
    """What is left: a line that changes for people, a line each time for logs."""
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status(f"draining worker {name}") as status:
            yield lambda counted: status.update(f"draining worker {name}: {_left(counted, name)}")
        return
    before: int | None = None

    def on_change(counted: Tally) -> None:
        nonlocal before
        if counted.on(name) != before:
            before = counted.on(name)
            click.echo(_left(counted, name), err=True)

    yield on_change


def _left(counted: Tally, name: str) -> str:
    some = counted.some_on(name)
    return f"{counted.on(name)} unfinished Jobs are left" + (f" ({clean(some)})" if some else "")
