"""The options of ``mirror logs``, as click sees them and as a value."""

from __future__ import annotations

from dataclasses import dataclass

import click

from mirror.cli.user.options import DURATION, Decorator, gathered


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which logs of a mirror's pods, and what of them; as the command line says."""

    follow: bool
    index: int | None
    pod: str
    all_pods: bool
    container: str
    all_containers: bool
    tail: int | None
    since: int | None
    """Seconds."""
    previous: bool
    timestamps: bool
    prefix: bool

    def check(self) -> None:
        """Look at options that cannot stand together.

        Raises:
            UsageError: two of them do.
        """
        if self.pod and (self.all_pods or self.index is not None):
            raise click.UsageError("--pod cannot be combined with --index or --all-pods")
        if self.container and self.all_containers:
            raise click.UsageError("-c cannot be combined with --all-containers")


_OPTIONS = (
    click.option("-f", "--follow", is_flag=True, help="Stream until the containers have terminated."),
    click.option("--index", type=click.IntRange(min=0), help="The newest pod of this completion index."),
    click.option("--pod", default="", metavar="NAME", help="Pod of the mirror."),
    click.option("--all-pods", is_flag=True, help="All pods, one after the other; with -f, together."),
    click.option("-c", "--container", default="", metavar="NAME", help="Container; default: the pod's main one."),
    click.option("--all-containers", is_flag=True, help="All containers, init containers first."),
    click.option("--tail", type=click.IntRange(min=0), metavar="LINES", help="Only this many of the last lines."),
    click.option("--since", type=DURATION, metavar="DURATION", help="Only lines newer than this: 5m, 1h30m."),
    click.option("-p", "--previous", is_flag=True, help="The previous instance of the container."),
    click.option("--timestamps", is_flag=True, help="Prefix each line with its timestamp."),
    click.option("--prefix", is_flag=True, help="Prefix each line with pod and container."),
)


def log_options() -> Decorator:
    """Add all of them; the command gets ``options``."""
    return gathered("options", LogOptions, _OPTIONS)
