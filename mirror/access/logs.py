"""Streams the log of a container from a worker to the caller, within bounds; bytes are passed on unchanged.

A log that ends with its container ends well; one that is cut, by a bound or a failure, is broken off, so that a client
can tell. Leaving cancels everything up to the worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Protocol
from urllib.parse import quote

from mirror.access.answers import StatusError, no_pod
from mirror.access.bounds import Bounds
from mirror.access.mirrors import Mirror, Mirrors, refusal_of
from mirror.access.pods import Pod, choose
from mirror.access.request_parsing import LogOptions, Page
from mirror.access.reviews import Person
from mirror.access.under_way import Most, UnderWay
from mirror.kube.errors import KubeError, describe
from mirror.kube.requests import Rank, Request
from mirror.kube.resources import PODS


class Cut(Exception):
    """A log stream ended early; the text is the reason."""


class Out(Protocol):
    """Where a log goes."""

    async def begin(self, headers: tuple[tuple[str, str], ...]) -> None:
        """Say that text follows."""
        ...

    async def write(self, piece: bytes) -> None:
        """Hand on some of it; waits while the reader is slow."""
        ...


class Logs:
    """Counts who reads, finds the pod, and hands on."""

    def __init__(self, mirrors: Mirrors, bounds: Bounds) -> None:
        self._mirrors = mirrors
        self._bounds = bounds
        self._reading = UnderWay(retry_after_seconds=5)

    async def pod(self, mirror: Mirror, wanted: LogOptions, person: Person) -> Pod:
        """The pod that is meant.

        Raises:
            StatusError: there is none, or none of this mirror's.
        """
        if wanted.pod:
            pod, key = await self._mirrors.pod(mirror, wanted.pod, person), mirror.kind.pod_index
            labels, roles = pod.metadata.labels or {}, mirror.kind.pod_roles
            index = (pod.metadata.annotations or {}).get(key) or labels.get(key)
            if wanted.index is not None and index != str(wanted.index):
                raise no_pod(mirror.kind, wanted.pod)
            if not roles.is_meant(wanted.role, roles.of(labels)):
                raise no_pod(mirror.kind, wanted.pod)
            return pod
        pods, _ = await self._mirrors.pods(mirror, Page(index=wanted.index, role=wanted.role), person)
        chosen = choose(pods, mirror.kind.pod_roles)
        if chosen is None:
            which = f" of role {wanted.role}" if wanted.role else ""
            which += f" of index {wanted.index}" if wanted.index is not None else ""
            text = (
                f"the {mirror.kind.name} has no pods{which} on worker {mirror.worker.name} (not yet, or not any more)"
            )
            raise StatusError(404, text)
        return chosen

    def containers(self, pod: Pod, wanted: LogOptions) -> tuple[str, ...]:
        """Those whose logs are wanted.

        Raises:
            StatusError: 400 for one that the pod has not.
        """
        if wanted.all_containers:
            return pod.containers
        name = wanted.container or pod.default_container
        if not name or name not in pod.containers:
            has = ", ".join(pod.containers)
            raise StatusError(400, f"pod {pod.metadata.name} has no container {name or '(none)'}; it has {has}")
        return (name,)

    def counted(self, person: Person, namespace: str) -> AbstractContextManager[None]:
        """While a log is read.

        Raises:
            StatusError: 429 where too many are.
        """
        of_one, of_namespace = self._bounds.streams_of_one, self._bounds.streams_of_namespace
        bounds = (
            Most(("person", person.name), of_one, f"you read {of_one} logs already"),
            Most(
                ("namespace", namespace), of_namespace, f"{of_namespace} logs of namespace {namespace} are read already"
            ),
            Most("all", self._bounds.streams, "too many logs are read at once"),
        )
        return self._reading.one_more(bounds)

    @asynccontextmanager
    async def opened(
        self, mirror: Mirror, pod: Pod, container: str, wanted: LogOptions, person: Person
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """The bytes of one container's log, once it is sure that they are of this very pod.

        Raises:
            StatusError: the worker does not give it.
        """
        bounds = self._bounds
        request = _request(mirror, pod, container, wanted, bounds).in_line(Rank.LAST, person.name)
        worker = mirror.worker
        try:
            async with worker.client.text(request, answered_within_seconds=bounds.answer_seconds) as pieces:
                # A log is asked for by name: had another pod taken the name meanwhile, it would be that one's.
                again = await self._mirrors.pod(mirror, pod.metadata.name, person)
                if again.metadata.uid != pod.metadata.uid:
                    raise no_pod(mirror.kind, pod.metadata.name)
                yield pieces
        except KubeError as error:
            raise refusal_of(error, worker.name, "get pods/log") from error

    async def hand_on(self, pieces: AsyncIterator[bytes], out: Out, *, follow: bool, already: int = 0) -> int:
        """Write everything that comes; return how many bytes there were.

        Raises:
            Cut: not everything came, or was taken.
        """
        bounds, count = self._bounds, already
        silent = None if follow else bounds.silent_seconds
        while True:
            try:
                async with asyncio.timeout(silent):
                    piece = await anext(pieces, b"")
            except TimeoutError:
                raise Cut("the worker was silent for too long") from None
            except KubeError as error:
                raise Cut(f"the connection to the worker failed: {describe(error)}") from error
            if not piece:
                return count
            count += len(piece)
            if count > bounds.log_bytes:
                raise Cut("the log is too long")
            try:
                async with asyncio.timeout(bounds.write_seconds):
                    await out.write(piece)
            except TimeoutError:
                raise Cut("the reader did not read") from None


def _request(mirror: Mirror, pod: Pod, container: str, wanted: LogOptions, bounds: Bounds) -> Request:
    query = [("container", container)]
    query += [
        (name, "true")
        for name, is_set in (
            ("follow", wanted.follow),
            ("timestamps", wanted.timestamps),
            ("previous", wanted.previous),
        )
        if is_set
    ]
    numbers = {
        "tailLines": wanted.tail_lines,
        "sinceSeconds": wanted.since_seconds,
        "limitBytes": wanted.limit_bytes,
    }
    query += [(name, str(number)) for name, number in numbers.items() if number is not None]
    if wanted.since_time:
        query.append(("sinceTime", wanted.since_time))
    path = f"{PODS.path(mirror.namespace)}/{quote(pod.metadata.name, safe='')}/log"
    seconds = bounds.follow_seconds if wanted.follow else bounds.read_seconds
    return Request("get", "GET", path, tuple(query), deadline_seconds=seconds)
