"""What goes between managers and clusters: how often each object is asked for, who sends, and which ends were received.

``Traffic`` looks from outside: at requests as they leave a process and at answers as they reach it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import msgspec
from flow_invariants import Invariants
from flow_world import MANAGER
from replica_world import ReplicaWorld
from replicas import Replica, lease_of

from mirror.embedded.apiserver.messages import Request
from mirror.embedded.faults.targets import Target
from mirror.planes.api import Json

WINDOW_SECONDS = 10.0
MOST_REQUESTS = 60
"""About one object of one cluster, by one process, within the window, where nobody else changes anything."""
PER_CHANGE = 4
"""More of them for each write of others to the object, or to its source or mirror."""
MOST_LISTED = 4
WRITES = ("create", "update", "patch", "delete")

_decode = msgspec.json.Decoder(dict[str, Any]).decode
Key = tuple[str, str, str, str]
"""Process, cluster, resource, name."""


class Traffic:
    """``replicas.Observer``: collects what is wrong, and the ends that each process has received."""

    def __init__(self, world: ReplicaWorld, wrong: Callable[[str], None]) -> None:
        self._world = world
        self._wrong = wrong
        self._sent: defaultdict[Key, deque[tuple[float, str]]] = defaultdict(deque)
        self._changes: defaultdict[str, deque[float]] = defaultdict(deque)
        """When others wrote to Jobs of this name, on any cluster."""
        self.ends: dict[tuple[str, str], str] = {}
        """Complete or Failed, by process and uid of a mirror: the first that it received."""
        self.requests = 0

    # -- requests ------------------------------------------------------------------------------------------------------

    def on_change(self, name: str) -> None:
        """Somebody else wrote to a Job of this name."""
        changes = self._changes[name]
        changes.append(self._now())
        while changes[0] < self._now() - 2 * WINDOW_SECONDS:
            changes.popleft()

    def on_sent(self, replica: Replica, cluster: str, request: Request) -> None:
        self.requests += 1
        target = Target.of(request)
        if target.plural in ("", "events", "leases") or target.verb in ("watch", "list"):
            return
        name = target.name or _name_in(request.body)
        if target.plural == "jobs" and target.verb in WRITES:
            self._look_at_write(replica, cluster, target, request)
        now = self._now()
        sent = self._sent[replica.identity, cluster, target.plural, name]
        sent.append((now, target.verb))
        while sent[0][0] < now - WINDOW_SECONDS:
            sent.popleft()
        if len(sent) > MOST_REQUESTS:
            changes = sum(at >= now - 2 * WINDOW_SECONDS for at in self._changes[name])
            if len(sent) > MOST_REQUESTS + PER_CHANGE * changes:
                verbs = sorted({verb for _, verb in sent})
                self._wrong(
                    f"rate: {len(sent)} requests ({', '.join(verbs)}) for {target.plural} {name} of {cluster} "
                    f"within {now - sent[0][0]:.1f} s, {changes} changes by others"
                )
                sent.clear()

    def _look_at_write(self, replica: Replica, cluster: str, target: Target, request: Request) -> None:
        lease = lease_of(request)
        holder = self._world.lease_holder(lease)
        if holder != replica.identity:
            self._wrong(
                f"D28: {replica.identity} sent {target.verb} of {target.name or 'a Job'} to {cluster} "
                f"while {lease} was held by {holder or 'nobody'}"
            )

    # -- answers -------------------------------------------------------------------------------------------------------

    def on_received(self, replica: Replica, cluster: str, request: Request, body: bytes) -> None:
        if b'"Complete"' not in body and b'"Failed"' not in body:
            return
        for job in _jobs_in(body):
            verdict = verdict_of(job)
            if verdict:
                self.ends.setdefault((replica.identity, job["metadata"]["uid"]), verdict)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class WatchedLaws(Invariants):
    """Those of a world whose managers' requests are looked at, too."""

    world: ReplicaWorld
    TRAFFIC: ClassVar[type[Traffic]] = Traffic

    def __init__(self, world: ReplicaWorld) -> None:
        self.traffic = self.TRAFFIC(world, self._wrong)
        super().__init__(world)
        world.observer = self.traffic

    def _look_at_source(self, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        self._note_change(new or old, request)
        super()._look_at_source(uid, old, new, request)

    def _look_at_mirror(self, worker: str, uid: str, old: Json | None, new: Json | None, request: Request) -> None:
        self._note_change(new or old, request)
        super()._look_at_mirror(worker, uid, old, new, request)

    def _note_change(self, body: Json | None, request: Request) -> None:
        if request.peer != MANAGER and body is not None:
            self.traffic.on_change(body["metadata"]["name"])


def verdict_of(job: Json | None) -> str:
    """Complete or Failed, of a Job that has ended."""
    for one in ((job or {}).get("status") or {}).get("conditions") or ():
        if one["type"] in ("Complete", "Failed") and one["status"] == "True":
            return str(one["type"])
    return ""


def _name_in(body: bytes) -> str:
    try:
        metadata = _decode(body).get("metadata") or {}
    except msgspec.MsgspecError:
        return ""
    return str(metadata.get("name") or "")


def _jobs_in(body: bytes) -> Iterator[Json]:
    """Of one object, a list, or lines of a watch; nothing of others."""
    for line in body.splitlines():
        try:
            found = _decode(line)
        except msgspec.MsgspecError:
            return
        found = found.get("object", found)
        items = found.get("items")
        for job in items if isinstance(items, list) else (found,):
            if "template" in (job.get("spec") or {}):
                yield job
