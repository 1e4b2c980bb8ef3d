"""Where all controllers are started: each runs by its name until it is cancelled."""

from __future__ import annotations

from mirror.embedded.controllers import namespaces, scheduler, serviceaccounts
from mirror.embedded.controllers.cronjobs import controller as cronjobs
from mirror.embedded.controllers.garbage import controller as garbage
from mirror.embedded.controllers.kubelet import running as kubelet
from mirror.embedded.controllers.kubelet.running import Containers
from mirror.embedded.controllers.nodes import lifecycle as nodes
from mirror.embedded.controllers.settings import Settings
from mirror.kube.client import Client
from mirror.runtime.clock import Clock
from mirror.telemetry.logs import get_log

NAMES = ("gc", "namespace", "serviceaccount", "cronjob", "scheduler", "kubelet", "node")
"""Garbage collection, deletion of namespaces, default service accounts, CronJobs, scheduler, kubelet, lifecycle of
nodes; TTL of Jobs is the Job controller's."""


async def run(
    name: str,
    client: Client,
    *,
    clock: Clock,
    containers: Containers | None = None,
    settings: Settings | None = None,
) -> None:
    """Run one controller until it is cancelled.

    Args:
        name: one of ``NAMES``.
        client: its own client of the API server; stays the caller's.
        clock: whose time it keeps.
        containers: what the kubelet does with them.
        settings: how it behaves.

    Raises:
        ValueError: there is no such controller.
        OSError: the kubelet's folder cannot be made.
    """
    settings = settings or Settings()
    log = get_log(f"controllers.{name}", cluster=client.name)
    match name:
        case "gc":
            await garbage.run(client, clock=clock, log=log, settings=settings)
        case "namespace":
            await namespaces.run(client, clock=clock, log=log)
        case "serviceaccount":
            await serviceaccounts.run(client, clock=clock, log=log)
        case "cronjob":
            await cronjobs.run(client, clock=clock, log=log)
        case "scheduler":
            await scheduler.run(client, clock=clock, log=log, settings=settings)
        case "node":
            await nodes.run(client, clock=clock, log=log, settings=settings)
        case "kubelet":
            own = containers or Containers()
            await kubelet.run(client, clock=clock, log=log, settings=settings, containers=own)
        case _:
            raise ValueError(f"there is no controller {name!r}; there are {', '.join(NAMES)}")
