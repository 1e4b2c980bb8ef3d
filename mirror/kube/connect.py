"""Making clients: credentials, limits and connections put together. ``app`` makes one, ``workers`` one per worker."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mirror.kube.auth import management_credentials, worker_credentials
from mirror.kube.client import Client, Observer
from mirror.kube.credentials import Credentials
from mirror.kube.kubeconfig import Kubeconfig
from mirror.kube.limits import Limiter
from mirror.kube.permits import WritePermit
from mirror.settings.schema import Limits

_LEAST_BURST_TO_KEEP_OF = 10
"""From this burst on, one request of it is for leases and probes alone: of less it would be too large a part."""

MANAGEMENT = "management"
"""The management cluster's name in metrics and logs."""


async def connect_management(
    path: str,
    *,
    limits: Limits | Limiter,
    observer: Observer,
    context: str = "",
    permit: WritePermit | None = None,
) -> Client:
    """A client for the management cluster. Nothing is sent yet.

    Args:
        path: kubeconfig files as in ``KUBECONFIG``; empty for the service account of our pod.
        limits: its own, or the limiter that it shares with others.
        context: another context than the current one.
        permit: of the Lease that its writes need.

    Raises:
        KubeconfigRefused: there is nothing usable there.
    """
    credentials = await management_credentials(path, context=context)
    return _client(MANAGEMENT, credentials, limits, observer, permit)


async def connect_worker(
    name: str,
    kubeconfig: Kubeconfig,
    *,
    allow: Mapping[str, bool],
    limits: Limits,
    observer: Observer,
    permit: WritePermit | None = None,
) -> Client:
    """A client for a worker whose kubeconfig was checked. Nothing is sent yet.

    Raises:
        KubeconfigRefused: a file that it names does not load.
    """
    credentials = await worker_credentials(kubeconfig, allow)
    return _client(name, credentials, limits, observer, permit)


def limiter_of(limits: Limits) -> Limiter:
    """A limiter as the settings have it; call it in the running loop."""
    kept = 1 if limits.burst >= _LEAST_BURST_TO_KEEP_OF else 0
    return Limiter(limits.qps, limits.burst, asyncio.get_running_loop().time, kept=kept)


def _client(
    name: str, credentials: Credentials, limits: Limits | Limiter, observer: Observer, permit: WritePermit | None
) -> Client:
    limiter = limits if isinstance(limits, Limiter) else limiter_of(limits)
    return Client(name, credentials, limiter, observer, permit=permit)
