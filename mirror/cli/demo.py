"""``mirror demo``: everything in one process, and a wave of sample Jobs on its way. What it shows is in ``planes``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import asyncio


@click.command()
@click.option("--workers", type=click.IntRange(1, 8), default=2, show_default=True, help="Number of worker clusters.")
@click.option("--kinds", is_flag=True, help="Show a JobSet and an MPIJob beside Jobs, with simulated controllers.")
def demo(workers: int, kinds: bool) -> None:
    """Run a demonstration in this process.

    A management cluster, workers, the manager and sample Jobs, some of which wait for room, and some of which fail as
    they should; a worker is lost and comes back. It needs only Python, ends after some seconds, and leaves nothing
    behind.

    Exit codes: 0 every Job ended as expected, 1 otherwise.
    """
    from mirror.cli.process import exit_code_of

    code = 1

    async def work(stop: asyncio.Event) -> None:
        nonlocal code
        code = await _show(workers, kinds, stop)

    raise SystemExit(exit_code_of(work) or code)


async def _show(workers: int, kinds: bool, stop: asyncio.Event) -> int:
    # Not at the top: these take half a second, which `mirror --help` need not cost.
    import time
    from contextlib import nullcontext
    from pathlib import Path
    from tempfile import TemporaryDirectory

    import msgspec
    from rich.console import Console

    from mirror.cli.embedded import logs_into, manager, unless_stopped
    from mirror.kinds.declared.choosing import kinds_of
    from mirror.planes import demonstration, other_kinds
    from mirror.planes.fleet import fleet, worker_names
    from mirror.planes.samples import sample_jobs
    from mirror.planes.shape import Shape
    from mirror.telemetry.metrics import Metrics

    began, console, metrics = time.monotonic(), Console(), Metrics()
    names = worker_names(workers)
    with TemporaryDirectory(prefix="jobmirror-demo-") as folder, logs_into(Path(folder) / "log") as log:
        console.print(f"Starting a management cluster and the workers {', '.join(names)} in this process …")
        try:
            async with fleet(names, Path(folder), Shape()) as made:
                console.print(f"Ready after {time.monotonic() - began:.1f} s. Starting the manager …")
                settings = made.settings()
                workers_settings = msgspec.structs.replace(
                    settings.workers, lost_after_seconds=demonstration.LOST_AFTER_SECONDS
                )
                entries = other_kinds.ENTRIES if kinds else ()
                settings = msgspec.structs.replace(settings, workers=workers_settings, kinds=entries)
                bodies = [
                    *sample_jobs(settings.managed_by),
                    *(other_kinds.samples(settings.managed_by) if kinds else ()),
                ]
                script = demonstration.Script(bodies, kinds_of(entries))
                async with (
                    other_kinds.played(made) if kinds else nullcontext(),
                    manager(settings, workers, metrics=metrics, stop=stop),
                ):
                    shown = await unless_stopped(demonstration.play(made, script, console, metrics), stop)
        except* TimeoutError:
            console.print(log.read_text()[-4000:], "[red]Timed out.[/]", sep="\n")
            shown = None
    if shown is None:
        return 1
    return demonstration.report(shown, seconds=time.monotonic() - began, console=console)
