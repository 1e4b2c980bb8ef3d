"""One container's log as a request and as a stream, of an API server or of the manager, which ask and answer alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from mirror.cli.user.failures import Failure, NotYet
from mirror.kube.client import Client
from mirror.kube.errors import BadRequest, KubeError
from mirror.kube.requests import Request

FOLLOWED_SECONDS = 24 * 3600.0
WHOLE_SECONDS = 3600.0
"""Longest time that a log may take that is not followed."""
ANSWERED_WITHIN_SECONDS = 30.0
_NOT_YET = ("waiting to start", "is not available", "ContainerCreating", "PodInitializing", "does not have a host")


@dataclass(frozen=True, slots=True)
class LogRequest:
    """One container's log, and what of it; the manager chooses pod and container where they are empty."""

    pod: str = ""
    container: str = ""
    follow: bool = False
    tail: int | None = None
    since_seconds: int | None = None
    timestamps: bool = False
    previous: bool = False
    index: int | None = None
    role: str = ""

    @property
    def query_of_manager(self) -> tuple[tuple[str, str], ...]:
        """As the manager wants it."""
        said = {"pod": self.pod, "index": "" if self.index is None else str(self.index), "role": self.role}
        return (*((name, value) for name, value in said.items() if value), *self.query)

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """As an API server wants it."""
        said = {
            "container": self.container,
            "follow": "true" if self.follow else "",
            "tailLines": "" if self.tail is None else str(self.tail),
            "sinceSeconds": "" if self.since_seconds is None else str(self.since_seconds),
            "timestamps": "true" if self.timestamps else "",
            "previous": "true" if self.previous else "",
        }
        return tuple((name, value) for name, value in said.items() if value)


@asynccontextmanager
async def stream(
    client: Client,
    path: str,
    query: tuple[tuple[str, str], ...],
    *,
    follow: bool,
    describe: Callable[[KubeError], Failure],
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Open it, and hand out its text as it comes.

    Raises, also while it is read:
        NotYet: there is nothing to read yet.
        Failure: of ``describe``.
    """
    seconds = FOLLOWED_SECONDS if follow else WHOLE_SECONDS
    request = Request("get", "GET", path, query, deadline_seconds=seconds)
    has_begun = False
    try:
        async with client.text(request, answered_within_seconds=ANSWERED_WITHIN_SECONDS) as pieces:
            has_begun = True
            yield pieces
    except KubeError as error:
        if has_begun:
            raise Failure(f"the log stream ended early: {error}") from error
        if isinstance(error, BadRequest) and any(sign in error.message for sign in _NOT_YET):
            raise NotYet(error.brief) from error
        raise describe(error) from error
