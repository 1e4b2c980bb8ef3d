"""Deletes what is in a namespace that is being deleted, says how that goes, and then lets the namespace go.

As kube-controller-manager's namespace controller: pods first, then everything else, then ``spec.finalizers``.
"""

from __future__ import annotations

import functools
from datetime import datetime

from mirror.batch import times
from mirror.embedded.controllers.client import Api, Json
from mirror.embedded.controllers.discovering import Kinds
from mirror.embedded.controllers.namespace_conditions import Found, changed
from mirror.embedded.controllers.working import RETRY, informer, watch_all, work_on
from mirror.kube.client import Client
from mirror.kube.errors import ApiError, Conflict, KubeError, NotFound, NotServed
from mirror.kube.objects import Object
from mirror.kube.resources import NAMESPACES, PODS, Resource
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change
from mirror.runtime.queue import WorkQueue
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log

FINALIZER = "kubernetes"
DELAY_SECONDS = 5.0
"""Between a namespace's deletion and the first look: other API servers may not have seen it yet."""
_FINALIZERS_SECONDS = 15
_AT_ONCE = 10
_MOST_TRIES = 5


class Remaining(KubeError):
    """Something could not be deleted; to be tried again soon."""


class NamespaceController:
    """All namespaces."""

    def __init__(self, client: Client, *, clock: Clock, delay_seconds: float = DELAY_SECONDS) -> None:
        self._client = client
        self._api = Api(client, "kube-controller-manager")
        self._clock = clock
        self._delay_seconds = delay_seconds
        self._kinds = Kinds()
        self._queue: WorkQueue[str] = WorkQueue(lambda _: "", clock=clock, lane_limit=_AT_ONCE, backoff=RETRY)

    async def run(self, log: Log) -> None:
        """Work until cancelled."""
        namespaces = informer(self._client, NAMESPACES, Store(), self._on_namespace)
        await watch_all((namespaces,), log=log, then=(functools.partial(work_on, self._queue, self._sync, log=log),))

    def _on_namespace(self, old: Object | None, new: Object | None, change: Change) -> None:
        if new is not None and new.metadata.deletion_timestamp is not None:
            self._queue.add_after(new.metadata.name, self._delay_seconds)

    async def _sync(self, name: str) -> float | None:
        """Gives seconds after which to look again."""
        try:
            namespace = await self._api.get(NAMESPACES, name)
        except NotFound:
            return None
        if namespace["metadata"].get("deletionTimestamp") is None:
            return None
        if (namespace.get("status") or {}).get("phase") != "Terminating":
            namespace = await self._api.merge(
                NAMESPACES, name, {"status": {"phase": "Terminating"}}, subresource="status"
            )
        if not (namespace.get("spec") or {}).get("finalizers"):
            return None
        found = await self._delete_content(namespace)
        await self._tell(namespace, found)
        if found.errors or found.discovery_error:
            raise Remaining("; ".join([*found.errors, found.discovery_error])[:500])
        if found.estimate_seconds:
            return float(found.estimate_seconds // 2 + 1)
        await self._finalize(name)
        return None

    # -- content -------------------------------------------------------------------------------------------------------

    async def _delete_content(self, namespace: Json) -> Found:
        found = Found()
        try:
            await self._kinds.refresh(self._api)
        except KubeError as error:
            found.discovery_error = str(error)
        kinds = [one for one in self._kinds.supporting("delete") if one.namespaced]
        if PODS in kinds:
            await self._delete_kind(PODS, namespace, found)
            if found.remaining:
                found.are_totals_known = False
                return found
        for resource in kinds:
            if resource != PODS:
                await self._delete_kind(resource, namespace, found)
        return found

    async def _delete_kind(self, resource: Resource, namespace: Json, found: Found) -> None:
        """Delete all objects of a kind; those that stay are counted."""
        name = namespace["metadata"]["name"]
        try:
            estimate = await self._estimate(namespace) if resource == PODS else 0
            await self._api.delete_all(resource, namespace=name)
            rest = await self._api.list_all(resource, namespace=name)
        except NotServed:
            return  # it was served a moment ago: its definition is gone, and its objects with it
        except ApiError as error:
            found.errors.append(error.message)
            return
        if not rest:
            return
        has_finalizers = any(one["metadata"].get("finalizers") for one in rest)
        found.add(resource, rest, estimate or (_FINALIZERS_SECONDS if has_finalizers else 0))
        if not estimate and not has_finalizers:
            what = f"{resource.group}/{resource.version}, Resource={resource.plural}"
            found.errors.append(f"unexpected items still remain in namespace: {name} for gvr: {what}")

    async def _estimate(self, namespace: Json) -> int:
        """How long pods may take to end, in seconds; 0 once that time is over."""
        pods = await self._api.list_all(PODS, namespace=namespace["metadata"]["name"])
        longest = max(
            (
                int(pod["spec"].get("terminationGracePeriodSeconds") or 0)
                for pod in pods
                if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            ),
            default=0,
        )
        since = datetime.fromisoformat(namespace["metadata"]["deletionTimestamp"])
        return longest if (self._clock.now() - since).total_seconds() < longest else 0

    # -- the namespace itself ------------------------------------------------------------------------------------------

    async def _tell(self, namespace: Json, found: Found) -> None:
        """Write the conditions if they have changed."""
        stored = (namespace.get("status") or {}).get("conditions") or ()
        conditions = changed(stored, found, times.of(self._clock.now()))
        if conditions is None:
            return
        patch = {
            "metadata": {"resourceVersion": namespace["metadata"]["resourceVersion"]},
            "status": {"conditions": conditions},
        }
        try:
            await self._api.merge(NAMESPACES, namespace["metadata"]["name"], patch, subresource="status")
        except (NotFound, Conflict):
            return  # the next look says it

    async def _finalize(self, name: str) -> None:
        """Nothing is left: take our finalizer out of the spec."""
        for attempt in range(_MOST_TRIES):
            try:
                namespace = await self._api.get(NAMESPACES, name)
                spec = namespace.setdefault("spec", {})
                spec["finalizers"] = sorted({*(spec.get("finalizers") or ())} - {FINALIZER})
                await self._api.update(NAMESPACES, name, namespace, subresource="finalize")
            except NotFound:
                return
            except Conflict:
                if attempt + 1 == _MOST_TRIES:
                    raise
            else:
                return


async def run(client: Client, *, clock: Clock, log: Log) -> None:
    """Delete namespaces until cancelled."""
    await NamespaceController(client, clock=clock).run(log)
