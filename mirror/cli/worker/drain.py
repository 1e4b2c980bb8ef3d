"""``mirror worker cordon``, ``uncordon``, ``drain`` and ``remove``: their output. The work: ``operations.draining``."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from mirror.cli.user.failures import Failure
from mirror.cli.user.running import progress
from mirror.cli.worker import clusters
from mirror.cli.worker.arguments import allowed
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations import draining, finished_mirrors
from mirror.cli.worker.operations.draining import Progress, jobs
from mirror.cli.worker.operations.finished_mirrors import Outcome
from mirror.cli.worker.operations.overview import MOST_NAMED, Tally
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.cli.worker.operations.worker_objects import WorkerObject, find
from mirror.model.drains import WAIT
from mirror.model.text import clean

MOST_LISTED = 50
"""Of mirrors that are left, each with its reason."""


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
    where: Where,
    name: str,
    *,
    timeout_seconds: float | None,
    how: str = WAIT,
    allow: tuple[str, ...] = (),
    origin: str = "",
) -> None:
    """No new Jobs, and wait until those that are there have ended, or gone elsewhere; then delete their mirrors.

    Raises:
        Failure: Jobs or mirrors are left there, or may be, since nobody could look.
    """
    opted_in = allowed(allow)
    async with clusters.home(where) as home:
        with _told(name) as progressed:
            counted = await draining.drain(home, name, progressed, how=how, timeout_seconds=timeout_seconds)
        if left := counted.on(name):
            raise Failure(f"timed out: {jobs(left)} still running ({counted.some_on(name)}); rerun to keep waiting")
        worker = await find(home, name)
        then = worker.unregistering if worker.by else f"mirror worker remove {name}"
        if not await finished_mirrors.may_have_any(home, name):
            click.echo(f"✓ worker {name} has no Jobs, and the manager has never been connected to it: {then}")
            return
        with progress(f"deleting mirrors on worker {name}"):
            left_behind = await _delete_mirrors(home, worker, opted_in, origin)
    if left_behind:
        raise Failure(f"{left_behind}; rerun, or {_leaving_them(worker)}")
    click.echo(f"✓ worker {name} is empty: {then}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """The options of ``mirror worker remove``."""

    is_forced: bool = False
    worker_context: str = ""
    """Whose permissions are used on the worker; empty: the manager's, by the Secret."""
    allow: tuple[str, ...] = ()
    origin: str = ""


async def remove(where: Where, name: str, how: Removal) -> None:
    """Its mirrors go, then its Secret and, if wanted, what was created there.

    What declares a worker is somebody else's, so that it is left: the worker gets no new Jobs from then on.

    Raises:
        ClusterError: something is in the way, or mirrors would be left there without ``--force``; the Secret stays.
        Failure: something else declares it: it stays registered until that goes.
    """
    opted_in = allowed(how.allow)
    async with contextlib.AsyncExitStack() as stack:
        home = await stack.enter_async_context(clusters.home(where))
        context = how.worker_context
        there = await stack.enter_async_context(clusters.worker(where, context)) if context else None
        removable = await draining.check_removable(home, name, is_forced=how.is_forced)
        worker = removable.worker
        if worker.by:
            _check_declared(worker, how)
            await draining.keep_empty(home, worker)
        with progress(f"removing worker {name}"):
            # First: what fails here can be repeated as long as the Secret is there.
            if there is not None:
                left_behind = _say(name, await finished_mirrors.delete_finished(home, there, name, origin=how.origin))
            elif await finished_mirrors.may_have_any(home, name):
                left_behind = await _delete_mirrors(home, worker, opted_in, how.origin)
            else:
                left_behind = ""
            if left_behind and not how.is_forced:
                raise ClusterError(f"{left_behind}; it stays registered: rerun, or with --force they stay there")
            if not worker.by:
                await draining.remove(home, worker)
                click.echo(f"✓ worker {name} is unregistered")
            if there is not None:
                await draining.clean_up(home, there, where.namespace, lambda step: click.echo(f"✓ {clean(step)}"))
    for kept in filter(None, (left_behind, removable.left)):
        click.echo(f"! {clean(kept, longest=1000)}", err=True)  # as --force has it
    if worker.by:
        raise Failure(f"worker {name} gets no new Jobs, and stays registered: {worker.unregistering}")


def _check_declared(worker: WorkerObject, how: Removal) -> None:
    """Whether what the operator wants can be done to a worker that something else declares.

    Raises:
        ClusterError: it cannot; nothing has been changed.
    """
    if how.worker_context:
        raise ClusterError(
            f"worker {worker.worker} is declared by {worker.by}: --clean-up deletes what mirror worker add created, "
            "which was nothing for this worker; rerun without it"
        )


async def _delete_mirrors(home: ManagementCluster, worker: WorkerObject, allow: dict[str, bool], origin: str) -> str:
    """Delete the mirrors of a drained worker, with the account that the manager has there.

    Returns:
        What is left there, in words; empty if nothing is. Of a worker that cannot be asked, that is what may be there.
    """
    name = worker.worker
    try:
        async with finished_mirrors.registered_site(home, worker, allow) as site:
            outcome = await finished_mirrors.delete_finished(home, site, name, origin=origin)
    except ClusterError as trouble:
        text = f"mirrors on worker {name} were not deleted: {clean(str(trouble), longest=1000)}"
        ended = await finished_mirrors.ended_on(home, name)
        return f"{text}; there may be those of {_some(ended) if ended else 'Jobs that are deleted'}"
    return _say(name, outcome)


def _leaving_them(worker: WorkerObject) -> str:
    """What ends the registration although mirrors are left."""
    if worker.by:
        return f"leave them there: {worker.unregistering}"
    return f"mirror worker remove {worker.worker} --force leaves them there"


def _say(name: str, outcome: Outcome) -> str:
    """Say what was deleted and, one by one, what was not; returns the latter in words."""
    if outcome.deleted:
        click.echo(f"✓ {_mirrors(outcome.deleted)} deleted")
    for kept in outcome.kept[:MOST_LISTED]:
        click.echo(f"! not deleted: {clean(str(kept), longest=1000)}", err=True)
    if not outcome.kept:
        return ""
    return f"{_mirrors(len(outcome.kept))} left on worker {name}: {_some([kept.mirror for kept in outcome.kept])}"


def _mirrors(count: int) -> str:
    return f"{count} mirror{'' if count == 1 else 's'}"


def _some(named: Sequence[str]) -> str:
    return clean(", ".join(named[:MOST_NAMED]) + (", …" if len(named) > MOST_NAMED else ""), longest=1000)


@contextlib.contextmanager
def _told(name: str) -> Iterator[Progress]:
    """What is left: a bar for people, a line each time for logs."""
    if sys.stderr.isatty():
        from mirror.cli.worker.drain_bar import bar

        with bar(name, left_text) as on_look:
            yield on_look
        return
    before: tuple[int, int] | None = None

    def on_change(counted: Tally) -> None:
        nonlocal before
        if (now := (counted.on(name), counted.leaving_on(name))) != before:
            before = now
            click.echo(left_text(counted, name), err=True)

    yield on_change


def left_text(counted: Tally, name: str) -> str:
    """What is left on a worker, for people."""
    some = counted.some_on(name)
    leaving = f", {counted.leaving_on(name)} of them stopped and leaving" if counted.leaving_on(name) else ""
    return f"{jobs(counted.on(name))} still running{leaving}" + (f" ({clean(some)})" if some else "")
