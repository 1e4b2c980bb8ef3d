"""The command ``mirror`` and the list of its subcommands. A new one is one file beside this and one line here."""

from __future__ import annotations

import click

from mirror.cli.apiserver import apiserver
from mirror.cli.check_config import check_config
from mirror.cli.demo import demo
from mirror.cli.dev import dev
from mirror.cli.job_controller import job_controller
from mirror.cli.run import run
from mirror.cli.version import print_version


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Run Kubernetes Jobs on worker clusters and mirror their status back."""


main.add_command(demo)
main.add_command(dev)
main.add_command(run)
main.add_command(job_controller)
main.add_command(apiserver)
main.add_command(check_config)
main.add_command(print_version)
