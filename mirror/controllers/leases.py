"""The leases of fenced mirrors, as far as they are the shell's: written, bounded, watched (D14).

When one is renewed is decided in ``decide.fencing``; what is stored of all of a worker is ``workers.fence_record``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from mirror.controllers.refusing import refusal_text
from mirror.controllers.rereading import patch_mirror
from mirror.controllers.write_context import WriteContext
from mirror.decide.fencing import seconds_left
from mirror.decide.plan import RenewLease
from mirror.decide.snapshot import Snapshot, WorkerSight
from mirror.kinds.base import Json
from mirror.kube import requests
from mirror.kube.errors import BadRequest, Forbidden, Invalid, KubeError, ServerFailure
from mirror.model import names
from mirror.model.fences import FENCED, mark_of
from mirror.runtime.slices import in_slices
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker

LOOK_SECONDS = 5.0
COUNTED_SECONDS = 60.0
ROUNDING_SECONDS = 2.0
"""A lease is in whole seconds, and a worker's time is known to half a second."""


class Leases:
    """Writes them; an error ends the plan and is retried by the loop."""

    def __init__(self, context: WriteContext, registry: Registry, *, ttl_seconds: int) -> None:
        self._t = context
        self._registry = registry
        self._ttl = ttl_seconds
        self._log = context.environment.log
        # When the pods of a worker were last counted, and how many there were; of workers that are lost.
        self._pods: dict[str, tuple[float, int]] = {}

    # -- before a lease is sent -------------------------------------------------------------------------------------

    async def cover(self, worker: Worker, ends_in_seconds: float) -> None:
        """Have it stored that a lease there may end so late.

        Raises:
            KubeError: it could not be: the lease must not be sent.
        """
        now = self._t.environment.clock.now()
        await self._registry.fences.cover(
            worker.name,
            now + timedelta(seconds=ends_in_seconds),
            ahead=now + timedelta(seconds=self._ttl * 4 / 3),
            clock_offset=worker.client.clock_offset_seconds,
        )

    async def begin(self, worker: Worker, body: Json) -> None:
        """A mirror is about to be created; raises as ``cover``."""
        if names.FENCE in (body["metadata"].get("annotations") or ()):
            await self.cover(worker, self._ttl)

    async def begin_again(
        self, seen: Snapshot, worker: Worker, lease: RenewLease | None
    ) -> Sequence[Mapping[str, Any]]:
        """A mirror may be about to be resumed: what to add to the patch for its lease; raises as ``cover``."""
        fence = seen.source.kind.fence
        if fence is None or seen.mirror is None or lease is None:
            return ()
        await self.cover(worker, self._ttl)
        self.note_ends_in(seen.source.uid, lease.lasts_seconds)
        self._t.state.memories.set(seen.source.uid, resumed_version=seen.mirror.metadata.resource_version)
        return fence.operations(seen.mirror, lease.seconds, is_ours=True)

    def note_ends_in(self, uid: str, lasts_seconds: float) -> None:
        """A lease counts from when it was sent, answered or not, and from a start that is seen to be later."""
        memories, now = self._t.state.memories, self._t.environment.clock.monotonic()
        ends_at, known = now + lasts_seconds + ROUNDING_SECONDS, memories.of(uid).lease_ends_at
        if known is not None:
            memories.set(uid, lease_ends_at=max(known, ends_at))

    async def renew(self, seen: Snapshot, worker: Worker, renewal: RenewLease) -> None:
        """Give a mirror its deadline, if it is as it was seen."""
        mirror, fence = seen.mirror, seen.source.kind.fence
        assert mirror is not None
        assert fence is not None
        t, uid, metadata, kind = self._t, seen.source.uid, mirror.metadata, seen.source.kind
        if renewal.is_ours:
            await self.cover(worker, renewal.lasts_seconds + ROUNDING_SECONDS)
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version}
        operations = [version, *fence.operations(mirror, renewal.seconds, is_ours=renewal.is_ours)]
        patch = requests.json_patch(kind.resource, metadata.name, operations, namespace=metadata.namespace)
        before = t.state.memories.of(uid).lease_ends_at
        sent_at = t.environment.clock.monotonic()
        self.note_ends_in(uid, renewal.lasts_seconds)
        try:
            patched = await patch_mirror(seen, t, worker, patch)
        except (Forbidden, Invalid, BadRequest) as error:
            self._report_not_renewed(seen, worker, f"rejects the lease of the mirror: {refusal_text(error)}")
            t.state.memories.set(uid, lease_ends_at=before)
            t.state.intake.add(seen.key)
            return
        except ServerFailure as error:
            left = seconds_left(seen, fence.lease(mirror))
            if left is not None and left < self._ttl / 2:
                self._report_not_renewed(seen, worker, f"does not take the lease of the mirror: {refusal_text(error)}")
            raise
        if patched is None:
            return
        taken = sent_at + renewal.lasts_seconds + ROUNDING_SECONDS if renewal.is_ours else None
        t.state.memories.set(uid, lease_ends_at=taken)
        now = fence.lease(patched)
        if (now.seconds, now.is_ours) == (renewal.seconds, renewal.is_ours):
            t.state.memories.set(uid, lease_refused_at=float("-inf"))
            t.environment.metrics.worker(worker.name).leases_renewed.inc()
        else:  # admission there: it is tried again as what is rejected
            self._report_not_renewed(seen, worker, "changes the lease of the mirror")
        t.state.intake.add(seen.key)

    def _report_not_renewed(self, seen: Snapshot, worker: Worker, what: str) -> None:
        """Once, until one is renewed; from now on it is tried again after a while only."""
        t, uid, text = self._t, seen.source.uid, f"worker {worker.name} {what}"
        if t.state.memories.of(uid).lease_refused_at == float("-inf"):
            t.record_event(seen, "LeaseNotRenewed", text)
        t.environment.metrics.worker(worker.name).leases_refused.inc()
        self._log.warning("lease not renewed", source=seen.key, because=text)
        t.state.memories.set(uid, lease_refused_at=t.environment.clock.monotonic())

    # -- what is known of a worker ------------------------------------------------------------------------------------

    def sight(self, sight: WorkerSight, now: datetime) -> WorkerSight:
        """With what is known of its leases."""
        fences = self._registry.fences
        until = fences.until(sight.name)
        if until is None:
            return sight
        doubt, pods = "", 0
        if not sight.is_reachable:
            unsettled = fences.unsettled_until(sight.name)
            lost_at = now - timedelta(seconds=sight.lost_for_seconds)
            doubt = f"the clock of worker {sight.name} had moved" if unsettled and lost_at < unsettled else ""
            pods = self._pods_on(sight.name)
        return replace(sight, fenced_until=until, fence_doubt=doubt, fenced_pods=pods)

    def _pods_on(self, name: str) -> int:
        now, sources = self._t.environment.clock.monotonic(), self._t.state.sources
        counted = self._pods.get(name)
        if counted is not None and now - counted[0] < COUNTED_SECONDS:
            return counted[1]
        count = 0
        for key in sources.keys_on(name):
            found, kind = sources.get(key), sources.kinds[key.kind]
            if found is not None and kind.fence is not None and mark_of(found.status_dict()) == FENCED:
                count += kind.fence.pods(found)
        self._pods[name] = now, count
        return count

    # -- their clocks -------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Find out when the clock of a worker has moved, until cancelled."""
        while True:
            for worker in list(self._registry.workers.values()):
                if worker.is_reachable:
                    await self._compare_clock(worker)
            for name in self._pods.keys() - self._registry.workers.keys():
                del self._pods[name]
            await asyncio.sleep(LOOK_SECONDS)

    async def _compare_clock(self, worker: Worker) -> None:
        offset, fences = worker.client.clock_offset_seconds, self._registry.fences
        if offset is None or not fences.has_clock_moved(worker.name, offset):
            return
        self._log.warning("worker clock moved", worker=worker.name, ahead_seconds=round(offset))
        now = self._t.environment.clock.now()
        try:
            await fences.note_clock_moved(worker.name, offset, now=now, ttl_seconds=self._ttl)
        except KubeError as error:
            self._log.warning("worker clock not recorded", worker=worker.name, error=error)
        state = self._t.state
        async for key in in_slices(state.sources.keys_on(worker.name)):
            found = state.sources.get(key) if state.sources.worker_of(key) == worker.name else None
            if found is not None and state.memories.of(found.metadata.uid).lease_ends_at is not None:
                state.memories.set(found.metadata.uid, lease_ends_at=None)
            state.intake.look(key)
