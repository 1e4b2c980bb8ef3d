"""``mirror worker forget``: its output. The work: ``operations.forgetting``."""

from __future__ import annotations

import click

from mirror.cli.worker import clusters
from mirror.cli.worker.clusters import Where
from mirror.cli.worker.operations import forgetting
from mirror.cli.worker.operations.draining import jobs


def run_forget(where: Where, name: str, *, is_undone: bool = False) -> None:
    """See ``forget`` and ``undo``; ends the process with the command's exit code."""
    clusters.run(lambda: undo(where, name) if is_undone else forget(where, name))


async def forget(where: Where, name: str) -> None:
    """A person's word that nothing runs there any more.

    Raises:
        ClusterError: it is reachable, or there is no such worker.
    """
    async with clusters.home(where) as home:
        count = await forgetting.declare_gone(home, name)
    click.echo(f"✓ worker {name} is declared dead: {jobs(count)} recorded there will start again elsewhere")


async def undo(where: Where, name: str) -> None:
    """That word is taken back.

    Raises:
        ClusterError: there is no such worker, or what registers it may not be written.
    """
    async with clusters.home(where) as home:
        taken = await forgetting.take_back(home, name)
    if taken is None:
        click.echo(f"✓ worker {name} was not declared dead")
        return
    wait = "wait" if taken.jobs != 1 else "waits"
    click.echo(f"✓ worker {name} is not declared dead any more: {jobs(taken.jobs)} recorded there {wait} for it")
    if taken.is_placeholder:
        click.echo(f"  its new Secret has no kubeconfig: mirror worker add {name} --context CONTEXT writes it;")
        click.echo("  if something else declares the worker, that counts, and the Secret may be deleted")
