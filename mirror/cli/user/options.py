"""Options that all commands for users share, and ``Where``: which clusters, namespace and manager they say."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import click

from mirror.batch.syntax import label_problems
from mirror.cli.user.completion import context_names, job_names, namespace_names
from mirror.cli.user.printing import FORMATS
from mirror.model.durations import BadDuration, parse_duration

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Function = Callable[..., Any]
Decorator = Callable[[Function], Function]
MANAGER_NAMESPACE = "jobmirror-system"


@dataclass(frozen=True, slots=True)
class Where:
    """From the command line; an empty text means the default of the kubeconfig."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    server: str = ""
    server_ca: str = ""
    token: str = field(default="", repr=False)
    manager_namespace: str = MANAGER_NAMESPACE
    worker_context: str = ""
    accept_manager: bool = False
    """The manager may be another one than before."""


class Duration(click.ParamType[int]):
    """``5m`` as whole seconds, at least one."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a duration as whole seconds, rounded up.

        Raises:
            BadParameter: it is none.
        """
        if isinstance(value, int):
            return value
        try:
            return max(1, math.ceil(parse_duration(str(value))))
        except BadDuration as error:
            self.fail(f"{value!r}: {error}", param, ctx)


DURATION = Duration()


def checked_namespace(context: click.Context, param: click.Parameter, value: str) -> str:
    """A namespace that there can be, or nothing; raises BadParameter."""
    if value and label_problems(value):
        raise click.BadParameter(f"{value!r} is not a namespace name: use lower-case letters, digits and '-'")
    return value


def checked_url(context: click.Context, param: click.Parameter, value: str) -> str:
    """An https URL, or nothing; raises BadParameter."""
    if value and not (value.startswith("https://") and len(value) > len("https://")):
        raise click.BadParameter(f"{value!r} is not an https:// URL: the token is not sent")
    return value


_WHERE = (
    click.option("--kubeconfig", default="", metavar="FILE", help="Instead of KUBECONFIG and ~/.kube/config."),
    click.option(
        "--context", default="", metavar="NAME", shell_complete=context_names, help="Context of the management cluster."
    ),
    click.option(
        "-n",
        "--namespace",
        default="",
        metavar="NAME",
        callback=checked_namespace,
        shell_complete=namespace_names,
        help="Namespace; default: the context's.",
    ),
    click.option(
        "--server",
        default="",
        envvar="MIRROR_SERVER",
        metavar="URL",
        callback=checked_url,
        help="URL of the manager; default: as published in its ConfigMap.",
    ),
    click.option(
        "--server-ca",
        default="",
        envvar="MIRROR_SERVER_CA",
        metavar="FILE",
        help="CA file of the manager's certificate.",
    ),
    click.option(
        "--token",
        default="",
        envvar="MIRROR_TOKEN",
        metavar="TOKEN",
        help="Bearer token for the manager; default: the context's.",
    ),
    click.option(
        "--manager-namespace",
        default=MANAGER_NAMESPACE,
        envvar="MIRROR_MANAGER_NAMESPACE",
        metavar="NAME",
        callback=checked_namespace,
        show_default=True,
        help="Namespace in which the manager publishes its address.",
    ),
    click.option("--accept-manager", is_flag=True, help="Accept that the manager's address or CA has changed."),
)
SORTED_BY = ("name", "age", "worker", "state", "reason")
"""How ``get`` may order its rows."""

_worker_context = click.option(
    "--worker-context",
    default="",
    metavar="NAME",
    shell_complete=context_names,
    help="Read from this worker with your own permissions there, not through the manager.",
)


def where_options(*, worker: bool) -> Decorator:
    """Add the options that say where; the command gets ``where``, with ``worker`` its ``--worker-context``, too."""
    return gathered("where", Where, (*_WHERE, *((_worker_context,) if worker else ())))


def gathered(parameter: str, form: type[DataclassInstance], options: Iterable[Decorator]) -> Decorator:
    """Add options that the command gets as one value.

    Args:
        parameter: of the command.
        form: a dataclass, whose fields are named like the options.
        options: in the order of the help.
    """
    names = frozenset(one.name for one in fields(form))

    def decorate(command: Function) -> Function:
        @functools.wraps(command)
        def collected(**values: Any) -> Any:
            said = {name: values.pop(name) for name in names & values.keys()}
            return command(**{parameter: form(**said)}, **values)

        return _all(options, collected)

    return decorate


def output_option(*forms: str) -> Decorator:
    """``-o``; the first form is the default, which the command gets as ``form``."""
    chosen = forms or FORMATS
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(chosen),
        default=chosen[0],
        show_default=True,
        help="Output format.",
    )


job_argument = click.argument("job", nargs=-1, required=True, metavar="JOB", shell_complete=job_names)
"""``NAME``, ``KIND/NAME`` or ``KIND NAME`` (``naming.one_named``)."""


def _all(options: Iterable[Decorator], command: Function) -> Function:
    for option in reversed(tuple(options)):
        command = option(command)
    return command
