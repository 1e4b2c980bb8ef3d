"""``mirror worker`` as click sees it: arguments, options, help. What each command does is in a module of its own.

Those modules are imported when a command runs: help and other commands need not wait for an HTTP client.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from mirror.cli.user.completing import context_names
from mirror.cli.user.options import DURATION, output_option
from mirror.model import names

Function = Callable[..., Any]

_WHERE = ("kubeconfig", "management_kubeconfig", "management_context", "namespace")
_DAY_SECONDS = 24 * 3600


def _where(command: Function) -> Function:
    """The options that say which clusters; the command gets ``where``."""

    @functools.wraps(command)
    def collected(**values: Any) -> Any:
        from mirror.cli.worker.clusters import Where

        said = {name: values.pop(name) for name in _WHERE}
        return command(where=Where(**said), **values)

    for option in (
        click.option(
            "--namespace",
            default="jobmirror-system",
            envvar="MIRROR_MANAGER_NAMESPACE",
            show_default=True,
            metavar="NAME",
            help="The manager's.",
        ),
        click.option(
            "--management-context",
            default="",
            metavar="NAME",
            shell_complete=context_names,
            help="Of the management cluster; default: the current one.",
        ),
        click.option(
            "--management-kubeconfig",
            default="",
            metavar="FILE",
            help="Of the management cluster, where it is in a file of its own.",
        ),
        click.option("--kubeconfig", default="", metavar="FILE", help="Instead of KUBECONFIG and ~/.kube/config."),
    ):
        collected = option(collected)
    return collected


_allow = click.option(
    "--allow",
    multiple=True,
    metavar="NAME",
    help="What the manager's setting workers.allow opts in to, such as loopback. May be given again.",
)
_managed_by = click.option(
    "--managed-by",
    default=names.DEFAULT_MANAGED_BY,
    show_default=True,
    metavar="VALUE",
    help="The manager's setting managedBy.",
)


_origin = click.option(
    "--origin",
    default="",
    metavar="VALUE",
    help="The manager's setting origin, where it is set: the label of its mirrors.",
)


def _complete_workers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from mirror.cli.worker.completing import worker_names

    return worker_names(ctx, incomplete)


_name = click.argument("name", shell_complete=_complete_workers)


@click.group()
def worker() -> None:
    """Register worker clusters, look after them, and take them away."""


@worker.command()
@click.argument("name")
@click.option(
    "--context",
    "--worker-context",
    "context",
    required=True,
    metavar="NAME",
    shell_complete=context_names,
    help="Of the worker, with the right to make roles there.",
)
@click.option("--labels", multiple=True, metavar="KEY=VALUE,…", help="The worker's, for jobmirror.io/worker-selector.")
@click.option("--capacity", type=click.IntRange(min=0), metavar="JOBS", help="Most Jobs at a time.")
@click.option("--weight", type=click.FloatRange(min=0, min_open=True), help="Its share; others have 1.")
@click.option(
    "--namespaces", default="", metavar="A,B", help="Take Jobs of these only, with Roles there and no ClusterRole."
)
@click.option("--namespace-prefix", default="", metavar="TEXT", help="Mirrors live in TEXT + namespace.")
@click.option("--logs", is_flag=True, help="Also the rights for logs, pods and events (access.enabled).")
@click.option("--create-namespaces", is_flag=True, help="Also the right to make namespaces (workers.createNamespaces).")
@click.option("--no-renewal", is_flag=True, help="Without the right to renew its token (workers.renewTokens).")
@click.option(
    "--token-duration", type=DURATION, default=_DAY_SECONDS, metavar="DURATION", help="Default 24h; from 10m."
)
@click.option("--server", default="", metavar="URL", help="Where the manager finds it, if not where the context does.")
@_allow
@_managed_by
@click.option("--dry-run", is_flag=True, help="Print what would be made, as YAML, and ask no cluster.")
@click.option("--no-check", is_flag=True, help="Do not check it in the end.")
@output_option("text", "json", "yaml", "name")
@_where
def add(**values: Any) -> None:
    """Register a worker as NAME: an account and roles there, a token that ends, the Secret here; then check it.

    May be said again: it makes a new token, and brings everything to what is asked for now. Options of the Secret that
    are left out stay as they are.

    Exit codes: 0 it is fine, 1 something is wrong, 2 wrong usage.
    """
    from mirror.cli.worker.add import Asked
    from mirror.cli.worker.add import add as work
    from mirror.cli.worker.clusters import run

    if values["token_duration"] < 600:
        raise click.BadParameter("an API server makes no token for less than 10m", param_hint="--token-duration")
    asked = Asked(**values)
    run(lambda: work(asked))


@worker.command()
@click.argument("workers", metavar="[NAME]…", nargs=-1, shell_complete=_complete_workers)
@click.option("--all", "everybody", is_flag=True, help="All workers, as without a name.")
@_allow
@_managed_by
@output_option("text", "json", "yaml")
@_where
def check(**values: Any) -> None:
    """Check workers, all or by NAME, as the manager sees them: rights, TLS, version, clock, namespaces, token, …

    Nothing is changed. Asked from here: what the manager reaches another way may differ.

    Exit codes: 0 nothing is in the way, 1 something is, 2 wrong usage.
    """
    from mirror.cli.worker.check import Asked
    from mirror.cli.worker.check import check as work
    from mirror.cli.worker.clusters import run

    if values.pop("everybody") and values["workers"]:
        raise click.UsageError("leave out --all, or the names")
    asked = Asked(**values)
    run(lambda: work(asked))


@worker.command("list")
@output_option()
@_where
def list_workers(where: Any, form: Any) -> None:
    """List workers: how they are, since when, and how many Jobs are on them."""
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.listing import show

    run(lambda: show(where, form))


@worker.command()
@_name
@_where
def cordon(where: Any, name: str) -> None:
    """Send NAME no new Jobs; those that are there go on."""
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.emptying import cordon as work

    run(lambda: work(where, name))


@worker.command()
@_name
@_where
def uncordon(where: Any, name: str) -> None:
    """Send NAME new Jobs again, after cordon or drain."""
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.emptying import uncordon as work

    run(lambda: work(where, name))


@worker.command()
@_name
@click.option("--wait", "how", flag_value="wait", default="wait", help="Let its Jobs end (the default).")
@click.option("--move", "how", flag_value="move", help="Start its Jobs again elsewhere: not possible yet.")
@click.option("--timeout", default="", metavar="DURATION", help="Wait no longer than this; 0s: do not wait.")
@_allow
@_origin
@_where
def drain(where: Any, name: str, how: str, timeout: str, allow: tuple[str, ...], origin: str) -> None:
    """Send NAME no new Jobs, wait until those that are there have ended, and delete their finished mirrors.

    A finished mirror is deleted once its terminal status is stored on its source; its logs go with it.

    Exit codes: 0 none is left, 1 some are, 2 wrong usage.
    """
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.emptying import drain as work
    from mirror.model.durations import BadDuration, parse_duration

    if how == "move":
        raise click.UsageError(
            "--move: the manager does not move running Jobs yet, it lets them end whatever the annotation says; "
            "drain with --wait, or delete the Jobs that must not go on"
        )
    try:
        seconds = parse_duration(timeout) if timeout else None
    except BadDuration as error:
        raise click.BadParameter(str(error), param_hint="--timeout") from None
    run(lambda: work(where, name, timeout_seconds=seconds, allow=allow, origin=origin))


@worker.command()
@_name
@click.option("--force", is_flag=True, help="Even with unfinished Jobs there: they wait for a worker of this name.")
@click.option(
    "--clean-up", is_flag=True, help="Also delete on the worker finished mirrors and what `add` created there."
)
@click.option(
    "--worker-context",
    default="",
    metavar="NAME",
    shell_complete=context_names,
    help="Of the worker, for --clean-up.",
)
@_origin
@_where
def remove(where: Any, name: str, force: bool, clean_up: bool, worker_context: str, origin: str) -> None:
    """Unregister NAME: delete its Secret. Drain it first."""
    from mirror.cli.worker.clusters import run
    from mirror.cli.worker.emptying import remove as work

    if clean_up != bool(worker_context):
        raise click.UsageError(
            "--clean-up and --worker-context go together: the context whose permissions are used there"
        )
    run(lambda: work(where, name, is_forced=force, worker_context=worker_context, origin=origin))
