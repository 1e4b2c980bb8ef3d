"""``mirror take-over``: its arguments and output. The work: ``worker.operations.taking_over``."""

from __future__ import annotations

from typing import Any

import click

from mirror.cli.user.options import checked_namespace
from mirror.cli.worker.options import where_options


@click.command("take-over")
@click.argument("former", metavar="NAMESPACE", callback=checked_namespace)
@click.option(
    "--same-workers",
    is_flag=True,
    help="Confirm that each worker's name means the same cluster to both managers, where no record says so.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@where_options
def take_over(where: Any, former: str, same_workers: bool, dry_run: bool) -> None:
    """Take over the Jobs of a manager that was in NAMESPACE.

    For an installation that was moved to another namespace (--namespace, where it is now): unfinished Jobs that it had
    placed from NAMESPACE are followed again. The manager there must have stopped, and the workers must be the same
    clusters under the same names; both are checked. Nothing happens to what runs.

    Exit codes: 0 nothing is left, 1 nothing is done, or some Jobs are left, 2 invalid usage.
    """
    from mirror.cli.worker.clusters import run

    if former == where.namespace:
        raise click.UsageError(f"NAMESPACE and --namespace are both {former}: specify with --namespace where it is now")
    run(lambda: _take_over(where, former, same_workers=same_workers, dry_run=dry_run))


async def _take_over(where: Any, former: str, *, same_workers: bool, dry_run: bool) -> None:
    """Mark them, one after the other.

    Raises:
        Failure: some are left.
        ClusterError: the other manager runs, or something may not be read.
    """
    from mirror.cli.user.failures import Failure
    from mirror.cli.user.running import progress
    from mirror.cli.worker import clusters
    from mirror.cli.worker.operations import taking_over
    from mirror.cli.worker.operations.draining import jobs
    from mirror.model.text import clean

    async with clusters.home(where) as home:
        await home.check_namespace()
        with progress(f"taking over the Jobs of namespace {former}"):
            outcome = await taking_over.take_over(home, former, same_workers=same_workers, dry_run=dry_run)
    done = "would be taken over (dry run)" if dry_run else "taken over"
    click.echo(f"✓ {jobs(outcome.taken)} of the manager in namespace {former} {done}")
    for kept in outcome.kept:
        click.echo(f"! left: {clean(kept, longest=1000)}", err=True)
    if outcome.left:
        raise Failure(f"{jobs(outcome.left)} left with namespace {former}; rerun when that is put right")
