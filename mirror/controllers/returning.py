"""Copies that were left on a worker when their source was moved from it, once the worker is back (D14).

So are those that a worker has again although their source went elsewhere, since it was restored from a backup.
Called by ``sweeping`` for each of them, in the worker's own lane. A Complete one may win, which the source's key
decides (``decide.moving.take_returned_completion``); every other one is deleted, by uid and version: one that ends
meanwhile is looked at again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager

from mirror.batch import conditions, times, views
from mirror.controllers.refusing import is_refusal, refusal_text, was_certainly_not_done
from mirror.controllers.write_context import WriteContext
from mirror.controllers.writing_mirrors import MirrorWriter
from mirror.decide.following import finalizers_text
from mirror.decide.identity import has_labels, own_labels
from mirror.decide.moving import is_completed_copy, why_uncounted
from mirror.kinds.asking import manager_of, was_moved
from mirror.kinds.base import Kind, StatusSummary
from mirror.kinds.queueing import queue_of
from mirror.kube import requests
from mirror.kube.errors import ApiError, KubeError, NotFound, ServerFailure
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.keys import MirrorKey, SourceKey
from mirror.model.moves import FENCED, LeftBehind, is_left_behind, parse_moves
from mirror.model.views import COMPLETE
from mirror.runtime.events import NORMAL, WARNING, Regarding
from mirror.workers.known_workers import Workers
from mirror.workers.worker import Worker

LATE_SECONDS = 2.0
"""Times of conditions are whole seconds, and a worker's clock is known to half of one."""


