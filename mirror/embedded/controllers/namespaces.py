"""Deletes the content of a namespace that is being deleted, reports its progress, then removes the finalizer.

As kube-controller-manager's namespace controller: pods first, then everything else, then ``spec.finalizers``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mirror.batch import times
from mirror.embedded.controllers.client import Api, Json
from mirror.embedded.controllers.discovering import Kinds
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


# Conditions of a namespace that is being deleted, in the words of kube-controller-manager; pure.

_FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass(slots=True)
class Found:
    """What was found while a namespace's content was deleted."""

    remaining: dict[Resource, int] = field(default_factory=dict)
    finalizers: dict[str, int] = field(default_factory=dict)
    """How many objects wait for each."""
    errors: list[str] = field(default_factory=list)
    discovery_error: str = ""
    estimate_seconds: int = 0
    """How long it may take until what remains is gone."""
    are_totals_known: bool = True
    """Whether all kinds were looked at; while pods remain, only they are."""

    def add(self, resource: Resource, objects: Sequence[Mapping[str, Any]], estimate_seconds: int) -> None:
        """Objects of one kind remain."""
        self.remaining[resource] = len(objects)
        for one in objects:
            for finalizer in one["metadata"].get("finalizers") or ():
                self.finalizers[finalizer] = self.finalizers.get(finalizer, 0) + 1
        self.estimate_seconds = max(self.estimate_seconds, estimate_seconds)


def changed(stored: Sequence[Mapping[str, Any]], found: Found, now: str) -> list[Json] | None:
    """The conditions to write; None if the stored ones say the same."""
    problems = _problems(found)
    conditions: list[Json] = [dict(one) for one in stored]
    is_changed = False
    for kind, (reason, message) in _FINE.items():
        status, reason, message = problems.get(kind, ("False", reason, message))
        old = next((one for one in conditions if one.get("type") == kind), None)
        new = {"type": kind, "status": status, "reason": reason, "message": message}
        if old is None:
            conditions.append(new | {"lastTransitionTime": now})
        elif any(old.get(name) != value for name, value in new.items()):
            if old.get("status") != status:
                old["lastTransitionTime"] = now
            old |= new
        else:
            continue
        is_changed = True
    return conditions if is_changed else None


def _problems(found: Found) -> dict[str, tuple[str, str, str]]:
    problems: dict[str, tuple[str, str, str]] = {}
    if found.discovery_error:
        problems["NamespaceDeletionDiscoveryFailure"] = ("True", "DiscoveryFailed", found.discovery_error)
    if found.errors:
        message = (
            f"Failed to delete all resource types, {len(found.errors)} remaining: {', '.join(sorted(found.errors))}"
        )
        problems["NamespaceDeletionContentFailure"] = ("True", "ContentDeletionFailed", message)
    if found.remaining and found.are_totals_known:
        listed = sorted(
            f"{resource.plural}.{resource.group} has {count} resource instances"
            for resource, count in found.remaining.items()
        )
        message = f"Some resources are remaining: {', '.join(listed)}"
        problems["NamespaceContentRemaining"] = ("True", "SomeResourcesRemain", message)
    if found.finalizers and found.are_totals_known:
        listed = sorted(f"{name} in {count} resource instances" for name, count in found.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(listed)}"
        problems["NamespaceFinalizersRemaining"] = ("True", "SomeFinalizersRemain", message)
    return problems
