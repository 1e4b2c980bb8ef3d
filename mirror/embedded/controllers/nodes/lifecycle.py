"""What becomes of nodes that are lost or gone, and of the pods on them.

As kube-controller-manager's node lifecycle, taint eviction and pod garbage collection: a node of which nothing is heard
is not ready and is tainted, its pods are not ready, and leave when their tolerations are over. Pods on a node that does
not exist are ended, and so are those that are to go and never had one. One thing is different on purpose: where
no node at all is ready, upstream takes itself for cut off and evicts nobody; here the only node may be lost, and its
pods leave.
"""

from __future__ import annotations

import functools

import msgspec

from mirror.batch import times
from mirror.embedded.controllers.client import NODES, Api, Json
from mirror.embedded.controllers.kubelet.podspec import FINAL, pod_of
from mirror.embedded.controllers.nodes import taints
from mirror.embedded.controllers.nodes.leaving import Leaving
from mirror.embedded.controllers.recording import event_recorder, regarding
from mirror.embedded.controllers.settings import Settings
from mirror.embedded.controllers.working import AT_ONCE, RETRY, Key, informer, watch_all, work_on
from mirror.kube.client import Client
from mirror.kube.errors import NotFound
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import LEASES, PODS
from mirror.runtime.clock import Clock
from mirror.runtime.events import NORMAL, WARNING, Regarding
from mirror.runtime.informer import Change
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store, name_of
from mirror.telemetry.logs import Log

LEASE_NAMESPACE = "kube-node-lease"
_LOOK_SECONDS = 10.0
"""How often pods of a tainted node are looked at: others may come."""
_UNBOUND_KEPT_SECONDS = 20.0
"""The least time that pods without a node are kept: who deletes them usually ends them, too."""
_EVICTED = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
_ORPHANED = ("DeletionByPodGC", "PodGC: node no longer exists")


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None


_decode = msgspec.json.Decoder(_Spec | None).decode


class NodeLifecycle:
    """All nodes and their Leases."""

    def __init__(self, client: Client, *, clock: Clock, settings: Settings) -> None:
        self._client = client
        self._api = Api(client, "kube-controller-manager")
        self._clock = clock
        self._settings = settings
        self._recorder = event_recorder(self._api, "node-controller", clock=clock)
        self._evictions = event_recorder(self._api, "taint-eviction-controller", clock=clock)
        self._leaving = Leaving(self._api, clock=clock)
        self._unbound = _Unbound(self._leaving, clock=clock)
        self._nodes = Store()
        self._heard: dict[str, float] = {}
        """When something was last heard of a node, by the monotonic clock."""
        self._queue: WorkQueue[str] = WorkQueue(lambda _: "", clock=clock, lane_limit=AT_ONCE, backoff=RETRY)

    async def run(self, log: Log) -> None:
        """Work until cancelled."""
        nodes = informer(self._client, NODES, self._nodes, self._on_node)
        leases = informer(self._client, LEASES, Store(), self._on_lease, accept=_is_of_node)
        pods = informer(self._client, PODS, self._unbound.pods, self._unbound.on_pod, accept=self._is_unbound)
        work = functools.partial(work_on, self._queue, self._sync, log=log)
        unbound = functools.partial(self._unbound.run, log)
        await watch_all((nodes, leases, pods), log=log, then=(self._recorder.run, self._evictions.run, work, unbound))

    # -- what is heard -------------------------------------------------------------------------------------------------

    def _on_node(self, old: Object | None, new: Object | None, change: Change) -> None:
        if new is None:
            if old is not None:
                self._heard.pop(old.metadata.name, None)
                self._tell(old, "RemovingNode", f"Removing Node {old.metadata.name} from Controller")
                self._queue.add_after(old.metadata.name, self._settings.quarantine_seconds)
            return
        name = new.metadata.name
        if old is None or _heartbeat(old) != _heartbeat(new):
            self._heard[name] = self._clock.monotonic()
        if old is None:
            self._tell(new, "RegisteredNode", f"Registered Node {name} in Controller")
        self._queue.add(name)

    def _tell(self, node: Object, reason: str, what: str) -> None:
        meta = node.metadata
        about = Regarding(NODES, "", meta.name, meta.uid)
        self._recorder.event(about, NORMAL, reason, f"Node {meta.name} event: {what}")

    def _on_lease(self, old: Object | None, new: Object | None, change: Change) -> None:
        if new is not None and (old is None or bytes(old.spec) != bytes(new.spec)):
            self._heard[new.metadata.name] = self._clock.monotonic()
            self._queue.add_after(new.metadata.name, self._settings.node_grace_seconds)

    def _is_unbound(self, pod: Object) -> bool:
        """Only pods that go and have no node are kept; one on a node that is not known names a node to look for."""
        try:
            spec = _decode(pod.spec)
        except JUNK:
            return False
        if spec is not None and spec.node_name:
            if self._nodes.get("", spec.node_name) is None:
                self._queue.add_after(spec.node_name, self._settings.quarantine_seconds)
            return False
        return pod.metadata.deletion_timestamp is not None

    # -- one node ------------------------------------------------------------------------------------------------------

    async def _sync(self, name: str) -> float | None:
        found = self._nodes.get("", name)
        if found is None:
            await self._end_strays(name)
            return None
        node = _body(found)
        left = self._heard.get(name, 0.0) + self._settings.node_grace_seconds - self._clock.monotonic()
        if left <= 0:
            node = await self._declare_lost(node)
        node = await self._taint(node)
        again = [left] if left > 0 else []
        if any(one.get("effect") == "NoExecute" for one in node["spec"].get("taints") or ()):
            again.append(await self._evict(node))
        return min(again, default=None)

    async def _declare_lost(self, node: Json) -> Json:
        conditions = taints.lost_conditions(node, self._clock.now())
        if not conditions:
            return node
        was_ready = taints.ready_status(node) == "True"
        name = node["metadata"]["name"]
        stored = await self._api.strategic(NODES, name, {"status": {"conditions": conditions}}, subresource="status")
        if was_ready:
            message = f"Node {name} status is now: NodeNotReady"
            self._recorder.event(regarding(NODES, stored), NORMAL, "NodeNotReady", message)
            for pod in await self._pods_on(name):
                await self._mark_not_ready(pod)
        return stored

    async def _taint(self, node: Json) -> Json:
        wanted = taints.wanted_taints(node, self._clock.now())
        if wanted is None:
            return node
        version = node["metadata"]["resourceVersion"]
        patch = {"metadata": {"resourceVersion": version}, "spec": {"taints": wanted or None}}
        return await self._api.merge(NODES, node["metadata"]["name"], patch)

    async def _evict(self, node: Json) -> float:
        """Delete pods whose time on this node is over; gives seconds after which to look again."""
        now = self._clock.now()
        wait = _LOOK_SECONDS
        for pod in await self._pods_on(node["metadata"]["name"]):
            due = taints.leaves_at(pod, node["spec"]["taints"], now)
            if due is None or pod["metadata"].get("deletionTimestamp") is not None:
                continue
            if due > now:
                wait = min(wait, (due - now).total_seconds())
                continue
            meta = pod["metadata"]
            message = f"Marking for deletion Pod {meta['namespace']}/{meta['name']}"
            self._evictions.event(regarding(PODS, pod), NORMAL, "TaintManagerEviction", message)
            await self._leaving.disrupt(pod, _EVICTED)
            await self._leaving.delete(pod)
        return wait

    async def _end_strays(self, name: str) -> None:
        """Its pods run nowhere: they have failed, and go at once."""
        pods = await self._pods_on(name)
        if not pods:
            return
        try:
            await self._api.get(NODES, name)
        except NotFound:
            pass
        else:
            return
        for pod in pods:
            if pod["metadata"].get("deletionGracePeriodSeconds") == 0:
                continue  # something else holds it
            await self._leaving.fail(pod, _ORPHANED)
            await self._leaving.delete(pod, grace_seconds=0)

    # -- its pods ------------------------------------------------------------------------------------------------------

    async def _pods_on(self, name: str) -> list[Json]:
        return await self._api.list_all(PODS, field_selector=f"spec.nodeName={name}")

    async def _mark_not_ready(self, pod: Json) -> None:
        conditions: list[Json] = (pod.get("status") or {}).get("conditions") or []
        ready = next((one for one in conditions if one.get("type") == "Ready"), None)
        if ready is None or ready.get("status") != "True":
            return
        changed = {"type": "Ready", "status": "False", "lastTransitionTime": times.of(self._clock.now())}
        if await self._leaving.patch_status(pod, {"conditions": [changed]}):
            self._recorder.event(regarding(PODS, pod), WARNING, "NodeNotReady", "Node is not ready")


