"""Performs plans: the only writer of sources and mirrors. What a worker answers becomes a fact in ``memory``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from mirror.adapters import job
from mirror.controllers.events import EventRecorder, Regarding
from mirror.controllers.history import History
from mirror.controllers.memory import Memories
from mirror.controllers.placing import Placing
from mirror.controllers.refusing import refusal_text, was_certainly_not_done
from mirror.controllers.releasing import release
from mirror.decide.plan import (
    Action,
    AskForPlace,
    CreateMirror,
    DeleteMirror,
    FindMirror,
    PatchMirror,
    ReleaseSource,
    RestoreLabels,
    Tell,
    WriteSource,
)
from mirror.decide.seen import Look, Refusal, Seen
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import (
    AlreadyExists,
    BadAnswer,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    OutcomeUnknown,
    ServerFailure,
)
from mirror.kube.objects import Object
from mirror.kube.resources import NAMESPACES
from mirror.model import names
from mirror.model.keys import Key, MirrorKey, SourceKey
from mirror.placement.waiting import Waiter
from mirror.runtime.backoff import Backoff
from mirror.runtime.clock import Clock
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log
from mirror.telemetry.metrics import Metrics
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker

if TYPE_CHECKING:
    from mirror.controllers.tracing import Traces  # only where traces are wanted

REFUSED = Backoff(first=5.0, most=600.0)


@dataclass(frozen=True, slots=True)
class Tools:
    """What writing needs."""

    management: Client
    sources: Store
    registry: Registry
    placing: Placing
    memories: Memories
    recorder: EventRecorder
    history: History
    clock: Clock
    log: Log
    metrics: Metrics
    carrying: job.Carrying
    create_namespaces: bool
    add: Callable[[Key], None]
    add_when_quiet: Callable[[Key], None]
    ask_wish: Callable[[Object], Waiter | None]
    agree: Callable[[Object, Object], None]
    """Told of a source and the mirror that was just made of it."""
    traces: Traces | None


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

    async def apply(self, seen: Seen, actions: tuple[Action, ...]) -> bool:
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
                    await release(seen, self._t, self._tell)
                case AskForPlace():
                    got_place = self._ask(seen)
                case CreateMirror():
                    await self._create(seen, self._t.registry.worker(action.worker))
                case FindMirror():
                    await self._find(seen, self._t.registry.worker(action.worker), action.uid)
                case RestoreLabels():
                    await self._restore_labels(seen, self._t.registry.worker(action.worker))
                case PatchMirror():
                    await self._patch(seen, self._t.registry.worker(action.worker), action.changes)
                case DeleteMirror():
                    worker = self._t.registry.worker(action.worker)
                    namespace = worker.namespace_of(seen.key.namespace)
                    await self.delete(worker, namespace, seen.key.name, action.uid, because="its retention is over")
                case Tell():
                    self._tell(seen, action.reason, action.message, is_warning=action.is_warning)
                case _:
                    assert_never(action)
        return got_place

    # -- management -----------------------------------------------------------------------------------------------

    async def _write_source(self, seen: Seen, write: WriteSource) -> None:
        found, uid, t = seen.source.found, seen.source.uid, self._t
        request = requests.json_patch(
            job.RESOURCE, seen.key.name, _operations(found, write), namespace=seen.key.namespace, subresource="status"
        )
        self.writing[uid] = 0
        written: Object | None = None
        try:
            written = await t.management.send_object(request)
        except Invalid as error:
            worker = write.records or seen.source.placed or ""
            t.metrics.worker(worker).refused_status_writes.inc()
            self._tell(seen, "StatusRefused", f"the API server refused the mirrored status: {error.brief}")
            raise
        except NotFound:
            return  # deleted meanwhile: the watch tells, and its mirror goes by its own key
        except (OutcomeUnknown, ServerFailure, BadAnswer):
            self.unanswered.add(uid)
            raise
        finally:
            seen_version = self.writing.pop(uid)
            if seen_version and (written is None or seen_version != written.version):
                t.add(seen.key)  # somebody else's change came meanwhile
        self.unanswered.discard(uid)
        t.sources.read_own_write(written)
        self._account(seen, write)

    def _account(self, seen: Seen, write: WriteSource) -> None:
        """What follows from a write that went well."""
        key, t = seen.key, self._t
        t.history.on_written(seen, write)
        if names.WAITING_BECAUSE in dict(write.annotations):
            t.memories.set(seen.source.uid, waiting_written_at=t.clock.monotonic())
        if write.records is not None:
            t.memories.set(seen.source.uid, refused_on="")
            t.placing.settle(key)
            t.metrics.worker(write.records).placements.inc()
            self._log.info("placed", source=key, worker=write.records)
            t.add(key)
        if write.clears:
            t.memories.set(seen.source.uid, refused_on="")
            self._log.info("placement cleared", source=key, worker=seen.source.placed)
        is_final = job.is_final(write.status)
        if is_final and write.status is not None and t.traces is not None:
            t.traces.on_stored(seen.source.found, write.status)
        if write.clears or is_final:
            t.placing.serve_soon()  # a place is free; the echo of this write is no news to the watch any more
        if write.is_mirrored_status and seen.source.placed:
            metrics = t.metrics.worker(seen.source.placed)
            if write.cut:
                metrics.content_cut.inc(write.cut)
            arrived = self.arrived_at.pop(key, None)
            if arrived is not None:
                metrics.status_lag.observe(t.clock.monotonic() - arrived)
            if is_final:
                self._log.info("final status stored", source=key, worker=seen.source.placed)
                t.add_when_quiet(key)  # its mirror's retention begins; statuses of others go first
        if write.more:
            t.add(key)

    def _ask(self, seen: Seen) -> bool:
        """Judged by what is stored now: the plan may have written before, and the user meanwhile."""
        found = self._t.sources.get(seen.key.namespace, seen.key.name)
        if found is None or found.metadata.uid != seen.source.uid or found.metadata.deletion_timestamp is not None:
            return False
        may_run = not job.is_suspended(found) or job.is_held(found)
        if not may_run or job.brief(found).placed is not None:
            return False
        waiter = self._t.ask_wish(found)
        return waiter is not None and self._t.placing.ask(waiter) is not None

    def _tell(self, seen: Seen, reason: str, message: str, *, is_warning: bool = True) -> None:
        self._t.history.on_told(seen, reason, message, is_warning=is_warning)
        self._t.recorder.tell(Regarding(job.RESOURCE, seen.source.found), reason, message, is_warning=is_warning)

    # -- workers --------------------------------------------------------------------------------------------------

    async def _create(self, seen: Seen, worker: Worker) -> None:
        source, t = seen.source, self._t
        namespace = worker.namespace_of(seen.key.namespace)
        body = job.mirror_body(source.found, namespace=namespace, carrying=t.carrying)
        memory = t.memories.of(source.uid)
        try:
            created = await worker.client.send_object(requests.create(job.RESOURCE, body, namespace=namespace))
        except AlreadyExists:
            await self._adopt_or_refuse(seen, worker, namespace, was_first=memory.first_create)
            return
        except (Forbidden, NotFound, Invalid, BadRequest) as error:
            if isinstance(error, NotFound) and t.create_namespaces and await self._create_namespace(worker, namespace):
                t.add(seen.key)
                return
            self._refused(seen, worker, refusal_text(error), reason="Refused", was_first=memory.first_create)
            return
        except KubeError as error:
            if not was_certainly_not_done(error):
                t.memories.set(source.uid, first_create=False, create_unanswered=True)
            worker.suspect(error)
            raise
        self._have_mirror(seen, worker, created, found_again=False)

    def _have_mirror(self, seen: Seen, worker: Worker, mirror: Object, *, found_again: bool) -> None:
        t, uid = self._t, seen.source.uid
        found: dict[str, object] = {"mirror_uid": mirror.metadata.uid, "look": None, "in_the_way": "", "refusals": ()}
        t.memories.set(uid, first_create=False, create_unanswered=False, **found)
        worker.mirrors.read_own_write(mirror)
        arrived = self.arrived_at.pop(seen.key, None)
        if arrived is not None:
            t.metrics.create_to_copy.observe(t.clock.monotonic() - arrived)
        self._log.info("mirrored", source=seen.key, worker=worker.name, mirror_uid=mirror.metadata.uid)
        self._tell(seen, "Mirrored", f"Mirrored to worker {worker.name}", is_warning=False)
        t.history.on_mirrored(seen, worker.name)
        source = t.sources.get(seen.key.namespace, seen.key.name)
        if source is None or source.metadata.uid != uid or source.metadata.deletion_timestamp is not None:
            t.add(MirrorKey(worker.name, job.KIND, mirror.metadata.namespace, mirror.metadata.name))
        if found_again:
            t.add(seen.key)
        else:
            t.agree(seen.source.found, mirror)  # its own changes, and those of its source, name the key again

    async def _adopt_or_refuse(self, seen: Seen, worker: Worker, namespace: str, *, was_first: bool) -> None:
        """The name is taken: by a create of ours whose answer was lost, a namesake's mirror, or somebody else (D1)."""
        t = self._t
        try:
            found = await worker.client.send_object(requests.get(job.RESOURCE, seen.key.name, namespace=namespace))
        except NotFound:
            t.add(seen.key)
            return
        is_ours = found.labels.get(names.ORIGIN) == t.carrying.origin
        if is_ours and found.labels.get(names.SOURCE_UID) == seen.source.uid:
            self._have_mirror(seen, worker, found, found_again=True)
            return
        if is_ours:
            worker.mirrors.read_own_write(found)
            t.add(MirrorKey(worker.name, job.KIND, namespace, seen.key.name))
            t.add(seen.key)
            return
        text = f"worker {worker.name} has a Job of this name that is not ours"
        self._tell(seen, "MirrorConflict", text)
        self._refused(seen, worker, "the name is taken there", reason="MirrorConflict", was_first=was_first)

    def _refused(self, seen: Seen, worker: Worker, because: str, *, reason: str, was_first: bool) -> None:
        """A definite refusal: of the very first create it clears the record, a later one is only reported (D1, D5)."""
        t, uid = self._t, seen.source.uid
        text = f"worker {worker.name}: {because}"
        self._log.info("mirror refused", source=seen.key, worker=worker.name, because=because)
        counted = t.metrics.worker(worker.name)
        (counted.name_conflicts if reason == "MirrorConflict" else counted.refused_mirrors).inc()
        if reason != "MirrorConflict":
            self._tell(seen, reason, text)
        if was_first:
            refusals = dict(t.memories.of(uid).refusals)
            times = refusals[worker.name].times + 1 if worker.name in refusals else 1
            until = t.clock.monotonic() + REFUSED.delay(times)
            refusals[worker.name] = Refusal(because, until, times)
            t.memories.set(uid, refusals=tuple(refusals.items()), refused_on=worker.name, first_create=False)
        elif t.memories.of(uid).in_the_way != text:
            t.memories.set(uid, in_the_way=text)
        else:
            return  # the same as before: the plan says when to try again
        t.add(seen.key)

    async def _create_namespace(self, worker: Worker, namespace: str) -> bool:
        labels = {names.ORIGIN: self._t.carrying.origin}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
        try:
            await worker.client.send(requests.create(NAMESPACES, body))
        except AlreadyExists:
            return False
        except (Forbidden, Invalid) as error:
            self._log.warning("namespace not created", worker=worker.name, namespace=namespace, error=error)
            return False
        return True

    async def _find(self, seen: Seen, worker: Worker, expected: str) -> None:
        """Ask for a mirror that the cache lacks; an error means that nothing is known (D11)."""
        t, uid = self._t, seen.source.uid
        namespace = worker.namespace_of(seen.key.namespace)
        try:
            found = await worker.client.send_object(requests.get(job.RESOURCE, seen.key.name, namespace=namespace))
        except NotFound:
            await worker.confirm_identity()  # what another cluster does not have proves nothing (D19)
            look = Look.GONE
        else:
            labels = found.labels
            has_labels = (labels.get(names.ORIGIN), labels.get(names.SOURCE_UID)) == (t.carrying.origin, uid)
            if has_labels and expected in ("", found.metadata.uid):
                t.memories.set(uid, mirror_uid=found.metadata.uid)
                if worker.mirrors.read_own_write(found):
                    t.add(seen.key)
                return  # else the watch knows better: it went since, or comes; the plan looks again
            look = Look.UNLABELLED if expected == found.metadata.uid else Look.FOREIGN
        self._log.info("mirror looked for", source=seen.key, worker=worker.name, found=look.value)
        t.memories.set(uid, look=look, looked_for=expected)
        t.add(seen.key)

    async def _restore_labels(self, seen: Seen, worker: Worker) -> None:
        """Put our labels back on the mirror that lost them, if it is still the same object (D11)."""
        t, uid = self._t, seen.source.uid
        namespace = worker.namespace_of(seen.key.namespace)
        labels = {names.ORIGIN: t.carrying.origin, names.SOURCE_UID: uid}
        body = {"metadata": {"uid": t.memories.of(uid).looked_for, "labels": labels}}
        patch = requests.merge_patch(job.RESOURCE, seen.key.name, body, namespace=namespace)
        t.memories.set(uid, look=None)
        try:
            restored = await worker.client.send_object(patch)
        except (NotFound, Conflict):
            t.add(seen.key)
            return
        self._tell(seen, "MirrorChanged", f"the mirror on worker {worker.name} had lost its labels; they are back")
        worker.mirrors.read_own_write(restored)
        t.add(seen.key)

    async def _patch(self, seen: Seen, worker: Worker, changes: job.Changes) -> None:
        assert seen.mirror is not None
        t, uid, metadata = self._t, seen.source.uid, seen.mirror.metadata
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version}
        patch = requests.json_patch(
            job.RESOURCE, metadata.name, [version, *changes.operations], namespace=metadata.namespace
        )
        memory = t.memories.of(uid)
        times = memory.sent_times + 1 if memory.sent_digest == changes.digest else 1
        try:
            patched = await worker.client.send_object(patch)
        except NotFound:
            return  # gone: the watch tells
        except (Forbidden, Invalid, BadRequest) as error:
            text = f"worker {worker.name} refuses the change: {refusal_text(error)}"
            refused = {"patch_refused": text, "patch_refused_at": t.clock.monotonic()}
            t.memories.set(uid, sent_digest=changes.digest, sent_times=times, **refused)
            self._tell(seen, "Refused", text)
            t.add(seen.key)
            return
        t.memories.set(uid, sent_digest=changes.digest, sent_times=times, patch_refused="")
        self._log.info("mirror changed", source=seen.key, worker=worker.name)
        if times > 1 and changes.undone:
            self._tell(seen, "MirrorChanged", f"what was changed here is undone on worker {worker.name}")
        worker.mirrors.read_own_write(patched)
        t.add(seen.key)

    async def delete(self, worker: Worker, namespace: str, name: str, uid: str, *, because: str) -> None:
        """Delete a mirror, if it is still this object (D10)."""
        try:
            await worker.client.send(requests.delete(job.RESOURCE, name, namespace=namespace, uid=uid))
        except (NotFound, Conflict):
            return
        self._log.info("mirror deleted", worker=worker.name, namespace=namespace, name=name, because=because)


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
