"""Writes what a source has counted into the status of its held mirror (D14). Called by ``applying``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mirror.controllers.refusing import refusal_text
from mirror.controllers.rereading import patch_mirror
from mirror.controllers.write_context import WriteContext
from mirror.decide.snapshot import Snapshot
from mirror.kube import requests
from mirror.kube.errors import BadRequest, EntityTooLarge, Forbidden, Invalid
from mirror.workers.worker import Worker


async def seed_mirror(context: WriteContext, seen: Snapshot, worker: Worker, status: Mapping[str, Any]) -> None:
    """Write the whole status, if the mirror is still in the version that was looked at: only then is it held.

    Raises:
        KubeError: it did not go well, and is to be tried again.
        LookAgain: the mirror has changed.
    """
    assert seen.mirror is not None
    state, metadata, kind = context.state, seen.mirror.metadata, seen.source.kind
    operations: list[Mapping[str, Any]] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
        {"op": "add", "path": "/status", "value": dict(status)},
    ]
    patch = requests.json_patch(
        kind.resource, metadata.name, operations, namespace=metadata.namespace, subresource="status"
    )
    try:
        if await patch_mirror(seen, context, worker, patch) is None:
            return
    except (Forbidden, Invalid, BadRequest, EntityTooLarge) as error:
        text = f"worker {worker.name} rejects the progress so far, so the Job begins anew there: {refusal_text(error)}"
        state.memories.set(seen.source.uid, seed_refused=text)
        context.environment.log.warning("progress not kept", source=seen.key, worker=worker.name, error=error)
        context.record_event(seen, "ProgressNotKept", text)
    else:
        context.environment.log.info("progress kept", source=seen.key, worker=worker.name)
        counted = ", ".join(f"{status.get(name) or 0} {name}" for name in ("succeeded", "failed"))
        text = f"the copy on {worker.name} goes on from what was counted: {counted}"
        context.record_event(seen, "ProgressKept", text, is_warning=False)
    state.intake.add(seen.key)
