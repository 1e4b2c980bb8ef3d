"""``mirror run``: the manager as a process. What it runs is ``app``; how a process behaves is ``process``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mirror.cli.check_config import check_kubeconfig, read_settings

if TYPE_CHECKING:
    import asyncio


@click.command()
@click.option("--config", metavar="FILE", required=True, type=click.Path(), help="Settings file; see docs/settings.md.")
def run(config: str) -> None:
    """Run the manager until SIGTERM or Ctrl-C.

    Exit codes: 0 clean shutdown, 1 fatal error (or shutdown timeout), 2 invalid settings.
    """
    settings = read_settings(config)
    check_kubeconfig(settings.kubeconfig, "setting kubeconfig")

    # Not at the top: these take half a second, which `mirror --help` and a typing error in a file need not cost.
    from mirror import app
    from mirror.cli.process import exit_code_of
    from mirror.telemetry.logs import set_up_logging
    from mirror.telemetry.metrics import Metrics

    set_up_logging(settings.log)

    async def work(stop: asyncio.Event) -> None:
        await app.run(settings, metrics=Metrics(), stop=stop)

    raise SystemExit(exit_code_of(work))