class Returning:
    """Judges them by what both clusters say now, not by caches."""

    def __init__(
        self,
        context: WriteContext,
        mirrors: MirrorWriter,
        *,
        suspends: bool = False,
        warn: Callable[[str, str, str], None] = lambda worker, reason, text: None,
    ) -> None:
        """``suspends``: those that lose stay, suspended, where they can and unless their name is needed.

        It is the setting ``workers.losers``; which cannot, says ``must_go``.
        ``warn``: about a worker, with a reason and a text.
        """
        self._t = context
        self._suspends = suspends
        self._warn = warn
        self.mirrors = mirrors
        # Those that we have deleted and finalizers keep, with their sources; until they are gone, or their worker.
        self._kept: dict[MirrorKey, Regarding] = {}

    async def settle(self, worker: Worker, kind: Kind, mirror: Object) -> None:
        """Have it count, or delete it; nothing is done where the source says that it is not left behind any more.

        Meanwhile the source may lose its worker: then no record is made of this copy, since a delete may be on its way.

        Raises:
            KubeError: a cluster does not say.
        """
        mirrors = worker.mirrors_of(kind)
        may_go = was_going = mirrors.is_going(mirror)
        mirrors.note_going(mirror)
        try:
            judged = await self._judge(worker, kind, mirror)
            if judged is not None:
                may_go = True
                async with self._reporting_refusal(worker, kind, judged[0], "deleted"):
                    await self._delete(worker, kind, *judged)
        except KubeError as error:
            is_refused = isinstance(error, ApiError) and not isinstance(error, ServerFailure)
            if is_refused or was_certainly_not_done(error):
                may_go = was_going
            raise
        finally:
            if not may_go:
                mirrors.note_going(mirror, is_so=False)

    async def _judge(self, worker: Worker, kind: Kind, mirror: Object) -> tuple[Object, Object] | None:
        """The source, and the mirror if it is to be deleted, as both are now."""
        metadata, t = mirror.metadata, self._t
        namespace = worker.source_namespace_of(metadata.namespace)
        if namespace is None or self._is_kept(worker, kind, mirror):
            return None
        try:
            source = await t.management.send_object(requests.get(kind.resource, metadata.name, namespace=namespace))
        except NotFound:
            return None  # deleted meanwhile: its own key, or the sweep, asks for it
        summary = kind.summary(source)
        is_same_source = source.metadata.uid == mirror.labels.get(names.SOURCE_UID)
        if not is_same_source:
            return None
        is_second = not is_left_behind_on(worker.name, mirror, summary)
        if is_second and not await self._is_second_now(worker, kind, source, mirror):
            return None
        get = requests.get(kind.resource, metadata.name, namespace=metadata.namespace)
        try:
            found = await worker.client.send_object(get)
        except NotFound:
            worker.mirrors_of(kind).forget_deleted(metadata.namespace, metadata.name, metadata.uid)
            return None
        worker.mirrors_of(kind).take_read(found)
        key = MirrorKey(worker.name, kind.name, metadata.namespace, metadata.name)
        if found.metadata.uid != metadata.uid:
            t.state.intake.add(key)
            return None
        if found.metadata.deletion_timestamp is not None or not self._is_left(worker, kind, source, found):
            return None
        if is_second and not self.is_second(worker, kind, source, found):
            return None  # it has ended meanwhile
        is_completed = any(is_completed_copy(kind, source, left, found) for left in summary.left_behind)
        if is_completed and not summary.is_finished:
            t.state.intake.add(SourceKey(kind.name, namespace, metadata.name))
            return None
        self._report_breach(worker, kind, source, found, summary.left_behind)
        if self._suspends and summary.placed != worker.name and not must_go(kind, found):
            async with self._reporting_refusal(worker, kind, source, "suspended"):
                await self._suspend(worker, kind, source, found)
            return None
        return source, found

    async def _delete(self, worker: Worker, kind: Kind, source: Object, found: Object) -> None:
        metadata, because = found.metadata, "its source was moved from here"
        key = MirrorKey(worker.name, kind.name, metadata.namespace, metadata.name)
        await self.mirrors.delete(worker, key, metadata.uid, because=because, version=metadata.resource_version)
        self._t.environment.metrics.worker(worker.name).left_behind_deleted.inc()
        regarding, summary = Regarding.of(kind.resource, source), kind.summary(source)
        if not is_left_behind_on(worker.name, found, summary):
            text = f"a copy on {worker.name}, which the Job has left for {summary.placed}, may have run beside it"
            self._t.recorder.event(regarding, WARNING, "SecondCopyDeleted", f"{text}: it was deleted")
        elif keeps := finalizers_text(found):
            self._kept[key] = regarding
            text = f"the copy that was left on {worker.name} is being deleted, and its pods may run until it is gone"
            self._t.recorder.event(regarding, WARNING, "LeftBehindKept", text + keeps)
        else:
            self._report_deleted(worker.name, regarding)
        self.report_uncounted(worker, kind, found)

    def note_gone(self, key: MirrorKey) -> None:
        """Nothing has this name on the worker any more: what finalizers had kept is deleted."""
        if (regarding := self._kept.pop(key, None)) is not None:
            self._report_deleted(key.worker, regarding)

    def keep_only(self, workers: Collection[str]) -> None:
        """Others are not registered any more: what becomes of copies there nobody will know."""
        for key in [one for one in self._kept if one.worker not in workers]:
            del self._kept[key]

    def _report_deleted(self, worker: str, regarding: Regarding) -> None:
        self._t.recorder.event(
            regarding, NORMAL, "LeftBehindDeleted", f"the copy that was left on {worker} was deleted"
        )

    @asynccontextmanager
    async def _reporting_refusal(self, worker: Worker, kind: Kind, source: Object, done: str) -> AsyncIterator[None]:
        """A worker that refuses it leaves two that run: that is said where users look, and where operators do."""
        try:
            yield
        except ApiError as error:
            if is_refusal(error):
                why = refusal_text(error)
                text = f"the copy that was left on {worker.name} may still run: it is not {done}"
                regarding = Regarding.of(kind.resource, source)
                self._t.recorder.event(
                    regarding, WARNING, "LeftBehindNotDeleted", f"{text}, since the worker refuses that: {why}"
                )
                what = "delete" if done == "deleted" else "suspend"
                text = f"copies of Jobs that were moved stay on this worker, which refuses to {what} them: {why}"
                self._warn(worker.name, "MirrorNotDeleted", text)
            raise

    def is_second(self, worker: Worker, kind: Kind, source: Object, mirror: Object) -> bool:
        """Whether an object runs here, by caches, although its source is elsewhere and needs it no more (D2).

        That has ended, or its own mirror is there: else this may be the only one. A management cluster that was
        restored says what was so before: then this one is its own, or that one is gone, and nothing is certain.
        """
        summary, t = kind.summary(source), self._t
        labels = own_labels(mirror)
        is_ours = labels.get(names.SOURCE_UID) == source.metadata.uid and has_labels(
            labels, origin=t.state.transform.origin, management_uid=t.state.transform.management_uid
        )
        if summary.placed in (None, worker.name) or not is_ours or kind.records_by_annotation:
            return False
        if summary.mirror_uid == mirror.metadata.uid or kind.summary(mirror).is_finished:
            return False
        return summary.is_finished or self._has_own_mirror(kind, source, summary)

    def _has_own_mirror(self, kind: Kind, source: Object, summary: StatusSummary) -> bool:
        there, metadata = self._t.state.workers.get(summary.placed or ""), source.metadata
        if there is None or not there.is_reachable or not summary.mirror_uid:
            return False
        found = there.mirrors_of(kind).metadata_of(there.namespace_of(metadata.namespace), metadata.name)
        return found is not None and found.uid == summary.mirror_uid and found.deletion_timestamp is None

    async def _is_second_now(self, worker: Worker, kind: Kind, source: Object, mirror: Object) -> bool:
        """The same, of a source as it is now, and by what the other worker says now."""
        summary, metadata, manager = kind.summary(source), source.metadata, manager_of(kind, source)
        if manager not in (None, self._t.state.manager) or metadata.deletion_timestamp is not None:
            return False
        if not self.is_second(worker, kind, source, mirror):
            return False
        there = self._t.state.workers.get(summary.placed or "")
        if summary.is_finished or there is None:
            return summary.is_finished
        namespace = there.namespace_of(metadata.namespace)
        try:
            found = await there.client.send_object(requests.get(kind.resource, metadata.name, namespace=namespace))
        except NotFound:
            return False
        return found.metadata.uid == summary.mirror_uid and found.metadata.deletion_timestamp is None

    def report_uncounted(self, worker: Worker, kind: Kind, found: Object) -> None:
        """What was deleted where a copy was left said that it was Complete, and somebody may have made that up (D1)."""
        namespace = worker.source_namespace_of(found.metadata.namespace) or ""
        source = self._t.state.sources.get(SourceKey(kind.name, namespace, found.metadata.name))
        if source is None or kind.summary(source).is_finished or kind.progress(found).end != COMPLETE:
            return
        there = [one for one in kind.summary(source).left_behind if one.worker == worker.name]
        if not there:
            return
        left = next((one for one in there if one.uid == found.metadata.uid), there[-1])
        why = why_uncounted(kind, source, left, found)
        text = f"a copy on {worker.name} that said that it was complete does not count, and was deleted: {why}"
        self._t.recorder.event(Regarding.of(kind.resource, source), WARNING, "EarlierCopyNotCounted", text)

    def _is_left(self, worker: Worker, kind: Kind, source: Object, found: Object) -> bool:
        """Whether it still is, after all those questions: meanwhile this worker may have got the record back."""
        known = self._t.state.sources.of(kind).get(source.metadata.namespace, source.metadata.name)
        if known is None or known.metadata.uid != source.metadata.uid or known.version < source.version:
            return True
        return is_left_behind_on(worker.name, found, kind.summary(known)) or self.is_second(worker, kind, known, found)

    async def _suspend(self, worker: Worker, kind: Kind, source: Object, found: Object) -> None:
        """Its pods end, and what is there of it stays to be looked at."""
        if kind.is_suspended(found) or kind.summary(found).is_finished:
            return
        metadata = found.metadata
        version = {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version}
        operations = [version, kind.set_suspended(True)]
        patch = requests.json_patch(kind.resource, metadata.name, operations, namespace=metadata.namespace)
        worker.mirrors_of(kind).take_own_write(await worker.client.send_object(patch))
        text = f"the copy that was left on {worker.name} was suspended"
        self._t.recorder.event(Regarding.of(kind.resource, source), NORMAL, "LeftBehindSuspended", text)

    def _is_kept(self, worker: Worker, kind: Kind, mirror: Object) -> bool:
        """Whether nothing is to be done about it any more, by what caches say."""
        if not self._suspends or not (kind.is_suspended(mirror) or kind.summary(mirror).is_finished):
            return False
        is_complete = kind.summary(mirror).is_finished and kind.progress(mirror).end == COMPLETE
        if is_complete or must_go(kind, mirror):
            return False
        namespace = worker.source_namespace_of(mirror.metadata.namespace) or ""
        source = self._t.state.sources.get(SourceKey(kind.name, namespace, mirror.metadata.name))
        return source is not None and kind.summary(source).placed not in (None, worker.name)

    def _report_breach(
        self, worker: Worker, kind: Kind, source: Object, found: Object, left: tuple[LeftBehind, ...]
    ) -> None:
        """A copy that may run although nothing of it could: two ran at a time, or might have."""
        t, uid = self._t, found.metadata.uid
        promise = next((one.promise for one in left if one.worker == worker.name and one.uid in ("", uid)), "")
        is_late = _has_ended_late(worker, kind, source, found)
        text = breach(kind, found, worker.name, promise, has_ended_late=is_late)
        memories = t.state.memories
        if not text or memories.of(source.metadata.uid).breach_told == uid:
            return
        memories.set(source.metadata.uid, breach_told=uid)
        t.environment.metrics.worker(worker.name).fence_breaches.inc()
        key = SourceKey(kind.name, source.metadata.namespace, source.metadata.name)
        t.environment.log.error("fence breached", source=key, worker=worker.name, mirror_uid=uid, promise=promise)
        t.recorder.event(Regarding.of(kind.resource, source), WARNING, "FenceBreached", text)


