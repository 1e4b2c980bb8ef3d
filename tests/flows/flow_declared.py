"""What must hold of a kind that the settings declare, at every write: definitions that go, times to live (D23, D25)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from declared_world import PATH, SETTINGS, DeclaredWorld, stored
from doubles.drills import DRILLS, definition
from flow_drills import DEFINITIONS, STORED_AS, DrillInvariants
from flow_invariants import MANAGEMENT, decoded
from flow_world import MANAGER, FlowWorld, tolerant

from mirror.embedded.apiserver.messages import Answer, Request
from mirror.embedded.apiserver.storage.records import Event
from mirror.embedded.faults.targets import Target
from mirror.kinds.declared.choosing import kinds_of
from mirror.model import names
from mirror.planes.api import Json
from mirror.planes.plane import ControlPlane
from mirror.settings.load import parse

DEFINITION_NAME = definition()["metadata"]["name"]
DEFINITION = f"{DEFINITIONS}/{DEFINITION_NAME}"
_DEFINED_AS = "customresourcedefinitions.apiextensions.k8s.io"
SLACK_SECONDS = 3600.0 + 5.0
"""Clocks of clusters are set by the histories, by as much at most."""
TIDY_SECONDS = 60.0


class MortalWorld(DeclaredWorld):
    """Whose Drills may say how long they want to live."""

    mirrored = kinds_of(parse(SETTINGS + b"  timeToLive: spec.run.ttl\n", "f").kinds)


class AnnotatedWorld(MortalWorld):
    """In which the record of Drills is an annotation."""

    mirrored = kinds_of(parse(SETTINGS + b"  timeToLive: spec.run.ttl\n  record: annotation\n", "f").kinds)


class DeclaredInvariants(DrillInvariants):
    """``DrillInvariants``, and those of a kind that may come and go."""

    def __init__(self, world: FlowWorld) -> None:
        super().__init__(world)
        self._epochs = dict.fromkeys(world.planes, 0)
        """How often the definition of a cluster went."""
        self._was_defined = dict.fromkeys(world.planes, True)
        self._taken: dict[str, int] = {}
        """Objects that went with their definition, by uid: the epoch of their cluster."""
        self._mirrors: dict[str, tuple[str, str]] = {}
        """The newest mirror of each source, as (worker, uid)."""
        self._specs: dict[str, dict[int, Json]] = {}
        """What each generation of an object says that its mirror, or source, says as well; by uid."""
        self._observed: dict[str, list[Json]] = {}
        """What controllers on workers have looked at of mirrors, by the uid of their source."""

    def _listener(self, plane: ControlPlane) -> Callable[[Request, Target, Answer], None]:
        look = super()._listener(plane)

        def on_answer(request: Request, target: Target, answer: Answer) -> None:
            is_ours = request.peer == MANAGER and target.plural == DRILLS.plural and answer.status < 300
            if request.method != "GET":
                self._look_at_what_went()
            self._written_by_us = is_ours
            self._deleted_by_us = target.name if is_ours and request.method == "DELETE" else ""
            look(request, target, answer)

        return on_answer

    _deleted_by_us = ""
    _written_by_us = False

    def _look_at_what_went(self) -> None:
        """With a definition its objects go, which is no request of anybody's."""
        self._deleted_by_us = ""
        for plane in self.world.planes.values():
            is_defined = self.is_defined(plane)
            if self._was_defined[plane.name] and not is_defined:
                self._epochs[plane.name] += 1
            self._was_defined[plane.name] = is_defined
            if not is_defined:
                for event in self._events(plane, STORED_AS):
                    self._look_at_drill(plane, event)

    @staticmethod
    def is_defined(plane: ControlPlane) -> bool:
        """Whether a cluster knows Drills, and does not forget them just now."""
        record = plane.storage.get(_DEFINED_AS, "", DEFINITION_NAME)
        return record is not None and b'"deletionTimestamp"' not in record.raw

    def _look_at_drill(self, plane: ControlPlane, event: Event) -> None:
        super()._look_at_drill(plane, event)
        old = None if event.previous is None else decoded(event.previous.raw)
        new = None if event.is_deletion else decoded(event.record.raw)
        body = new or old or {}
        name, uid = body["metadata"]["name"], event.record.uid
        source = (body["metadata"].get("labels") or {}).get(names.SOURCE_UID, "")
        if event.is_deletion and not self.is_defined(plane):
            self._taken[uid] = self._epochs[plane.name]
        elif plane.name == MANAGEMENT:
            self._look_at_source_of_kind(name, uid, old, new)
            self._look_at_generation(name, uid, old, new)
        elif new is not None and source:
            self._mirrors[source] = (plane.name, uid)
            self._look_at_observed(uid, source, new)
            if "ttl" in new["spec"].get("run", {}):
                self._wrong(f"D25: the mirror {name} has a time to live, and its worker would delete it")
        elif event.is_deletion and self._deleted_by_us == name and self._is_taken(MANAGEMENT, source):
            self._wrong(f"D23: the mirror {name} is deleted since the definition of its source went")

    def _look_at_observed(self, uid: str, source: str, new: Json) -> None:
        specs = self._specs.setdefault(uid, {})
        specs[new["metadata"]["generation"]] = _shared(new["spec"])
        looked_at = specs.get((new.get("status") or {}).get("observedGeneration", 0))
        if looked_at is not None and looked_at not in (known := self._observed.setdefault(source, [])):
            known.append(looked_at)

    def _look_at_generation(self, name: str, uid: str, old: Json | None, new: Json | None) -> None:
        """A status tells of a generation only once a controller has looked at a mirror that has all of it."""
        if new is None:
            return
        specs = self._specs.setdefault(uid, {})
        specs[new["metadata"]["generation"]] = _shared(new["spec"])
        before, now = (((one or {}).get("status") or {}).get("observedGeneration", 0) for one in (old, new))
        if self._written_by_us and now not in (0, before) and specs.get(now) not in self._observed.get(uid, []):
            self._wrong(f"D9: {name} is told of in generation {now}, which no controller has looked at")

    def _is_taken(self, cluster: str, uid: str) -> bool:
        """Whether an object went with its definition, and that is not back."""
        return self._taken.get(uid) == self._epochs[cluster] and not self._was_defined[cluster]

    def _look_at_source_of_kind(self, name: str, uid: str, old: Json | None, new: Json | None) -> None:
        if new is None and old is not None and self._deleted_by_us == name:
            seconds = old["spec"].get("run", {}).get("ttl")
            begun = datetime.fromisoformat(old["metadata"]["creationTimestamp"])
            if seconds is None:
                self._wrong(f"D25: {name} is deleted by us, and has no time to live")
            elif (self.world.clock.now() - begun).total_seconds() < seconds - self._slack():
                self._wrong(f"D25: {name} is deleted by us before its time to live is over")
        if new is not None and _is_lost(new) and not (old is not None and _is_lost(old)):
            worker, mirror = self._mirrors.get(uid, ("", ""))
            if worker and self._is_taken(worker, mirror):
                self._wrong(f"D23: {name} has failed since the definition on {worker} went")
            there = self.world.planes[worker].storage.get(STORED_AS, "default", name) if worker else None
            if there is not None and there.uid == mirror:
                self._wrong(f"D11: {name} has failed for a mirror that is there, on {worker}")

    def _slack(self) -> float:
        is_set = any(plane.clock.ahead_seconds for plane in self.world.planes.values())
        self._was_set = self._was_set or is_set
        return SLACK_SECONDS if self._was_set else 5.0

    _was_set = False


