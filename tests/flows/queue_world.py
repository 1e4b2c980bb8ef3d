"""A flow world with a Kueue on some of its clusters, and what must hold beside queues at every write (D26)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from admission import AdmittingPlane
from flow_invariants import Invariants
from flow_world import MANAGER, FlowWorld
from queue_hand import KUEUE, QueueHand, labels_of

from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.embedded.apiserver.messages import Request
from mirror.kinds.base import MirrorTransform
from mirror.model import names
from mirror.planes.api import Json

FLAVORS = ("spot", "reserved", *(f"flavor-{number}" for number in range(5)))
NODE_LABELS = {"tier": "preemptible"} | {key: value for flavor in FLAVORS for key, value in labels_of(flavor).items()}
STRIPPED = MirrorTransform("", strip_node_selectors=("example.com/*",), strip_tolerations=("example.com/*",))
"""The origin is the world's."""


class QueueWorld(FlowWorld):
    """Clusters with queues; one on a worker suspends what is created in it."""

    PLANE = AdmittingPlane

    def __init__(
        self,
        scope: asyncio.TaskGroup,
        workers: Sequence[str],
        *,
        queues_on: Collection[str] | None = None,
        **settings: Any,
    ) -> None:
        """``queues_on``: names of clusters; by default all."""
        super().__init__(scope, workers, **{"transform": STRIPPED, **settings})
        chosen = self.planes if queues_on is None else queues_on
        self.hands = {name: QueueHand(self.planes[name]) for name in chosen}
        self._hands: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await super().start()
        for name, plane in self.planes.items():
            for node in await plane.api.list("/api/v1/nodes"):
                where = f"/api/v1/nodes/{node['metadata']['name']}"
                await plane.api.merge(where, {"metadata": {"labels": NODE_LABELS}})
            if name in self.hands and name in self.workers:
                plane.mutations["CREATE"] = "queue"
        loop = asyncio.get_running_loop()
        self._hands = [loop.create_task(hand.run(), name=f"queue of {name}") for name, hand in self.hands.items()]

    async def stop(self) -> None:
        for task in self._hands:
            task.cancel()
        if self._hands:
            await asyncio.wait(self._hands)
        await super().stop()

    def _mirroring_settings(self) -> MirroringSettings:
        found = super()._mirroring_settings()
        return replace(found, transform=msgspec.structs.replace(found.transform, origin=self.origin))


class QueueInvariants(Invariants):
    """What is the queue's is left to it."""

    def __init__(self, world: FlowWorld) -> None:
        self._scaled: set[str] = set()
        """Uids of sources whose parallelism somebody has changed."""
        super().__init__(world)

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_source(uid, old, new, request)
        if new is None:
            return
        if old is not None and old["spec"].get("parallelism") != new["spec"].get("parallelism"):
            self._scaled.add(uid)
        waiting = (new["metadata"].get("annotations") or {}).get(names.WAITING_BECAUSE, "")
        if request.peer == MANAGER and waiting.startswith("another controller"):
            self._wrong(f"D26: {new['metadata']['name']}: a queue's write is taken for another controller's")

    def _look_at_new_mirror(self, worker: str, uid: str, source_uid: str, body: Json) -> None:
        super()._look_at_new_mirror(worker, uid, source_uid, body)
        template = body["spec"]["template"]
        metadata = template.get("metadata") or {}
        found = [*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})]
        notes = [key for key in found if key.startswith(KUEUE)]
        flavors = [key for key in template["spec"].get("nodeSelector") or {} if key.startswith("example.com/")]
        if notes or flavors:
            self._wrong(f"D26: the mirror of {body['metadata']['name']} has {notes + flavors} of the queue here")

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_mirror(worker, uid, old, new, request)
        if request.peer != MANAGER or old is None or new is None:
            return
        labels = (old["spec"]["template"].get("metadata") or {}).get("labels") or {}
        is_scaled = old["spec"].get("parallelism") != new["spec"].get("parallelism")
        source_uid = (new["metadata"].get("labels") or {}).get(names.SOURCE_UID, "")
        if names.POD_SET in labels and is_scaled and source_uid not in self._scaled:
            self._wrong(f"D26: the manager undoes a partial admission of {new['metadata']['name']} on {worker}")
