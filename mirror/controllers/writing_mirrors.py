"""Makes, finds, changes and deletes mirrors on their workers. Called by ``applying`` and ``sweeping``, and nobody else.

What a worker answers becomes a fact in ``memory``; what follows from that is decided anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from mirror.controllers.leases import Leases
from mirror.controllers.namespaces import create_namespace
from mirror.controllers.pods_left import count_pods_left, note_start, was_let_go
from mirror.controllers.refusing import (
    WorkerRefusal,
    is_same_reason,
    refusal_text,
    was_certainly_not_done,
    why_not_created,
)
from mirror.controllers.reporting_moves import report_move
from mirror.controllers.rereading import patch_mirror, reread_object
from mirror.controllers.write_context import WriteContext
from mirror.decide.following import MOST_FIELDS, RESENDS
from mirror.decide.identity import Identity
from mirror.decide.plan import FindMirror, RenewLease
from mirror.decide.seeding import is_to_be_seeded
from mirror.decide.snapshot import Look, Snapshot
from mirror.kinds.base import Changes
from mirror.kube import requests
from mirror.kube.errors import (
    NOT_SERVED,
    AlreadyExists,
    BadRequest,
    Conflict,
    EntityTooLarge,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
)
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.keys import MirrorKey
from mirror.model.reasons import DEPENDENCIES, Obstruction, Reason
from mirror.workers.probes import confirm_served
from mirror.workers.worker import Worker

if TYPE_CHECKING:
    from mirror.controllers.dependencies import Dependencies  # only where something goes along

LABELS_LASTED_SECONDS = 1200.0
"""Labels that stayed for so long were not removed for being ours."""


class MirrorWriter:
    """One write after the other; an error ends the plan and is retried by the loop."""

    def __init__(self, context: WriteContext, leases: Leases, dependencies: Dependencies | None = None) -> None:
        """``dependencies``: without it nothing goes along (D27)."""
        self._t = context
        self._leases = leases
        self._dependencies = dependencies
        self._log = context.environment.log
        # Creates whose answer is not there yet: the watch may show the object before.
        self._creating: set[MirrorKey] = set()

    def is_creating(self, key: MirrorKey) -> bool:
        """Whether an object of this name may be the one that is being created."""
        return key in self._creating

    async def create(self, seen: Snapshot, worker: Worker) -> None:
        """Create the mirror; what has its name already is adopted, or in the way (D1, D5)."""
        key = _key(seen, worker)
        self._creating.add(key)
        try:
            if self._dependencies is None or names.CARRY not in seen.source.found.annotations:
                await self._create(seen, worker)
            else:
                await self._create_after(self._dependencies, seen, worker)
        finally:
            self._creating.discard(key)

    async def record(self, seen: Snapshot, name: str, recording: Awaitable[Object | None]) -> Object | None:
        """Have a worker of this name recorded and, meanwhile, what goes along read and copied."""
        if self._dependencies is None or names.CARRY not in seen.source.found.annotations:
            return await recording
        written: Object | None = None
        refused: KubeError | None = None
        async with asyncio.TaskGroup() as scope:
            ahead = self._dependencies.ahead.begin(seen, self._t.state.workers.get(name))
            copying = scope.create_task(ahead, name="copy what goes along")
            try:
                written = await recording
            except KubeError as error:
                refused = error  # raised outside of the group, which would wrap it
            if written is None:
                copying.cancel()
        if written is None:
            self._dependencies.ahead.forget(seen.source.uid)
        if refused is not None:
            raise refused
        return written

    async def _create_after(self, dependencies: Dependencies, seen: Snapshot, worker: Worker) -> None:
        """Create the mirror once everything that goes along is there; that is then owned by it (D27)."""
        t, uid = self._t, seen.source.uid
        sent = await dependencies.send(seen, worker)
        if isinstance(sent, Obstruction):
            self._obstructed(seen, sent)
        elif isinstance(sent, WorkerRefusal):
            namespace = worker.namespace_of(seen.key.namespace)
            lacks_namespace = isinstance(sent.error, NotFound) and t.create_namespaces
            if lacks_namespace and await create_namespace(t, worker, namespace, seen.key.namespace):
                t.state.intake.add(seen.key)
                return
            was_first = t.state.memories.of(uid).first_create
            self._refused(seen, worker, sent.text, reason=sent.reason, was_first=was_first)
        else:
            before = t.state.memories.of(uid).in_the_way
            if before is not None and before.reason in DEPENDENCIES:
                t.state.memories.set(uid, in_the_way=None)
            await self._create(seen, worker)
            await dependencies.own(seen, worker, sent)

    def _obstructed(self, seen: Snapshot, why: Obstruction) -> None:
        """Nothing was sent that could have made a mirror: the source keeps its worker, and says why."""
        t, uid = self._t, seen.source.uid
        if t.state.memories.of(uid).in_the_way == why:
            return  # the same as before: the plan says when to try again
        self._log.info("mirror not created", source=seen.key, because=why.text)
        t.state.memories.set(uid, in_the_way=why)
        t.state.intake.add(seen.key)

    async def _create(self, seen: Snapshot, worker: Worker) -> None:
        source, kind, t = seen.source, seen.source.kind, self._t
        namespace = worker.namespace_of(seen.key.namespace)
        report_move(t, seen)
        body = kind.mirror_body(source.found, namespace=namespace, transform=t.state.transform)
        is_held = is_to_be_seeded(seen)
        if is_held:
            body = kind.held_body(body)
        try:
            await self._leases.begin(worker, body)
        except (Forbidden, EntityTooLarge, Invalid, BadRequest) as error:
            text = f"the lease of the mirror on worker {worker.name} cannot be recorded: {refusal_text(error)}"
            self._obstructed(seen, Obstruction(Reason.MIRROR_NOT_CREATED, text))
            raise
        memory = t.state.memories.of(source.uid)
        try:
            # A definition that is older than ours would silently leave fields out.
            request = requests.create(kind.resource, body, namespace=namespace, strict=kind.can_vanish)
            created = await worker.client.send_object(request)
        except AlreadyExists:
            await self._adopt_or_refuse(seen, worker, namespace, was_first=memory.first_create)
            return
        except (Forbidden, NotFound, EntityTooLarge, Invalid, BadRequest) as error:
            lacks_namespace = isinstance(error, NotFound) and t.create_namespaces
            if lacks_namespace and await create_namespace(t, worker, namespace, seen.key.namespace):
                t.state.intake.add(seen.key)
                return
            self._refused(seen, worker, refusal_text(error), reason="Refused", was_first=memory.first_create)
            return
        except KubeError as error:
            if kind.can_vanish and isinstance(error, NOT_SERVED):
                self._refused(
                    seen, worker, "it does not serve this kind", reason="Refused", was_first=memory.first_create
                )
                return
            if not was_certainly_not_done(error):
                at = t.environment.clock.monotonic()
                t.state.memories.set(source.uid, first_create=False, create_unanswered=True, unanswered_at=at)
            if (why := why_not_created(seen, worker.name, error)) and not is_same_reason(memory.in_the_way, why):
                t.state.memories.set(source.uid, in_the_way=why)
                t.state.intake.add(seen.key)  # to say so: when it is tried again may be a minute from now
            worker.suspect(error)
            raise
        self._have_mirror(seen, worker, created, is_as_sent=not is_held and kind.is_as_sent(body, created))

    def _have_mirror(self, seen: Snapshot, worker: Worker, mirror: Object, *, is_as_sent: bool) -> None:
        t, uid = self._t, seen.source.uid
        t.state.memories.set(
            uid,
            first_create=False,
            create_unanswered=False,
            mirror_uid=mirror.metadata.uid,
            look=None,
            in_the_way=None,
        )
        t.state.refusals.note_taken(seen.key, uid, worker.name)
        worker.mirrors_of(seen.source.kind).take_own_write(mirror)
        waited = t.state.pending.finish_arrival(seen.key)
        if waited is not None:
            t.environment.metrics.create_to_copy(seen.source.kind.name).observe(waited)
        self._log.info("mirrored", source=seen.key, worker=worker.name, mirror_uid=mirror.metadata.uid)
        self._t.record_event(seen, "Mirrored", f"Mirrored to worker {worker.name}", is_warning=False)
        t.state.history.on_mirrored(seen, worker.name)
        source = t.state.sources.get(seen.key)
        if source is None or source.metadata.uid != uid or source.metadata.deletion_timestamp is not None:
            t.state.intake.add(MirrorKey(worker.name, seen.key.kind, mirror.metadata.namespace, mirror.metadata.name))
        if is_as_sent:
            t.state.comparison.note_equal(seen.source.found, mirror)
        # Its own changes, and those of its source, name the key again; what the source has waited for is over now.
        if not is_as_sent or names.WAITING_BECAUSE in seen.source.found.annotations:
            t.state.intake.add(seen.key)

    async def _adopt_or_refuse(self, seen: Snapshot, worker: Worker, namespace: str, *, was_first: bool) -> None:
        """The name is taken: by a create of ours whose answer was lost, a namesake's mirror, or somebody else (D1)."""
        t = self._t
        try:
            found = await self._read(seen, worker)
        except NotFound:
            t.state.intake.add(seen.key)
            return
        match self._identity(seen, found):
            case Identity.OURS | Identity.UNLABELED | Identity.REPLACED:
                self._have_mirror(seen, worker, found, is_as_sent=False)
                return
            case Identity.NAMESAKE:
                worker.mirrors_of(seen.source.kind).take_read(found, was_dropped=True)
                t.state.intake.add(_key(seen, worker))
                t.state.intake.add(seen.key)
                return
        text = f"worker {worker.name} has a Job of this name that is not ours"
        self._t.record_event(seen, Reason.MIRROR_CONFLICT, text)
        self._refused(seen, worker, "the name is taken there", reason=Reason.MIRROR_CONFLICT, was_first=was_first)

    async def _read(self, seen: Snapshot, worker: Worker) -> Object:
        key, resource = _key(seen, worker), seen.source.kind.resource
        return await worker.client.send_object(requests.get(resource, key.name, namespace=key.namespace))

    def _identity(self, seen: Snapshot, found: Object) -> Identity:
        left_behind = {left.uid for left in seen.source.stored.moves.left_behind if left.uid}
        if found.metadata.uid in left_behind:
            return Identity.NAMESAKE
        recorded = self._t.state.memories.of(seen.source.uid).mirror_uid or seen.source.stored.mirror_uid
        if recorded in left_behind:
            recorded = seen.source.stored.mirror_uid
        kind, source = seen.source.kind, seen.source.found
        return self._t.state.comparison.identity_by(kind, source, found, recorded_uid=recorded)

    def _refused(self, seen: Snapshot, worker: Worker, because: str, *, reason: str, was_first: bool) -> None:
        """A definite refusal: of the very first create it clears the record, a later one is only reported (D1, D5)."""
        t, uid = self._t, seen.source.uid
        text = f"worker {worker.name}: {because}"
        self._log.info("mirror refused", source=seen.key, worker=worker.name, because=because)
        counted = t.environment.metrics.of_kind(worker.name, seen.key.kind)
        (counted.name_conflicts if reason == Reason.MIRROR_CONFLICT else counted.refused_mirrors).inc()
        if reason != Reason.MIRROR_CONFLICT:
            self._t.record_event(seen, reason, text)
        if was_first:
            t.state.refusals.note_refused(seen.key, uid, worker.name, because)
            t.state.memories.set(uid, refused_on=worker.name, first_create=False)
        else:
            is_known = reason == Reason.MIRROR_CONFLICT or reason in DEPENDENCIES
            obstruction = Obstruction(reason if is_known else Reason.MIRROR_REFUSED, text)
            if t.state.memories.of(uid).in_the_way == obstruction:
                return  # the same as before: the plan says when to try again
            t.state.memories.set(uid, in_the_way=obstruction)
        t.state.intake.add(seen.key)

    async def find(self, seen: Snapshot, worker: Worker, action: FindMirror) -> None:
        """Read a mirror that is not in the cache; an error means that nothing is known (D11)."""
        t, uid, mirrors = self._t, seen.source.uid, worker.mirrors_of(seen.source.kind)
        expected, namespace = action.uid, worker.namespace_of(seen.key.namespace)
        try:
            found = await self._read(seen, worker)
        except Forbidden as error:
            t.state.memories.set(uid, look_refused=refusal_text(error))
            raise
        except NotFound:
            await worker.confirm_identity()  # what another cluster does not have proves nothing (D19)
            await confirm_served(worker.client, seen.source.kind, worker.name)
            mirrors.forget_deleted(namespace, seen.key.name, expected)
            look = Look.ELSEWHERE if mirrors.has_elsewhere(seen.source.found, expected) else Look.GONE
            may_have_run = look is Look.GONE and expected and not seen.source.has_started
            if may_have_run and not was_let_go(seen):
                await note_start(t, seen, worker, expected)
        else:
            if self._identity(seen, found) in (Identity.OURS, Identity.UNLABELED):
                now = t.environment.clock.monotonic()
                t.state.memories.set(uid, mirror_uid=found.metadata.uid, read_at=now, look_refused="")
                mirrors.take_read(found)
                return  # if that was no news, the watch knows better: it went since, or comes; the plan looks again
            look = Look.FOREIGN
        self._log.info("mirror looked for", source=seen.key, worker=worker.name, found=look.value)
        now = t.environment.clock.monotonic()
        t.state.memories.set(uid, look=look, looked_for=expected, read_at=now, look_refused="")
        if look is Look.GONE and action.counts_pods:
            await count_pods_left(t, seen, worker)
        t.state.intake.add(seen.key)

    async def restore_labels(self, seen: Snapshot, worker: Worker) -> None:
        """Put our labels back on the mirror that lost them, if it is still the same object (D11)."""
        assert seen.mirror is not None
        t, uid, now, metadata = self._t, seen.source.uid, self._t.environment.clock.monotonic(), seen.mirror.metadata
        body = {"metadata": {"uid": metadata.uid, "labels": self._t.state.transform.own_labels(uid)}}
        kind = seen.source.kind
        patch = requests.merge_patch(kind.resource, metadata.name, body, namespace=metadata.namespace)
        memory = t.state.memories.of(uid)
        times = memory.relabeled_times + 1 if now - memory.relabeled_at < LABELS_LASTED_SECONDS else 1
        t.state.memories.set(uid, look=None, relabeled_at=now, relabeled_times=times)
        try:
            restored = await patch_mirror(seen, t, worker, patch)
        except (Forbidden, Invalid, BadRequest) as error:
            text = f"worker {worker.name} rejects the labels of the mirror: {refusal_text(error)}"
        else:
            if restored is None:
                return
            text = f"worker {worker.name} removes the labels of the mirror; its status is read from time to time"
            if self._identity(seen, restored) is Identity.OURS:
                text = f"the mirror on worker {worker.name} had lost its labels; they were restored"
        if times <= RESENDS:
            self._t.record_event(seen, "MirrorChanged", text)
        t.state.intake.add(seen.key)

    async def touch(self, seen: Snapshot, worker: Worker, uid: str) -> None:
        """Write the time to a mirror that has no pods, so that its controller looks at it (D30)."""
        assert seen.mirror is not None
        kind, metadata, environment = seen.source.kind, seen.mirror.metadata, self._t.environment
        noted = {names.TOUCHED_AT: environment.clock.now().isoformat(timespec="seconds")}
        body = {"metadata": {"uid": uid, "annotations": noted}}
        patch = requests.merge_patch(kind.resource, metadata.name, body, namespace=metadata.namespace)
        try:
            if await patch_mirror(seen, self._t, worker, patch) is None:
                return
        except (Forbidden, Invalid, BadRequest) as error:
            self._log.warning("mirror without pods not touched", source=seen.key, worker=worker.name, error=error)
        else:
            text = f"worker {worker.name} has no pods of it for five minutes; its controller was made to look again"
            self._t.record_event(seen, "MirrorTouched", text)

    async def patch(self, seen: Snapshot, worker: Worker, changes: Changes, *, lease: RenewLease | None = None) -> None:
        """Give the mirror what its source has now; one that is resumed gets its lease anew."""
        assert seen.mirror is not None
        t, uid, metadata = self._t, seen.source.uid, seen.mirror.metadata
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version}
        kind, more = seen.source.kind, await self._leases.begin_again(seen, worker, lease)
        operations = [version, *changes.operations, *more]
        patch = requests.json_patch(
            kind.resource, metadata.name, operations, namespace=metadata.namespace, strict=kind.can_vanish
        )
        memory = t.state.memories.of(uid)
        times = memory.sent_times + 1 if memory.sent_digest == changes.digest else 1
        try:
            if await patch_mirror(seen, t, worker, patch) is None:
                return
        except (Forbidden, Invalid, BadRequest) as error:
            text = f"worker {worker.name} rejected the change: {refusal_text(error)}"
            now = t.environment.clock.monotonic()
            t.state.memories.set(
                uid,
                patch_refused=text,
                patch_refused_at=now,
                sent_digest=changes.digest,
                sent_times=times,
                sent_at=now,
            )
            t.state.intake.add(seen.key)
            return
        sent_at = t.environment.clock.monotonic()
        t.state.memories.set(uid, sent_digest=changes.digest, sent_times=times, sent_at=sent_at, patch_refused="")
        self._log.info("mirror changed", source=seen.key, worker=worker.name)
        if times == RESENDS and changes.reverted:
            text = f"worker {worker.name} reverts changes to {', '.join(changes.reverted)[:MOST_FIELDS]}"
            self._t.record_event(seen, "MirrorChanged", text)
        t.state.intake.add(seen.key)

    async def delete(self, worker: Worker, key: MirrorKey, uid: str, *, because: str, version: str = "") -> None:
        """Delete a mirror, if it is still this object (D10), and as it was in this version if one is given."""
        kind, namespace, name = self._t.state.sources.kinds[key.kind], key.namespace, key.name
        try:
            await worker.client.send(
                requests.delete(kind.resource, name, namespace=namespace, uid=uid, resource_version=version)
            )
        except NotFound:
            worker.mirrors_of(kind).forget_deleted(namespace, name, uid)
            return
        except Conflict as error:
            now = await reread_object(worker, kind, namespace, name, uid, error)
            if now is not None and now.metadata.uid == uid:
                raise
            return
        self._log.info("mirror deleted", worker=worker.name, namespace=namespace, name=name, because=because)


def _key(seen: Snapshot, worker: Worker) -> MirrorKey:
    """Of the object that is, or would be, a source's mirror on a worker."""
    return MirrorKey(worker.name, seen.key.kind, worker.namespace_of(seen.key.namespace), seen.key.name)
