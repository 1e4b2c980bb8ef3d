"""A flow world with a Kueue on some of its clusters, and what must hold beside queues at every write (D26)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import msgspec
import queue_players
from admission import QUEUE, AdmittingPlane
from doubles.managers import conditions, placed
from flow_invariants import MANAGEMENT, Invariants, decoded
from flow_settled import wait_until_settled
from flow_world import MANAGER, FlowWorld
from queue_forms import JOB, KUEUE, Form
from queue_hand import QueueHand, labels_of

from mirror.controllers.mirroring_settings import MirroringSettings
from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.embedded.apiserver.messages import Request
from mirror.embedded.apiserver.storage.records import Event
from mirror.kinds.base import MirrorTransform
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.planes import other_kinds
from mirror.planes.api import Api, Json
from mirror.planes.plane import ControlPlane
from mirror.settings.kinds import KindEntry

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLAVORS = ("spot", "reserved", *(f"flavor-{number}" for number in range(5)))
NODE_LABELS = {"tier": "preemptible"} | {key: value for flavor in FLAVORS for key, value in labels_of(flavor).items()}
STRIPPED = MirrorTransform("", strip_node_selectors=("example.com/*",), strip_tolerations=("example.com/*",))
"""The origin is the world's."""


class QueueWorld(FlowWorld):
    """Clusters with queues; one on a worker suspends what is created in it."""

    PLANE = AdmittingPlane
    SUBJECT: ClassVar[Form] = JOB
    """The kind that histories are about, beside Jobs."""

    def __init__(
        self,
        scope: asyncio.TaskGroup,
        workers: Sequence[str],
        *,
        queues_on: Collection[str] | None = None,
        subject: Form | None = None,
        **settings: Any,
    ) -> None:
        """``queues_on``: names of clusters; by default all."""
        self.subject = subject or self.SUBJECT
        self.forms = tuple(dict.fromkeys((JOB, self.subject)))
        if self.further:
            settings = {"kinds": kinds_of([KindEntry(kind=str(form)) for form in self.further]), **settings}
        super().__init__(scope, workers, **{"transform": STRIPPED, **settings})
        chosen = self.planes if queues_on is None else queues_on
        self.hands = {name: QueueHand(self.planes[name], forms=self.forms) for name in chosen}
        self._beside: list[asyncio.Task[None]] = []

    @property
    def further(self) -> tuple[Form, ...]:
        """The kinds beside Jobs."""
        return tuple(form for form in self.forms if form is not JOB)

    async def prepare(self) -> None:
        """Every cluster serves its kinds, and every worker runs them."""
        loop = asyncio.get_running_loop()
        for form in self.further:
            for name, plane in self.planes.items():
                await plane.api.create(DEFINITIONS, other_kinds.definition(form.resource))
                while not await _is_served(plane.api, form):  # noqa: ASYNC110 - definitions tell nobody
                    await asyncio.sleep(0.1)
                if name in self.workers:
                    work = queue_players.play(plane, form)
                    self._beside.append(loop.create_task(work, name=f"{form} controller of {name}"))

    async def start(self) -> None:
        await super().start()
        for name, plane in self.planes.items():
            for node in await plane.api.list("/api/v1/nodes"):
                where = f"/api/v1/nodes/{node['metadata']['name']}"
                await plane.api.merge(where, {"metadata": {"labels": NODE_LABELS}})
            if name in self.hands and name in self.workers:
                plane.mutations["CREATE"] = QUEUE
        loop = asyncio.get_running_loop()
        self._beside += [loop.create_task(hand.run(), name=f"queue of {name}") for name, hand in self.hands.items()]

    async def stop(self) -> None:
        for task in self._beside:
            task.cancel()
        if self._beside:
            await asyncio.wait(self._beside)
        await super().stop()

    async def look(self, cluster: str = MANAGEMENT, name: str = "train") -> Json | None:
        """The object of this name, of the kind that it is about."""
        listed = await self.planes[cluster].api.list(self.subject.path())
        return next((one for one in listed if one["metadata"]["name"] == name), None)

    def _mirroring_settings(self) -> MirroringSettings:
        found = super()._mirroring_settings()
        return replace(found, transform=msgspec.structs.replace(found.transform, origin=self.origin))


async def _is_served(api: Api, form: Form) -> bool:
    try:
        await api.list(form.path())
    except StatusError:
        return False
    return True


