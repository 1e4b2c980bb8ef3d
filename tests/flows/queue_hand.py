"""Kueue as others see it: admits, preempts and restores the Jobs of its queues on one cluster, in its own steps.

The order of its writes, and what each has, is that of Kueue 0.19.2 (``jobframework/reconciler.go``, ``jobs/job``):
admission is one write; a preemption is three, of which the second is of the status. Quota is counted in Jobs. What it
thinks of a Job is kept here in place of a Workload.
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field

from flow_world import found, path

from mirror.embedded.apiserver.apimachinery.errors import StatusError
from mirror.model import names
from mirror.planes.api import Json
from mirror.planes.plane import ControlPlane

JOBS = "jobs.batch"
"""As the storage calls them."""
KUEUE = "kueue.x-k8s.io/"
STOPPING = f"{KUEUE}stopping"
MIN_PARALLELISM = f"{KUEUE}job-min-parallelism"
GENERATED = ("controller-uid", "job-name")
"""Ends of labels that the API server puts into a template, which are restored with it."""


@dataclass
class Workload:
    """What it thinks of one Job."""

    template: Json
    """As it was queued."""
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
    queues: frozenset[str] | None = None
    """Whose Jobs it looks at; None: all queues'."""
    quota: int = 1
    """So many Jobs run at a time."""
    flavors: list[str] = field(default_factory=lambda: ["spot"])
    """The next admission uses the first."""
    step_seconds: float = 0.05
    """Between two of its writes."""
    look_seconds: float = 0.25
    workloads: dict[str, Workload] = field(default_factory=dict)
    """By the Job's uid."""
    refused: list[str] = field(default_factory=list)
    """What the API server refused it, as texts; conflicts are retried and not here."""
    starts: int = 0
    stops: int = 0

    async def run(self) -> None:
        """Look at every Job of a queue whenever something that counts has changed since the last look."""
        seen: object = None
        while True:
            if self.plane.is_running and (now := self._what_counts()) != seen:
                # What it has written or thinks since is another; what it could not write is tried again.
                seen = now if await self.sync() else None
            await asyncio.sleep(self.look_seconds)

    def _what_counts(self) -> object:
        """All that a look depends on: the stored Jobs, its settings and its own state."""
        thoughts = tuple(
            (uid, one.is_admitted, one.is_evicted, one.is_active, one.flavor) for uid, one in self.workloads.items()
        )
        changed = self.plane.server.storage.changed(JOBS)
        return id(self.plane.server), changed, thoughts, self.quota, tuple(self.flavors), self.queues

    async def sync(self) -> bool:
        """One look at each Job; whether nothing failed."""
        is_whole = True
        jobs = await self.plane.api.list(path("", self.namespace))
        uids = {one["metadata"]["uid"] for one in jobs}
        self.workloads = {uid: one for uid, one in self.workloads.items() if uid in uids}
        for job in jobs:
            queue = (job["metadata"].get("labels") or {}).get(names.QUEUE_NAME)
            if queue is not None and (self.queues is None or queue in self.queues):
                try:
                    await self._reconcile(job)
                except StatusError as error:
                    is_whole = False
                    if error.code not in (404, 409):
                        self.refused.append(f"{job['metadata']['name']}: {error}")
        return is_whole

    def preempt(self, uid: str) -> None:
        """Somebody else needs the quota of this Job."""
        if uid in self.workloads and self.workloads[uid].is_admitted:
            self.workloads[uid].is_evicted = True

    # -- its reconciler ------------------------------------------------------------------------------------------------

    async def _reconcile(self, job: Json) -> None:
        uid, status = job["metadata"]["uid"], job.get("status") or {}
        workload = self.workloads.get(uid)
        ended = {"Complete", "Failed"} & {
            one["type"] for one in status.get("conditions") or () if one["status"] == "True"
        }
        if ended:
            if workload is not None:
                workload.is_admitted = False
            return
        if workload is not None and not self._is_equivalent(job, workload):
            if not _is_suspended(job):
                await self._stop(job, workload)
            elif workload.is_admitted or not status.get("active"):
                del self.workloads[uid]
            return
        if workload is None:
            if not _is_suspended(job):
                await self._stop(job, None)
            elif not status.get("active"):
                self.workloads[uid] = Workload(copy.deepcopy(_bare(job)), job["spec"].get("parallelism", 1))
            return
        if workload.is_evicted:
            await self._stop(job, workload)
            if not ((await self._read(job)).get("status") or {}).get("active"):
                workload.is_evicted = workload.is_admitted = False  # its quota is free again
            return
        self._admit(workload)
        if _is_suspended(job):
            if workload.is_admitted:
                await self._start(job, workload)
        elif not workload.is_admitted:
            await self._stop(job, workload)

    def _admit(self, workload: Workload) -> None:
        if workload.is_admitted or not workload.is_active:
            return
        if sum(one.is_admitted for one in self.workloads.values()) < self.quota:
            workload.is_admitted, workload.flavor = True, self.flavors[0]
            workload.count = workload.parallelism

    async def _start(self, job: Json, workload: Workload) -> None:
        """Unsuspended and merged with the flavor in one write."""
        spec = job["spec"]
        spec["suspend"] = False
        spec["template"] = _merged(spec["template"], workload)
        least = (job["metadata"].get("annotations") or {}).get(MIN_PARALLELISM)
        if least is not None:
            spec["parallelism"] = workload.count = int(least)
        self.starts += 1
        await self._replace(job)

    async def _stop(self, job: Json, workload: Workload | None) -> None:
        """Suspended; its status without a start; its template restored: three writes, each of which may be refused."""
        if not _is_suspended(job):
            self.stops += not job["spec"].get("suspend")  # a stop that has not ended is gone on with
            job["spec"]["suspend"] = True
            job["metadata"].setdefault("annotations", {})[STOPPING] = "true"
            job = await self._replace(job)
            await asyncio.sleep(self.step_seconds)
        if (job.get("status") or {}).get("startTime") is not None:
            where = path(job["metadata"]["name"], self.namespace)
            job = await self.plane.api.merge(f"{where}/status", {"status": {"startTime": None}})
            await asyncio.sleep(self.step_seconds)
        if workload is not None:
            restored = copy.deepcopy(workload.template)
            labels = job["spec"]["template"].get("metadata", {}).get("labels") or {}
            kept = {key: value for key, value in labels.items() if key.endswith(GENERATED)}
            restored.setdefault("metadata", {})["labels"] = {**(restored["metadata"].get("labels") or {}), **kept}
            job["spec"]["template"] = restored
            if MIN_PARALLELISM in (job["metadata"].get("annotations") or {}):
                job["spec"]["parallelism"] = workload.parallelism
        (job["metadata"].get("annotations") or {}).pop(STOPPING, None)
        await self._replace(job)

    def _is_equivalent(self, job: Json, workload: Workload) -> bool:
        """Whether a Job is as it was queued, or as it runs while it is admitted."""
        bare, is_count = _bare(job), job["spec"].get("parallelism", 1)
        if bare == workload.template and is_count == workload.parallelism:
            return True
        if not workload.is_admitted:
            return False
        running = _without_tolerations(_merged(workload.template, workload))
        return _without_tolerations(bare) == running and is_count in (workload.count, workload.parallelism)

    async def _read(self, job: Json) -> Json:
        return await found(self.plane.api, job["metadata"]["name"]) or job

    async def _replace(self, job: Json) -> Json:
        return await self.plane.api.replace(path(job["metadata"]["name"], self.namespace), job)


