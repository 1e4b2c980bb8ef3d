"""Options and arguments that commands of ``mirror worker`` share.

What checks them is in ``arguments`` and ``clusters``, imported when a command runs (``commands``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from mirror.cli.user.completion import context_names
from mirror.cli.user.options import checked_namespace
from mirror.model import names

Function = Callable[..., Any]

_WHERE = ("kubeconfig", "management_kubeconfig", "management_context", "namespace")


def where_options(command: Function) -> Function:
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
            callback=checked_namespace,
            help="Namespace of the manager.",
        ),
        click.option(
            "--management-context",
            default="",
            metavar="NAME",
            shell_complete=context_names,
            help="Context of the management cluster; default: the current one.",
        ),
        click.option(
            "--management-kubeconfig",
            default="",
            metavar="FILE",
            help="Kubeconfig of the management cluster, if it is a separate file.",
        ),
        click.option("--kubeconfig", default="", metavar="FILE", help="Instead of KUBECONFIG and ~/.kube/config."),
    ):
        collected = option(collected)
    return collected


allow_option = click.option(
    "--allow",
    multiple=True,
    envvar="MIRROR_WORKER_ALLOW",
    metavar="NAME",
    help="An opt-in of the manager's setting workers.allow, such as loopback. May be repeated.",
)


def checked_managed_by(context: click.Context, param: click.Parameter, value: str) -> str:
    """The setting ``managedBy``; raises BadParameter."""
    from mirror.cli.worker import arguments

    return arguments.checked_managed_by(context, param, value)


managed_by_option = click.option(
    "--managed-by",
    callback=checked_managed_by,
    default=names.DEFAULT_MANAGED_BY,
    show_default=True,
    metavar="VALUE",
    help="The manager's setting managedBy.",
)


origin_option = click.option(
    "--origin",
    default="",
    metavar="VALUE",
    help="The manager's setting origin. Default: as the manager has recorded it.",
)


def complete_workers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from mirror.cli.worker.clusters import worker_names

    return worker_names(ctx, incomplete)


def checked_name(context: click.Context, param: click.Parameter, value: str) -> str:
    """A name that a worker may have; raises BadParameter."""
    from mirror.cli.worker import arguments

    return arguments.checked_name(context, param, value)


def checked_names(context: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Names that workers may have; raises BadParameter."""
    return tuple(checked_name(context, param, value) for value in values)


def checked_secret(context: click.Context, param: click.Parameter, value: str) -> str:
    """``NAMESPACE/NAME``, or nothing; raises BadParameter."""
    if value and [bool(part) for part in value.split("/")] != [True, True]:
        raise click.BadParameter(f"{value!r}: expected NAMESPACE/NAME")
    return value


name_argument = click.argument("name", callback=checked_name, shell_complete=complete_workers)
