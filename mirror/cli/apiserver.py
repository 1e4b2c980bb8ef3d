"""``mirror apiserver``: one embedded control plane as a process. What it is made of is ``planes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mirror.batch.feature_gates import FeatureGates
from mirror.cli.check_config import BAD_SETTINGS

if TYPE_CHECKING:
    import asyncio

    from mirror.planes.serving import Served
    from mirror.planes.shape import Shape


@click.command("apiserver")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:6443",
    show_default=True,
    help="Address for HTTPS; port 0: any free port, no host: all interfaces.",
)
@click.option(
    "--kubeconfig-out",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    default=None,
    help="File for the administrator's kubeconfig, written when the server is ready; default: stdout.",
)
@click.option(
    "--controllers",
    metavar="NAME,…",
    default="all",
    show_default=True,
    help="Controllers to run, as in job,gc; all,-job: all but one; none: only the API server.",
)
@click.option(
    "--data",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    default=None,
    help="Store all data in this file, created if absent; default: in memory.",
)
@click.option(
    "--authorization",
    type=click.Choice(("AlwaysAllow", "RBAC")),
    default="AlwaysAllow",
    show_default=True,
    help="Authorization mode: everything, or RBAC roles.",
)
@click.option("--feature-gates", metavar="NAME=BOOL,…", default="", help="Overrides JOB_FEATURE_GATES.")
@click.option(
    "--pods",
    type=click.Choice(("simulated", "process")),
    default="simulated",
    show_default=True,
    help="Simulate containers, or run their commands on this machine, as you.",
)
@click.option(
    "--name", metavar="NAME", default="embedded", show_default=True, help="Name of the cluster in kubeconfigs."
)
@click.option("--log-level", type=click.Choice(("debug", "info", "warning", "error")), default="info")
@click.option("--log-format", type=click.Choice(("text", "json")), default="text")
def apiserver(listen: str, kubeconfig_out: str | None, log_level: str, log_format: str, **options: object) -> None:
    """Run a control plane in this process.

    An API server for kubectl and other Kubernetes clients, and its controllers, until SIGTERM or Ctrl-C.

    Exit codes: 0 clean shutdown, 1 fatal error (or shutdown timeout), 2 invalid options.
    """
    from mirror.settings import texts

    problems: list[str] = []
    try:
        address = texts.split_address(listen)
    except ValueError:
        problems.append(f"--listen: expected HOST:PORT such as 127.0.0.1:6443, got {listen[:80]!r}")
    shape = _shape(problems, **options)
    if problems or shape is None:
        click.echo("\n".join(f"mirror apiserver: {problem}" for problem in problems), err=True)
        raise SystemExit(BAD_SETTINGS)

    # Not at the top: these take half a second, which `mirror --help` and a typing error need not cost.
    from mirror.cli.process import exit_code_of
    from mirror.settings.schema import Logging
    from mirror.telemetry.logs import set_up_logging

    set_up_logging(Logging(level=log_level, format=log_format))

    async def work(stop: asyncio.Event) -> None:
        await _serve(shape, address, kubeconfig_out, stop)

    raise SystemExit(exit_code_of(work))


def _shape(problems: list[str], **options: object) -> Shape | None:
    """The control plane that the options name; what is wrong with them is added to the problems."""
    import os
    from pathlib import Path

    from mirror.jobcontroller import constants
    from mirror.jobcontroller.decide.values import Constants
    from mirror.planes.shape import Shape, UnknownController, controllers_of

    gates, found_constants, controllers = FeatureGates(), Constants(), tuple[str, ...]()
    variable = os.environ.get(constants.GATES_VARIABLE, "")
    try:
        found_constants = constants.read_constants(os.environ)
        gates = constants.read_gates(variable, gates, what=constants.GATES_VARIABLE, warn=_warn)
        gates = constants.read_gates(str(options["feature_gates"]), gates, warn=_warn)
        constants.check_gates(gates)
    except constants.InvalidConstant as refused:
        problems.extend(str(refused).splitlines())
    try:
        controllers = controllers_of(str(options["controllers"]))
    except UnknownController as unknown:
        problems.append(f"--controllers: {unknown}")
    data = options["data"]
    if data == "":
        problems.append("--data: expected a file; leave the option out to keep data in memory")
    if problems:
        return None
    return Shape(
        name=str(options["name"]),
        controllers=controllers,
        pods="process" if options["pods"] == "process" else "simulated",
        gates=gates,
        constants=found_constants,
        authorization="RBAC" if options["authorization"] == "RBAC" else "AlwaysAllow",
        data=Path(str(data)) if data else None,
    )


async def _serve(shape: Shape, address: tuple[str, int], kubeconfig_out: str | None, stop: asyncio.Event) -> None:
    import gc

    from mirror.embedded.apiserver.storage.sqlite import Unusable
    from mirror.model.endings import CannotStart
    from mirror.planes.plane import control_plane
    from mirror.planes.serving import served
    from mirror.telemetry.logs import get_log

    host, port = address
    try:
        async with control_plane(shape) as plane, served(plane, host=host, port=port) as found:
            _hand_out(found, kubeconfig_out)
            # What is there now stays; looking through it again and again would cost more than it frees.
            gc.collect()
            gc.freeze()
            get_log("apiserver").info(
                "serving", url=found.url, kubeconfig=kubeconfig_out or "-", controllers=len(shape.controllers)
            )
            await stop.wait()
    except* Unusable as group:
        raise CannotStart(f"--data: {group.exceptions[0]}") from group


def _hand_out(found: Served, kubeconfig_out: str | None) -> None:
    """Give the administrator's kubeconfig to who has started us."""
    from pathlib import Path

    from mirror.model.endings import CannotStart
    from mirror.model.failures import file_words

    if kubeconfig_out is None:
        click.echo(found.kubeconfig, nl=False)
        return
    try:
        found.write_kubeconfig(Path(kubeconfig_out))
    except OSError as error:
        raise CannotStart(f"--kubeconfig-out {kubeconfig_out}: {file_words(error)}") from error


def _warn(line: str) -> None:
    click.echo(f"mirror apiserver: warning: {line}", err=True)