def labels_of(flavor: str) -> dict[str, str]:
    """Of the nodes of a flavor."""
    return {f"example.com/{flavor}": "true"}


def _is_suspended(job: Json) -> bool:
    """As Kueue has it: one whose stop has not ended is not."""
    is_stopping = (job["metadata"].get("annotations") or {}).get(STOPPING) == "true"
    return bool(job["spec"].get("suspend")) and not is_stopping


def _bare(job: Json) -> Json:
    """The template without what the API server has put there."""
    template: Json = copy.deepcopy(job["spec"]["template"])
    metadata = template.setdefault("metadata", {})
    labels = metadata.pop("labels", None) or {}
    if kept := {key: value for key, value in labels.items() if not key.endswith(GENERATED)}:
        metadata["labels"] = kept
    return template


def _without_tolerations(template: Json) -> Json:
    return {**template, "spec": {key: value for key, value in template["spec"].items() if key != "tolerations"}}


def _merged(template: Json, workload: Workload) -> Json:
    """``podset.Merge`` with what the flavor adds."""
    merged = copy.deepcopy(template)
    metadata, spec = merged.setdefault("metadata", {}), merged["spec"]
    metadata["labels"] = {**(metadata.get("labels") or {}), names.POD_SET: "main", f"{KUEUE}cluster-queue-name": "all"}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), f"{KUEUE}workload": "job-train"}
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **labels_of(workload.flavor)}
    toleration = {"key": f"example.com/{workload.flavor}", "operator": "Exists"}
    if toleration not in (spec.get("tolerations") or []):
        spec["tolerations"] = [*(spec.get("tolerations") or []), toleration]
    return merged
