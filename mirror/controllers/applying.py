"""Performs plans: the only writer of sources, and by ``writing_mirrors`` of mirrors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from msgspec.structs import replace

from mirror.controllers.refusing import is_refusal, refusal_text
from mirror.controllers.releasing import release
from mirror.controllers.rereading import STALE, reread_source
from mirror.controllers.tools import Tools
from mirror.controllers.writing_mirrors import MirrorWriter
from mirror.decide.plan import (
    Action,
    AskForPlace,
    CreateMirror,
    DeleteMirror,
    EmitEvent,
    FindMirror,
    JudgeMirror,
    PatchMirror,
    ReleaseSource,
    RestoreLabels,
    WriteSource,
)
from mirror.decide.snapshot import Snapshot
from mirror.kinds.base import is_held
from mirror.kube import requests
from mirror.kube.errors import (
    ApiError,
    BadAnswer,
    Invalid,
    NotFound,
    OutcomeUnknown,
    ServerFailure,
)
from mirror.kube.objects import Object
from mirror.model.keys import MirrorKey, SourceKey
from mirror.runtime.backoff import Backoff

RECORD_REFUSED = Backoff(first=5.0, most=60.0)


class Applier:
    """Performs one action after the other; an error ends the plan and is retried by the loop."""

    def __init__(self, tools: Tools) -> None:
        self._t = tools
        self._log = tools.log
        # Sources with a status write of ours in flight, by uid: the newest version that the watch has brought
        # meanwhile, maybe that very write before its answer.
        self.writing: dict[str, int] = {}
        self.unanswered: set[str] = set()
        """Sources with a status write whose answer was lost: the next foreign status may be that one."""
        self.arrived_at: dict[SourceKey, float] = {}
        """When a change of a source's mirror, or a new source, was first seen and not yet dealt with (monotonic)."""
        self.mirrors = MirrorWriter(tools, self.arrived_at)

    async def apply(self, seen: Snapshot, actions: tuple[Action, ...]) -> bool:
        """Return whether a place was asked for and given at once: then the source is worth another look.

        Raises:
            KubeError: a write did not go well.
        """
        got_place = False
        for action in actions:
            match action:
                case WriteSource():
                    await self._write_source(seen, action)
                case ReleaseSource():
                    await release(seen, self._t)
                case AskForPlace():
                    got_place = self._ask(seen)
                case CreateMirror():
                    await self.mirrors.create(seen, self._t.registry.worker(action.worker))
                case FindMirror():
                    await self.mirrors.find(seen, self._t.registry.worker(action.worker), action.uid)
                case JudgeMirror():
                    worker = self._t.registry.worker(action.worker)
                    namespace = worker.namespace_of(seen.key.namespace)
                    self._t.add(MirrorKey(worker.name, seen.key.kind, namespace, seen.key.name))
                case RestoreLabels():
                    await self.mirrors.restore_labels(seen, self._t.registry.worker(action.worker))
                case PatchMirror():
                    await self.mirrors.patch(seen, self._t.registry.worker(action.worker), action.changes)
                case DeleteMirror():
                    worker = self._t.registry.worker(action.worker)
                    namespace = worker.namespace_of(seen.key.namespace)
                    key = MirrorKey(worker.name, seen.key.kind, namespace, seen.key.name)
                    await self.mirrors.delete(worker, key, action.uid, because="its retention is over")
                case EmitEvent():
                    self._t.tell(seen, action.reason, action.message, is_warning=action.is_warning)
                case _:
                    assert_never(action)
        return got_place

    async def _write_source(self, seen: Snapshot, write: WriteSource) -> None:
        try:
            written = await self._send(seen, write)
        except STALE as error:
            await reread_source(seen, self._t, error)
        if written is not None:
            self._t.sources.of(seen.source.kind).read_own_write(written)
            self._account(seen, write)

    async def _send(self, seen: Snapshot, write: WriteSource) -> Object | None:
        """The source as it is stored after the write; None when it does not exist any more."""
        found, uid, t = seen.source.found, seen.source.uid, self._t
        self.writing[uid] = 0
        written: Object | None = None
        try:
            written = await self._patch(seen, found, write)
        except Invalid as error:
            worker = write.records or seen.source.placed or ""
            t.metrics.worker(worker).refused_status_writes.inc()
            if write.records is None:
                t.tell(seen, "StatusRefused", f"the API server rejected the status: {error.brief}")
                raise
            self._give_back(seen, write.records, error)
            return None
        except NotFound:
            return None  # deleted meanwhile: the watch tells, and its mirror goes by its own key
        except (OutcomeUnknown, ServerFailure, BadAnswer):
            self.unanswered.add(uid)
            t.assigner.keep_trying(seen.key)
            raise
        except ApiError as error:
            if write.records is None or not is_refusal(error):
                t.assigner.keep_trying(seen.key)
                raise
            self._give_back(seen, write.records, error)
            return None
        finally:
            seen_version = self.writing.pop(uid)
            if seen_version and (written is None or seen_version != written.version):
                t.add(seen.key)  # somebody else's change came meanwhile
        self.unanswered.discard(uid)
        return written

    async def _patch(self, seen: Snapshot, found: Object, write: WriteSource) -> Object:
        """In one request, or in two where ``/status`` would drop the annotations: the status, which counts, first."""
        kind, send = seen.source.kind, self._t.management.send_object
        if kind.keeps_metadata_in_status:
            return await send(_status_patch(seen, _operations(found, write)))
        if write.status is not None:
            found = await send(_status_patch(seen, _operations(found, replace(write, annotations=()))))
        if write.annotations:
            operations = _operations(found, replace(write, status=None))
            found = await send(
                requests.json_patch(kind.resource, seen.key.name, operations, namespace=seen.key.namespace)
            )
        return found

    def _give_back(self, seen: Snapshot, worker: str, error: ApiError) -> None:
        """The worker cannot be recorded, whichever it is: others get the place, and it is tried again later."""
        t, uid = self._t, seen.source.uid
        text = f"the API server rejects the record of a worker: {refusal_text(error)}"
        times = t.memories.of(uid).record_refused_times + 1
        until = t.clock.monotonic() + RECORD_REFUSED.delay(times)
        t.memories.set(uid, record_refused=text, record_refused_times=times, record_refused_until=until)
        t.assigner.settle(seen.key)
        self._log.warning("worker not recorded", source=seen.key, worker=worker, error=error)
        t.tell(seen, "RecordRefused", text)
        t.add(seen.key)

    def _account(self, seen: Snapshot, write: WriteSource) -> None:
        """What follows from a write that went well."""
        key, t = seen.key, self._t
        t.history.on_written(seen, write)
        if write.shows_waiting:
            t.memories.set(seen.source.uid, waiting_written_at=t.clock.monotonic())
        if write.records is not None:
            t.memories.set(seen.source.uid, refused_on="", record_refused="", record_refused_times=0)
            t.assigner.settle(key)
            t.metrics.worker(write.records).placements.inc()
            self._log.info("placed", source=key, worker=write.records)
            t.add(key)
        if write.clears:
            t.memories.set(seen.source.uid, refused_on="")
            self._log.info("placement cleared", source=key, worker=seen.source.placed)
        is_final = seen.source.kind.is_final(write.status)
        if is_final and write.status is not None and t.traces is not None:
            t.traces.on_stored(seen.source, write.status)
        if write.is_mirrored_status and seen.source.placed:
            metrics = t.metrics.worker(seen.source.placed)
            if write.cut:
                metrics.content_cut.inc(write.cut)
            arrived = self.arrived_at.pop(key, None)
            if arrived is not None:
                metrics.status_lag.observe(t.clock.monotonic() - arrived)
            if is_final:
                t.memories.set(seen.source.uid, ended=None)
                self._log.info("final status stored", source=key, worker=seen.source.placed)
                t.add_when_quiet(key)  # its mirror's retention begins; statuses of others go first
        if write.more:
            t.add(key)

    def _ask(self, seen: Snapshot) -> bool:
        """Judged by what is stored now: the plan may have written before, and the user meanwhile."""
        found, kind = self._t.sources.get(seen.key), seen.source.kind
        if found is None or found.metadata.uid != seen.source.uid or found.metadata.deletion_timestamp is not None:
            return False
        may_run = not kind.is_suspended(found) or is_held(kind, found)
        if not may_run or kind.summary(found).placed is not None:
            return False
        t, waiter, told = self._t, self._t.waiter_of(kind, found), seen.assignment.waiting_because
        if waiter is None:
            return False
        if t.assigner.ask(waiter, was_told=bool(told)) is not None:
            return True
        refusals = t.memories.of(waiter.uid).refusal_texts
        if t.registry.have_settled() and t.assigner.why(waiter.request, refusals) != told:
            t.add(seen.key)  # the workers have changed since it was looked at
        return False


def _status_patch(seen: Snapshot, operations: list[Mapping[str, Any]]) -> requests.Request:
    resource, key = seen.source.kind.resource, seen.key
    return requests.json_patch(resource, key.name, operations, namespace=key.namespace, subresource="status")


def _operations(found: Object, write: WriteSource) -> list[Mapping[str, Any]]:
    """The JSON Patch of one write: guarded by the version, the status whole (D7, M10)."""
    version = found.metadata.resource_version
    operations: list[Mapping[str, Any]] = [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}]
    if write.status is not None:
        operations.append({"op": "add", "path": "/status", "value": write.status})
    if write.annotations:
        annotations = dict(found.annotations)
        for name, value in write.annotations:
            if value is None:
                annotations.pop(name, None)
            else:
                annotations[name] = value
        operations.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
    return operations
