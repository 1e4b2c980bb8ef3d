"""``mirror worker cordon``, ``uncordon``, ``drain`` and ``remove``: their output. The work: ``operations.draining``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import click

from mirror.cli.user.failures import Failure
from mirror.cli.user.running import progress
from mirror.cli.worker import clusters
from mirror.cli.worker.arguments import allowed
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations import draining, finished_mirrors
from mirror.cli.worker.operations.draining import Progress, jobs
from mirror.cli.worker.operations.finished_mirrors import Outcome
from mirror.cli.worker.operations.overview import Tally
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.model.text import clean


async def cordon(where: Where, name: str) -> None:
    """No new Jobs."""
    async with clusters.home(where) as home:
        is_new = await draining.cordon(home, name)
    click.echo(f"✓ worker {name} is cordoned" if is_new else f"✓ worker {name} was cordoned already")


async def uncordon(where: Where, name: str) -> None:
    """New Jobs again."""
    async with clusters.home(where) as home:
        is_new = await draining.uncordon(home, name)
    click.echo(f"✓ worker {name} is schedulable" if is_new else f"✓ worker {name} was neither cordoned nor drained")


async def drain(
    where: Where, name: str, *, timeout_seconds: float | None, allow: tuple[str, ...] = (), origin: str = ""
) -> None:
    """No new Jobs, and wait for those that are there; then delete their finished mirrors.

    Raises:
        Failure: some are left.
    """
    opted_in = allowed(allow)
    async with clusters.home(where) as home:
        with _told(name) as progressed:
            counted = await draining.drain(home, name, progressed, timeout_seconds=timeout_seconds)
        if left := counted.on(name):
            raise Failure(f"timed out: {jobs(left)} still running ({counted.some_on(name)}); rerun to keep waiting")
        await _delete_finished(home, name, opted_in, origin)
    click.echo(f"✓ worker {name} is empty: mirror worker remove {name}")


async def remove(where: Where, name: str, *, is_forced: bool, worker_context: str, origin: str = "") -> None:
    """Its Secret goes and, if wanted, finished mirrors and what was created there."""
    async with contextlib.AsyncExitStack() as stack:
        home = await stack.enter_async_context(clusters.home(where))
        worker = await stack.enter_async_context(clusters.worker(where, worker_context)) if worker_context else None
        secret = await draining.check_removable(home, name, is_forced=is_forced)
        with progress(f"removing worker {name}"):
            if worker is not None:
                # First: what fails here can be repeated as long as the Secret is there.
                _say(await finished_mirrors.delete_finished(home, worker, name, origin=origin))
            await draining.remove(home, secret)
            click.echo(f"✓ worker {name} is unregistered")
            if worker is not None:
                await draining.clean_up(home, worker, where.namespace, lambda step: click.echo(f"✓ {clean(step)}"))


async def _delete_finished(home: ManagementCluster, name: str, allow: dict[str, bool], origin: str) -> None:
    """Those of a drained worker, with the account that the manager has there.

    A worker that is lost can be drained, too: what is left there is said, and is no failure.
    """
    try:
        secret = await home.worker_secret(name)
        async with finished_mirrors.registered_site(secret, allow) as worker:
            with progress(f"deleting finished mirrors on worker {name}"):
                outcome = await finished_mirrors.delete_finished(home, worker, name, origin=origin)
    except ClusterError as trouble:
        click.echo(f"! finished mirrors were not deleted: {clean(str(trouble), longest=1000)}", err=True)
        return
    _say(outcome)


def _say(outcome: Outcome) -> None:
    if outcome.deleted:
        click.echo(f"✓ {_mirrors(outcome.deleted)} deleted")
    for reason, count in sorted(outcome.kept.items()):
        click.echo(f"! {_mirrors(count)} kept: {clean(reason)}", err=True)


def _mirrors(count: int) -> str:
    return f"{count} finished mirror{'' if count == 1 else 's'}"


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
    return f"{jobs(counted.on(name))} still running" + (f" ({clean(some)})" if some else "")
