"""Kueue as others see it: admits, preempts and restores what is in its queues on one cluster, in its own steps.

The order of its writes, and what each has, is that of Kueue 0.19.2 (``jobframework/reconciler.go``): admission is one
write, a preemption is one or, of Jobs, three, of which the second is of the status. What differs by kind is a row of
``queue_forms``. Quota is counted in objects. What it thinks of one is kept here in place of a Workload.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field

from queue_forms import JOB, KUEUE, RESTORED, STOPPING, Form

from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.model import names
from mirror.model.field_paths import at, put, without
from mirror.planes.api import Json
from mirror.planes.plane import ControlPlane

MIN_PARALLELISM = f"{KUEUE}job-min-parallelism"
GENERATED = ("controller-uid", "job-name")
"""Ends of labels that the API server puts into a template, which are restored with it."""


@dataclass
class Workload:
    """What it thinks of one object."""

    templates: dict[str, Json]
    """By pod set, as they were queued."""
    parallelism: int
    is_admitted: bool = False
    is_evicted: bool = False
    is_active: bool = True
    """``spec.active``: an operator may hold it."""
    flavor: str = ""
    count: int = 0


@dataclass
class QueueHand:
    """One Kueue; ``run`` it, and tell it what to do by its fields."""

    plane: ControlPlane
    namespace: str = "default"
    forms: Sequence[Form] = (JOB,)
    """Its integrations."""
    queues: frozenset[str] | None = None
    """Whose objects it looks at; None: all queues'."""
    quota: int = 1
    """So many objects run at a time."""
    flavors: list[str] = field(default_factory=lambda: ["spot"])
    """The next admission uses the first."""
    step_seconds: float = 0.05
    """Between two of its writes."""
    look_seconds: float = 0.25
    workloads: dict[str, Workload] = field(default_factory=dict)
    """By the object's uid."""
    refused: list[str] = field(default_factory=list)
    """What the API server refused it, as texts; conflicts are retried and not here."""
    starts: int = 0
    stops: int = 0

    async def run(self) -> None:
        """Look at every object of a queue whenever something that counts has changed since the last look."""
        seen: object = None
        while True:
            if self.plane.is_running and (now := self._what_counts()) != seen:
                # What it has written or thinks since is another; what it could not write is tried again.
                seen = now if await self.sync() else None
            await asyncio.sleep(self.look_seconds)

    def _what_counts(self) -> object:
        """All that a look depends on: the stored objects, its settings and its own state."""
        thoughts = tuple(
            (uid, one.is_admitted, one.is_evicted, one.is_active, one.flavor) for uid, one in self.workloads.items()
        )
        changed = tuple(self.plane.server.storage.changed(form.stored_as) for form in self.forms)
        return id(self.plane.server), changed, thoughts, self.quota, tuple(self.flavors), self.queues

    async def sync(self) -> bool:
        """One look at each object; whether nothing failed."""
        is_whole = True
        listed = [(form, one) for form in self.forms for one in await self._listed(form)]
        uids = {one["metadata"]["uid"] for _, one in listed}
        self.workloads = {uid: one for uid, one in self.workloads.items() if uid in uids}
        for form, found in listed:
            queue = (found["metadata"].get("labels") or {}).get(names.QUEUE_NAME)
            if queue is not None and (self.queues is None or queue in self.queues):
                try:
                    await self._reconcile(form, found)
                except StatusError as error:
                    is_whole = False
                    if error.code not in (404, 409):
                        self.refused.append(f"{found['metadata']['name']}: {error}")
        return is_whole

    def preempt(self, uid: str) -> None:
        """Somebody else needs the quota of this object."""
        if uid in self.workloads and self.workloads[uid].is_admitted:
            self.workloads[uid].is_evicted = True

    # -- its reconciler ------------------------------------------------------------------------------------------------

    async def _reconcile(self, form: Form, found: Json) -> None:
        uid = found["metadata"]["uid"]
        workload = self.workloads.get(uid)
        if form.has_ended(found):
            if workload is not None:
                workload.is_admitted = False
            return
        if workload is not None and not self._is_equivalent(form, found, workload):
            if not form.is_suspended(found):
                await self._stop(form, found, workload)
            elif workload.is_admitted or not form.is_active(found):
                del self.workloads[uid]
            return
        if workload is None:
            if not form.is_suspended(found):
                await self._stop(form, found, None)
            elif not form.is_active(found):
                self.workloads[uid] = Workload(_bare(form, found), found["spec"].get("parallelism", 1))
            return
        if workload.is_evicted:
            await self._stop(form, found, workload)
            if not form.is_active(await self._read(form, found)):
                workload.is_evicted = workload.is_admitted = False  # its quota is free again
            return
        self._admit(workload)
        if form.is_suspended(found):
            if workload.is_admitted:
                await self._start(form, found, workload)
        elif not workload.is_admitted:
            await self._stop(form, found, workload)

    def _admit(self, workload: Workload) -> None:
        if workload.is_admitted or not workload.is_active:
            return
        if sum(one.is_admitted for one in self.workloads.values()) < self.quota:
            workload.is_admitted, workload.flavor = True, self.flavors[0]
            workload.count = workload.parallelism

    async def _start(self, form: Form, found: Json, workload: Workload) -> None:
        """Unsuspended and merged with the flavor in one write."""
        found = form.held(found, False)
        for name, place in form.pod_sets(found).items():
            found = put(found, place, _merged(name, at(found, place), workload))
        least = (found["metadata"].get("annotations") or {}).get(MIN_PARALLELISM)
        if form.can_be_partial and least is not None:
            workload.count = int(least)
            found = put(found, ("spec", "parallelism"), workload.count)
        self.starts += 1
        await self._replace(form, found)

    async def _stop(self, form: Form, found: Json, workload: Workload | None) -> None:
        """Suspended and its templates restored: in one write, or in steps."""
        if form.stops_in_steps:
            await self._stop_in_steps(form, found, workload)
        elif not form.is_held(found):
            self.stops += 1
            await self._replace(form, _restored(form, form.held(found), workload))

    async def _stop_in_steps(self, form: Form, found: Json, workload: Workload | None) -> None:
        """Suspended; its status without a start; its template restored: three writes, each of which may be refused."""
        if not form.is_suspended(found):
            self.stops += not form.is_held(found)  # a stop that has not ended is gone on with
            found = put(form.held(found), ("metadata", "annotations", STOPPING), "true")
            found = await self._replace(form, found)
            await asyncio.sleep(self.step_seconds)
        if (found.get("status") or {}).get("startTime") is not None:
            where = form.path(found["metadata"]["name"], "status", namespace=self.namespace)
            found = await self.plane.api.merge(where, {"status": {"startTime": None}})
            await asyncio.sleep(self.step_seconds)
        await self._replace(form, without(_restored(form, found, workload), ("metadata", "annotations", STOPPING)))

    def _is_equivalent(self, form: Form, found: Json, workload: Workload) -> bool:
        """Whether an object is as it was queued, or as it runs while it is admitted."""
        bare, count = _bare(form, found), found["spec"].get("parallelism", 1)
        if workload.is_admitted:
            running = {name: _merged(name, template, workload) for name, template in workload.templates.items()}
            if _without_tolerations(bare) == _without_tolerations(running):
                return count in (workload.count, workload.parallelism)
            if not form.is_suspended(found):
                return False
        return bare == workload.templates and count == workload.parallelism

    async def _listed(self, form: Form) -> list[Json]:
        return await self.plane.api.list(form.path(namespace=self.namespace))

    async def _read(self, form: Form, found: Json) -> Json:
        uid = found["metadata"]["uid"]
        return next((one for one in await self._listed(form) if one["metadata"]["uid"] == uid), found)

    async def _replace(self, form: Form, found: Json) -> Json:
        return await self.plane.api.replace(form.path(found["metadata"]["name"], namespace=self.namespace), found)


