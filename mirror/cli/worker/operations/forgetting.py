"""A worker that nobody will bring back: ``mirror worker forget`` (D14)."""

from __future__ import annotations

from mirror.cli.worker.operations.overview import tally
from mirror.cli.worker.operations.sites import ClusterError, ManagementCluster
from mirror.cli.worker.operations.worker_objects import Gone, annotate, find
from mirror.kube import requests
from mirror.kube.resources import SECRETS
from mirror.model import names


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
    secret = await home.secret(name)
    counted = await tally(home)  # before it is said: a moment later the manager has moved the first of them
    if secret is None and entry.declared is None and entry.state:
        await _register_without_kubeconfig(home, name)
        return counted.on(name)
    try:
        worker = await find(home, name)
    except Gone:
        if secret is not None:
            raise
        await _register_without_kubeconfig(home, name)
    else:
        await annotate(home, worker, {names.GONE: "true"})
    return counted.on(name)


async def _register_without_kubeconfig(home: ManagementCluster, name: str) -> None:
    metadata = {"name": name, "labels": {names.WORKER: "true"}, "annotations": {names.GONE: "true"}}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    wanted = requests.create(SECRETS, body, namespace=home.namespace)
    await home.site.send(wanted, SECRETS, name=name, namespace=home.namespace)
