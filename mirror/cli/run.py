"""``mirror run``: the manager as a process. What it runs is ``app``; how a process behaves is ``process``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mirror.cli.check_config import read_settings

if TYPE_CHECKING:
    import asyncio


@click.command()
@click.option("--config", metavar="FILE", required=True, type=click.Path(), help="Settings; see docs/settings.md.")
def run(config: str) -> None:
    """Mirror Jobs until told to stop by SIGTERM or Ctrl-C.

    Exit codes: 0 stopped as told, 1 could not go on (or not stop in time), 2 settings are wrong.
    """
    settings = read_settings(config)

    # Not at the top: these take half a second, which `mirror --help` and a typing error in a file need not cost.
    from mirror import app
    from mirror.cli.process import exit_code_of
    from mirror.telemetry.logs import set_up_logging
    from mirror.telemetry.metrics import Metrics

    set_up_logging(settings.log)

    async def work(stop: asyncio.Event) -> None:
        await app.run(settings, metrics=Metrics(), stop=stop)

    raise SystemExit(exit_code_of(work))
