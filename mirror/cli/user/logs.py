"""``mirror logs``: what the containers of a mirror wrote, as they wrote it.

Unlike all else that comes from a worker it is passed on byte by byte, as kubectl does it: it is the output of the
user's own program.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import tenacity

from mirror.cli.user import printing
from mirror.cli.user.failures import Failure, NotAllowed, NotYet
from mirror.cli.user.log_options import LogOptions
from mirror.cli.user.logtexts import LogRequest
from mirror.cli.user.mirrors import Mirror, inside
from mirror.cli.user.naming import Named
from mirror.cli.user.options import Where
from mirror.cli.user.pods import Pod, order, pod_of
from mirror.cli.user.running import progress
from mirror.model.text import clean

RETRY_SECONDS = 1.0
MOST_AT_ONCE = 8
"""Streams that are followed together: the manager gives nobody more."""
LONGEST_LINE = 2**20
"""Of several logs, lines are kept whole up to here."""


@dataclass(frozen=True, slots=True)
class How:
    """What of a log is wanted, and how it is shown."""

    follow: bool = False
    tail: int | None = None
    since_seconds: int | None = None
    timestamps: bool = False
    prefix: bool = False
    previous: bool = False


async def logs(where: Where, wanted: Named, said: LogOptions) -> None:
    """Write logs of a Job's containers to stdout.

    Raises:
        Failure: there is nothing to read, or it may not be read.
    """
    choice = Choice(said.pod, said.index, said.all_pods, said.container, said.all_containers)
    how = How(said.follow, said.tail, said.since, said.timestamps, said.prefix, said.previous)
    async with inside(where, wanted) as mirror:
        try:
            targets, remark = await _targets(mirror, wanted, choice, waits=how.follow)
        except NotAllowed:
            # Who may read logs need not be allowed to list pods: the manager can choose as well.
            if choice.all_pods or choice.all_containers or where.worker_context:
                raise
            targets, remark = [Target(choice.pod, choice.container, choice.index)], ""
        if not targets:
            raise Failure(f"{wanted} has no pods on its worker: not created yet, or already deleted")
        if remark:
            printing.remark(remark)
        await _show(mirror, targets, how)


async def _show(mirror: Mirror, targets: list[Target], how: How) -> None:
    if not how.follow:
        for target in targets:
            await _copy(mirror, target, how, writer_for(target, how, is_alone=True))
        return
    if len(targets) > MOST_AT_ONCE:
        raise Failure(f"{len(targets)} logs are too many to follow; select with --index, --pod or -c")
    async with asyncio.TaskGroup() as scope:
        for target in targets:
            writer = writer_for(target, how, is_alone=len(targets) == 1)
            scope.create_task(_copy(mirror, target, how, writer), name=f"log of {target.pod}")


async def _targets(mirror: Mirror, wanted: Named, choice: Choice, *, waits: bool) -> tuple[list[Target], str]:
    """Whose logs; with ``--follow`` it waits for a worker, and for the first pod there."""

    async def look() -> tuple[list[Target], str]:
        with progress(f"Listing the pods of {wanted.name} …"):
            pods: list[Pod] = [pod_of(one, wanted.kind.pod_index) for one in await mirror.pods()]
        targets, remark = choose(pods, choice)
        if waits and not targets:
            raise NotYet("no pods have been created yet")
        return targets, remark

    return await (_until_ready(wanted.name)(look) if waits else look())


def _until_ready(what: str) -> tenacity.AsyncRetrying:
    """Retries while it is not ready, and says why, each reason once."""
    said = ""

    def announce(state: tenacity.RetryCallState) -> None:
        nonlocal said
        why = str(state.outcome.exception()) if state.outcome else ""
        if why != said:
            printing.remark(f"{what}: {why}; waiting (Ctrl-C to stop)")
        said = why

    return tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception_type(NotYet),
        wait=tenacity.wait_fixed(RETRY_SECONDS),
        before_sleep=announce,
    )


async def _copy(mirror: Mirror, target: Target, how: How, writer: Writer) -> None:
    """One log to its end; with ``--follow`` it waits for its beginning."""
    wanted = LogRequest(
        pod=target.pod,
        container=target.container,
        index=target.index,
        follow=how.follow,
        tail=how.tail,
        since_seconds=how.since_seconds,
        timestamps=how.timestamps,
        previous=how.previous,
    )

    async def copy() -> None:
        async with mirror.log(wanted) as pieces:
            async for piece in pieces:
                writer.write(piece)

    await (_until_ready(target.pod or "the pod")(copy) if how.follow else copy())
    writer.end()


class Writer:
    """Passes a log on; of several, whole lines, so that they do not tear each other apart."""

    def __init__(self, output: BinaryIO, *, prefix: bytes = b"", is_alone: bool = True) -> None:
        self._output = output
        self._prefix = prefix
        self._passes_on = is_alone and not prefix
        self._begun = bytearray()

    def write(self, piece: bytes) -> None:
        """What has come."""
        if self._passes_on:
            self._output.write(piece)
        else:
            self._begun += piece
            whole, end, rest = self._begun.rpartition(b"\n")
            if end:
                self._lines(bytes(whole))
                self._begun = bytearray(rest)
            if len(self._begun) > LONGEST_LINE:
                self.end()
        self._output.flush()

    def end(self) -> None:
        """No more of this line comes."""
        if self._begun:
            self._lines(bytes(self._begun))
            self._begun.clear()
            self._output.flush()

    def _lines(self, whole: bytes) -> None:
        self._output.writelines(self._prefix + line + b"\n" for line in whole.split(b"\n"))


def writer_for(target: Target, how: How, *, is_alone: bool) -> Writer:
    """To stdout; a prefix says pod and container, which the worker named."""
    prefix = f"[pod/{clean(target.pod)}/{clean(target.container)}] ".encode() if how.prefix else b""
    return Writer(sys.stdout.buffer, prefix=prefix, is_alone=is_alone)


# -- which containers --------------------------------------------------------------------------------------------------


MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Choice:
    """What of the pods is wanted."""

    pod: str = ""
    index: int | None = None
    all_pods: bool = False
    container: str = ""
    all_containers: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """One container of one pod. Where they are empty, who is asked chooses, by the index if there is one."""

    pod: str
    container: str
    index: int | None = None


def choose(pods: Sequence[Pod], choice: Choice) -> tuple[list[Target], str]:
    """The containers to read, and a remark where others could have been meant; no pods, no targets.

    Raises:
        Failure: what was asked for is not there.
    """
    if not pods:
        return [], ""
    chosen, remark = _pods(pods, choice)
    return [target for pod in chosen for target in _containers(pod, choice)], remark


def _pods(pods: Sequence[Pod], choice: Choice) -> tuple[list[Pod], str]:
    if choice.pod:
        named = [pod for pod in pods if pod.name == choice.pod]
        if not named:
            raise Failure(f"the Job has no pod {choice.pod}; its pods: {_named(pod.name for pod in pods)}")
        return named, ""
    if choice.index is not None:
        pods = [pod for pod in pods if pod.index == str(choice.index)]
        if not pods:
            raise Failure(f"the Job has no pod with index {choice.index}")
    if choice.all_pods:
        return sorted(pods, key=order), ""
    best = max(pods, key=_interest)
    if len(pods) == 1:
        return [best], ""
    what = f" (index {best.index})" if best.index else ""
    return [best], f"{len(pods)} pods, showing {best.name}{what}; select with --index or --pod, or use --all-pods"


def _interest(pod: Pod) -> tuple[int, str, str]:
    """What runs is asked for most, then what has failed, then what has ended; of those the newest."""
    rank = {"Running": 3, "Failed": 2, "Succeeded": 1}
    return rank.get(pod.phase, 0), pod.created, pod.name


def _containers(pod: Pod, choice: Choice) -> list[Target]:
    if choice.all_containers:
        return [Target(pod.name, container) for container in pod.containers]
    if choice.container and choice.container not in pod.containers:
        raise Failure(f"pod {pod.name} has no container {choice.container}; its containers: {_named(pod.containers)}")
    return [Target(pod.name, choice.container or pod.main)]


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    shown = ", ".join(listed[:MOST_NAMED])
    return f"{shown} and {len(listed) - MOST_NAMED} more" if len(listed) > MOST_NAMED else shown