def _shared(spec: Json) -> Json:
    """What of a spec source and mirror have alike once all has followed."""
    run = {key: value for key, value in (spec.get("run") or {}).items() if key not in ("managedBy", "ttl")}
    return {**spec, "run": {"paused": False, **run}}


def _is_lost(body: Json) -> bool:
    listed = (body.get("status") or {}).get("conditions") or ()
    return any((one["type"], one["status"], one.get("reason")) == ("Broken", "True", "MirrorLost") for one in listed)


async def tidy(world: FlowWorld) -> None:
    """What people do at last: define the kind again, and delete what names others or what others write."""
    for plane in world.planes.values():
        if not DeclaredInvariants.is_defined(plane):
            await tolerant(plane.api.create(DEFINITIONS, definition()))
    for _ in range(3):
        await asyncio.sleep(TIDY_SECONDS)
        for found in await world.management.api.list(PATH):
            waiting = (found["metadata"].get("annotations") or {}).get(names.WAITING_BECAUSE, "")
            is_ours = found["spec"].get("run", {}).get("managedBy") == names.DEFAULT_MANAGED_BY
            if not is_ours or "another controller writes" in waiting:
                await tolerant(world.management.api.delete(f"{PATH}/{found['metadata']['name']}"))


async def workers_with(world: FlowWorld, name: str) -> list[str]:
    """Where there is a Drill of this name."""
    return [worker for worker in world.workers if await stored(world, worker, name) is not None]
