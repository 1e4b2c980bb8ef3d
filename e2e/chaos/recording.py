"""Writes the history of a campaign: versions as etcd has them, faults and steps as they come, and at last the audits.

Not here: what a record is (``history``).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path

import aiohttp
import msgspec

from e2e.chaos import history
from e2e.chaos.etcd import Compacted, Etcd, Stored
from e2e.chaos.history import Fault, Json, Record, Request, Restored, Version
from e2e.chaos.kinds import KINDS
from e2e.chaos.lives import PODS
from e2e.chaos.own_machine import process_of

_READS = ("get", "list", "watch")
_RETRY_SECONDS = 0.05
Change = Callable[[Version, Json], bool]
"""Whether a version is what somebody waits for; the second is what the object said before, ``{}`` if it is new."""
_FIELDS = ("uid", "name", "namespace", "labels", "annotations", "creationTimestamp", "deletionTimestamp")


class Recorder:
    """Appends to one file. Make one with ``writing``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("wb")
        self._restores: Counter[str] = Counter()
        """How often each cluster has lost data: what is watched there must be read anew."""
        self._contents: dict[tuple[str, str, str], Json] = {}
        """What each object says now, by cluster, resource and key."""
        self._awaited: list[tuple[Change, asyncio.Future[None]]] = []

    def add(self, record: Record) -> None:
        """Write it down."""
        self._file.write(history.encode(record))
        if isinstance(record, Restored):
            self._restores[record.cluster] += 1
        if isinstance(record, Version):
            self._report(record)

    async def sees(self, wanted: Change) -> None:
        """Wait for a change, from now on."""
        entry = wanted, asyncio.get_running_loop().create_future()
        self._awaited.append(entry)
        try:
            await entry[1]
        finally:
            self._awaited.remove(entry)

    def _report(self, version: Version) -> None:
        place = version.cluster, version.resource, version.key
        before = self._contents.pop(place, {})
        if version.body is not None:
            self._contents[place] = version.body
            if before and before["metadata"]["uid"] != version.body["metadata"]["uid"]:
                before = {}
        for wanted, seen in self._awaited:
            if not seen.done() and wanted(version, before):
                seen.set_result(None)

    @asynccontextmanager
    async def fault(self, name: str, target: str) -> AsyncIterator[None]:
        """Something is broken while the block runs."""
        self.add(Fault(time.time(), name, target))
        try:
            yield
        finally:
            self.add(Fault(time.time(), name, target, is_over=True))

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()

    async def follow(self, cluster: str, etcd: Etcd, resource: str, prefix: str) -> None:
        """Write down every version of what is below a prefix, until cancelled."""
        known: dict[str, int] = {}
        following, restores = 0, self._restores[cluster]
        while True:
            if restores != self._restores[cluster]:  # its revisions have gone back, and will pass where we were
                following, restores = 0, self._restores[cluster]
            with suppress(aiohttp.ClientError, TimeoutError):
                if not following:
                    following = await self._note_all(cluster, etcd, resource, prefix, known)
                try:
                    async for stored in etcd.watch(prefix, following):
                        self._note(cluster, resource, stored, known)
                        following = stored.revision + 1
                except Compacted:
                    following = 0
            await asyncio.sleep(_RETRY_SECONDS)

    async def _note_all(self, cluster: str, etcd: Etcd, resource: str, prefix: str, known: dict[str, int]) -> int:
        """What is there now, and what of the known is gone; from where to watch."""
        revision, found = await etcd.read(prefix)
        for key in known.keys() - {one.key for one in found}:
            self._note(cluster, resource, Stored(key, revision, None), known)
        for stored in found:
            if known.get(stored.key) != stored.revision:
                self._note(cluster, resource, stored, known)
        return revision + 1

    def _note(self, cluster: str, resource: str, stored: Stored, known: dict[str, int]) -> None:
        body = None
        if stored.value is None:
            known.pop(stored.key, None)
        else:
            known[stored.key] = stored.revision
            body = kept(resource, msgspec.json.decode(stored.value))
        key = "/".join(stored.key.split("/")[-2:])
        self.add(Version(time.time(), cluster, resource, stored.revision, key, body))

    def add_requests(self, cluster: str, log: Path, users: Iterable[str]) -> None:
        """The writes of sources and mirrors by these users, from an audit log."""
        marks = [user.encode() for user in users]
        with log.open("rb") as lines:
            for line in lines:
                # A line that a killed API server left unfinished has the next one behind it; both say nothing.
                with suppress(msgspec.DecodeError):
                    if any(mark in line for mark in marks) and (found := _request(cluster, msgspec.json.decode(line))):
                        self.add(found)


def kept(resource: str, body: Json) -> Json:
    """What rules ask for: of what is no kind of ``KINDS`` only metadata, as of a Secret, but for Leases and pods."""
    metadata = {key: value for key, value in body["metadata"].items() if key in _FIELDS}
    if resource == "leases":
        return {"metadata": metadata, "spec": body.get("spec", {})}
    if resource == PODS:
        node, phase = body["spec"].get("nodeName", ""), body.get("status", {}).get("phase", "")
        return {"metadata": metadata, "spec": {"nodeName": node}, "status": {"phase": phase}}
    if resource not in KINDS:
        return {"metadata": metadata}
    spec = {key: value for key, value in body["spec"].items() if key not in KINDS[resource].left_out}
    return {"metadata": metadata, "spec": spec, "status": body.get("status", {})}


def _request(cluster: str, event: Json) -> Request | None:
    about = event.get("objectRef", {})
    if about.get("resource") not in KINDS or event["verb"] in _READS or event["stage"] != "ResponseComplete":
        return None
    return Request(
        at=_seconds(event["stageTimestamp"]),
        received=_seconds(event["requestReceivedTimestamp"]),
        cluster=cluster,
        user=event["user"].get("username", ""),
        verb=event["verb"],
        subresource=about.get("subresource", ""),
        key=f"{about.get('namespace', '')}/{about.get('name', '')}",
        code=event.get("responseStatus", {}).get("code", 0),
        resource=about["resource"],
        process=process_of(event.get("userAgent", "")),
    )


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
