"""A worker that gets no more Jobs, is emptied, or goes: ``mirror worker cordon``, ``drain`` and ``remove`` (D15)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from mirror.cli.worker.operations.overview import Tally, tally
from mirror.cli.worker.operations.registration import remove_object
from mirror.cli.worker.operations.roles import KINDS
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster, Site
from mirror.cli.worker.operations.worker_objects import WorkerObject, annotate, find
from mirror.kube import requests
from mirror.kube.errors import NotFound
from mirror.kube.objects import Object
from mirror.kube.resources import NAMESPACES, SECRETS
from mirror.model import names
from mirror.model.drains import WAIT
from mirror.workers.connection import State
from mirror.workers.gone_record import is_declared_dead

LOOK_SECONDS = 1.0
MOST_LOOK_SECONDS = 10.0
"""Each look reads all Jobs: a drain that takes hours does not do that every second."""
RECORDED_WITHIN_SECONDS = 10.0
"""So long it may take until the manager has written down that a worker is declared dead."""

Progress = Callable[[Tally], None]


async def cordon(home: ManagementCluster, name: str) -> bool:
    """Mark a worker so that it gets no new Jobs; False if it was marked already.

    Raises:
        ClusterError: there is no such worker, or what registers it may not be changed.
    """
    worker = await find(home, name)
    if worker.found.annotations.get(names.CORDONED) == "true":
        return False
    await annotate(home, worker, {names.CORDONED: "true"})
    return True


async def uncordon(home: ManagementCluster, name: str) -> bool:
    """Let a worker get new Jobs again, and end its drain; False if nothing was in the way.

    Raises:
        ClusterError: there is no such worker, or what registers it may not be changed.
    """
    worker = await find(home, name)
    marks = [key for key in (names.CORDONED, names.DRAIN) if worker.found.annotations.get(key)]
    if marks:
        await annotate(home, worker, dict.fromkeys(marks))
    return bool(marks)


async def drain(
    home: ManagementCluster, name: str, progress: Progress, *, timeout_seconds: float | None, how: str = WAIT
) -> Tally:
    """No new Jobs, and wait until those that are there have ended, or gone elsewhere.

    Args:
        home: where the manager is.
        name: of the worker.
        progress: called with what is left, after each look.
        how: of ``model.drains``; the manager does it, whoever waits.
        timeout_seconds: how long to wait; None: as long as it takes.

    Returns:
        What is there in the end: nothing, unless there was no more time.

    Raises:
        ClusterError: there is no such worker, what registers it may not be changed, or Jobs may not be listed.
    """
    await annotate(home, await find(home, name), {names.DRAIN: how})
    counted = await tally(home)
    progress(counted)
    # One that was being placed when the mark was set may come a moment later: nothing has to be seen twice.
    pause, quiet = LOOK_SECONDS, 0
    try:
        async with asyncio.timeout(timeout_seconds):
            while quiet < 2:
                await asyncio.sleep(pause)
                counted = await tally(home)
                progress(counted)
                left = counted.on(name)
                quiet = 0 if left else quiet + 1
                pause = min(MOST_LOOK_SECONDS, pause * 1.2) if left else LOOK_SECONDS
    except TimeoutError:
        return counted
    return counted


@dataclass(frozen=True, slots=True)
class Removable:
    """A worker that may go."""

    worker: WorkerObject
    left: str = ""
    """What becomes of unfinished Jobs that are still recorded there, in words; empty: there are none."""


async def check_removable(home: ManagementCluster, name: str, *, is_forced: bool) -> Removable:
    """The worker's object, if the worker may go.

    Raises:
        ClusterError: there is no such worker, or unfinished Jobs are on it and the operator did not force it, or the
            manager has not recorded that it is declared dead: without its Secret they would wait.
    """
    worker = await find(home, name)
    counted = await tally(home)
    if not counted.on(name):
        return Removable(worker)
    on_it = f"{counted.on(name)} unfinished Jobs are on worker {name} ({counted.some_on(name)})"
    entry = (await home.inventory()).entry(name)
    is_dead = is_declared_dead(entry, worker.found) and entry.state != State.CONNECTED
    if not is_forced:
        fix = f"run mirror worker drain {name} first; with --force they wait for a worker of this name"
        if is_dead:
            fix = (
                "it is declared dead, so they start again elsewhere: wait for that, or use --force, and they do so, too"
            )
        raise ClusterError(f"{on_it}: {fix}")
    if not is_dead:
        return Removable(worker, f"{on_it}: they wait for a worker of this name")
    if not worker.by:
        await _wait_until_recorded_as_dead(home, name)
    return Removable(worker, f"{on_it}: they start again elsewhere, since it is declared dead")


async def _wait_until_recorded_as_dead(home: ManagementCluster, name: str) -> None:
    """Until the object that says so may go.

    Raises:
        ClusterError: the manager has not recorded it in time.
    """
    try:
        async with asyncio.timeout(RECORDED_WITHIN_SECONDS):
            while True:
                if (await home.inventory()).entry(name).gone_by:
                    return
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError:
        raise ClusterError(
            f"worker {name} is declared dead, and the manager has not recorded that yet: without the Secret its Jobs "
            "would wait for it; rerun when a manager leads (mirror managers)"
        ) from None


async def keep_empty(home: ManagementCluster, worker: WorkerObject) -> None:
    """No new Jobs for a worker that stays registered, unless a drain keeps them away already.

    Raises:
        ClusterError: what registers it may not be changed.
    """
    if not worker.found.annotations.get(names.DRAIN):
        await annotate(home, worker, {names.DRAIN: WAIT})


def jobs(count: int) -> str:
    """A number of Jobs in words."""
    return f"{count} Job{'' if count == 1 else 's'}"


async def remove(home: ManagementCluster, worker: WorkerObject) -> None:
    """Delete the Secret that registers a worker, if it is still the one that was looked at.

    Raises:
        ClusterError: it may not be deleted, or is somebody else's.
    """
    if worker.by:
        raise ClusterError(f"worker {worker.worker} is declared by {worker.by}, which is not deleted here")
    name = worker.found.metadata.name
    wanted = requests.delete(SECRETS, name, namespace=home.namespace, uid=worker.found.metadata.uid)
    try:
        await home.site.send(wanted, SECRETS, name=name, namespace=home.namespace)
    except NotFound:
        return


async def clean_up(home: ManagementCluster, worker: Site, namespace: str, report: Callable[[str], None]) -> None:
    """Delete on a worker what ``mirror worker add`` created there; its namespace stays, as others may use it.

    Raises:
        ClusterError: something may not be listed or deleted.
    """
    is_home = await worker.uid() == await home.site.uid()
    for kind in reversed(list(KINDS.values())):
        # Where the manager itself lives, the account is its own.
        if kind is NAMESPACES or (is_home and kind.kind == "ServiceAccount"):
            continue
        found: list[Object] = [one async for one in worker.each(kind, labels=f"{names.WORKER_RIGHTS}={namespace}")]
        for one in found:
            await remove_object(worker, one, kind.kind)
            meta = one.metadata
            report(f"{kind.kind.lower()} {f'{meta.namespace}/' if meta.namespace else ''}{meta.name} deleted")
