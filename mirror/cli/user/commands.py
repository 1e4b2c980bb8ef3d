"""The commands for users as click sees them: arguments, options, help. What each does is in the module of its name.

Those modules are imported when a command runs: help and other commands need not wait for an HTTP client.
"""

from __future__ import annotations

import click

from mirror.cli.user.completing import job_names
from mirror.cli.user.options import DURATION, job_argument, output_option, where_options
from mirror.cli.user.printing import Format
from mirror.cli.user.running import run
from mirror.cli.user.where import Where


@click.command()
@click.argument("jobs", nargs=-1, shell_complete=job_names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Jobs of all namespaces.")
@click.option("-w", "--watch", "live", is_flag=True, help="Go on, live, until Ctrl-C.")
@output_option()
@where_options(worker=False)
def get(jobs: tuple[str, ...], everywhere: bool, live: bool, form: Format, where: Where) -> None:
    """Show Jobs that are mirrored: worker, state, how long they have run, why they wait.

    LAG is how long a change on the worker is not stored here yet; the manager tells, where it can be asked. All else
    takes no more than the right to list Jobs.
    """
    from mirror.cli.user.get import Wanted
    from mirror.cli.user.get import get as once
    from mirror.cli.user.watching import watch

    if everywhere and jobs:
        raise click.UsageError("leave out -A, or the names: a name alone is no Job of all namespaces")
    wanted = Wanted(jobs, everywhere, form)
    run(lambda: watch(where, wanted) if live else once(where, wanted))


@click.command()
@job_argument
@output_option("table", "json", "yaml")
@where_options(worker=False)
def explain(job: str, form: Format, where: Where) -> None:
    """Tell the story of JOB: what happened to it, where it is and why there, what it waits for."""
    from mirror.cli.user.explain import explain as tell

    run(lambda: tell(where, job, form))


@click.command()
@job_argument
@click.option("-f", "--follow", is_flag=True, help="Go on until the containers have ended.")
@click.option("--index", type=click.IntRange(min=0), help="The newest pod of this completion index.")
@click.option("--pod", default="", metavar="NAME", help="This pod.")
@click.option("--all-pods", is_flag=True, help="Every pod, one after the other, or followed together.")
@click.option("-c", "--container", default="", metavar="NAME", help="This container, not the pod's main one.")
@click.option("--all-containers", is_flag=True, help="Every container, init containers first.")
@click.option("--tail", type=click.IntRange(min=0), metavar="LINES", help="Only so many of the last lines.")
@click.option("--since", type=DURATION, metavar="DURATION", help="Only what is younger: 5m, 1h30m.")
@click.option("-p", "--previous", is_flag=True, help="Of the container's run before the present one.")
@click.option("--timestamps", is_flag=True, help="The time before each line.")
@click.option("--prefix", is_flag=True, help="Pod and container before each line.")
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
    """Print what JOB's containers wrote on their worker.

    Of several pods it is the newest that runs, else the newest that failed. The text is passed on as it is, unlike all
    else that a worker says.
    """
    from mirror.cli.user.choosing import Choice
    from mirror.cli.user.logs import How
    from mirror.cli.user.logs import logs as show

    if sum((bool(pod), all_pods)) > 1 or (pod and index is not None):
        raise click.UsageError("--pod says it all: leave out --index and --all-pods")
    if container and all_containers:
        raise click.UsageError("either -c or --all-containers")
    choice = Choice(pod, index, all_pods, container, all_containers)
    run(lambda: show(where, job, choice, How(follow, tail, since, timestamps, prefix, previous)))


@click.command()
@job_argument
@output_option()
@where_options(worker=True)
def pods(job: str, form: Format, where: Where) -> None:
    """Show the pods of JOB on its worker."""
    from mirror.cli.user.pods import pods as show

    run(lambda: show(where, job, form))


@click.command()
@job_argument
@output_option("table", "json", "yaml")
@where_options(worker=True)
def events(job: str, form: Format, where: Where) -> None:
    """Show what the worker says about JOB's mirror and its pods."""
    from mirror.cli.user.events import events as show

    run(lambda: show(where, job, form))


@click.command()
@click.argument("job", required=False, shell_complete=job_names)
@click.option("-f", "--filename", metavar="FILE", help="A manifest of Jobs that need not exist yet; - for stdin.")
@output_option("table", "wide", "json", "yaml")
@where_options(worker=True)
def diff(job: str | None, filename: str | None, form: Format, where: Where) -> None:
    """Show how JOB's mirror differs from it, or will differ, and what has to be on the worker already.

    ConfigMaps, Secrets, ServiceAccounts and volumes are not copied: what the Job asks for of them is listed.
    """
    from mirror.cli.user.diff import diff as compare
    from mirror.cli.user.diff import diff_file

    if (job is None) == (filename is None):
        raise click.UsageError("say a JOB, or -f FILE")
    if filename is not None and where.worker_context:
        raise click.UsageError("--worker-context compares with a mirror, which a file has not")
    run(lambda: diff_file(where, filename, form) if filename is not None else compare(where, job or "", form))
