"""Looks for pods of a mirror that is gone (D11). Called by ``writing_mirrors``."""

from __future__ import annotations

from contextlib import aclosing, suppress

from mirror.controllers.refusing import refusal_text
from mirror.controllers.write_context import WriteContext
from mirror.decide.recreating import is_to_start_over
from mirror.decide.snapshot import PodsLeft, Snapshot
from mirror.kinds.asking import was_retried
from mirror.kube.errors import Forbidden
from mirror.kube.objects import Object
from mirror.kube.resources import PODS
from mirror.kube.watch import list_pages
from mirror.workers.worker import Worker

JOB_NAME = "job-name"
"""The label that pods of a Job of any uid have: whatever runs under its name counts, also of one made in between."""
JOB_UID = "controller-uid"
"""The one that says of which; pods that are left behind keep it."""
ENDED = ("Succeeded", "Failed")


def was_let_go(seen: Snapshot) -> bool:
    """Whether we have deleted its mirror, of which nothing ran any more: for a drain, or a try elsewhere (D15, D31)."""
    return seen.source.stored.is_leaving or was_retried(seen.source.found)


async def note_start(context: WriteContext, seen: Snapshot, worker: Worker, mirror_uid: str) -> None:
    """Note of a mirror that is gone that it had started, where a pod of it is there and its source shows no start.

    They are asked for where its user wants that (``Recreate``), or pods are watched: only then the permission is
    expected. A worker that does not tell is no proof: the mirror counts as one that had not started.

    Raises:
        KubeError: that could not be asked.
    """
    if not seen.source.kind.counts_pods or (worker.pods is None and not is_to_start_over(seen.source)):
        return
    namespace, own = worker.namespace_of(seen.key.namespace), _own_selector(seen)
    pages = list_pages(
        worker.client,
        PODS,
        namespace=namespace,
        label_selector=own or f"{JOB_UID}={mirror_uid}",
        limit=500 if own else 1,
        metadata_only=True,
    )
    async with aclosing(pages) as listed:
        with suppress(Forbidden):
            async for page in listed:
                if any(not own or _may_be_of(one, uid=mirror_uid) for one in page.objects):
                    context.state.memories.set(seen.source.uid, ran=mirror_uid)
                    return


async def count_pods_left(context: WriteContext, seen: Snapshot, worker: Worker) -> None:
    """Note how many have not ended.

    Raises:
        KubeError: that could not be asked.
    """
    uid, now = seen.source.uid, context.environment.clock.monotonic()
    before = context.state.memories.of(uid).pods_left
    try:
        count = await _count(worker, seen)
    except Forbidden as error:
        found = PodsLeft(now, refused=refusal_text(error))
    else:
        since = None if count else now
        if since is not None and before is not None and before.none_since is not None:
            since = before.none_since
        found = PodsLeft(now, count, none_since=since)
    context.state.memories.set(uid, pods_left=found)


def _own_selector(seen: Snapshot) -> str:
    """Where its user wrote one (``manualSelector``), its pods have neither label above; empty: they have."""
    source = seen.source
    selector = source.kind.pod_selectors(source.found)[0]
    return "" if source.uid in selector else selector


def _may_be_of(pod: Object, *, uid: str = "", name: str = "") -> bool:
    """Not one that another controls, by its uid or name; those that were orphaned tell of nobody."""
    owners = [one for one in pod.metadata.owner_references or () if one.controller]
    return not owners or any(one.uid == uid or one.name == name for one in owners)


async def _count(worker: Worker, seen: Snapshot) -> int:
    """Of the first page that has some: it matters whether there are any."""
    namespace = worker.namespace_of(seen.key.namespace)
    own, name = _own_selector(seen), seen.key.name
    selector = own or f"{JOB_NAME}={name}"
    async with aclosing(list_pages(worker.client, PODS, namespace=namespace, label_selector=selector)) as pages:
        async for page in pages:
            found = [one for one in page.objects if not own or _may_be_of(one, name=name)]
            count = sum(one.status_dict().get("phase") not in ENDED for one in found)
            if count:
                return count
    return 0