class QueueInvariants(Invariants):
    """What is the queue's is left to it."""

    world: QueueWorld

    def __init__(self, world: QueueWorld) -> None:
        self._scaled: set[str] = set()
        """Uids of sources whose parallelism somebody has changed."""
        self._mirrors: dict[str, str] = {}
        """Of other kinds than Job: the uid of the source, by the mirror's."""
        super().__init__(world)
        for form in world.further:
            for plane in world.planes.values():
                self._events(plane, form.stored_as)

    def read(self, plane: ControlPlane, request: Request) -> None:
        super().read(plane, request)
        for form in self.world.further:
            for event in self._events(plane, form.stored_as):
                self._look_at(form, plane, event, request)

    # -- Jobs ----------------------------------------------------------------------------------------------------------

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_source(uid, old, new, request)
        if new is None:
            return
        if old is not None and old["spec"].get("parallelism") != new["spec"].get("parallelism"):
            self._scaled.add(uid)
        self._look_at_words(new, request)

    def _look_at_words(self, source: Json, request: Request) -> None:
        waiting = (source["metadata"].get("annotations") or {}).get(names.WAITING_BECAUSE, "")
        if request.peer == MANAGER and waiting.startswith("another controller"):
            self._wrong(f"D26: {source['metadata']['name']}: a queue's write is taken for another controller's")

    def _look_at_new_mirror(self, worker: str, uid: str, source_uid: str, body: Json) -> None:
        super()._look_at_new_mirror(worker, uid, source_uid, body)
        self._look_at_directives(JOB, body)

    def _look_at_directives(self, form: Form, body: Json) -> None:
        """Of a new mirror."""
        for template in form.templates(body).values():
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

    # -- other kinds ---------------------------------------------------------------------------------------------------

    def _look_at(self, form: Form, plane: ControlPlane, event: Event, request: Request) -> None:
        self.written_by[request.peer] += 1
        old = None if event.previous is None else decoded(event.previous.raw)
        new = None if event.is_deletion else decoded(event.record.raw)
        uid, is_ours = event.record.uid, request.peer == MANAGER
        if plane.name == MANAGEMENT:
            self._look_at_other_source(form, uid, old, new, request)
            return
        body = new or old or {}
        name, labels = body["metadata"]["name"], body["metadata"].get("labels") or {}
        source_uid = self._mirrors.setdefault(uid, labels.get(names.SOURCE_UID, ""))
        if not source_uid:
            return
        self.live[source_uid].discard((plane.name, uid))
        if new is not None and not form.has_ended(new):
            self.live[source_uid].add((plane.name, uid))
        if len(self.live[source_uid]) > 1:
            self._wrong(f"D2: {form} {name} has mirrors {sorted(self.live[source_uid])}")
        if is_ours and old is None:
            if plane.name not in self.placed_on[source_uid]:
                self._wrong(f"D5: {form} {name} was created on {plane.name} before that was recorded")
            self._look_at_directives(form, body)
        elif is_ours and new is not None and old is not None and not form.is_held(old):
            if _specs(form, old) != _specs(form, new):
                self._wrong(f"D9, D26: the manager changes pod templates of {form} {name}, which runs on {plane.name}")
        elif is_ours and new is None:
            source = self.sources.get(source_uid)
            if source is not None and placed(source) == plane.name and not form.has_ended(source):
                self._wrong(f"D8: the mirror of {form} {name} was deleted while its source lives and has not ended")

    def _look_at_other_source(self, form: Form, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        if new is None:
            self.sources.pop(uid, None)
            return
        self.sources[uid] = new
        if (worker := placed(new)) is not None:
            self.placed_on[uid].add(worker)
        self._look_at_words(new, request)
        if old is None:
            return
        if request.peer == MANAGER and old["spec"] != new["spec"]:
            self._wrong(f"D3: the manager changed the spec of {form} {new['metadata']['name']}")
        if form.has_ended(old) and not form.has_ended(new):
            self._wrong(f"D7: {form} {new['metadata']['name']} has ended, and then it has not")


def _specs(form: Form, body: Json) -> Json:
    return {name: template["spec"] for name, template in form.templates(body).items()}


async def settle_others(world: QueueWorld, laws: QueueInvariants) -> None:
    """Wait until what may run of other kinds than Job has ended, the rest says so, and nothing more is written.

    Raises:
        AssertionError: that takes too long.
    """
    await wait_until_settled(world, laws, lambda: disagreements(world))


async def disagreements(world: QueueWorld) -> list[str]:
    """What is not (yet) as it should be of other kinds than Job."""
    problems: list[str] = []
    for form in world.further:
        sources = {one["metadata"]["uid"]: one for one in await world.management.api.list(form.path())}
        for name, source in ((one["metadata"]["name"], one) for one in sources.values()):
            if not form.is_held(source) and not form.has_ended(source):
                problems.append(f"{form} {name} has not ended: {source.get('status')}")
            elif form.is_held(source) and not form.has_ended(source) and "Suspended" not in conditions(source):
                problems.append(f"{form} {name} is suspended, and does not say so")
        for worker, plane in world.workers.items():
            for mirror in await plane.api.list(form.path()):
                source_uid = (mirror["metadata"].get("labels") or {}).get(names.SOURCE_UID, "")
                problems += _problems(form, sources.get(source_uid), mirror, worker)
    return problems


def _problems(form: Form, source: Json | None, mirror: Json, worker: str) -> list[str]:
    name = f"{form} {mirror['metadata']['name']}"
    if source is None:
        return [f"{name} on {worker} has no source"]
    if placed(source) != worker:
        return [f"{name} is placed on {placed(source)}, and has a mirror on {worker}"]
    if form.has_ended(mirror) != form.has_ended(source):
        return [f"{name} and its mirror on {worker} do not agree about its end"]
    if form.is_held(source) and not form.has_ended(source) and not form.is_held(mirror):
        return [f"{name} is suspended, its mirror is not"]
    return []
