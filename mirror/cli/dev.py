"""``mirror dev``: clusters and a manager to try things on, until Ctrl-C. How they are made is in ``planes``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import asyncio

    from mirror.planes.fleet import Fleet
    from mirror.planes.shape import Pods


@click.command()
@click.option("--workers", type=click.IntRange(1, 32), default=2, show_default=True, help="Number of worker clusters.")
@click.option(
    "--pods",
    type=click.Choice(("simulated", "process")),
    default="simulated",
    show_default=True,
    help="process: containers' commands run on this machine, with your permissions. Only for trusted Jobs.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory for kubeconfigs, the log and all data, reused by the next run; default: a temporary one.",
)
@click.option("--page", is_flag=True, help="Also serve the manager's page: workers, Jobs, timelines.")
def dev(workers: int, pods: Pods, folder: Path | None, page: bool) -> None:
    """Run clusters and a manager for your kubectl.

    A management cluster, workers and the manager, all in this process, until Ctrl-C.

    Exit codes: 0 clean shutdown, 1 fatal error.
    """
    from tempfile import TemporaryDirectory

    from mirror.cli.process import exit_code_of
    from mirror.model.failures import file_words

    async def work(stop: asyncio.Event) -> None:
        await _serve(workers, pods, where, stop, keeps_data=folder is not None, page=page)

    with TemporaryDirectory(prefix="jobmirror-dev-") as temporary:
        where = folder or Path(temporary)
        try:
            where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise click.ClickException(f"--dir {where}: {file_words(error)}") from error
        code = exit_code_of(work)
    raise SystemExit(code)


async def _serve(workers: int, pods: Pods, folder: Path, stop: asyncio.Event, *, keeps_data: bool, page: bool) -> None:
    # Not at the top: these take half a second, which `mirror --help` need not cost.
    from mirror.cli.embedded import logs_into, manager, unless_stopped
    from mirror.planes.fleet import fleet, worker_names
    from mirror.planes.shape import Shape
    from mirror.telemetry.metrics import Metrics

    clusters = fleet(worker_names(workers), folder, Shape(pods=pods), keeps_data=keeps_data)
    with logs_into(folder / "log"):
        ports: list[int] = []
        async with (
            clusters as made,
            manager(made.settings(page=page), workers, metrics=Metrics(), stop=stop, on_page=ports.append),
        ):
            await unless_stopped(made.wait_for_access(), stop)
            if not stop.is_set():
                click.echo(_greeting(made, *ports))
            await stop.wait()


def _greeting(made: Fleet, *pages: int) -> str:
    """Where things are, and lines to try; the page on this port, if there is one."""
    from mirror.planes.samples import folder as samples

    wide = max(map(len, ("management", *made.workers)))
    clusters = [("management", made.management.url), *((name, one.url) for name, one in made.workers.items())]
    listed = [f"  {name:<{wide}}  {url}  {made.kubeconfig(name)}" for name, url in clusters]
    worker = next(iter(made.workers))
    return "\n".join(
        (
            "Ready: a management cluster, its workers and the manager, all in this process.",
            *listed,
            "Jobs whose spec.managedBy is jobmirror.io/controller run on the workers. Try:",
            "",
            f"  export KUBECONFIG={made.kubeconfig()} MIRROR_WORKER_ALLOW=loopback",
            f"  kubectl apply -f {samples()}/plain.yaml && kubectl get jobs --watch",
            "  mirror get; mirror logs plain; mirror explain plain; mirror worker check",
            f"  kubectl --context {worker} get jobs,pods",
            "",
            *(f"Page: http://127.0.0.1:{port}/" for port in pages),
            f"Log: {made.folder / 'log'}. Ctrl-C to stop.",
        )
    )
