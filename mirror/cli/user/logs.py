"""``mirror logs``: what the containers of mirrors wrote, as they wrote it.

Unlike all else that comes from a worker it is passed on byte by byte, as kubectl does it: it is the output of the
user's own program. Which pods and containers is in ``log_targets``, how it is printed in ``log_output``.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import IO, TypeVar

import tenacity

from mirror.cli.user import printing
from mirror.cli.user.cluster import Cluster
from mirror.cli.user.failures import Busy, Failure, KindNotServed, NotAllowed, NotYet
from mirror.cli.user.log_options import LogOptions
from mirror.cli.user.log_output import Output, Writer, title_of
from mirror.cli.user.log_targets import Choice, Target, choose
from mirror.cli.user.logtexts import LogRequest
from mirror.cli.user.mirrors import Mirror, Mirrors, mirrors
from mirror.cli.user.naming import Named, kinds
from mirror.cli.user.options import Where
from mirror.cli.user.pods import Pod, no_pods_of, pod_of
from mirror.cli.user.running import progress
from mirror.cli.user.sources import is_source
from mirror.model.text import clean

T = TypeVar("T")

RETRY_SECONDS = 1.0
MOST_ATTEMPTS = 30
"""While the manager limits requests."""
MOST_AT_ONCE = 8
"""Streams that are followed together: the manager gives nobody more."""
READ_AT_ONCE = 4
"""Logs that are read at once where they are printed one after the other."""
KEPT_IN_MEMORY_BYTES = 1 << 20
"""Of a log that waits for its turn; what goes beyond is in a temporary file."""
PIECE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class How:
    """What of a log is wanted."""

    follow: bool = False
    tail: int | None = None
    since_seconds: int | None = None
    timestamps: bool = False
    previous: bool = False

    def request(self, target: Target) -> LogRequest:
        """For one container."""
        return LogRequest(
            pod=target.pod,
            container=target.container,
            index=target.index,
            role=target.role,
            follow=self.follow,
            tail=self.tail,
            since_seconds=self.since_seconds,
            timestamps=self.timestamps,
            previous=self.previous,
        )


@dataclass(frozen=True, slots=True)
class OneLog:
    """One container's log, and who gives it."""

    mirror: Mirror
    target: Target
    is_scheduled: bool = True
    """Its pod has a node. The log of one that has none is empty and ends at once, as API servers have it."""


async def logs(where: Where, names: Sequence[Named], said: LogOptions) -> None:
    """Write logs of Jobs' containers to stdout.

    Args:
        where: the clusters.
        names: of the Jobs; empty: those with the labels that are said.
        said: the options.

    Raises:
        Failure: there is nothing to read, or it may not be read; of several logs, the others are read before.
    """
    async with mirrors(where) as found:
        wanted = names or await _selected(found.cluster, said.selector)
        if not wanted:
            where_text = f"with labels {said.selector} in namespace {found.cluster.namespace}"
            printing.remark(f"No mirrored Jobs found {where_text}.")
            return
        reading = Reading(found, said, is_one=len(wanted) == 1, chooses_elsewhere=not where.worker_context)
        await (reading.follow(wanted) if said.follow else reading.print(wanted))


async def _selected(cluster: Cluster, labels: str) -> list[Named]:
    """The sources with these labels, of all kinds that are served and may be listed.

    Raises:
        Failure: none can be listed.
    """
    found: list[Named] = []
    left_out: list[Failure] = []
    for kind in kinds():
        try:
            objects, _ = await cluster.objects(kind.resource, namespace=cluster.namespace, labels=labels)
        except (KindNotServed, NotAllowed) as failure:
            left_out.append(failure)
            continue
        found += [Named(kind, one.metadata.name) for one in objects if is_source(kind, one)]
    if len(left_out) == len(tuple(kinds())):
        raise left_out[0]
    for one in left_out:
        if isinstance(one, NotAllowed):
            printing.remark(one.message)
    return found


