"""Unsuspends a source that our webhook holds, once its worker is recorded (D16). Called by ``applying``.

It happens once: the write is guarded by the version that was looked at, and takes the mark ``held`` away with it.
"""

from __future__ import annotations

from mirror.controllers.refusing import refusal_text
from mirror.controllers.rereading import STALE, reread_source
from mirror.controllers.write_context import WriteContext
from mirror.decide.snapshot import Snapshot
from mirror.kinds.base import release_operations
from mirror.kube import requests
from mirror.kube.errors import BadRequest, Forbidden, Invalid, NotFound


async def release(seen: Snapshot, context: WriteContext) -> None:
    """Unsuspend it, unless it changed since it was looked at: a user may have suspended it meanwhile.

    Raises:
        KubeError: it did not go well, and is to be tried again.
    """
    uid, key, kind = seen.source.uid, seen.key, seen.source.kind
    state = context.state
    operations = release_operations(kind, seen.source.found)
    patch = requests.json_patch(kind.resource, key.name, operations, namespace=key.namespace)
    try:
        released = await context.management.send_object(patch)
    except NotFound:
        return  # deleted meanwhile: the watch shows it
    except STALE as error:
        await reread_source(seen, context, error)
    except (Forbidden, Invalid, BadRequest) as error:
        text = f"held by our webhook, and may not be unsuspended: {refusal_text(error)}"
        state.memories.set(uid, release_refused=text, release_refused_at=state.environment.clock.monotonic())
    else:
        state.memories.set(uid, release_refused="")
        state.sources.of(kind).read_own_write(released)
        state.history.on_released(seen)
        state.environment.log.info("released", source=key, worker=seen.source.placed)
    state.intake.add(key)
