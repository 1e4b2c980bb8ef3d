"""The command ``mirror`` and the list of its subcommands. A new one is one file beside this and one line here."""

from __future__ import annotations

import click

from mirror.cli.apiserver import apiserver
from mirror.cli.check_config import check_config
from mirror.cli.demo import demo
from mirror.cli.dev import dev
from mirror.cli.job_controller import job_controller
from mirror.cli.run import run
from mirror.cli.sections import Sections
from mirror.cli.user import commands as user
from mirror.cli.user.completion import completion
from mirror.cli.version import print_version, version_option
from mirror.cli.worker.commands import worker


@click.group(cls=Sections, context_settings={"help_option_names": ["-h", "--help"]})
@version_option
def main() -> None:
    """Run Kubernetes Jobs on worker clusters and mirror their status back."""


main.sections = {
    "For users": ("get", "explain", "logs", "pods", "events", "diff"),
    "For operators": ("worker", "check-config"),
    "Running": ("run", "job-controller", "demo", "dev", "apiserver"),
}
for command in (user.get, user.explain, user.logs, user.pods, user.events, user.diff):
    main.add_command(command)

main.add_command(worker)
main.add_command(demo)
main.add_command(dev)
main.add_command(run)
main.add_command(job_controller)
main.add_command(apiserver)
main.add_command(check_config)
main.add_command(completion)
main.add_command(print_version)
