"""The only writer of sources: what was decided of one is sent, and what follows from the answer is noted.

Called by ``applying``; how a worker is recorded in the same step as the mirror is made, ``writing_mirrors`` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mirror.batch import conditions as lists
from mirror.controllers.refusing import NO_STATUS_SUBRESOURCE, is_refusal, refusal_text
from mirror.controllers.rereading import STALE, reread_source
from mirror.controllers.write_context import WriteContext
from mirror.controllers.writing_mirrors import MirrorWriter
from mirror.decide.plan import REQUESTED, WriteSource
from mirror.decide.snapshot import Snapshot
from mirror.kinds.asking import release_operations
from mirror.kinds.base import Kind
from mirror.kinds.stored_source import StoredSource
from mirror.kube import requests
from mirror.kube.discovery import has_no_subresource
from mirror.kube.errors import (
    ApiError,
    BadAnswer,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    OutcomeUnknown,
    ServerFailure,
    describe,
)
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.reasons import Reason
from mirror.runtime.backoff import Backoff

STATUS = "status"
RECORD_REFUSED = Backoff(first=5.0, most=60.0)
ANNOTATE_AGAIN = Backoff(first=0.5, most=60.0)


class SourceWriter:
    """Writes one source at a time; an error ends the plan and is retried by the loop."""

    def __init__(self, context: WriteContext, mirrors: MirrorWriter) -> None:
        self._t = context
        self._log = context.environment.log
        self._pending = context.state.pending
        self._mirrors = mirrors

    async def write(self, seen: Snapshot, write: WriteSource) -> None:
        """In one request, or in two where ``/status`` would drop the annotations: what counts goes first (D25).

        Raises:
            KubeError: it did not go well, and is to be tried again.
        """
        memories, uid = self._t.state.memories, seen.source.uid
        if not write.shows_waiting and memories.of(uid).reported_reason:
            memories.set(uid, reported_reason="")  # that is over, and was never written down
        counting, notes = (_parts_by_annotation if seen.source.kind.records_by_annotation else _parts)(seen, write)
        found = await self._write_parts(seen, counting)
        if notes is not None and found is not None:
            await self._annotate(seen, found, notes)

    async def _write_parts(self, seen: Snapshot, parts: list[tuple[WriteSource, str]]) -> Object | None:
        """One request after the other, each upon the answer to the one before.

        Returns:
            The source as it is stored then; None where a write was refused, or the source is gone.
        """
        found: Object | None = seen.source.found
        for part, subresource in parts:
            try:
                sending = self._send(seen, found or seen.source.found, part, subresource)
                worker = part.records
                found = await (sending if worker is None else self._mirrors.record(seen, worker, sending))
            except STALE as error:
                await reread_source(seen, self._t, error)
            if found is None:
                return None
            self._take_answer(seen, part, found)
        return found

    def _take_answer(self, seen: Snapshot, write: WriteSource, written: Object) -> None:
        self._t.state.sources.of(seen.source.kind).read_own_write(written)
        self._account(seen, write)

    async def _send(self, seen: Snapshot, found: Object, write: WriteSource, subresource: str) -> Object | None:
        """The source as it is stored after the write; None when it does not exist any more."""
        uid, t = seen.source.uid, self._t
        self._pending.begin_write(uid)
        if write.about_request == REQUESTED:
            # Until another version is seen: it may be stored however late (S2).
            t.state.memories.set(uid, requested_upon=found.metadata.resource_version)
        written: Object | None = None
        try:
            written = await t.management.send_object(_patch(seen, _operations(found, write), subresource))
        except NotFound as error:
            if subresource != STATUS or not await self._lacks_status(seen.source.kind):
                return None  # deleted meanwhile: the watch shows it, and its mirror goes by its own key
            self._take_refusal(seen, write, error, NO_STATUS_SUBRESOURCE)
            return None
        except (OutcomeUnknown, ServerFailure, BadAnswer):
            self._pending.note_unanswered(uid)
            t.state.assigner.note_record_failed(seen.key)
            raise
        except ApiError as error:
            self._take_refusal(seen, write, error, refusal_text(error))
            return None
        finally:
            if self._pending.end_write(uid, written.version if written is not None else None):
                t.state.intake.add(seen.key)  # somebody else's change came meanwhile
        self._pending.note_answered(uid)
        return written

    async def _lacks_status(self, kind: Kind) -> bool:
        """Whether it is the subresource that is not found: its path answers as if the object was not there (CR2)."""
        return kind.can_vanish and await has_no_subresource(self._t.management, kind.resource, STATUS)

    def _take_refusal(self, seen: Snapshot, write: WriteSource, error: ApiError, because: str) -> None:
        """A record that is refused is given up for now; anything else is tried again.

        Raises:
            ApiError: it is to be tried again.
        """
        is_certain = is_refusal(error) or isinstance(error, NotFound)
        if is_certain:
            worker = write.records or seen.source.placed or ""
            self._t.environment.metrics.of_kind(worker, seen.key.kind).refused_status_writes.inc()
            if write.records is None:
                self._t.record_event(seen, Reason.STATUS_REFUSED, f"the API server rejects the status: {because}")
        if isinstance(error, Invalid):
            seen.source.kind.doubt_schema()
        if write.records is None or not is_certain:
            self._t.state.assigner.note_record_failed(seen.key)
            raise error
        self._give_up_assignment(seen, write.records, error, because)

    async def _annotate(self, seen: Snapshot, found: Object, write: WriteSource) -> None:
        """Write what is for people (D25); what counts is stored and known already, so that a refusal ends nothing.

        Nor does a failure of the kind's own webhook, which is asked for objects and not for their statuses: it is tried
        again by and by, and what the object does meanwhile does not wait for another one.

        Raises:
            KubeError: the source may be another one by now, or nobody was reached.
        """
        t, uid = self._t, seen.source.uid
        memory = t.state.memories.of(uid)
        if write.reports:
            t.state.memories.set(uid, reported_reason=write.reports)  # whatever becomes of this
        if (left := memory.annotated_again_at - t.environment.clock.monotonic()) > 0:
            t.state.intake.add_after(seen.key, left)
            return
        patch = _patch(seen, _operations(found, write), "")
        self._pending.begin_write(uid)
        written: Object | None = None
        try:
            written = await t.management.send_object(patch)
        except NotFound:
            return  # deleted meanwhile
        except (ServerFailure, OutcomeUnknown) as error:
            self._annotate_later(seen, error)
            return
        except ApiError as error:
            if not is_refusal(error):
                raise
            self._log.warning("annotations not written", source=seen.key, error=error)
            return
        finally:
            if self._pending.end_write(uid, written.version if written is not None else None):
                t.state.intake.add(seen.key)
        if memory.annotate_failures:
            t.state.memories.set(uid, annotate_failures=0, annotated_again_at=float("-inf"))
        self._take_answer(seen, write, written)

    def _annotate_later(self, seen: Snapshot, error: KubeError) -> None:
        uid, t = seen.source.uid, self._t
        failures = t.state.memories.of(uid).annotate_failures + 1
        delay = ANNOTATE_AGAIN.delay(failures)
        again_at = t.environment.clock.monotonic() + delay
        t.state.memories.set(uid, annotate_failures=failures, annotated_again_at=again_at)
        t.state.intake.add_after(seen.key, delay)
        self._log.warning("annotations not written", source=seen.key, error=describe(error), in_seconds=round(delay, 3))

    async def delete(self, seen: Snapshot) -> None:
        """Delete a source whose time to live is over; its mirror follows by its own key (D10).

        Raises:
            KubeError: it is to be tried again.
        """
        kind, key, t = seen.source.kind, seen.key, self._t
        request = requests.delete(kind.resource, key.name, namespace=key.namespace, uid=seen.source.uid)
        try:
            await t.management.send(request)
        except (NotFound, Conflict):
            return  # it is gone, or another one has its name
        except (Forbidden, Invalid, BadRequest) as error:
            t.state.memories.set(seen.source.uid, delete_refused_at=t.environment.clock.monotonic())
            text = f"its time to live is over, and it cannot be deleted: {refusal_text(error)}"
            t.record_event(seen, Reason.DELETE_REFUSED, text)
            return
        self._log.info("source deleted", source=key, because="its time to live is over")

    async def release(self, seen: Snapshot) -> None:
        """Unsuspend a source that our webhook holds, once its worker is recorded (D16).

        It happens once: the write is guarded by the version that was looked at, since a user may have suspended it
        meanwhile, and takes the mark ``held`` away with it.

        Raises:
            KubeError: it did not go well, and is to be tried again.
        """
        uid, key, kind = seen.source.uid, seen.key, seen.source.kind
        t, state = self._t, self._t.state
        operations = release_operations(kind, seen.source.found)
        patch = requests.json_patch(kind.resource, key.name, operations, namespace=key.namespace)
        try:
            released = await t.management.send_object(patch)
        except NotFound:
            return  # deleted meanwhile: the watch shows it
        except STALE as error:
            await reread_source(seen, t, error)
        except (Forbidden, Invalid, BadRequest) as error:
            text = f"held by our webhook, and may not be unsuspended: {refusal_text(error)}"
            state.memories.set(uid, release_refused=text, release_refused_at=state.environment.clock.monotonic())
        else:
            state.memories.set(uid, release_refused="")
            state.sources.of(kind).read_own_write(released)
            state.history.on_released(seen)
            self._log.info("released", source=key, worker=seen.source.placed)
        state.intake.add(key)

    def _give_up_assignment(self, seen: Snapshot, worker: str, error: ApiError, because: str) -> None:
        """The worker cannot be recorded, whichever it is: others are assigned instead, and it is tried again later."""
        t, uid = self._t, seen.source.uid
        text = f"the API server rejects the record of a worker: {because}"
        times = t.state.memories.of(uid).record_refused_times + 1
        until = t.environment.clock.monotonic() + RECORD_REFUSED.delay(times)
        t.state.memories.set(uid, record_refused=text, record_refused_times=times, record_refused_until=until)
        t.state.assigner.finish(seen.key)
        self._log.warning("worker not recorded", source=seen.key, worker=worker, error=error)
        t.record_event(seen, Reason.RECORD_REFUSED, text)
        t.state.intake.add(seen.key)

    def _account(self, seen: Snapshot, write: WriteSource) -> None:
        """What follows from a write that went well."""
        key, t = seen.key, self._t
        t.state.history.on_written(seen, write)
        if write.shows_waiting:
            t.state.memories.set(
                seen.source.uid, waiting_written_at=t.environment.clock.monotonic(), reported_reason=""
            )
        if write.about_request:
            self._log.warning("move request", source=key, worker=seen.source.placed, step=write.about_request)
        if write.moves_from is not None:
            t.state.memories.begin_anew(seen.source.uid)
            self._log.warning("moved", source=key, origin=write.moves_from, to=write.records)
        if write.records is not None:
            t.state.memories.set(
                seen.source.uid, refused_on="", record_refused="", record_refused_times=0, recorded_on=write.records
            )
            t.state.assigner.finish(key)
            t.environment.metrics.of_kind(write.records, key.kind).placements.inc()
            self._log.info("placed", source=key, worker=write.records)
            t.state.intake.add(key)
            if (left := seen.source.placed) not in (None, write.records):
                t.judge_mirror(seen, left)
        if write.retry:
            worker = seen.source.placed or ""
            t.environment.metrics.retries.labels(worker, write.retry).inc()
            self._log.info("retry", source=key, worker=worker, outcome=write.retry)
            if write.clears:
                t.state.memories.begin_anew(seen.source.uid)
        if write.clears:
            t.state.memories.set(seen.source.uid, refused_on="", recorded_on="")
            self._log.info("placement cleared", source=key, worker=seen.source.placed)
            t.state.intake.add(key)
        is_final = seen.source.kind.is_final(write.status)
        if is_final and write.status is not None and t.traces is not None:
            t.traces.on_stored(seen.source, write.status)
        if write.is_mirrored_status and seen.source.placed:
            metrics = t.environment.metrics.worker(seen.source.placed)
            if write.cut:
                metrics.content_cut.inc(write.cut)
            waited = self._pending.finish_arrival(key)
            if waited is not None:
                metrics.status_lag.observe(waited)
            if is_final:
                t.state.memories.set(seen.source.uid, ended=None)
                self._log.info("final status stored", source=key, worker=seen.source.placed)
                t.state.intake.add_when_quiet(key)  # its mirror's retention begins; statuses of others go first
        if write.more:
            t.state.intake.add(key)


Parts = tuple[list[tuple[WriteSource, str]], WriteSource | None]
"""What counts, by the subresource that it goes to, and what is for people and has to be written beside it."""


def _parts(seen: Snapshot, write: WriteSource) -> Parts:
    if seen.source.kind.keeps_metadata_in_status or not write.annotations:
        return [(write, STATUS)], None
    notes = WriteSource(annotations=write.annotations, shows_waiting=write.shows_waiting)
    if write.status is None:
        return [], notes
    return [(replace(write, annotations=(), shows_waiting=False), STATUS)], notes


def _parts_by_annotation(seen: Snapshot, write: WriteSource) -> Parts:
    """The record and all that is for people are one request, the status, where that is another one, the other (D25)."""
    source, changes = seen.source, write.annotations
    if write.status is None:
        return [(write, "")], None
    status, record = source.kind.as_stored(write.status)
    if record != source.found.annotations.get(names.CONDITIONS):
        changes = (*changes, (names.CONDITIONS, record))
    first = replace(write, status=None, annotations=changes, is_mirrored_status=False, more=False, cut=0)
    parts = [(first, "")] if changes or write.records is not None else []
    if status == source.kind.as_stored(source.stored.status)[0]:
        return parts, None
    second = WriteSource(status, is_mirrored_status=write.is_mirrored_status, more=write.more, cut=write.cut)
    if changes and _keeps_record(source.stored, write):
        return [(second, STATUS)], first
    return [*parts, (second, STATUS)], None


def _keeps_record(stored: StoredSource, write: WriteSource) -> bool:
    """Whether worker and mirror stay recorded as they are: nothing that the status says is upon what is written."""
    listed = lists.of(write.status or {})
    told = {one.get("type"): one.get("message") for one in listed if one.get("status") == "True"}
    recorded = told.get(names.PLACED), told.get(names.MIRRORED)
    return write.records is None and not write.clears and recorded == (stored.placed_worker, stored.mirror_uid)


def _patch(seen: Snapshot, operations: list[Mapping[str, Any]], subresource: str) -> requests.Request:
    resource, key = seen.source.kind.resource, seen.key
    return requests.json_patch(resource, key.name, operations, namespace=key.namespace, subresource=subresource)


def _operations(found: Object, write: WriteSource) -> list[Mapping[str, Any]]:
    """The JSON Patch of one write: guarded by the version, the status whole (D7, M10)."""
    version = found.metadata.resource_version
    operations: list[Mapping[str, Any]] = [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}]
    if write.status:
        operations.append({"op": "add", "path": "/status", "value": write.status})
    elif write.status is not None and found.status_dict():
        operations.append({"op": "remove", "path": "/status"})  # some definitions take no empty one
    if write.annotations:
        annotations = dict(found.annotations)
        for name, value in write.annotations:
            if value is None:
                annotations.pop(name, None)
            else:
                annotations[name] = value
        operations.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
    return operations
