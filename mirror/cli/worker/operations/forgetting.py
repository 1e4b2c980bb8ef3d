"""A worker that nobody will bring back: ``mirror worker forget``, and taking that back (D14)."""

from __future__ import annotations

from dataclasses import dataclass

from mirror.cli.worker.operations.draining import remove
from mirror.cli.worker.operations.overview import tally
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.cli.worker.operations.worker_objects import Gone, WorkerObject, annotate, find
from mirror.kube import requests
from mirror.kube.resources import SECRETS
from mirror.model import names
from mirror.workers.gone_record import is_declared_dead, only_takes_back


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What is left of a worker that is not declared dead any more."""

    jobs: int
    """Unfinished ones that are recorded there."""
    is_placeholder: bool
    """Nothing declared it, so that a Secret without a kubeconfig was made, which says so."""


async def declare_gone(home: ManagementCluster, name: str) -> int:
    """Say that nothing runs on a worker any more; returns how many unfinished Jobs are recorded there.

    Where its Secret, or what else declared it, was deleted a Secret without a kubeconfig takes its place: the manager
    reads it there.

    Raises:
        ClusterError: there never was such a worker, it is reachable, Jobs may not be listed, or what registers it may
            not be written; nothing is declared then.
    """
    entry = (await home.inventory()).entry(name)
    if entry.state == "Connected":
        raise ClusterError(f"worker {name} is reachable: use mirror worker drain {name}, which loses nothing")
    counted = await tally(home)  # before it is said: a moment later the manager has moved the first of them
    await _say(home, name, "true", is_known=bool(entry.state))
    return counted.on(name)


async def take_back(home: ManagementCluster, name: str) -> TakenBack | None:
    """Say that a worker is not dead; None: nobody has declared it so.

    The manager may remember it of an object that was removed, so that no word at all would not take it back.

    Raises:
        ClusterError: there is no such worker, Jobs may not be listed, or what registers it may not be written.
    """
    entry = (await home.inventory()).entry(name)
    found = None
    try:
        found = (await find(home, name)).found
    except ClusterError:
        if not is_declared_dead(entry, None):
            raise
    if not is_declared_dead(entry, found):
        return None
    counted = await tally(home)
    is_placeholder = await _say(home, name, "false", is_known=bool(entry.state))
    return TakenBack(counted.on(name), is_placeholder)


async def _say(home: ManagementCluster, name: str, word: str, *, is_known: bool) -> bool:
    """Annotate what declares a worker; returns whether a Secret had to be made for that.

    ``is_known``: the manager has recorded such a worker.
    """
    secret = await home.secret(name)
    if secret is None and is_known and (await home.inventory()).entry(name).declared is None:
        await _register_without_kubeconfig(home, name, word)
        return True
    try:
        worker = await find(home, name)
    except Gone:
        if secret is not None:
            raise
        await _register_without_kubeconfig(home, name, word)
        return True
    await annotate(home, worker, {names.GONE: word})
    if worker.by and word == "true" and secret is not None and only_takes_back(secret):
        # Once what declares it now is deleted it would count again, and take this word back.
        await remove(home, WorkerObject(name, SECRETS, secret))
    return False


async def _register_without_kubeconfig(home: ManagementCluster, name: str, word: str) -> None:
    metadata = {"name": name, "labels": {names.WORKER: "true"}, "annotations": {names.GONE: word}}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    wanted = requests.create(SECRETS, body, namespace=home.namespace)
    await home.site.send(wanted, SECRETS, name=name, namespace=home.namespace)
