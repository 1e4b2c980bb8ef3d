"""``mirror worker`` as click sees it: arguments, options, help. What each command does is in a module of its own.

Those modules are imported when a command runs: help and other commands need not wait for an HTTP client.
"""

from __future__ import annotations

from typing import Any

import click

from mirror.cli.user.completion import context_names
from mirror.cli.user.options import DURATION, output_option
from mirror.cli.user.terminal import color_option
from mirror.cli.worker.options import (
    allow_option,
    checked_name,
    checked_names,
    checked_secret,
    complete_workers,
    managed_by_option,
    name_argument,
    origin_option,
    where_options,
)

_DAY_SECONDS = 24 * 3600


@click.group()
def worker() -> None:
    """Register, check, drain and remove worker clusters."""


@worker.command()
@click.argument("name", callback=checked_name)
@click.option(
    "--context",
    "--worker-context",
    "context",
    default="",
    metavar="NAME",
    shell_complete=context_names,
    help="Context of the worker; needs permission to create roles there.",
)
@click.option(
    "--from-secret",
    default="",
    metavar="NAMESPACE/NAME",
    callback=checked_secret,
    help="Instead of --context: a Secret on the management cluster with such a kubeconfig, as Cluster API writes it. "
    "It is used once, and stored nowhere.",
)
@click.option(
    "--key", default="value", show_default=True, metavar="KEY", help="Where in that Secret the kubeconfig is."
)
@click.option(
    "--labels", multiple=True, metavar="KEY=VALUE,…", help="Labels of the worker, for jobmirror.io/worker-selector."
)
@click.option("--capacity", type=click.IntRange(min=0), metavar="JOBS", help="Maximum number of concurrent Jobs.")
@click.option("--weight", type=click.FloatRange(min=0, min_open=True), help="Share of Jobs; the default is 1.")
@click.option(
    "--namespaces",
    default="",
    metavar="A,B",
    help="Accept Jobs of these namespaces only, with Roles there instead of a ClusterRole.",
)
@click.option("--namespace-prefix", default="", metavar="TEXT", help="Create mirrors in namespace TEXT + namespace.")
@click.option("--logs", is_flag=True, help="Also grant the permissions for logs, pods and events (access.enabled).")
@click.option(
    "--watch-pods", is_flag=True, help="Also grant permission to watch pods and warnings (workers.watchPods)."
)
@click.option(
    "--read-workloads", is_flag=True, help="Also grant permission to list Kueue's Workloads (workers.readWorkloads)."
)
@click.option(
    "--seed-progress",
    is_flag=True,
    help="Also grant permission to write the status of Jobs, for those that move there (workers.seedProgress).",
)
@click.option(
    "--dependencies",
    default="",
    metavar="KINDS",
    help="Also grant the permissions to copy what Jobs refer to: configmaps,secrets,serviceaccounts or some of them.",
)
@click.option(
    "--scores",
    default="",
    metavar="NAMES",
    help="Also grant the permissions for these scores of placement.scores: quota, clusterQueue, allocatable.",
)
@click.option(
    "--pod-requests",
    is_flag=True,
    help="Also grant permission to list the pods of all namespaces, whose requests the score allocatable deducts.",
)
@click.option(
    "--create-namespaces", is_flag=True, help="Also grant permission to create namespaces (workers.createNamespaces)."
)
@click.option(
    "--kinds",
    default="",
    metavar="A,B",
    help="Also grant the permissions for mirrors of these kinds: JobSet, or PLURAL.GROUP of one that is not built in.",
)
@click.option("--no-renewal", is_flag=True, help="Do not grant permission to renew its token (workers.renewTokens).")
@click.option(
    "--token-duration",
    type=DURATION,
    default=_DAY_SECONDS,
    metavar="DURATION",
    help="Lifetime of the token; default 24h, at least 10m.",
)
@click.option(
    "--server", default="", metavar="URL", help="URL of the worker for the manager, if it differs from the context's."
)
@allow_option
@managed_by_option
@click.option("--dry-run", is_flag=True, help="Print the objects as YAML, without contacting any cluster.")
@click.option("--no-check", is_flag=True, help="Skip the check at the end.")
@output_option("text", "json", "yaml", "name")
@where_options
def add(**values: Any) -> None:
    """Register a worker as NAME.

    Creates ServiceAccount and roles on the worker, a token, and the Secret here; then checks the worker.

    Safe to rerun: a rerun creates a new token and updates everything to the options given. Labels and annotations of
    the Secret that are not given stay as they are.

    Exit codes: 0 success, 1 failure or a failed check, 2 invalid usage.
    """
    from mirror.cli.worker.add import Asked
    from mirror.cli.worker.add import add as work
    from mirror.cli.worker.clusters import run

    if values["token_duration"] < 600:
        raise click.BadParameter("an API server issues no token for less than 10m", param_hint="--token-duration")
    if bool(values["context"]) == bool(values["from_secret"]):
        raise click.UsageError("specify either --context or --from-secret")
    asked = Asked(**values)
    run(lambda: work(asked))