def must_go(kind: Kind, found: Object) -> bool:
    """Whether a copy that may run cannot be kept, suspended.

    That would make it complete, and so win; or the queue that it is in there resumes what it has admitted, as often as
    it is suspended (D26).
    """
    return not kind.summary(found).is_finished and (bool(queue_of(found)) or kind.ends_when_suspended(found))


def _has_ended_late(worker: Worker, kind: Kind, source: Object, found: Object) -> bool:
    """Whether a copy has ended only after its source was moved from there, if that was its last move."""
    said = next((one for one in conditions.of(source.status_dict()) if one.get("type") == names.MOVED), {})
    ended, text = kind.ended_at(found.status_dict()), views.text(said.get("lastTransitionTime"))
    if ended is None or parse_moves(views.text(said.get("message"))).origin != worker.name:
        return False
    try:
        moved = times.seconds(text)
    except times.BadTime:
        return False
    return ended / 1e9 - (worker.client.clock_offset_seconds or 0.0) > moved + LATE_SECONDS


def breach(kind: Kind, found: Object, worker: str, promise: str, *, has_ended_late: bool) -> str:
    """What is wrong with a copy that was promised not to run any more; empty: nothing."""
    if not promise:
        return ""
    if kind.summary(found).is_finished:
        text = f"the copy on worker {worker} ended only after the Job was moved: it may have run beside another one"
        return text if has_ended_late else ""
    lease = kind.fence.lease(found) if kind.fence is not None else None
    if lease is not None and (lease.is_held or lease.started_at is None):
        return ""  # suspended without pods, or never started
    what = "still ran" if lease is None or not lease.is_over else "still had pods that were to end"
    why = "its lease was over" if promise == FENCED else "it was declared gone"
    return f"the copy on worker {worker} {what} although {why}: it may have run beside another one"


def is_left_behind_on(worker: str, mirror: Object, summary: StatusSummary) -> bool:
    """Whether an object with a source's labels is what that source left on a worker."""
    return is_left_behind(summary.left_behind, worker=worker, uid=mirror.metadata.uid, placed=summary.placed)


def is_left_on(worker: str, kind: Kind, source: Object | None, found: Object) -> bool:
    """Whether a source was moved from a worker and has left this object there (D14)."""
    if source is None or not was_moved(source):
        return False
    return is_left_behind_on(worker, found, kind.summary(source))


def has_copy(workers: Workers, kind: Kind, source: Object, name: str) -> bool:
    """Whether a worker has something now that a source has left there, and that may run: it takes a place."""
    worker, metadata = workers.get(name), source.metadata
    if worker is None:
        return False
    found = worker.mirrors_of(kind).get(worker.namespace_of(metadata.namespace), metadata.name)
    if found is None or found.labels.get(names.SOURCE_UID) != metadata.uid:
        return False
    may_run = not (kind.is_suspended(found) or kind.summary(found).is_finished)
    return may_run and is_left_behind_on(name, found, kind.summary(source))
