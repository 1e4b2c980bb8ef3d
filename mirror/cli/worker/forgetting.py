"""``mirror worker forget``: its output. The work: ``operations.forgetting``."""

from __future__ import annotations

import click

from mirror.cli.worker import clusters
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations import forgetting
from mirror.cli.worker.operations.draining import jobs


def run_forget(where: Where, name: str) -> None:
    """See ``forget``; ends the process with the command's exit code."""
    clusters.run(lambda: forget(where, name))


async def forget(where: Where, name: str) -> None:
    """A person's word that nothing runs there any more.

    Raises:
        ClusterError: it is reachable, or there is no such worker.
    """
    async with clusters.home(where) as home:
        count = await forgetting.declare_gone(home, name)
    click.echo(f"✓ worker {name} is declared dead: {jobs(count)} recorded there will start again elsewhere")