@worker.command()
@click.argument("workers", metavar="[NAME]…", nargs=-1, callback=checked_names, shell_complete=complete_workers)
@click.option("--all", "everybody", is_flag=True, help="All workers (the default without names).")
@allow_option
@managed_by_option
@output_option("text", "json", "yaml")
@color_option()
@where_options
def check(**values: Any) -> None:
    """Check workers, all or by NAME.

    As the manager sees them: permissions, TLS, version, clock, namespaces, token, … Those that others declare, too.

    Nothing is changed. The checks run from this machine; the manager's network may differ.

    Exit codes: 0 all checks passed, 1 a check failed, 2 invalid usage.
    """
    from mirror.cli.worker.check import Asked
    from mirror.cli.worker.check import check as work
    from mirror.cli.worker.clusters import run

    if values.pop("everybody") and values["workers"]:
        raise click.UsageError("--all cannot be combined with names")
    asked = Asked(**values)
    run(lambda: work(asked))


@worker.command("list")
@click.option("-w", "--watch", "live", is_flag=True, help="Watch for changes until Ctrl-C.")
@output_option()
@color_option()
@where_options
def list_workers(where: Any, form: Any, live: bool) -> None:
    """List workers: state, version, Jobs, token expiry."""
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.listing import show
    from mirror.cli.worker.watching import watch

    run(lambda: watch(where, form) if live else show(where, form))


@worker.command("set")
@name_argument
@click.option("--capacity", default="", metavar="JOBS", help="Maximum number of concurrent Jobs, or none.")
@click.option("--weight", default="", metavar="NUMBER", help="Share of Jobs, or none for the default of 1.")
@click.option("--namespaces", default="", metavar="A,B*", help="Accept Jobs of these namespaces only, or none.")
@click.option("--labels", multiple=True, metavar="KEY=VALUE,KEY-,…", help="Set these labels; KEY- removes one.")
@where_options
def set_worker(where: Any, name: str, capacity: str, weight: str, namespaces: str, labels: tuple[str, ...]) -> None:
    """Change capacity, weight, namespaces or labels of worker NAME.

    It takes effect at once; Jobs that run there are not disturbed. Permissions on the worker are not changed.
    """
    from mirror.cli.worker.changing import change, changes_of
    from mirror.cli.worker.clusters import run

    changes = changes_of(capacity, weight, namespaces, labels)
    run(lambda: change(where, name, changes))


@worker.command()
@name_argument
@where_options
def cordon(where: Any, name: str) -> None:
    """Mark worker NAME as unschedulable.

    It gets no new Jobs; its Jobs keep running. The mark is an annotation of the Secret, or of the object that declares
    the worker.
    """
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.drain import cordon as work

    run(lambda: work(where, name))


