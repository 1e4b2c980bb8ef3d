"""What a manager writes in the life of a source of a kind that is data, whatever its mirror says, by chance.

Shared by a property against the embedded server and ``e2e.kind_statuses`` against a real one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

import msgspec

from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.stored_source import Status
from mirror.kube.objects import Object, decode_object
from mirror.model import names
from mirror.model.reasons import Obstruction, Reason
from tests.kinds.declared.random_statuses import some_status

Json = Any
Write = Callable[[str, list[Json]], Awaitable[Json]]
"""Sends a JSON Patch to a subresource of the source, or to itself, and returns what is stored then."""
NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


def schema_of_status(definition: Mapping[str, Json], version: str) -> Json:
    """What a definition says of the status in one version."""
    served = next(one for one in definition["spec"]["versions"] if one["name"] == version)
    return served["schema"]["openAPIV3Schema"]["properties"]["status"]


class History:
    """One source on a server, and what became of what was written."""

    def __init__(self, kind: DeclaredKind, schema: Json, body: Json, write: Write, seed: int) -> None:
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.body = body
        self._kind = kind
        self._schema = schema
        self._write = write
        self._random = Random(seed)
        self._seed = seed

    async def run(self, statuses: int) -> None:
        """See so many statuses of its mirror, one after the other, and write what follows."""
        await self._store("placed", self._stored.placed_status("east", NOW))
        for step in range(statuses):
            await self._follow(step)
            if self._random.random() < 0.1:
                await self._own()
            if self._stored.is_finished:
                self.seen["ended"] += 1
                await self._begin_anew()

    async def see(self, status: Json) -> int:
        """See this status of its mirror, and write what follows; how much of it was left out."""
        if self._stored.placed_worker is None:
            await self._store("placed", self._stored.placed_status("east", NOW))
        mirror = decode_object(msgspec.json.encode({"metadata": {"name": "a", "uid": "m-1"}, "status": status}))
        following = self._stored.next_status(mirror, now=NOW)
        await self._store("followed", following.status)
        cut: int = following.cut
        return cut

    @property
    def _found(self) -> Object:
        return decode_object(msgspec.json.encode(self.body))

    @property
    def _stored(self) -> Any:
        return self._kind.stored(self._found)

    async def _follow(self, step: int) -> None:
        random = self._random
        limit = self._kind.entry.status.limit_bytes
        mirror = self._mirror(some_status(random, self._schema, largest=limit), step)
        if mirror is None:
            return
        source, offset = self._stored, random.choice((None, 0.0, 3600.0))
        following = source.next_status(mirror, now=NOW, clock_offset_seconds=offset)
        self.seen["seen"] += 1
        if following.status is None:
            return
        status = following.status
        if random.random() < 0.3:
            status = source.mirrored_status(status, f"m-{step}", NOW)
        if random.random() < 0.1:
            why = Obstruction(Reason.PODS_NOT_READY, "x" * random.choice((5, 5000)))
            status = source.explained_status(status, why, is_placed=True, now=NOW) or status
        await self._store("followed", status)
        again = self._stored.next_status(mirror, now=NOW, clock_offset_seconds=offset)
        if again.status is not None and not self.wrong:
            differing = _differs(self._stored.status, again.status)
            self.wrong.append(f"seed {self._seed}, step {step}: the same status is written again: {differing}")

    def _mirror(self, status: Json, step: int) -> Object | None:
        """None where no server could send it."""
        metadata = {"name": "a", "namespace": "n", "uid": "m-1", "generation": self._random.choice((1, 2))}
        # Where an end may be withdrawn, it counts of a mirror that is suspended.
        body = {"metadata": metadata, "spec": {"suspend": self._random.random() < 0.5}, "status": status}
        try:
            return decode_object(msgspec.json.encode(body))
        except Exception:  # noqa: BLE001 - not JSON, or not an object: read by nobody
            self.seen["unreadable"] += 1
            return None

    async def _own(self) -> None:
        """What no mirror dictates."""
        source, chance = self._stored, self._random.random()
        if chance < 0.4:
            await self._store("suspended", source.suspended_status(NOW))
        elif chance < 0.7:
            why = Obstruction(Reason.WORKER_LOST, "worker east is lost")
            await self._store("explained", source.explained_status(None, why, is_placed=True, now=NOW))
        else:
            await self._store("lost", source.lost_status(NOW, message="gone\n" * 400, reason="MirrorLost"))

    async def _begin_anew(self) -> None:
        """As another source of this name: its status is taken away."""
        noted = {key: one for key, one in self._annotations.items() if key != names.CONDITIONS}
        await self._send("", [{"op": "add", "path": "/metadata/annotations", "value": noted}])
        await self._send_status(self._kind.entry.status.defaults)
        await self._store("placed", self._stored.placed_status("east", NOW))

    @property
    def _annotations(self) -> Json:
        return self.body["metadata"].get("annotations") or {}

    async def _store(self, what: str, whole: Status | None) -> None:
        if whole is None:
            return
        status, record = self._kind.as_stored(whole)
        if record is not None and record != self._annotations.get(names.CONDITIONS):
            noted = {**self._annotations, names.CONDITIONS: record}
            await self._send("", [{"op": "add", "path": "/metadata/annotations", "value": noted}])
        if status != self._kind.as_stored(self._stored.status)[0]:
            await self._send_status(status)
        self.seen[what] += 1
        if self._kind.summary(self._found).placed != "east":
            self.wrong.append(f"seed {self._seed}: its record is lost ({what})")

    async def _send_status(self, status: Mapping[str, Json]) -> None:
        """As ``controllers.applying`` does."""
        if status:
            await self._send("status", [{"op": "add", "path": "/status", "value": dict(status)}])
        elif self.body.get("status"):
            await self._send("status", [{"op": "remove", "path": "/status"}])

    async def _send(self, subresource: str, operations: list[Json]) -> None:
        version = {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": self.body["metadata"]["resourceVersion"],
        }
        try:
            self.body = await self._write(subresource, [version, *operations])
        except Exception as refused:  # noqa: BLE001 - each server has its own error; what it says is the finding
            self.wrong.append(f"seed {self._seed}: refused: {str(refused)[:600]}")


def _differs(stored: Mapping[str, Json], wanted: Mapping[str, Json]) -> str:
    fields = [name for name in {*stored, *wanted} if stored.get(name) != wanted.get(name)]
    return ", ".join(f"{name}: {stored.get(name)!r} for {wanted.get(name)!r}"[:300] for name in fields)
