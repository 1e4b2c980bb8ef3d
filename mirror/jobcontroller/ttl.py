"""Deletes finished Jobs once their ``ttlSecondsAfterFinished`` is over (J1), whoever ran them.

Where kube-controller-manager runs without its Job controller, its TTL controller does the same; that both ask is
harmless, since each deletes by uid. Told of changes of Jobs by ``process``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

from mirror.batch import conditions
from mirror.jobcontroller.metrics import JobMetrics
from mirror.kube import requests
from mirror.kube.errors import Conflict, NotFound
from mirror.kube.objects import JUNK, Object, decode_object
from mirror.kube.requests import Rank
from mirror.kube.resources import JOBS
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change
from mirror.runtime.loop import consume, is_unreachable
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log

QUEUE = "ttl_jobs_to_delete"
WORKERS = 5
AGAIN_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 24 * 3600.0

Name = tuple[str, str]


class Sender(Protocol):
    """Sends a request and returns the answer's body."""

    async def send(self, request: requests.Request) -> bytes: ...


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    ttl_seconds_after_finished: int | None = None


class _Condition(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _Status(msgspec.Struct, gc=False):
    conditions: list[_Condition] | None = None


_decode_spec = msgspec.json.Decoder(_Spec | None).decode
_decode_status = msgspec.json.Decoder(_Status | None).decode


def due_at(found: Object) -> float | None:
    """When a Job is to be deleted, in seconds since the epoch; None while it need not be."""
    if b'"ttlSecondsAfterFinished"' not in bytes(found.spec) or found.metadata.deletion_timestamp is not None:
        return None
    try:
        spec, status = _decode_spec(found.spec) or _Spec(), _decode_status(found.status) or _Status()
    except JUNK:
        return None
    ended = [one for one in status.conditions or () if one.type in conditions.FINAL and one.status == conditions.TRUE]
    if spec.ttl_seconds_after_finished is None or not ended or ended[0].last_transition_time is None:
        return None
    return ended[0].last_transition_time.timestamp() + spec.ttl_seconds_after_finished


class TimeToLive:
    """Knows which finished Jobs are due, and deletes them."""

    def __init__(self, sender: Sender, jobs: Store, *, metrics: JobMetrics, clock: Clock, log: Log) -> None:
        self._sender = sender
        self._jobs = jobs
        self._metrics = metrics
        self._clock = clock
        self._log = log
        retry = Backoff(first=0.005, most=1000.0)
        self.queue: WorkQueue[Name] = WorkQueue(lambda _: "", clock=clock, lane_limit=WORKERS, backoff=retry)
        self._is_leading = False
        metrics.watch_queue(QUEUE, self.queue)

    def on_job(self, old: Object | None, new: Object | None, change: Change) -> None:
        """A Job came, changed or went."""
        if self._is_leading and new is not None and due_at(new) is not None:
            self.queue.add((new.metadata.namespace, new.metadata.name))

    async def lead(self) -> None:
        """Delete what is due, until cancelled. The cache must be complete."""
        self._is_leading = True
        for found in self._jobs:
            self.on_job(None, found, Change.SEEN)
        try:
            observer = self._metrics.queue_observer(QUEUE)
            await consume(self.queue, self._work_on, log=self._log, observer=observer, is_outage=is_unreachable)
        finally:
            self._is_leading = False
            self.queue.close()

    async def _work_on(self, name: Name) -> float | None:
        found = self._jobs.get(*name)
        due = due_at(found) if found is not None else None
        if found is None or due is None:
            return None
        if (left := due - self._clock.now().timestamp()) > 0:
            return min(left, LONGEST_WAIT_SECONDS)
        return await self._delete(found)

    async def _delete(self, cached: Object) -> float | None:
        """Only what is due by the server's own word, and only this very Job: a TTL may be prolonged or taken away."""
        metadata = cached.metadata
        ask = requests.get(JOBS, metadata.name, namespace=metadata.namespace).in_line(Rank.SECOND)
        try:
            found = decode_object(await self._sender.send(ask))
        except NotFound:
            return None
        due, now = due_at(found), self._clock.now().timestamp()
        if found.metadata.uid != metadata.uid or due is None:
            return None
        if due > now:
            return min(due - now, LONGEST_WAIT_SECONDS)
        delete = requests.delete(
            JOBS, metadata.name, namespace=metadata.namespace, uid=metadata.uid, propagation="Foreground"
        )
        try:
            await self._sender.send(delete.in_line(Rank.SECOND))
        except NotFound:
            return None
        except Conflict:
            return AGAIN_SECONDS  # another of this name, or another change of this one: the next look will tell
        self._metrics.on_expired(self._clock.now().timestamp() - due)
        self._log.info("deleted: its time to live is over", job=f"{metadata.namespace}/{metadata.name}")
        return None
