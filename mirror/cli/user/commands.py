"""The commands for users as click sees them: arguments, options, help. What each does is in the module of its name.

Those modules are imported when a command runs: help and other commands need not wait for an HTTP client.
"""

from __future__ import annotations

import click

from mirror.cli.user.completion import job_names
from mirror.cli.user.options import DURATION, Where, job_argument, output_option, where_options
from mirror.cli.user.printing import Format
from mirror.cli.user.running import run


@click.command()
@click.argument("jobs", nargs=-1, shell_complete=job_names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
@click.option("-w", "--watch", "live", is_flag=True, help="Watch for changes until Ctrl-C.")
@output_option()
@where_options(worker=False)
def get(jobs: tuple[str, ...], everywhere: bool, live: bool, form: Format, where: Where) -> None:
    """List mirrored Jobs and their workers.

    Without names, all of the namespace. WHY is what a Job waits for, or how it ended.

    LAG is how long the newest status on the worker has not been stored on the management cluster; it needs the
    manager's access endpoint. All other columns need only the permission to list Jobs.
    """
    from mirror.cli.user.get import Wanted
    from mirror.cli.user.get import get as once
    from mirror.cli.user.watching import watch

    if everywhere and jobs:
        raise click.UsageError("-A cannot be combined with names: a name needs a namespace")
    wanted = Wanted(jobs, everywhere, form)
    run(lambda: watch(where, wanted) if live else once(where, wanted))


@click.command()
@job_argument
@output_option("table", "json", "yaml")
@where_options(worker=False)
def explain(job: str, form: Format, where: Where) -> None:
    """Explain JOB's placement and history.

    The timeline: assignment to a worker and why, status changes, errors, its end; and what it waits for.
    """
    from mirror.cli.user.explain import explain as tell

    run(lambda: tell(where, job, form))


@click.command()
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Stream until the containers have terminated.")
@click.option("--index", type=click.IntRange(min=0), help="The newest pod of this completion index.")
@click.option("--pod", default="", metavar="NAME", help="Pod of the mirror.")
@click.option("--all-pods", is_flag=True, help="All pods, one after the other; with -f, together.")
@click.option("-c", "--container", default="", metavar="NAME", help="Container; default: the pod's main one.")
@click.option("--all-containers", is_flag=True, help="All containers, init containers first.")
@click.option("--tail", type=click.IntRange(min=0), metavar="LINES", help="Only this many of the last lines.")
@click.option("--since", type=DURATION, metavar="DURATION", help="Only lines newer than this: 5m, 1h30m.")
@click.option("-p", "--previous", is_flag=True, help="The previous instance of the container.")
@click.option("--timestamps", is_flag=True, help="Prefix each line with its timestamp.")
@click.option("--prefix", is_flag=True, help="Prefix each line with pod and container.")
@where_options(worker=True)
def logs(
    job: str,
    follow: bool,
    index: int | None,
    pod: str,
    all_pods: bool,
    container: str,
    all_containers: bool,
    tail: int | None,
    since: int | None,
    previous: bool,
    timestamps: bool,
    prefix: bool,
    where: Where,
) -> None:
    """Print logs of JOB's containers.

    Of several pods, the newest running one is chosen, otherwise the newest failed one. Logs are printed byte by byte;
    all other texts of a worker are escaped.
    """
    from mirror.cli.user.logs import Choice, How
    from mirror.cli.user.logs import logs as show

    if sum((bool(pod), all_pods)) > 1 or (pod and index is not None):
        raise click.UsageError("--pod cannot be combined with --index or --all-pods")
    if container and all_containers:
        raise click.UsageError("-c cannot be combined with --all-containers")
    choice = Choice(pod, index, all_pods, container, all_containers)
    run(lambda: show(where, job, choice, How(follow, tail, since, timestamps, prefix, previous)))


@click.command()
@job_argument
@output_option()
@where_options(worker=True)
def pods(job: str, form: Format, where: Where) -> None:
    """List the pods of JOB on its worker."""
    from mirror.cli.user.pods import pods as show

    run(lambda: show(where, job, form))


@click.command()
@job_argument
@output_option("table", "json", "yaml")
@where_options(worker=True)
def events(job: str, form: Format, where: Where) -> None:
    """List the worker's events about JOB.

    About its mirror and the mirror's pods; events about JOB itself are in `explain`.
    """
    from mirror.cli.user.events import events as show

    run(lambda: show(where, job, form))


@click.command()
@click.argument("job", required=False, shell_complete=job_names)
@click.option("-f", "--filename", metavar="FILE", help="Manifest of Jobs that need not exist yet; - for stdin.")
@output_option("table", "wide", "json", "yaml")
@where_options(worker=True)
def diff(job: str | None, filename: str | None, form: Format, where: Where) -> None:
    """Compare JOB, or a manifest, with its mirror.

    ConfigMaps, Secrets, ServiceAccounts and volumes are not copied to the worker: those that the Job references are
    listed.
    """
    from mirror.cli.user.diff import diff as compare
    from mirror.cli.user.diff import diff_file

    if (job is None) == (filename is None):
        raise click.UsageError("specify JOB or -f FILE")
    if filename is not None and where.worker_context:
        raise click.UsageError("--worker-context compares with an existing mirror and cannot be combined with -f")
    run(lambda: diff_file(where, filename, form) if filename is not None else compare(where, job or "", form))
