"""Binds pods to nodes. Which node will do is decided in ``placing``; resources are not counted."""

from __future__ import annotations

import functools

import msgspec

from mirror.batch import times
from mirror.embedded.controllers import placing
from mirror.embedded.controllers.client import NODES, Api, Json
from mirror.embedded.controllers.kubelet.podspec import FINAL, pod_of
from mirror.embedded.controllers.recording import event_recorder, regarding
from mirror.embedded.controllers.settings import Settings
from mirror.embedded.controllers.working import AT_ONCE, RETRY, Key, informer, watch_all, work_on
from mirror.kube.client import Client
from mirror.kube.errors import NotFound
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import PODS
from mirror.runtime.clock import Clock
from mirror.runtime.events import NORMAL, WARNING
from mirror.runtime.informer import Change
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store, name_of
from mirror.telemetry.logs import Log

COMPONENT = "default-scheduler"


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None
    scheduler_name: str | None = None


_decode = msgspec.json.Decoder(_Spec | None).decode


def is_waiting(pod: Object) -> bool:
    """Whether a pod waits for us."""
    try:
        spec = _decode(pod.spec)
    except JUNK:
        return False
    return spec is not None and not spec.node_name and spec.scheduler_name in (None, "", COMPONENT)


class Scheduler:
    """Pods that wait for a node, and all nodes."""

    def __init__(self, client: Client, *, clock: Clock, settings: Settings) -> None:
        self._client = client
        self._api = Api(client, "kube-scheduler")
        self._clock = clock
        self._recorder = event_recorder(self._api, COMPONENT, clock=clock, is_silent=not settings.has_pod_events)
        self._pods = Store()
        self._nodes = Store()
        self._bodies: list[Json] | None = None
        self._turn = 0
        self._queue: WorkQueue[Key] = WorkQueue(lambda _: "", clock=clock, lane_limit=AT_ONCE, backoff=RETRY)

    async def run(self, log: Log) -> None:
        """Schedule until cancelled."""
        pods = informer(self._client, PODS, self._pods, self._on_pod, accept=is_waiting)
        nodes = informer(self._client, NODES, self._nodes, self._on_node)
        work = functools.partial(work_on, self._queue, self._sync, log=log)
        await watch_all((pods, nodes), log=log, then=(self._recorder.run, work))

    def _on_pod(self, old: Object | None, new: Object | None, change: Change) -> None:
        if new is not None:
            self._queue.add(name_of(new))

    def _on_node(self, old: Object | None, new: Object | None, change: Change) -> None:
        """A node that has become another may be the one that somebody waits for."""
        self._bodies = None
        if old is None or new is None or _matter(old) != _matter(new):
            for pod in self._pods:
                self._queue.add(name_of(pod))

    async def _sync(self, key: Key) -> None:
        found = self._pods.get(*key)
        if found is None or found.metadata.deletion_timestamp is not None:
            return
        pod = pod_of(found)
        if pod["spec"].get("schedulingGates") or pod["status"].get("phase") in FINAL:
            return
        if self._bodies is None:
            self._bodies = [_body(one) for one in self._nodes]
        node = placing.node_for(pod, self._bodies, self._turn)
        if node is None:
            await self._refuse(pod, placing.why_none(pod, self._bodies))
        else:
            self._turn += 1
            await self._bind(pod, node)

    async def _bind(self, pod: Json, node: str) -> None:
        meta = pod["metadata"]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]},
            "target": {"kind": "Node", "name": node},
        }
        try:
            await self._api.create(PODS, body, namespace=meta["namespace"], name=meta["name"], subresource="binding")
        except NotFound:
            return  # the watch will say so; as it will if somebody else has bound it, before the next try
        message = f"Successfully assigned {meta['namespace']}/{meta['name']} to {node}"
        self._recorder.event(regarding(PODS, pod), NORMAL, "Scheduled", message)

    async def _refuse(self, pod: Json, why: str) -> None:
        """Say so once; a node that changes brings the pod here again."""
        meta = pod["metadata"]
        conditions: list[Json] = pod["status"].get("conditions") or []
        said = next((one for one in conditions if one.get("type") == "PodScheduled"), {})
        if said.get("message") == why:
            return
        self._recorder.event(regarding(PODS, pod), WARNING, "FailedScheduling", why)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": why,
            "lastTransitionTime": said.get("lastTransitionTime") or times.of(self._clock.now()),
        }
        patch = {"metadata": {"uid": meta["uid"]}, "status": {"conditions": [condition]}}
        try:
            await self._api.strategic(PODS, meta["name"], patch, namespace=meta["namespace"], subresource="status")
        except NotFound:
            return


def _body(node: Object) -> Json:
    return {
        "metadata": {"name": node.metadata.name, "labels": node.metadata.labels or {}},
        "spec": node.spec_dict(),
    }


def _matter(node: Object) -> tuple[object, ...]:
    """What of a node decides who may run there."""
    return node.metadata.labels, bytes(node.spec)


async def run(client: Client, *, clock: Clock, log: Log, settings: Settings) -> None:
    """Schedule pods until cancelled."""
    await Scheduler(client, clock=clock, settings=settings).run(log)