def _is_of_node(lease: Object) -> bool:
    return lease.metadata.namespace == LEASE_NAMESPACE


def _heartbeat(node: Object) -> object:
    """What a kubelet has last said of itself; not what we have said of it."""
    conditions = node.status_dict().get("conditions") or ()
    return max((str(one.get("lastHeartbeatTime") or "") for one in conditions), default="")


def _body(found: Object) -> Json:
    meta: Json = msgspec.to_builtins(found.metadata)
    return {"metadata": meta, "spec": found.spec_dict(), "status": found.status_dict()}


async def run(client: Client, *, clock: Clock, log: Log, settings: Settings) -> None:
    """Look after nodes until cancelled."""
    await NodeLifecycle(client, clock=clock, settings=settings).run(log)


class _Unbound:
    """Pods that are to go and have no node: no kubelet will ever end them.

    A Job whose pods are replaced only once they have failed (``podReplacementPolicy: Failed``) waits for it.
    """

    def __init__(self, leaving: Leaving, *, clock: Clock) -> None:
        self._leaving = leaving
        self.pods = Store()
        self._queue: WorkQueue[Key] = WorkQueue(lambda _: "", clock=clock, lane_limit=AT_ONCE, backoff=RETRY)

    async def run(self, log: Log) -> None:
        """End them until cancelled."""
        await work_on(self._queue, self._sync, log=log)

    def on_pod(self, old: Object | None, new: Object | None, change: Change) -> None:
        """One of them came or changed."""
        if new is not None:
            self._queue.add_after(name_of(new), _UNBOUND_KEPT_SECONDS)

    async def _sync(self, key: Key) -> None:
        found = self.pods.get(*key)
        if found is None:
            return
        pod = pod_of(found)
        if pod["metadata"].get("deletionGracePeriodSeconds") == 0 and pod["status"].get("phase") in FINAL:
            return  # something else holds it
        await self._leaving.fail(pod)
        await self._leaving.delete(pod, grace_seconds=0)
