"""Copies that were left on a worker when their source was moved from it, once the worker is back (D14).

Called by ``sweeping`` for each of them, in the worker's own lane. A Complete one may win, which the source's key
decides (``decide.moving.take_returned_completion``); every other one is deleted, by uid and version: one that ends
meanwhile is looked at again.
"""

from __future__ import annotations

from mirror.controllers.write_context import WriteContext
from mirror.controllers.writing_mirrors import MirrorWriter
from mirror.decide.moving import is_completed_copy
from mirror.kinds.base import Kind, StatusSummary
from mirror.kube import requests
from mirror.kube.errors import NotFound
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.keys import MirrorKey, SourceKey
from mirror.model.moves import is_left_behind
from mirror.runtime.events import NORMAL, Regarding
from mirror.workers.worker import Worker


class Returning:
    """Judges them by what both clusters say now, not by caches."""

    def __init__(self, context: WriteContext, mirrors: MirrorWriter) -> None:
        self._t = context
        self.mirrors = mirrors

    async def settle(self, worker: Worker, kind: Kind, mirror: Object) -> None:
        """Have it count, or delete it; nothing is done where the source says that it is not left behind any more.

        Raises:
            KubeError: a cluster does not say.
        """
        metadata, t = mirror.metadata, self._t
        namespace = worker.source_namespace_of(metadata.namespace)
        if namespace is None:
            return
        try:
            source = await t.management.send_object(requests.get(kind.resource, metadata.name, namespace=namespace))
        except NotFound:
            return  # deleted meanwhile: its own key, or the sweep, asks for it
        summary = kind.summary(source)
        is_same_source = source.metadata.uid == mirror.labels.get(names.SOURCE_UID)
        if not is_same_source or not is_left_behind_on(worker.name, mirror, summary):
            return
        get = requests.get(kind.resource, metadata.name, namespace=metadata.namespace)
        try:
            found = await worker.client.send_object(get)
        except NotFound:
            worker.mirrors_of(kind).forget_deleted(metadata.namespace, metadata.name, metadata.uid)
            return
        worker.mirrors_of(kind).take_read(found)
        key = MirrorKey(worker.name, kind.name, metadata.namespace, metadata.name)
        if found.metadata.uid != metadata.uid:
            t.state.intake.add(key)
            return
        if found.metadata.deletion_timestamp is not None:
            return
        is_completed = any(is_completed_copy(kind, source.metadata.uid, left, found) for left in summary.left_behind)
        if is_completed and not summary.is_finished:
            t.state.intake.add(SourceKey(kind.name, namespace, metadata.name))
            return
        version = found.metadata.resource_version
        await self.mirrors.delete(
            worker, key, found.metadata.uid, because="its source was moved from here", version=version
        )
        t.environment.metrics.worker(worker.name).left_behind_deleted.inc()
        text = f"the copy that was left on {worker.name} was deleted"
        t.recorder.event(Regarding.of(kind.resource, source), NORMAL, "LeftBehindDeleted", text)


def is_left_behind_on(worker: str, mirror: Object, summary: StatusSummary) -> bool:
    """Whether an object with a source's labels is what that source left on a worker."""
    return is_left_behind(summary.left_behind, worker=worker, uid=mirror.metadata.uid, placed=summary.placed)