def labels_of(flavor: str) -> dict[str, str]:
    """Of the nodes of a flavor."""
    return {f"example.com/{flavor}": "true"}


def _bare(form: Form, found: Json) -> dict[str, Json]:
    """The templates without what the API server has put there."""
    bare = {}
    for name, template in form.templates(found).items():
        template = copy.deepcopy(template)
        metadata = template.setdefault("metadata", {})
        labels = metadata.pop("labels", None) or {}
        if kept := {key: value for key, value in labels.items() if not key.endswith(GENERATED)}:
            metadata["labels"] = kept
        bare[name] = template
    return bare


def _without_tolerations(templates: dict[str, Json]) -> dict[str, Json]:
    return {name: without(template, ("spec", "tolerations")) for name, template in templates.items()}


def _merged(name: str, template: Json, workload: Workload) -> Json:
    """``podset.Merge`` with what the flavor adds to the pods of this set."""
    merged = copy.deepcopy(template)
    metadata, spec = merged.setdefault("metadata", {}), merged["spec"]
    metadata["labels"] = {**(metadata.get("labels") or {}), names.POD_SET: name, f"{KUEUE}cluster-queue-name": "all"}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), f"{KUEUE}workload": "job-train"}
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **labels_of(workload.flavor)}
    toleration = {"key": f"example.com/{workload.flavor}", "operator": "Exists"}
    if toleration not in (spec.get("tolerations") or []):
        spec["tolerations"] = [*(spec.get("tolerations") or []), toleration]
    return merged


def _restored(form: Form, found: Json, workload: Workload | None) -> Json:
    """``podset.RestorePodSpec`` of each pod set that was queued; without a workload nothing is known of it."""
    if workload is None:
        return found
    for name, place in form.pod_sets(found).items():
        template, queued = at(found, place), workload.templates.get(name)
        if queued is None:
            continue
        labels = at(template, ("metadata", "labels")) or {}
        generated = {key: value for key, value in labels.items() if key.endswith(GENERATED)}
        for field_of in RESTORED:
            value = at(queued, field_of)
            if field_of == ("metadata", "labels"):
                value = {**(value or {}), **generated} or None
            template = put(template, field_of, value) if value is not None else without(template, field_of)
        found = put(found, place, template)
    if form.can_be_partial and MIN_PARALLELISM in (found["metadata"].get("annotations") or {}):
        found = put(found, ("spec", "parallelism"), workload.parallelism)
    return found
