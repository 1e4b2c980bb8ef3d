"""Leader election on a Lease: one process works, the others stand by.

Own, because the known Python one goes on working after it lost its lease (docs/libraries.md). Promises: the leader's
work is cancelled *and has ended* before anybody else may take the lease; time is measured monotonically on each side,
by a clock that counts while the machine sleeps; a clean exit hands the lease over at once. Where nothing is cancelled
in time, because the process was stopped or the machine slept, the ``WritePermit`` keeps the writes back (D28).
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mirror.kube import requests
from mirror.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    NotServed,
    ServerFailure,
    Unauthorized,
    describe,
    refusal_of,
)
from mirror.kube.permits import WritePermit
from mirror.kube.resources import LEASES
from mirror.model.endings import MustEnd
from mirror.runtime.answered import answered
from mirror.runtime.clock import Clock
from mirror.runtime.lease_format import lease_of, micro_time
from mirror.settings.schema import LeaderElection
from mirror.telemetry.logs import Log

ANSWER_SECONDS = 2.0
"""So long who leaves waits for the answer to what it has written last, and then tries to hand the lease over."""


class LeadershipLost(MustEnd):
    """The lease could not be renewed in time; the work has been stopped."""


class Sender(Protocol):
    """Sends a request and returns the answer's body."""

    async def send(self, request: requests.Request) -> bytes: ...


Guard = Callable[[], Awaitable[bool]]
"""Whether a lease may be held now, as something else says; raises KubeError where that cannot be known."""


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Which lease, whose, and its times in seconds; duration > deadline > period."""

    namespace: str
    name: str
    identity: str
    duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Written with our name; whoever takes the lease afterwards may leave them."""
    guard: Guard | None = None
    """Asked before each write that takes or renews the lease, which counts from before that."""

    @classmethod
    def of_process(cls, election: LeaderElection, namespace: str, name: str) -> LeaseSettings:
        """As the settings have it; our name is one that no other process has, on this machine or another."""
        return cls(
            namespace,
            name,
            identity=f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}",
            duration_seconds=election.lease_duration_seconds,
            renew_deadline_seconds=election.renew_deadline_seconds,
            retry_period_seconds=election.retry_period_seconds,
        )


@dataclass(frozen=True, slots=True)
class Sighting:
    """A state of the lease that somebody else holds, and when we first saw it (``Clock.boottime``)."""

    holder: str
    version: str
    at: float
    duration_seconds: float


def may_take(seen: Sighting | None, identity: str, now: float) -> bool:
    """Whether the lease is free: nobody's, ours, or not renewed for its whole duration since *we* first saw it so."""
    if seen is None or seen.holder in ("", identity):
        return True
    return now >= seen.at + seen.duration_seconds


