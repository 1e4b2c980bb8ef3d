"""The shell around the pods of a node: sees them, lets ``machine`` decide, writes their statuses, and lets them go."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from mirror.embedded.controllers.client import NODES, Api, Json
from mirror.embedded.controllers.kubelet import podspec
from mirror.embedded.controllers.kubelet.machine import Machine, place_of
from mirror.embedded.controllers.kubelet.node import Node
from mirror.embedded.controllers.kubelet.runtime import Instant, Runtime
from mirror.embedded.controllers.recording import regarding
from mirror.embedded.controllers.working import AT_ONCE, RETRY, informer, watch_all, work_on
from mirror.kube.client import Client
from mirror.kube.errors import NotFound
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import PODS
from mirror.runtime.clock import Clock
from mirror.runtime.event_recorder import EventRecorder
from mirror.runtime.informer import Change
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log

_NO_SPEC = Object.__struct_defaults__[0]
_OVER = msgspec.Raw(b'{"phase":"Failed"}')


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None


class _Status(msgspec.Struct, gc=False):
    phase: str | None = None


_decode_spec = msgspec.json.Decoder(_Spec | None).decode
_decode_status = msgspec.json.Decoder(_Status | None).decode


@dataclass(slots=True)
class _Known:
    """A pod of ours.

    Invariant: ``machine`` is there from the first look until it is over and told; then ``ids`` say whose logs are kept.
    """

    found: Object | None
    machine: Machine | None = None
    version: int = 0
    """Of the pod that the machine knows."""
    told: Json | None = None
    """The status that was written last."""
    ids: list[str] | None = None


class Kubelet:
    """All pods of some nodes."""

    def __init__(
        self,
        client: Client,
        api: Api,
        nodes: Mapping[str, Node],
        runtime: Runtime,
        recorder: EventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._client = client
        self._api = api
        self._nodes = nodes
        self._runtime = runtime
        self._recorder = recorder
        self._clock = clock
        self._pods: dict[str, _Known] = {}
        """By uid."""
        self._last_ip = 0
        self._queue: WorkQueue[str] = WorkQueue(lambda _: "", clock=clock, lane_limit=AT_ONCE, backoff=RETRY)

    async def run(self, log: Log) -> None:
        """Look after them until cancelled."""
        pods = informer(self._client, PODS, Store(), self._on_pod, accept=self._is_ours, keep=_without_spec_at_the_end)
        seen = informer(
            self._client, NODES, Store(), self._on_node, accept=lambda one: one.metadata.name in self._nodes
        )
        own = [node.run for node in self._nodes.values()]
        work = functools.partial(work_on, self._queue, self._sync, log=log)
        await watch_all((pods, seen), log=log, then=(*own, self._recorder.run, work))

    def _is_ours(self, pod: Object) -> bool:
        try:
            spec = _decode_spec(pod.spec)
        except JUNK:
            return False
        return spec is not None and spec.node_name in self._nodes

    def _on_pod(self, old: Object | None, new: Object | None, change: Change) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            gone = self._pods.get(old.metadata.uid)
            if gone is not None:
                gone.found = None
                self._queue.add(old.metadata.uid)
        if new is not None:
            known = self._pods.setdefault(new.metadata.uid, _Known(new))
            known.found = new
            self._queue.add(new.metadata.uid)

    def _on_node(self, old: Object | None, new: Object | None, change: Change) -> None:
        found = new or old
        if found is not None:
            self._nodes[found.metadata.name].on_node(new)

    # -- one pod -------------------------------------------------------------------------------------------------------

    async def _sync(self, uid: str) -> float | None:
        known = self._pods.get(uid)
        if known is None:
            return None
        if known.found is None:
            return await self._bury(uid, known)
        now = self._now()
        if known.machine is None:
            if known.ids is not None or _phase(known.found) in podspec.FINAL:
                known.ids = known.ids if known.ids is not None else _ids(known.found.status_dict())
                await self._let_go(known.found)
                if known.found is not None:  # it may have gone meanwhile
                    _shrink(known.found)
                return None
            self._take_up(uid, known, now)
        machine = known.machine
        assert machine is not None
        if known.found.version > known.version:
            newest = podspec.pod_of(known.found)
            if not newest["spec"]:  # its phase is final, whoever wrote that: the spec is not kept any more
                newest["spec"] = machine.pod["spec"]
            machine.pod, known.version = newest, known.found.version
        again = await machine.advance(now)
        is_told = await self._tell(known, machine)
        if machine.is_over and is_told:
            if machine.is_being_deleted and known.found is not None:
                await self._let_go(known.found)
            known.machine, known.told, known.ids = None, None, machine.container_ids
        return again

    def _take_up(self, uid: str, known: _Known, now: Instant) -> None:
        """A pod that is new here."""
        assert known.found is not None
        pod = podspec.pod_of(known.found)
        place = place_of(pod, self._nodes[pod["spec"]["nodeName"]].ip, self._new_ip(), now)
        wake = functools.partial(self._queue.add, uid)
        known.machine = Machine(pod, place, self._runtime, wake=wake, tell=self._event)
        known.version = known.found.version
        if pod["status"].get("startTime"):
            known.machine.adopt(now)

    async def _tell(self, known: _Known, machine: Machine) -> bool:
        """Write the status if it is new; whether the server knows it now."""
        status = machine.status(self._now())
        if status == known.told:
            return True
        meta = machine.pod["metadata"]
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}
        try:
            stored = await self._api.strategic(
                PODS, meta["name"], patch, namespace=meta["namespace"], subresource="status"
            )
        except NotFound:
            return False  # it is gone: the watch will say so
        # What is decided next is decided on what was written, even before the watch brings it.
        machine.pod["status"] = stored.get("status") or {}
        known.version = max(known.version, int(stored["metadata"]["resourceVersion"]))
        known.told = machine.status(self._now())
        return True

    async def _let_go(self, found: Object) -> None:
        """Nothing of a deleted pod runs any more: it may go, as far as we are concerned."""
        meta = found.metadata
        if meta.deletion_timestamp is None or meta.deletion_grace_period_seconds == 0:
            return
        try:
            await self._api.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=0)
        except NotFound:
            return

    async def _bury(self, uid: str, known: _Known) -> float | None:
        """It is gone from the API server, and so must be what runs of it."""
        now, machine = self._now(), known.machine
        ids = known.ids or []
        if machine is not None:
            machine.vanish(now)
            again = await machine.advance(now)
            if not machine.is_over:
                return again
            ids = machine.container_ids
            self._runtime.forget(machine.pod, ids)
        else:
            self._runtime.forget({"metadata": {"uid": uid}}, ids)
        del self._pods[uid]
        return None

    def _event(self, pod: Json, part: str, type_name: str, reason: str, message: str) -> None:
        self._recorder.event(regarding(PODS, pod, container=part), type_name, reason, message)

    def _now(self) -> Instant:
        return Instant(self._clock.now(), self._clock.monotonic())

    def _new_ip(self) -> str:
        self._last_ip = self._last_ip % 0x3FFFFE + 1
        number = self._last_ip
        return f"10.{64 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def _phase(found: Object) -> str:
    try:
        status = _decode_status(found.status)
    except JUNK:
        return ""
    return (status.phase or "") if status is not None else ""


def _without_spec_at_the_end(found: Object) -> Object:
    """Of pods that have ended little is kept."""
    if _phase(found) in podspec.FINAL:
        found.spec = _NO_SPEC
    return found


def _shrink(found: Object) -> None:
    """Of a pod that is over nothing matters but whether it is deleted: there may be very many of them."""
    meta = found.metadata
    meta.labels = meta.annotations = meta.finalizers = meta.owner_references = None
    found.status = _OVER


def _ids(status: Mapping[str, Any]) -> list[str]:
    """The containers of a status."""
    lists = ("initContainerStatuses", "containerStatuses")
    found = [str(one.get("containerID") or "") for name in lists for one in status.get(name) or ()]
    return [one for one in found if one]
