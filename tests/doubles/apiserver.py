"""The embedded API server as tests hold it: objects as dicts, changed at once and, where they want it, unchecked.

What requests mean is ``mirror.embedded``'s, which the contract suite compares with a real server. Not here: the wire
and its faults (``transport``).
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from random import Random
from typing import Any

import msgspec

from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import failure
from mirror.embedded.apiserver.apimachinery.kinds import Kind
from mirror.embedded.apiserver.build import build
from mirror.embedded.apiserver.messages import Answer, Request, Response, Stream
from mirror.embedded.apiserver.registry import object_meta
from mirror.embedded.apiserver.storage.records import Record
from mirror.embedded.apiserver.storage.subscriptions import Subscription
from mirror.planes.api import Api
from mirror.runtime.clock import Clock

Body = dict[str, Any]

HOME = "jobmirror-system"
_PREFERRED = (
    "", "batch", "coordination.k8s.io", "apiextensions.k8s.io", "multicluster.x-k8s.io", "example.com",
    "jobset.x-k8s.io",
)  # fmt: skip
"""Groups in which a plural is looked for."""


class ApiServer:
    """One cluster. Change objects through the methods, so that watches see it."""

    def __init__(self, name: str, clock: Clock, *, minor: int = 36, streams_lists: bool = True) -> None:
        self.name = name
        self.minor = minor
        self.streams_lists = streams_lists
        self.ends_watches = False
        """Each watch ends as soon as it has sent what it begins with."""
        self.inner = build(clock=clock, random=Random(name))
        self._api = Api(self.inner)
        self._ages: dict[str, int] = {}
        self._arrivals = self._subscribed(0)
        self.put("namespaces", {"metadata": {"name": HOME}})

    @property
    def uid(self) -> str:
        uid: str = self.get("namespaces", "kube-system")["metadata"]["uid"]
        return uid

    @property
    def version(self) -> int:
        return self.inner.storage.version

    # -- for tests -----------------------------------------------------------------------------------------------------

    def get(self, plural: str, name: str, namespace: str = "default") -> Body:
        """Raises KeyError where there is none."""
        record = self._record(self._kind(plural), name, namespace)
        if record is None:
            raise KeyError(plural, namespace, name)
        return _decode(record)

    def find(self, plural: str, name: str, namespace: str = "default") -> Body | None:
        record = self._record(self._kind(plural), name, namespace)
        return None if record is None else _decode(record)

    def all(self, plural: str) -> list[Body]:
        """All objects of a kind, the oldest first."""
        self._note_ages()
        records = self.inner.storage.records(self._kind(plural).stored_as, None)
        return [_decode(record) for record in sorted(records, key=lambda one: self._ages.get(one.uid, one.version))]

    def put(self, plural: str, body: Body) -> Body:
        """Create as somebody else."""
        kind = self._kind(plural)
        body = {"apiVersion": kind.api_version, "kind": kind.kind} | copy.deepcopy(body)
        return self._api.call_nowait("POST", self._path(kind, body["metadata"].get("namespace", "default")), body)

    def edit(self, plural: str, name: str, change: Callable[[Body], None], namespace: str = "default") -> Body:
        """Change an object as somebody else, without any check."""
        kind = self._kind(plural)
        record = self._record(kind, name, namespace)
        if record is None:
            raise KeyError(plural, namespace, name)
        before = _decode(record)
        body = copy.deepcopy(before)
        change(body)
        if body == before:
            return body
        if body.get("spec") != before.get("spec") and "generation" in body["metadata"]:
            body["metadata"]["generation"] += 1
        stored = object_meta.store(self.inner.storage, kind, body, replacing=record)
        metadata = body["metadata"]
        is_held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
        if metadata.get("deletionTimestamp") and not is_held:
            object_meta.remove(self.inner.storage, kind, stored)
        return _decode(stored)

    def put_bytes(self, plural: str, name: str, raw: bytes, namespace: str = "default") -> None:
        """Store whatever this is, as a server that is not quite right."""
        stored_as = self._kind(plural).stored_as
        self.inner.storage.write(stored_as, namespace, name, lambda _: raw, replacing=None, labels={}, uid=name)

    def remove(self, plural: str, name: str, namespace: str = "default", *, propagation: str = "Background") -> None:
        """Delete as somebody else; a namespace is gone at once."""
        kind = self._kind(plural)
        record = self._record(kind, name, namespace)
        if record is None:
            raise KeyError(plural, namespace, name)
        if plural == "namespaces":
            object_meta.remove(self.inner.storage, kind, record)
            return
        options = {"propagationPolicy": propagation}
        self._api.call_nowait("DELETE", f"{self._path(kind, namespace)}/{name}", options)

    def compact(self) -> None:
        """Forget the history: who watches from an earlier version must list again."""
        self._note_ages()
        self.inner.storage.compact(self.version)
        self._arrivals = self._subscribed(self.version)

    # -- requests ------------------------------------------------------------------------------------------------------

    async def handle(self, request: Request) -> Answer:
        """Answer as the embedded server, or as an older one."""
        older = self._older_answer(request)
        if older is not None and self.inner.faults is not None:
            await self.inner.faults.before(request)
            return await self.inner.faults.after(request, older)
        answer = await self.inner.handle(request)
        if self.ends_watches and isinstance(answer, Stream):
            return replace(answer, pieces=_only_first(answer, request))
        return answer

    def _older_answer(self, request: Request) -> Response | None:
        """What this version says otherwise than the newest."""
        if request.path == "/version":
            return Response(200, msgspec.json.encode({"major": "1", "minor": str(self.minor)}))
        if not self.streams_lists and "sendInitialEvents" in request.parameters:
            message = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            return Response(422, msgspec.json.encode(failure(422, "Invalid", message)))
        return None

    def _kind(self, plural: str) -> Kind:
        found = [kind for kind in self.inner.registry if kind.plural == plural and kind.group in _PREFERRED]
        assert len(found) == 1, plural
        return found[0]

    @staticmethod
    def _path(kind: Kind, namespace: str) -> str:
        root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
        return f"{root}/namespaces/{namespace}/{kind.plural}" if kind.is_namespaced else f"{root}/{kind.plural}"

    def _record(self, kind: Kind, name: str, namespace: str) -> Record | None:
        return self.inner.storage.get(kind.stored_as, namespace if kind.is_namespaced else "", name)

    def _subscribed(self, since: int) -> list[Subscription]:
        return [self.inner.storage.watch(self._kind(one).stored_as, since) for one in ("pods", "jobs", "events")]

    def _note_ages(self) -> None:
        """Remember in which order objects came, which creation times in whole seconds do not tell."""
        for subscription in self._arrivals:
            for event in subscription.take():
                self._ages.setdefault(event.record.uid, event.version)


def _decode(record: Record) -> Body:
    return objects.decode(record.raw)


async def _only_first(answer: Stream, request: Request) -> AsyncGenerator[bytes, None]:
    """What a watch begins with."""
    async with aclosing(answer.pieces) as pieces:
        if "sendInitialEvents" in request.parameters:
            yield await anext(pieces)