class Reading:
    """Reads the logs of Jobs; what is wrong with one is said, and does not end the others."""

    def __init__(self, found: Mirrors, said: LogOptions, *, is_one: bool, chooses_elsewhere: bool) -> None:
        """Create it.

        Args:
            found: who gives logs.
            said: the options.
            is_one: there is one Job only, so its failure is the command's.
            chooses_elsewhere: who is asked can choose a pod, too, for users who may not list pods.
        """
        self._found = found
        self._is_one = is_one
        self._choice = Choice(said.pod, said.index, said.role, said.wants_all_pods, said.container, said.all_containers)
        self._how = How(said.follow, said.lines, said.since, said.timestamps, said.previous)
        self._may_leave_choice = chooses_elsewhere and not (said.wants_all_pods or said.all_containers)
        self._with_prefix = said.with_prefix(is_one=is_one)
        self._failed = 0
        self._all = 0

    # -- one after the other ------------------------------------------------------------------------------------------

    async def print(self, wanted: Sequence[Named]) -> None:
        """Print the logs of these Jobs in their order.

        Raises:
            Failure: of the only one, or how many failed.
        """
        listed: list[OneLog] = []
        for one in wanted:
            try:
                listed += await self._logs_of(one)
            except Failure as failure:
                self._note(str(one), failure)
        self._all += len(listed)
        output = Output(with_prefix=self._with_prefix, is_alone=True)
        if self._is_one and len(listed) == 1:
            writer = output.writer(listed[0].target)
            await self._copy(listed[0], writer.write)
            writer.end()
            return
        await self._print_in_order(listed, output)
        self._end()

    async def _print_in_order(self, listed: Sequence[OneLog], output: Output) -> None:
        """Print one after the other, while the next ones are read already."""
        left, under_way = deque(listed), deque[tuple[OneLog, asyncio.Task[_Kept]]]()
        async with asyncio.TaskGroup() as scope:
            while left or under_way:
                while left and len(under_way) < READ_AT_ONCE:
                    one = left.popleft()
                    reading = scope.create_task(self._kept(one), name=f"log of {one.target.pod}")
                    under_way.append((one, reading))
                one, reading = under_way.popleft()
                kept = await reading
                with kept.text as text:
                    writer = output.writer(one.target)
                    while piece := text.read(PIECE_BYTES):
                        writer.write(piece)
                    writer.end()
                if kept.failure is not None:
                    self._note(title_of(one.target), kept.failure)

    async def _kept(self, one: OneLog) -> _Kept:
        text = tempfile.SpooledTemporaryFile(KEPT_IN_MEMORY_BYTES)  # noqa: SIM115 - closed by who prints it
        failure: Failure | None = None
        try:
            await self._copy(one, text.write)
        except Failure as error:
            failure = error
        except BaseException:
            text.close()
            raise
        text.seek(0)
        return _Kept(text, failure)

    # -- together -----------------------------------------------------------------------------------------------------

    async def follow(self, wanted: Sequence[Named]) -> None:
        """Print what the containers of these Jobs write, until all have terminated.

        Raises:
            Failure: they are too many; of the only one, or how many failed.
        """
        if len(wanted) > MOST_AT_ONCE:
            raise _too_many(len(wanted), "Jobs")
        async with asyncio.TaskGroup() as scope:
            for one in wanted:
                scope.create_task(self._follow_job(one, scope), name=f"logs of {one.name}")
        self._end()

    async def _follow_job(self, wanted: Named, scope: asyncio.TaskGroup) -> None:
        try:
            listed = await self._logs_of(wanted)
            if self._all + len(listed) > MOST_AT_ONCE:
                raise _too_many(self._all + len(listed), "logs")
        except Failure as failure:
            self._note(str(wanted), failure)
            return
        self._all += len(listed)
        is_alone = self._is_one and len(listed) == 1
        output = Output(with_prefix=self._with_prefix, is_alone=is_alone)
        for one in listed:
            scope.create_task(self._follow_one(one, output.writer(one.target), is_alone), name=one.target.pod)

    async def _follow_one(self, one: OneLog, writer: Writer, is_alone: bool) -> None:
        try:
            await self._copy(one, writer.write)
        except Failure as failure:
            if is_alone:
                raise
            self._note(title_of(one.target), failure)
        finally:
            writer.end()

    # -- both ---------------------------------------------------------------------------------------------------------

    async def _logs_of(self, wanted: Named) -> list[OneLog]:
        """Whose logs; with ``--follow`` it waits for a worker, and for the first pod there."""

        async def look() -> list[OneLog]:
            mirror = await self._found.of(wanted)
            with progress(f"Listing the pods of {wanted.name} …"):
                try:
                    pods: list[Pod] = [pod_of(one, wanted.kind) for one in await mirror.pods()]
                except NotAllowed:
                    # Who may read logs need not be allowed to list pods: the manager can choose as well.
                    if not self._may_leave_choice:
                        raise
                    choice = self._choice
                    return [OneLog(mirror, Target(choice.pod, choice.container, choice.index, choice.role))]
            targets, remark = choose(pods, self._choice, wanted.kind)
            if not targets:
                if self._how.follow and wanted.kind.knows_pods:
                    raise NotYet("no pods have been created yet")
                raise Failure(no_pods_of(wanted, "not created yet, or already deleted"))
            if remark:
                printing.remark(remark)
            unscheduled = {pod.name for pod in pods if pod.phase == "Pending" and not pod.node}
            if not self._how.follow:
                for name in sorted(unscheduled & {target.pod for target in targets}):
                    printing.remark(f"pod {clean(name)} has not started; mirror explain {wanted.name} says why")
            return [OneLog(mirror, target, target.pod not in unscheduled) for target in targets]

        return await self._patiently(wanted.name, look)

    async def _copy(self, one: OneLog, write: Callable[[bytes], object]) -> None:
        """One log to its end; with ``--follow`` it waits for its beginning."""

        async def copy() -> None:
            if self._how.follow and not one.is_scheduled:
                await _require_node(one)
            async with one.mirror.log(self._how.request(one.target)) as pieces:
                async for piece in pieces:
                    write(piece)

        await self._patiently(one.target.pod or "the pod", copy)

    async def _patiently(self, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """Retry while the manager limits requests and, with ``--follow``, while something may still come."""
        said = ""

        def announce(state: tenacity.RetryCallState) -> None:
            nonlocal said
            error = state.outcome.exception() if state.outcome else None
            why = str(error or "")
            if isinstance(error, NotYet) and why != said:
                printing.remark(f"{what}: {why}; waiting (Ctrl-C to stop)")
                said = why

        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type((NotYet, Busy) if self._how.follow else Busy),
            wait=tenacity.wait_fixed(RETRY_SECONDS),
            stop=tenacity.stop_never if self._how.follow else tenacity.stop_after_attempt(MOST_ATTEMPTS),
            before_sleep=announce,
            reraise=True,
        )
        return await retrying(work)

    def _note(self, what: str, failure: Failure) -> None:
        """Say what is wrong with one; of the only Job it is the command's failure."""
        if self._is_one and not self._all:
            raise failure
        self._failed += 1
        printing.remark(f"{what}: {failure.message}")

    def _end(self) -> None:
        if self._failed:
            raise Failure(f"{self._failed} of the logs could not be read, see above")


@dataclass(frozen=True, slots=True)
class _Kept:
    """A log that waits for its turn, and how its reading failed."""

    text: IO[bytes]
    failure: Failure | None


async def _require_node(one: OneLog) -> None:
    """Go on if the pod has a node by now.

    Raises:
        NotYet: it has not.
        Failure: it has been deleted.
    """
    pods = [pod for pod in map(pod_of, await one.mirror.pods()) if pod.name == one.target.pod]
    if not pods:
        raise Failure(f"pod {one.target.pod} was deleted before it started")
    if not pods[0].node:
        raise NotYet("it is not scheduled yet")


def _too_many(count: int, what: str) -> Failure:
    select = "select with --index, --pod, -c or -l"
    return Failure(f"{count} {what} are too many to follow ({MOST_AT_ONCE} at most); {select}")
