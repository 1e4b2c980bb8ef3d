"""``mirror logs``: what the containers of a mirror wrote, as they wrote it.

Unlike all else that comes from a worker it is passed on byte by byte, as kubectl does it: it is the output of the
user's own program.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import BinaryIO

from mirror.cli.user import printing
from mirror.cli.user.choosing import Choice, Target, choose
from mirror.cli.user.failures import Failure, NotAllowed, NotYet
from mirror.cli.user.inside import Mirror, inside
from mirror.cli.user.logtexts import LogRequest
from mirror.cli.user.pods import Pod, pod_of
from mirror.cli.user.running import progress
from mirror.cli.user.where import Where
from mirror.model.text import clean

LOOK_AGAIN_SECONDS = 1.0
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


async def logs(where: Where, job: str, choice: Choice, how: How) -> None:
    """Write them to stdout.

    Raises:
        Failure: there is nothing to read, or it may not be read.
    """
    async with inside(where, job) as mirror:
        try:
            targets, remark = await _targets(mirror, job, choice, waits=how.follow)
        except NotAllowed:
            # Who may read logs need not be allowed to list pods: the manager can choose as well.
            if choice.all_pods or choice.all_containers or where.worker_context:
                raise
            targets, remark = [Target(choice.pod, choice.container, choice.index)], ""
        if not targets:
            raise Failure(f"Job {job} has no pods on its worker: not created yet, or already deleted")
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


async def _targets(mirror: Mirror, job: str, choice: Choice, *, waits: bool) -> tuple[list[Target], str]:
    """Whose logs; who follows waits for a worker, and for the first pod there."""
    said = ""
    while True:
        try:
            with progress(f"Listing the pods of {job} …"):
                pods: list[Pod] = [pod_of(one) for one in await mirror.pods()]
            targets, remark = choose(pods, choice)
            why = "no pods have been created yet"
        except NotYet as failure:
            if not waits:
                raise
            targets, remark, why = [], "", failure.message
        if targets or not waits:
            return targets, remark
        said = _say_waiting(job, why, said)
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


def _say_waiting(what: str, why: str, said: str) -> str:
    """Say what is waited for, unless that was the last thing said."""
    if why != said:
        printing.remark(f"{what}: {why}; waiting (Ctrl-C to stop)")
    return why


async def _copy(mirror: Mirror, target: Target, how: How, writer: Writer) -> None:
    """One log to its end; who follows waits for its beginning."""
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
    said = ""
    while True:
        try:
            async with mirror.log(wanted) as pieces:
                async for piece in pieces:
                    writer.write(piece)
            break
        except NotYet as failure:
            if not how.follow:
                raise
            said = _say_waiting(target.pod or "the pod", failure.message, said)
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
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
