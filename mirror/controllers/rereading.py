"""After a conflict, or a write whose outcome is unknown: one live read of that object, which goes into the cache.

A watch that is slow or cut would otherwise let the same stale write be rejected again and again. Called by whoever
writes: ``writing_sources``, and by ``patch_mirror`` all who change mirrors.
"""

from __future__ import annotations

from typing import NoReturn

from mirror.controllers.write_context import WriteContext
from mirror.decide.snapshot import Snapshot
from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.errors import BadAnswer, Conflict, KubeError, NotFound, OutcomeUnknown, ServerFailure
from mirror.kube.objects import Object
from mirror.workers.worker import Worker


class LookAgain(Exception):
    """What a plan was made for has changed: what it wants to be remembered does not count, and a new one is made."""


STALE = (Conflict, OutcomeUnknown, ServerFailure, BadAnswer)
"""Errors after which the object may be another than the one that the write was made for."""


async def reread_source(seen: Snapshot, context: WriteContext, error: KubeError) -> NoReturn:
    """Look at the source as it is now.

    Raises:
        LookAgain: it has changed.
        KubeError: the given error: nothing has changed, so trying again at once would end the same.
    """
    key, kind, found = seen.key, seen.source.kind, seen.source.found
    try:
        now = await context.management.send_object(requests.get(kind.resource, key.name, namespace=key.namespace))
    except KubeError:
        raise error from None
    if _is_same(found, now):
        raise error
    context.take_source(kind, now)
    raise LookAgain


async def reread_mirror(seen: Snapshot, worker: Worker, error: KubeError) -> NoReturn:
    """The same for its mirror.

    Raises:
        LookAgain: it has changed.
        KubeError: the given error.
    """
    assert seen.mirror is not None
    metadata = seen.mirror.metadata
    now = await reread_object(worker, seen.source.kind, metadata.namespace, metadata.name, metadata.uid, error)
    if now is not None and _is_same(seen.mirror, now):
        raise error
    raise LookAgain


async def patch_mirror(seen: Snapshot, context: WriteContext, worker: Worker, patch: requests.Request) -> Object | None:
    """The mirror as it is after a patch, in the cache; None: it is gone, and its source is looked at again.

    Raises:
        LookAgain: it is another than the patch was made for.
        KubeError: the worker does not take the patch.
    """
    assert seen.mirror is not None
    metadata, mirrors = seen.mirror.metadata, worker.mirrors_of(seen.source.kind)
    try:
        patched = await worker.client.send_object(patch)
    except STALE as error:
        await reread_mirror(seen, worker, error)
    except NotFound:
        mirrors.forget_deleted(metadata.namespace, metadata.name, metadata.uid)
        context.state.intake.add(seen.key)
        return None
    mirrors.take_own_write(patched)
    return patched


async def reread_object(
    worker: Worker, kind: Kind, namespace: str, name: str, uid: str, error: KubeError
) -> Object | None:
    """An object on a worker as it is now, which goes into the cache; None: it is gone.

    A conflict alone does not tell that: what is taken for gone is shown by no watch again.

    Raises:
        KubeError: the given error: the worker does not say.
    """
    mirrors = worker.mirrors_of(kind)
    try:
        now = await worker.client.send_object(requests.get(kind.resource, name, namespace=namespace))
    except NotFound:
        mirrors.forget_deleted(namespace, name, uid)
        return None
    except KubeError:
        raise error from None
    mirrors.take_read(now)
    return now


def _is_same(before: Object, now: Object) -> bool:
    return before.metadata.resource_version == now.metadata.resource_version
