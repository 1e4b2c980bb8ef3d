"""``mirror job-controller``: the Job controller as a process. What it runs is ``jobcontroller.process``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from mirror.batch.feature_gates import FeatureGates
from mirror.cli.check_config import BAD_SETTINGS, check_kubeconfig

if TYPE_CHECKING:
    import asyncio

    from mirror.jobcontroller.process import JobControllerSettings


@click.command("job-controller")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    default="",
    help="Kubeconfig of the cluster; default: the ServiceAccount of the pod.",
)
@click.option("--qps", type=float, default=20.0, show_default=True, help="Maximum requests per second; 0: no limit.")
@click.option("--burst", type=int, default=30, show_default=True, help="Burst of requests before --qps applies.")
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:8081",
    show_default=True,
    help="Address of /metrics, /healthz and /readyz.",
)
@click.option("--feature-gates", metavar="NAME=BOOL,…", default="", help="Overrides JOB_FEATURE_GATES.")
@click.option(
    "--lease-namespace", metavar="NAME", default="kube-system", show_default=True, help="Namespace of the Lease."
)
@click.option("--no-leader-election", is_flag=True, help="Run without a Lease; only where no second instance can run.")
@click.option("--namespace", "namespaces", metavar="NAME", multiple=True, help="Only this namespace; may be repeated.")
@click.option("--log-level", type=click.Choice(("debug", "info", "warning", "error")), default="info")
@click.option("--log-format", type=click.Choice(("text", "json")), default="text")
def job_controller(log_level: str, log_format: str, **options: object) -> None:
    """Run the Job controller as a process.

    For a cluster whose control plane has none, until SIGTERM or Ctrl-C.

    Constants are read from the environment (JOB_BATCH_PERIOD_SECONDS and others, docs/job-controller.md).

    Exit codes: 0 clean shutdown, 1 fatal error (or shutdown timeout), 2 invalid options or environment.
    """
    # Not at the top: these take half a second, which `mirror --help` need not cost.
    from mirror.cli.process import exit_code_of
    from mirror.jobcontroller import process
    from mirror.settings.schema import Logging
    from mirror.telemetry.logs import set_up_logging
    from mirror.telemetry.metrics import Metrics

    settings = _settings(options)
    check_kubeconfig(settings.kubeconfig, "--kubeconfig")
    set_up_logging(Logging(level=log_level, format=log_format))

    async def work(stop: asyncio.Event) -> None:
        await process.run(settings, metrics=Metrics("job-controller"), stop=stop)

    raise SystemExit(exit_code_of(work))


def _settings(options: dict[str, object]) -> JobControllerSettings:
    """What the options and the environment say, or the end of the process: a line per problem and exit code 2."""
    from mirror.jobcontroller import constants
    from mirror.jobcontroller.decide.values import Constants
    from mirror.jobcontroller.process import JobControllerSettings
    from mirror.settings import rules, texts
    from mirror.settings.rule import Rule, Wrong
    from mirror.settings.schema import LeaderElection, Limits

    problems: list[str] = []

    def checked(option: str, rule: Rule) -> object:
        value = options[option.replace("-", "_")]
        try:
            return rule.apply(list(value) if isinstance(value, tuple) else value)
        except Wrong as wrong:
            problems.extend(
                f"--{option.removesuffix('s') if where else option}: {what}" for where, what in wrong.problems
            )
            return None

    qps, burst = checked("qps", rules.RATE), checked("burst", rules.BURST)
    listen, lease_namespace = checked("listen", rules.LISTEN), checked("lease-namespace", rules.NAMESPACE)
    namespaces = checked("namespaces", rules.NAMESPACES)
    found_constants, gates_by_option = Constants(), str(options["feature_gates"])
    try:
        found_constants = constants.read_constants(os.environ)
    except constants.InvalidConstant as refused:
        problems.extend(str(refused).splitlines())
    found_gates = FeatureGates()
    gates_by_variable = os.environ.get(constants.GATES_VARIABLE, "")
    for what, text in ((constants.GATES_VARIABLE, gates_by_variable), ("--feature-gates", gates_by_option)):
        try:
            found_gates = constants.read_gates(text, found_gates, what=what, warn=_warn)
        except constants.InvalidConstant as refused:
            problems.extend(str(refused).splitlines())
    try:
        constants.check_gates(found_gates)
    except constants.InvalidConstant as refused:
        problems.extend(str(refused).splitlines())
    if problems:
        click.echo("\n".join(f"mirror job-controller: {problem}" for problem in problems), err=True)
        raise SystemExit(BAD_SETTINGS)
    assert isinstance(qps, float)
    assert isinstance(burst, int)
    assert isinstance(namespaces, tuple)
    return JobControllerSettings(
        kubeconfig=str(options["kubeconfig"]),
        limits=Limits(qps=qps, burst=burst),
        listen=texts.split_address(str(listen)),
        constants=found_constants,
        gates=found_gates,
        lease_namespace=str(lease_namespace),
        leader_election=LeaderElection(enabled=not options["no_leader_election"]),
        namespaces=namespaces,
    )


def _warn(line: str) -> None:
    click.echo(f"mirror job-controller: warning: {line}", err=True)