class Leadership:
    """Takes the lease, keeps it while the work runs, gives it back."""

    def __init__(
        self,
        sender: Sender,
        settings: LeaseSettings,
        *,
        clock: Clock,
        log: Log,
        permit: WritePermit | None = None,
        seen: Sighting | None = None,
    ) -> None:
        """``permit``: what the clients of the leader's work look at; ``seen``: the lease as it was watched so far."""
        self._permit = permit if permit is not None else WritePermit(clock.boottime)
        self._sender = sender
        self._settings = settings
        self._clock = clock
        self._log = log
        self._chance = random.Random()
        self._seen = seen
        self._body: dict[str, Any] = {}
        # When the last write that gave us the lease was asked for: others count from when it was carried out.
        self._held_since = 0.0
        self._guarded_at = float("inf")  # when the guard was asked last
        self._is_denied = False  # by the guard
        self._term = ("", 0)
        self._is_open = False  # whether our name was written, and nobody knows whether it is there
        self._is_leaving = False
        self._freed = asyncio.Event()
        self.is_leader = False
        # Since when the API server fails to answer for the Lease; None: it does answer, or the Lease is another's.
        self._failing_since: float | None = None
        self.obstacle = ""
        """Why the Lease cannot be taken by anybody with our permissions; empty while another may simply hold it."""

    @property
    def term(self) -> tuple[str, int]:
        """Which time of holding the lease this is: the same for nobody else, nor for us after losing it (S6)."""
        return self._term

    def note_free(self) -> None:
        """Somebody has seen that the lease is nobody's: it is tried at once."""
        self._freed.set()

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, do the work while it is held, release it.

        Raises:
            LeadershipLost: the lease could not be kept; the work has ended before this is raised.
        """
        try:
            await self._acquire()
            self.is_leader = True
            self._log.info("leading", identity=self._settings.identity)
            await self._work_while_renewing(work)
        finally:
            await asyncio.shield(self._end())

    async def _acquire(self) -> None:
        while True:
            is_worth_it = False
            try:
                is_taken = await self._try_to_take()
            except (KubeError, TimeoutError) as error:
                self._note_obstacle(error)
                is_worth_it = isinstance(error, Conflict)
            else:
                self.obstacle, self._failing_since = "", None
                if is_taken:
                    return
                is_worth_it = not self._is_denied
            period = self._settings.retry_period_seconds
            # It is tried as soon as it may be free, unless something else keeps us from it: that takes its time.
            delay = min(period, self._until_free()) if is_worth_it else period
            with suppress(TimeoutError):
                async with asyncio.timeout(delay * (1 + 0.1 * self._chance.random())):
                    await self._freed.wait()
            self._freed.clear()

    def _note_obstacle(self, error: KubeError | TimeoutError) -> None:
        """What waiting will not mend is logged once, and what ``obstacle`` says of readiness.

        So is a server that answers, and fails with the Lease for longer than anybody may hold it: its etcd is full.
        """
        settings, what, now = self._settings, "", self._clock.boottime()
        if not isinstance(error, ServerFailure):
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since >= settings.duration_seconds:
            what = describe(error)
        if isinstance(error, NotFound | NotServed) and error.about_kind == "namespaces":
            what = f"namespace {settings.namespace} not found on this cluster (setting namespace)"
        elif isinstance(error, Forbidden | Unauthorized | NotServed | Invalid):
            what = refusal_of(error)
        if not what:
            return  # a conflict, or an outage, which others report
        obstacle = f"Lease {settings.namespace}/{settings.name} cannot be taken: {what}"
        if obstacle != self.obstacle:
            self.obstacle = obstacle
            self._log.warning("lease not taken", because=obstacle)

    def _until_free(self) -> float:
        if self._seen is None:
            return self._settings.retry_period_seconds
        return max(0.05, self._seen.at + self._seen.duration_seconds - self._clock.boottime())

    async def _work_while_renewing(self, work: Callable[[], Awaitable[None]]) -> None:
        lost = False

        async def renew() -> None:
            nonlocal lost
            await self._renew_until_lost()
            self._permit.revoke()
            lost = True
            working.cancel()

        async with asyncio.TaskGroup() as scope:
            working = scope.create_task(_plain(work), name="leader's work")
            renewing = scope.create_task(renew(), name="renew lease")
            working.add_done_callback(lambda _: self._leave(renewing))
            try:
                await asyncio.wait({working})
            except asyncio.CancelledError:
                # The work may take a moment to end, and needs the lease for it.
                working.cancel()
                await asyncio.wait({working, renewing})
                raise
        if lost:
            raise LeadershipLost(f"the lease {self._settings.name} could not be renewed in time")

    def _leave(self, renewing: asyncio.Task[None]) -> None:
        self._is_leaving = True
        renewing.cancel()

    async def _renew_until_lost(self) -> None:
        """Return once the lease has not been renewed for the renew deadline, or is somebody else's."""
        while True:
            await asyncio.sleep(min(self._settings.retry_period_seconds, self._left()))
            left = self._left()
            if left <= 0:
                return
            try:
                async with asyncio.timeout(left):
                    if not await self._try_to_take():
                        return
            except Conflict:
                continue
            except (KubeError, TimeoutError) as error:
                self._log.warning("lease not renewed", error=error)

    def _left(self) -> float:
        """For how long the lease is ours without another renewal, in seconds; 0 if it is not."""
        return max(0.0, self._held_since + self._settings.renew_deadline_seconds - self._clock.boottime())

    async def _try_to_take(self) -> bool:
        """Write our name into the lease if it is free; False if somebody else holds it, or the guard forbids it."""
        settings = self._settings
        if settings.guard is not None:
            self._guarded_at = self._clock.boottime()
            self._is_denied = not await settings.guard()
            if self._is_denied:
                return False
        if not (self.is_leader and self._body):
            try:
                self._remember(await self._read())
            except NotFound:
                return await self._create()
        if not may_take(self._seen, settings.identity, self._clock.boottime()):
            return False
        wanted = requests.update(LEASES, settings.name, self._wanted(self._body), namespace=settings.namespace)
        asked_at = self._clock.boottime()
        try:
            await self._write(wanted)
        except (Conflict, NotFound):
            self._body = {}  # somebody else wrote or deleted it: look before the next try
            raise
        self._hold(asked_at)
        return True

    async def _create(self) -> bool:
        create = requests.create(LEASES, self._wanted({}), namespace=self._settings.namespace)
        asked_at = self._clock.boottime()
        try:
            await self._write(create)
        except AlreadyExists:
            return False
        self._hold(asked_at)
        return True

    def _hold(self, asked_at: float) -> None:
        """The lease is ours; ``asked_at``: when the write that says so was asked for (D28)."""
        self._held_since = since = min(asked_at, self._guarded_at)
        metadata, spec = self._body.get("metadata") or {}, self._body.get("spec") or {}
        self._term = str(metadata.get("uid", "")), int(spec.get("leaseTransitions") or 0)
        until = since + self._settings.renew_deadline_seconds
        self._permit.extend(until=until, ends=since + self._settings.duration_seconds)

    async def _end(self) -> None:
        try:
            await self._release()
        finally:
            self.is_leader = False
            self._permit.revoke()

    async def _release(self) -> None:
        """Hand the lease over; whatever fails, it ends by itself after its duration."""
        is_ours = (self._body.get("spec") or {}).get("holderIdentity") == self._settings.identity
        if not (is_ours or self._is_open):
            return
        # No work is left. The renew deadline may be over, and nobody else can hold the lease before its end.
        ends = self._held_since + self._settings.duration_seconds
        self._permit.extend(until=ends, ends=ends)
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(ANSWER_SECONDS):
                try:
                    await self._hand_over(self._body if is_ours else await self._read())
                except Conflict:
                    # The server has carried out a renewal whose answer nobody has read.
                    await self._hand_over(await self._read())

    async def _hand_over(self, body: dict[str, Any]) -> None:
        settings, spec = self._settings, body.get("spec") or {}
        if spec.get("holderIdentity") != settings.identity:
            return
        released = body | {"spec": spec | {"holderIdentity": "", "leaseDurationSeconds": 1}}
        await self._send(requests.update(LEASES, settings.name, released, namespace=settings.namespace))
        self._log.info("lease released")

    async def _read(self) -> dict[str, Any]:
        return await self._send(requests.get(LEASES, self._settings.name, namespace=self._settings.namespace))

    async def _write(self, request: requests.Request) -> None:
        """Send what makes the lease ours. A renewal that takes too long is given up; who leaves hears its answer."""
        await answered(
            self._write_and_remember(request),
            seconds=ANSWER_SECONDS,
            is_patient=lambda: self._is_leaving or not self.is_leader,
        )

    async def _write_and_remember(self, request: requests.Request) -> None:
        self._is_open = True
        try:
            self._remember(await self._send(request))
        except (Conflict, AlreadyExists, NotFound):
            self._is_open = False
            raise
        self._is_open = False

    async def _send(self, request: requests.Request) -> dict[str, Any]:
        # A request that is given up costs its connection, so where the server is slow one has to be waited for.
        deadline = max(2 * self._settings.retry_period_seconds, self._settings.renew_deadline_seconds / 2)
        # A renewal is a write like those that it permits; who does not lead yet is guarded by the resourceVersion.
        urgent = replace(request, urgent=True, deadline_seconds=deadline, any_replica=not self.is_leader)
        return lease_of(await self._sender.send(urgent))

    def _remember(self, body: dict[str, Any]) -> None:
        self._body = body
        spec = body.get("spec") or {}
        version = str((body.get("metadata") or {}).get("resourceVersion", ""))
        holder = str(spec.get("holderIdentity") or "")
        if self._seen is None or (self._seen.version, self._seen.holder) != (version, holder):
            duration = float(spec.get("leaseDurationSeconds") or self._settings.duration_seconds)
            self._seen = Sighting(holder, version, self._clock.boottime(), duration)

    def _wanted(self, body: dict[str, Any]) -> dict[str, Any]:
        settings, now = self._settings, micro_time(self._clock.now())
        spec = dict(body.get("spec") or {})
        # Who has lost it and takes it again begins anew, too.
        changes_hands = not self.is_leader or spec.get("holderIdentity") != settings.identity
        transitions = int(spec.get("leaseTransitions") or 0) + (1 if body and changes_hands else 0)
        wanted = {
            "holderIdentity": settings.identity,
            "leaseDurationSeconds": max(1, round(settings.duration_seconds)),
            "acquireTime": now if changes_hands else spec.get("acquireTime", now),
            "renewTime": now,
            "leaseTransitions": transitions,
        }
        metadata = dict(body.get("metadata") or {"name": settings.name, "namespace": settings.namespace})
        if settings.annotations:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **settings.annotations}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec | wanted}


async def _plain(work: Callable[[], Awaitable[None]]) -> None:
    await work()
