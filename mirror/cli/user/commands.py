"""The commands for users as click sees them: arguments, options, help. What each does is in the module of its name.

Those modules are imported when a command runs: help and other commands need not wait for an HTTP client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from mirror.cli.user.completion import job_names, kind_names
from mirror.cli.user.log_options import LogOptions, log_options
from mirror.cli.user.options import SORTED_BY, Where, job_argument, output_option, where_options
from mirror.cli.user.printing import Format
from mirror.cli.user.running import run
from mirror.cli.user.terminal import color_option


@click.command()
@click.argument("jobs", nargs=-1, shell_complete=job_names)
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
@click.option(
    "-k", "--kind", "of_kinds", multiple=True, metavar="KIND", shell_complete=kind_names,
    help="Only this kind; may be repeated. Default: all that are mirrored.",
)  # fmt: skip
@click.option("-l", "--selector", default="", metavar="SELECTOR", help="Only Jobs with these labels, as for kubectl.")
@click.option("--worker", "workers", multiple=True, metavar="WORKER", help="Only Jobs on this worker; may be repeated.")
@click.option("--state", "states", multiple=True, metavar="STATE", help="Only Jobs in this state; may be repeated.")
@click.option("--reason", "reasons", multiple=True, metavar="REASON", help="Only Jobs with this reason.")
@click.option("--sort-by", type=click.Choice(SORTED_BY), default=None, help="Order of the rows.")
@click.option("-w", "--watch", "live", is_flag=True, help="Watch for changes until Ctrl-C.")
@output_option()
@color_option()
@where_options(worker=False)
def get(jobs: tuple[str, ...], everywhere: bool, live: bool, form: Format, where: Where, **values: Any) -> None:
    """List mirrored Jobs and their workers.

    Without names, all of the namespace. A name is NAME of a Job, or KIND/NAME; KIND and KIND NAME ... are understood as
    by kubectl. WHY is what a Job waits for, or how it ended; --reason takes the names of docs/reasons.md and the
    reasons of ends.

    LAG is how long the newest status on the worker has not been stored on the management cluster; it needs the
    manager's access endpoint. All other columns need only the permission to list Jobs.
    """
    from mirror.cli.user.failures import Failure
    from mirror.cli.user.get import Wanted, filters
    from mirror.cli.user.get import get as once
    from mirror.cli.user.learning import learn
    from mirror.cli.user.naming import chosen
    from mirror.cli.user.watching import watch

    shown = filters(values["selector"], values["workers"], values["states"], values["reasons"])

    def check_names(names: Sequence[object]) -> None:
        if everywhere and names:
            raise click.UsageError("-A cannot be combined with names: a name needs a namespace")
        if values["selector"] and names:
            raise click.UsageError("-l cannot be combined with names")

    async def work() -> None:
        try:
            await learn(where)
        except Failure:
            check_names(jobs)  # there is no cluster that knows one of them as a kind
            raise
        these = chosen(jobs, values["of_kinds"])
        check_names(these.names)
        wanted = Wanted(these, everywhere, form, shown, values["sort_by"] or "")
        await (watch(where, wanted) if live else once(where, wanted))

    run(work)


@click.command()
@job_argument
@output_option("table", "json", "yaml")
@color_option()
@where_options(worker=False)
def explain(job: tuple[str, ...], form: Format, where: Where) -> None:
    """Explain JOB's placement and history.

    The timeline: assignment to a worker and why, status changes, errors, its end; and what it waits for. JOB is NAME of
    a Job, KIND/NAME or KIND NAME.
    """
    from mirror.cli.user.explain import explain as tell
    from mirror.cli.user.learning import about_one

    run(about_one(where, job, lambda wanted: tell(where, wanted, form)))


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...", shell_complete=job_names)
@log_options()
@where_options(worker=True)
def logs(jobs: tuple[str, ...], options: LogOptions, where: Where) -> None:
    """Print logs of Jobs' containers.

    JOB is NAME of a Job, KIND/NAME, or KIND NAME ... Of several pods of a JOB, the newest running one is chosen,
    otherwise the newest failed one. Logs are printed byte by byte; all other texts of a worker are escaped. Of several
    logs, one that cannot be read does not end the others; the exit code is 1 then.
    """
    from mirror.cli.user.failures import Failure
    from mirror.cli.user.learning import learn
    from mirror.cli.user.logs import logs as show
    from mirror.cli.user.naming import all_named, may_name_a_kind
    from mirror.cli.user.similar import with_hint

    options.check(jobs[:1])

    async def work() -> None:
        try:
            if options.selector or may_name_a_kind(jobs):
                await learn(where)
        except Failure:
            options.check(jobs)  # there is no cluster that knows one of them as a kind
            raise
        wanted = all_named(jobs)
        options.check(wanted)
        if len(wanted) == 1:
            await with_hint(where, wanted[0], show(where, wanted, options))
        else:
            await show(where, wanted, options)

    run(work)


@click.command()
@job_argument
@output_option()
@color_option()
@where_options(worker=True)
def pods(job: tuple[str, ...], form: Format, where: Where) -> None:
    """List the pods of JOB on its worker.

    JOB is NAME of a Job, KIND/NAME or KIND NAME.
    """
    from mirror.cli.user.learning import about_one
    from mirror.cli.user.pods import pods as show

    run(about_one(where, job, lambda wanted: show(where, wanted, form)))


@click.command()
@job_argument
@output_option("table", "json", "yaml")
@color_option()
@where_options(worker=True)
def events(job: tuple[str, ...], form: Format, where: Where) -> None:
    """List the worker's events about JOB.

    About its mirror and the mirror's pods; events about JOB itself are in `explain`. JOB is NAME of a Job,
    KIND/NAME or KIND NAME.
    """
    from mirror.cli.user.events import events as show
    from mirror.cli.user.learning import about_one

    run(about_one(where, job, lambda wanted: show(where, wanted, form)))


@click.command()
@click.argument("job", nargs=-1, metavar="[JOB]", shell_complete=job_names)
@click.option("-f", "--filename", metavar="FILE", help="Manifest of Jobs that need not exist yet; - for stdin.")
@output_option("table", "wide", "json", "yaml")
@color_option()
@where_options(worker=True)
def diff(job: tuple[str, ...], filename: str | None, form: Format, where: Where) -> None:
    """Compare JOB, or a manifest, with its mirror.

    JOB is NAME of a Job, KIND/NAME or KIND NAME. What the Job references is listed: ConfigMaps, Secrets and
    ServiceAccounts that go along with it, and what has to be on the worker, or is missing there.
    """
    from mirror.cli.user.diff import diff as compare
    from mirror.cli.user.diff import diff_file
    from mirror.cli.user.learning import about_one, knowing

    if bool(job) == (filename is not None):
        raise click.UsageError("specify either JOB or -f FILE, not both" if job else "specify JOB or -f FILE")
    if filename is not None and where.worker_context:
        raise click.UsageError("--worker-context compares with an existing mirror and cannot be combined with -f")
    if filename is not None:
        run(knowing(where, lambda: diff_file(where, filename, form)))
        return
    run(about_one(where, job, lambda wanted: compare(where, wanted, form)))


@click.command()
@click.option("-f", "--filename", metavar="FILE", required=True, help="Manifest of Jobs; - for stdin.")
@click.option("--dry-run", "is_dry", is_flag=True, help="Required: nothing is created, recorded or reserved.")
@output_option("table", "json", "yaml")
@where_options(worker=False)
def place(filename: str, is_dry: bool, form: Format, where: Where) -> None:
    """Explain where Jobs of a manifest would be placed.

    The manager's own filters and scores for each worker, as they are now. A Job that is created later may find another
    choice.
    """
    from mirror.cli.user.learning import knowing
    from mirror.cli.user.place import place as tell

    if not is_dry:
        raise click.UsageError("only --dry-run is supported: create the Job to have it placed")
    run(knowing(where, lambda: tell(where, filename, form)))
