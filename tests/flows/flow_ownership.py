"""Whose object is whose, judged by who created it, whatever labels say; and what users asked for.

The rules of ``flow_invariants`` where anybody may edit anything on either side, admission changes what is written, and
managers come and go: D1–D3, D5, D7–D11 and D28 at every write and every request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import msgspec
from doubles.managers import conditions, placed
from flow_invariants import MANAGEMENT, Invariants, _not_stripped, counters_that_fell
from flow_requests import Traffic, verdict_of
from flow_world import MANAGER, has_ended
from replica_world import ReplicaWorld
from replicas import identity_of

from mirror.embedded.apiserver.messages import Request
from mirror.embedded.apiserver.storage.records import Event
from mirror.embedded.faults.targets import INSIDER
from mirror.model import names
from mirror.planes.api import Json
from mirror.planes.plane import ControlPlane

SOURCES = "default"
"""The namespace of all sources."""


class OwnershipInvariants(Invariants):
    """Knows who created what."""

    world: ReplicaWorld

    def __init__(self, world: ReplicaWorld) -> None:
        self.traffic = Traffic(world, self._wrong)
        self.made_for: dict[str, str] = {}
        """The uid of the source, by the uid of a mirror that a manager has created."""
        self.mirrors: defaultdict[str, dict[str, tuple[str, Json]]] = defaultdict(dict)
        """Those that exist: cluster and body, by their uid, by the uid of their source."""
        self.had_mirror: set[str] = set()
        """Uids of sources for which a mirror was ever created."""
        self.deleted: dict[str, Json] = {}
        """The last state of sources that were deleted, by name."""
        self.ever_gone: set[str] = set()
        """Uids of those."""
        self.suspended_by: dict[str, str] = {}
        """Who suspended a mirror, by its uid: the peer of the request."""
        self.shown_unplaced: set[str] = set()
        """Names of sources whose condition Placed was False; who asks since a certain moment clears it then."""
        self._asked: defaultdict[str, int] = defaultdict(int)
        """How often a source's users, or others on its worker, gave reason to suspend its mirror, by its uid."""
        self._suspended: defaultdict[str, int] = defaultdict(int)
        """How often managers did."""
        self._claimed: set[str] = set()
        """Uids of Jobs of others that ever had both our labels."""
        self.on_end: Callable[[str, str], None] = lambda cluster, name: None
        """Told of each mirror that has ended, at that moment."""
        super().__init__(world)
        world.observer = self.traffic

    def _is_source(self, plane: ControlPlane, namespace: str) -> bool:
        return plane.name == MANAGEMENT and namespace == SOURCES

    def _events(self, plane: ControlPlane, stored_as: str) -> list[Event]:
        reader = self._readers.get((plane.name, stored_as))
        if reader is not None and reader[0] is not plane.storage:
            for mirrors in self.mirrors.values():
                for uid in [uid for uid, (cluster, _) in mirrors.items() if cluster == plane.name]:
                    del mirrors[uid]
            self._pods[plane.name].clear()
        return super()._events(plane, stored_as)

    # -- sources -------------------------------------------------------------------------------------------------------

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        super()._look_at_source(uid, old, new, request)
        body = new or old
        assert body is not None
        name = body["metadata"]["name"]
        if request.peer != MANAGER:
            self.traffic.on_change(name)
        if new is None:
            self.deleted[name] = body
            self.ever_gone.add(uid)
            return
        if request.peer != MANAGER:
            if new["spec"].get("suspend") and not (old and old["spec"].get("suspend")):
                self._asked[uid] += 1
        elif old is not None:
            self._look_at_status(uid, name, old, new, request)

    def _was_created(self, source_uid: str, worker: str) -> bool:
        return source_uid in self.had_mirror

    def _look_at_status(self, uid: str, name: str, old: Json, new: Json, request: Request) -> None:
        after = new.get("status") or {}
        if any((one["type"], one["status"]) == (names.PLACED, "False") for one in after.get("conditions") or ()):
            self.shown_unplaced.add(name)
        for text in counters_that_fell(old, new):
            self._wrong(f"D7: {name}: {text}")
        if has_ended(old) or not has_ended(new):
            return
        verdict, known = verdict_of(new), self.known_end(uid, identity_of(request))
        if known and known != verdict:
            self._wrong(f"D7: {name} is {verdict}, and its mirror was seen to be {known}")
        there = [body for _, body in self.mirrors[uid].values() if "deletionTimestamp" not in body["metadata"]]
        if "MirrorLost" in conditions(new).values() and there:
            namespace, labels = there[0]["metadata"]["namespace"], there[0]["metadata"].get("labels")
            self._wrong(f"D11: {name} is failed as lost, and its mirror is in {namespace}, labels {labels}")

    def known_end(self, source_uid: str, identity: str) -> str:
        """How the source's mirror ended, as far as this process has received it."""
        for mirror_uid, owner in self.made_for.items():
            if owner == source_uid and (found := self.traffic.ends.get((identity, mirror_uid))):
                return found
        return ""

    # -- mirrors -------------------------------------------------------------------------------------------------------

    def _look_at_mirror(self, cluster: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        body = new or old
        assert body is not None
        name, is_ours = body["metadata"]["name"], uid in self.made_for
        if request.peer != MANAGER:
            self.traffic.on_change(name)
            self._look_at_others_change(uid, old, body)
        elif old is None:
            self._look_at_own_create(cluster, uid, body, request)
        elif not is_ours and uid not in self._claimed:
            self._wrong(f"D1: the manager wrote to {name} on {cluster}, which it has not created: {request.method}")
        elif is_ours and (
            new is None or ("deletionTimestamp" in new["metadata"]) > ("deletionTimestamp" in old["metadata"])
        ):
            self._look_at_own_deletion(uid, name, cluster)
        elif is_ours and new is not None and _suspends(request) and not old["spec"].get("suspend"):
            self._look_at_own_suspension(uid, name, cluster)
        if new is not None and new["spec"].get("suspend") and not (old and old["spec"].get("suspend")):
            # Where the manager did not ask for it, admission did it.
            self.suspended_by[uid] = request.peer if request.peer != MANAGER or _suspends(request) else INSIDER
        source_uid = self.made_for.get(uid)
        if source_uid is not None:
            if new is not None and has_ended(new) and not has_ended(old):
                self.on_end(cluster, name)
            self.mirrors[source_uid].pop(uid, None)
            if new is not None:
                self.mirrors[source_uid][uid] = cluster, new

    def _look_at_others_change(self, uid: str, old: Json | None, body: Json) -> None:
        labels = body["metadata"].get("labels") or {}
        is_elsewhere = labels.get(names.MANAGEMENT_UID, self.world.origin) != self.world.origin
        if labels.get(names.ORIGIN) == self.world.origin and names.SOURCE_UID in labels and not is_elsewhere:
            self._claimed.add(uid)
        if uid in self.made_for and old is not None and old["spec"].get("suspend") != body["spec"].get("suspend"):
            self._asked[self.made_for[uid]] += 1

    def _look_at_own_create(self, cluster: str, uid: str, body: Json, request: Request) -> None:
        # Admission may have changed what is stored; what was asked for is what counts.
        sent: Json = msgspec.json.decode(request.body)
        name, namespace = sent["metadata"]["name"], body["metadata"]["namespace"]
        source_uid = sent["metadata"]["labels"].get(names.SOURCE_UID, "")
        self.made_for[uid] = source_uid
        self.had_mirror.add(source_uid)
        for problem in _not_stripped(sent["metadata"], sent["spec"], self.world.origin):
            self._wrong(f"D4: the mirror of {name} has {problem}")
        others = [where for where, one in self.mirrors[source_uid].values() if _may_run(one)]
        if others:
            self._wrong(f"D2: {name} has mirrors on {cluster} and on {others}")
        source = self.sources.get(source_uid)
        worker = placed(source)
        if source is not None and cluster not in self.world.led_to.get(worker or "", ()):
            self._wrong(f"D5: {name} is recorded on {worker}, and created on {cluster}")
        prefix = namespace.removesuffix(SOURCES)
        if prefix not in self.world.prefixes.get(cluster, ()):
            self._wrong(f"D19: {name} is created in {namespace} of {cluster}")
        for other_uid, mirrors in self.mirrors.items():
            other = self.sources.get(other_uid)
            if other is None or has_ended(other) or "deletionTimestamp" in other["metadata"]:
                continue
            for where, one in mirrors.values():
                if where == cluster and one["metadata"]["namespace"] != namespace:
                    self._wrong(f"D19: {name} is created in {namespace} of {cluster}, others are elsewhere there")

    def _look_at_own_deletion(self, uid: str, name: str, cluster: str) -> None:
        source_uid = self.made_for[uid]
        source = self.sources.get(source_uid)
        if source is None or "deletionTimestamp" in source["metadata"] or source_uid in self.ever_gone:
            return
        ended = "has ended" if has_ended(source) else "has not ended"
        self._wrong(f"D8: the mirror of {name} on {cluster} was deleted while its source exists and {ended}")

    def _look_at_own_suspension(self, uid: str, name: str, cluster: str) -> None:
        source_uid = self.made_for[uid]
        self._suspended[source_uid] += 1
        source = self.sources.get(source_uid)
        if source is None or source["spec"].get("suspend") or has_ended(source):
            return
        if self._suspended[source_uid] > self._asked[source_uid]:
            self._wrong(f"D9: the running mirror of {name} on {cluster} was suspended, which nobody asked for")


def _may_run(job: Json) -> bool:
    return not has_ended(job) and "deletionTimestamp" not in job["metadata"]


def _suspends(request: Request) -> bool:
    """Whether a write asks for a suspension."""
    if request.method == "DELETE":
        return False
    body: Any = msgspec.json.decode(request.body)
    if isinstance(body, list):
        return any(one.get("path") == "/spec/suspend" and one.get("value") is True for one in body)
    return bool((body.get("spec") or {}).get("suspend"))
