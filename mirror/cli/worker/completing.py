"""What a shell may offer after TAB for a worker: quick, or silent."""

from __future__ import annotations

import asyncio
import contextlib

import click

from mirror.cli.user.completing import PATIENCE_SECONDS
from mirror.cli.user.kubeconfig import NoKubeconfig
from mirror.cli.worker import clusters
from mirror.cli.worker.clusters import Where
from mirror.workers.sites import ClusterError


def worker_names(ctx: click.Context, incomplete: str) -> list[str]:
    """Workers that begin so."""
    keys = ("kubeconfig", "management_kubeconfig", "management_context", "namespace")
    where = Where(**{key: ctx.params[key] for key in keys if ctx.params.get(key)})

    async def ask() -> list[str]:
        async with asyncio.timeout(PATIENCE_SECONDS), clusters.home(where) as home:
            return [secret.metadata.name for secret in await home.worker_secrets()]

    with contextlib.suppress(ClusterError, NoKubeconfig, TimeoutError, OSError):
        return [name for name in asyncio.run(ask()) if name.startswith(incomplete)]
    return []