@worker.command()
@name_argument
@where_options
def uncordon(where: Any, name: str) -> None:
    """Mark worker NAME as schedulable, after cordon or drain."""
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.drain import uncordon as work

    run(lambda: work(where, name))


@worker.command()
@name_argument
@click.option("--wait", "how", flag_value="wait", default="wait", help="Let its Jobs finish (the default).")
@click.option("--move", "how", flag_value="move", help="Move Jobs that have not started, or are suspended, elsewhere.")
@click.option("--started", is_flag=True, help="With --move: also stop those that run, and start them elsewhere.")
@click.option("--timeout", default="", metavar="DURATION", help="Maximum time to wait; 0s: do not wait.")
@allow_option
@origin_option
@where_options
def drain(where: Any, name: str, how: str, **options: Any) -> None:
    """Drain worker NAME.

    Marks it as unschedulable, waits until its Jobs have finished or, with --move, gone elsewhere, and deletes their
    mirrors there. `mirror worker uncordon` cancels it: Jobs that have stopped and not gone resume there.

    A finished mirror is deleted once its terminal status is stored on its source; its logs go with it.

    Exit codes: 0 neither Jobs nor mirrors are left, 1 some are left or nobody could look, 2 invalid usage.
    """
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.drain import drain as work
    from mirror.model.drains import MOVE_STARTED
    from mirror.model.durations import BadDuration, parse_duration

    if options.pop("started"):
        if how != "move":
            raise click.UsageError("--started belongs to --move: mirror worker drain NAME --move --started")
        how = MOVE_STARTED
    timeout = options.pop("timeout")
    try:
        seconds = parse_duration(timeout) if timeout else None
    except BadDuration as error:
        raise click.BadParameter(str(error), param_hint="--timeout") from None
    run(lambda: work(where, name, how=how, timeout_seconds=seconds, **options))


@worker.command()
@name_argument
@click.option("--all-dead", is_flag=True, help="Confirm that nothing runs there any more.")
@click.option("--undo", is_flag=True, help="Take that back: Jobs that are still recorded there wait for it.")
@where_options
def forget(where: Any, name: str, all_dead: bool, undo: bool) -> None:
    """Declare unreachable worker NAME dead: its Jobs start again elsewhere, at once, whatever their policy.

    That holds until it is taken back, also after `mirror worker remove`, as long as Jobs are recorded there.
    """
    from mirror.cli.worker.forgetting import run_forget

    if all_dead == undo:
        raise click.UsageError("specify either --all-dead or --undo")
    run_forget(where, name, is_undone=undo)


@worker.command()
@name_argument
@click.option(
    "--force",
    is_flag=True,
    help="Even with unfinished Jobs, which wait for a worker of this name unless it is declared dead, and with mirrors "
    "that cannot be deleted.",
)
@click.option("--clean-up", is_flag=True, help="Also delete what `add` created on the worker.")
@click.option(
    "--worker-context",
    default="",
    metavar="NAME",
    shell_complete=context_names,
    help="Context of the worker, for --clean-up.",
)
@allow_option
@origin_option
@where_options
def remove(where: Any, name: str, force: bool, clean_up: bool, worker_context: str, **values: Any) -> None:
    """Unregister NAME: delete its mirrors there and its Secret. Drain it first.

    What else declares a worker is never deleted: the worker is emptied, and the object named.

    Exit codes: 0 nothing is left there, 1 it is not unregistered, or mirrors are left, 2 invalid usage.
    """
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.drain import Removal
    from mirror.cli.worker.drain import remove as work

    if clean_up != bool(worker_context):
        raise click.UsageError(
            "--clean-up and --worker-context go together: the context whose permissions are used there"
        )
    how = Removal(is_forced=force, worker_context=worker_context, allow=values["allow"], origin=values["origin"])
    run(lambda: work(where, name, how))
