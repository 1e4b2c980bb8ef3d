"""Pods that are to go and have no node: no kubelet will ever end them.

As kube-controller-manager's pod garbage collection; a Job whose pods are replaced only once they have failed
(``podReplacementPolicy: Failed``) waits for it. ``lifecycle`` watches the pods.
"""

from __future__ import annotations

from mirror.embedded.controllers.kubelet.podspec import FINAL, pod_of
from mirror.embedded.controllers.nodes.leaving import Leaving
from mirror.embedded.controllers.working import AT_ONCE, RETRY, Key, work_on
from mirror.kube.objects import Object
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store, name_of
from mirror.telemetry.logs import Log

LOOK_SECONDS = 20.0
"""The least time that they are kept: who deletes them usually ends them, too."""


class Unbound:
    """Those pods."""

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
            self._queue.add_after(name_of(new), LOOK_SECONDS)

    async def _sync(self, key: Key) -> None:
        found = self.pods.get(*key)
        if found is None:
            return
        pod = pod_of(found)
        if pod["metadata"].get("deletionGracePeriodSeconds") == 0 and pod["status"].get("phase") in FINAL:
            return  # something else holds it
        await self._leaving.fail(pod)
        await self._leaving.delete(pod, grace_seconds=0)
