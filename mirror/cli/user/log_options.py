"""The options of ``mirror logs``, as click sees them and as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import click

from mirror.batch.label_selectors import MalformedSelector, parse
from mirror.cli.user.options import DURATION, Decorator, gathered

LINES_BY_LABELS = 10
"""The last lines of each log where Jobs are chosen by labels, as for kubectl."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which logs of a mirror's pods, and which part of them, from the command line."""

    follow: bool
    index: int | None
    role: str
    pod: str
    all_pods: bool
    container: str
    all_containers: bool
    tail: int | None
    since: int | None
    """Seconds."""
    previous: bool
    timestamps: bool
    prefix: bool | None
    selector: str

    @property
    def wants_all_pods(self) -> bool:
        """Labels mean all pods, as for kubectl, unless one is said."""
        return self.all_pods or (bool(self.selector) and self.index is None)

    @property
    def lines(self) -> int | None:
        """How many of the last lines; None for all."""
        if self.tail is None:
            return LINES_BY_LABELS if self.selector else None
        return self.tail if self.tail >= 0 else None

    def with_prefix(self, *, is_one: bool) -> bool:
        """Whether lines begin with their pod: by default wherever there may be several pods."""
        return self.prefix if self.prefix is not None else self.wants_all_pods or not is_one

    def check(self, jobs: Sequence[object]) -> None:
        """Look at options that cannot stand together.

        Raises:
            UsageError: two of them do, or it is not clear which Jobs are meant.
        """
        if not jobs and not self.selector:
            raise click.UsageError("specify JOB or -l SELECTOR")
        if jobs and self.selector:
            raise click.UsageError("-l cannot be combined with names")
        try:
            parse(self.selector)
        except MalformedSelector as error:
            raise click.UsageError(f"--selector {self.selector!r}: {error}") from None
        if self.pod and (self.selector or len(jobs) > 1):
            raise click.UsageError("--pod names a pod of one JOB")
        if self.pod and (self.all_pods or self.index is not None or self.role):
            raise click.UsageError("--pod cannot be combined with --index, --role or --all-pods")
        if self.container and self.all_containers:
            raise click.UsageError("-c cannot be combined with --all-containers")


_OPTIONS = (
    click.option("-f", "--follow", is_flag=True, help="Stream until the containers have terminated."),
    click.option("--index", type=click.IntRange(min=0), help="The newest pod of this completion index."),
    click.option(
        "--role", default="", metavar="ROLE", help="Pods of this part of JOB: launcher, workers, workers/0; see `pods`."
    ),
    click.option("--pod", default="", metavar="NAME", help="Pod of the mirror."),
    click.option("--all-pods", is_flag=True, help="All pods, one after the other; with -f, together."),
    click.option("-c", "--container", default="", metavar="NAME", help="Container; default: the pod's main one."),
    click.option("--all-containers", is_flag=True, help="All containers, init containers first."),
    click.option(
        "--tail",
        type=click.IntRange(min=-1),
        metavar="LINES",
        help="Only this many of the last lines; -1: all. With -l, default 10.",
    ),
    click.option("--since", type=DURATION, metavar="DURATION", help="Only lines newer than this: 5m, 1h30m."),
    click.option("-p", "--previous", is_flag=True, help="The previous instance of the container."),
    click.option("--timestamps", is_flag=True, help="Prefix each line with its timestamp."),
    click.option(
        "--prefix/--no-prefix", default=None, help="Prefix each line with pod and container; default: of several pods."
    ),
    click.option("-l", "--selector", default="", metavar="SELECTOR", help="All pods of the Jobs with these labels."),
)


def log_options() -> Decorator:
    """Add all of them; the command gets ``options``."""
    return gathered("options", LogOptions, _OPTIONS)
