"""Makes, finds, changes and deletes mirrors on their workers. Called by ``applying`` and ``sweeping``, and nobody else.

What a worker answers becomes a fact in ``memory``; what follows from that is decided anew.
"""

from __future__ import annotations

from mirror.adapters import job
from mirror.controllers.refusing import is_same_text, refusal_text, was_certainly_not_done
from mirror.controllers.tools import Tools
from mirror.decide.seen import Look, Refusal, Seen
from mirror.kube import requests
from mirror.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
)
from mirror.kube.objects import Object
from mirror.kube.resources import NAMESPACES
from mirror.model import names
from mirror.model.keys import MirrorKey, SourceKey
from mirror.runtime.backoff import Backoff
from mirror.workers.worker import Worker

REFUSED = Backoff(first=5.0, most=600.0)


class MirrorWriter:
    """One write after the other; an error ends the plan and is retried by the loop."""

    def __init__(self, tools: Tools, arrived_at: dict[SourceKey, float]) -> None:
        self._t = tools
        self._log = tools.log
        self._arrived_at = arrived_at
        """See ``Applier.arrived_at``."""

    async def create(self, seen: Seen, worker: Worker) -> None:
        """Make the mirror; what is in its place already is adopted, or in the way (D1, D5)."""
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
        arrived = self._arrived_at.pop(seen.key, None)
        if arrived is not None:
            t.metrics.create_to_copy.observe(t.clock.monotonic() - arrived)
        self._log.info("mirrored", source=seen.key, worker=worker.name, mirror_uid=mirror.metadata.uid)
        self._t.tell(seen, "Mirrored", f"Mirrored to worker {worker.name}", is_warning=False)
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
        self._t.tell(seen, "MirrorConflict", text)
        self._refused(seen, worker, "the name is taken there", reason="MirrorConflict", was_first=was_first)

    def _refused(self, seen: Seen, worker: Worker, because: str, *, reason: str, was_first: bool) -> None:
        """A definite refusal: of the very first create it clears the record, a later one is only reported (D1, D5)."""
        t, uid = self._t, seen.source.uid
        text = f"worker {worker.name}: {because}"
        self._log.info("mirror refused", source=seen.key, worker=worker.name, because=because)
        counted = t.metrics.worker(worker.name)
        (counted.name_conflicts if reason == "MirrorConflict" else counted.refused_mirrors).inc()
        if reason != "MirrorConflict":
            self._t.tell(seen, reason, text)
        if was_first:
            refusals = dict(t.memories.of(uid).refusals)
            before = refusals.get(worker.name)
            times = before.times + 1 if before is not None else 1
            if before is not None and is_same_text(before.because, because):
                because = before.because
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

    async def find(self, seen: Seen, worker: Worker, expected: str) -> None:
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

    async def restore_labels(self, seen: Seen, worker: Worker) -> None:
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
        self._t.tell(seen, "MirrorChanged", f"the mirror on worker {worker.name} had lost its labels; they are back")
        worker.mirrors.read_own_write(restored)
        t.add(seen.key)

    async def patch(self, seen: Seen, worker: Worker, changes: job.Changes) -> None:
        """Give the mirror what its source has now."""
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
            self._t.tell(seen, "Refused", text)
            t.add(seen.key)
            return
        t.memories.set(uid, sent_digest=changes.digest, sent_times=times, patch_refused="")
        self._log.info("mirror changed", source=seen.key, worker=worker.name)
        if times > 1 and changes.undone:
            self._t.tell(seen, "MirrorChanged", f"what was changed here is undone on worker {worker.name}")
        worker.mirrors.read_own_write(patched)
        t.add(seen.key)

    async def delete(self, worker: Worker, namespace: str, name: str, uid: str, *, because: str) -> None:
        """Delete a mirror, if it is still this object (D10)."""
        try:
            await worker.client.send(requests.delete(job.RESOURCE, name, namespace=namespace, uid=uid))
        except (NotFound, Conflict):
            return
        self._log.info("mirror deleted", worker=worker.name, namespace=namespace, name=name, because=because)
