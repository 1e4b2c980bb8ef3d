"""Workloads and PodGroups of Jobs (gate ``WorkloadWithJob``): their caches and creation, and whether they are served.

``decide.gang`` says what a Job needs; here it is looked up and created, before ``syncing`` manages pods. Nothing of
this exists while the gate is off. Workloads and PodGroups name no keys: as upstream, their changes cause no sync.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import msgspec

from mirror.jobcontroller.decide import gang
from mirror.jobcontroller.decide.gang import Missing, PodGroup, PodGroupTemplate, Ungrouped, Workload
from mirror.jobcontroller.decide.values import Snapshot
from mirror.jobcontroller.jobview import CachedJob
from mirror.jobcontroller.memory import JobMemory
from mirror.jobcontroller.podview import controller_of
from mirror.jobcontroller.podwrites import is_namespace_ending, owner_reference, text_of
from mirror.jobcontroller.ports import Events
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import AlreadyExists, Forbidden, KubeError, NotServed, PageNotFound
from mirror.kube.objects import JUNK, Object
from mirror.kube.requests import Rank
from mirror.kube.resources import JOBS, POD_GROUPS, WORKLOADS, Resource
from mirror.kube.watch import list_pages
from mirror.runtime.events import Regarding
from mirror.runtime.informer import Change, Filter, Informer, InformerHooks, Scope
from mirror.runtime.store import Store
from mirror.telemetry.logs import Log

GATE = "WorkloadWithJob"
_BY_JOB = "job"
_BY_WORKLOAD = "workload"


class _Template(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    scheduling_policy: dict[str, Any] = {}


class _Reference(msgspec.Struct, gc=False, rename="camel"):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class _WorkloadSpec(msgspec.Struct, gc=False, rename="camel"):
    controller_ref: _Reference | None = None
    pod_group_templates: list[_Template] | None = None


class _TemplateReference(msgspec.Struct, gc=False, rename="camel"):
    workload_name: str = ""


class _TemplateSource(msgspec.Struct, gc=False):
    workload: _TemplateReference | None = None


class _PodGroupSpec(msgspec.Struct, gc=False, rename="camel"):
    pod_group_template_ref: _TemplateSource | None = None


_decode_workload = msgspec.json.Decoder(_WorkloadSpec | None).decode
_decode_pod_group = msgspec.json.Decoder(_PodGroupSpec | None).decode


class CachedWorkload(Object, kw_only=True, gc=False):
    """A Workload in the cache."""

    workload: Workload
    job: str = ""
    """The name of the Job that it refers to."""


class CachedPodGroup(Object, kw_only=True, gc=False):
    """A PodGroup in the cache."""

    group: PodGroup
    workload: str = ""
    """The name of the Workload that it refers to."""


def keep_workload(found: Object) -> CachedWorkload:
    """What the cache keeps of a Workload."""
    try:
        spec = _decode_workload(found.spec) or _WorkloadSpec()
    except JUNK:
        spec = _WorkloadSpec()  # refers to nothing
    reference = spec.controller_ref or _Reference()
    is_of_job = (reference.api_group, reference.kind) == (JOBS.group, JOBS.kind)
    templates = tuple(PodGroupTemplate(one.name, one.scheduling_policy) for one in spec.pod_group_templates or ())
    meta = found.metadata
    workload = Workload(meta.name, meta.uid, _controller_uid(found), templates)
    return CachedWorkload(meta, workload=workload, job=reference.name if is_of_job else "")


def keep_pod_group(found: Object) -> CachedPodGroup:
    """What the cache keeps of a PodGroup."""
    try:
        spec = _decode_pod_group(found.spec) or _PodGroupSpec()
    except JUNK:
        spec = _PodGroupSpec()
    source = (spec.pod_group_template_ref or _TemplateSource()).workload or _TemplateReference()
    group = PodGroup(found.metadata.name, found.metadata.uid, _controller_uid(found))
    return CachedPodGroup(found.metadata, group=group, workload=source.workload_name)


def _controller_uid(found: Object) -> str:
    owner = controller_of(found)
    return owner.uid if owner is not None else ""


class SchedulingApi:
    """Whether Workloads and PodGroups can be watched: without them no Job is synced, and this says why."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._problems: dict[Resource, str] = {}

    @property
    def problem(self) -> str:
        """What an operator has to change; empty if nothing is known to be wrong."""
        return next(iter(self._problems.values()), "")

    def on_trouble(self, resource: Resource, error: KubeError) -> None:
        """A list or watch failed. What a server has answered is reported once; others report an unreachable one."""
        if isinstance(error, NotServed | PageNotFound):
            problem = (
                f"the API server does not serve {resource.plural} of {resource.api_version}, which {GATE} needs:"
                f" Kubernetes 1.36 does with --runtime-config={resource.api_version}=true and"
                f" --feature-gates=GenericWorkload=true; else set {GATE}=false here"
            )
        elif isinstance(error, Forbidden):
            problem = (
                f"missing permission to list and watch {resource.plural} of {resource.group}, which {GATE} needs:"
                " apply config/rbac/job-controller-gang.yaml"
            )
        else:
            return
        if self._problems.get(resource) != problem:
            self._problems[resource] = problem
            self._log.error("gang scheduling is not possible", because=problem, error=error)

    def on_healthy(self, resource: Resource) -> None:
        """A list was complete."""
        if self._problems.pop(resource, None):
            self._log.info("gang scheduling is possible", resource=resource.plural)


class Gangs:
    """Finds or creates a Job's Workload and PodGroup."""

    def __init__(self, client: Client, events: Events, *, log: Log) -> None:
        self._client = client
        self._events = events
        self._log = log
        self.api = SchedulingApi(log)
        self._workloads = Store({_BY_JOB: _job_of})
        self._groups = Store({_BY_WORKLOAD: _workload_of})

    def make_informers(self, namespace: str | None) -> dict[str, Informer]:
        """What keeps the caches of one namespace, or of all."""
        return {
            "workloads": self._informer(WORKLOADS, namespace, self._workloads, keep_workload),
            "podgroups": self._informer(POD_GROUPS, namespace, self._groups, keep_pod_group),
        }

    def _informer(
        self, resource: Resource, namespace: str | None, store: Store, keep: Callable[[Object], Object]
    ) -> Informer:
        return Informer(
            Scope(resource, namespace),
            store,
            client=lambda: self._client,
            hooks=InformerHooks(
                _ignore,
                on_trouble=lambda error: self.api.on_trouble(resource, error),
                on_healthy=lambda: self.api.on_healthy(resource),
            ),
            wanted=Filter(keep=keep),
        )

    async def group_of(self, job: CachedJob, memory: JobMemory, snapshot: Snapshot) -> str:
        """The name of the PodGroup that new pods of a Job that qualifies belong to; empty if they belong to none.

        Raises:
            KubeError: it does not exist and could not be created.
        """
        found = self._workloads_of(job)
        if not found:
            missing = gang.new_workload(snapshot)
            if isinstance(missing, Ungrouped):
                return self._report(job, memory, missing)
            found = [await self._create_workload(job, missing)]
        workload = gang.choose_workload(snapshot, found)
        if isinstance(workload, Ungrouped):
            return self._report(job, memory, workload)
        groups = self._groups_of(job, workload)
        if not groups:
            groups = [await self._create_pod_group(job, workload)]
        group = gang.choose_pod_group(snapshot, workload, groups)
        return self._report(job, memory, group) if isinstance(group, Ungrouped) else group.name

    def _report(self, job: CachedJob, memory: JobMemory, choice: Ungrouped) -> str:
        """Log once per Job why its pods belong to no group."""
        if memory.ungrouped_because != choice.because:
            memory.ungrouped_because = choice.because
            write = self._log.debug if choice.is_expected else self._log.warning
            write("pods are scheduled one by one", key=job.key, uid=job.metadata.uid, because=choice.because)
        return ""

    def _workloads_of(self, job: CachedJob) -> list[Workload]:
        found = _indexed(self._workloads, _BY_JOB, job.metadata.namespace, job.metadata.name)
        return [one.workload for one in found if isinstance(one, CachedWorkload)]

    def _groups_of(self, job: CachedJob, workload: Workload) -> list[PodGroup]:
        found = _indexed(self._groups, _BY_WORKLOAD, job.metadata.namespace, workload.name)
        return [one.group for one in found if isinstance(one, CachedPodGroup)]

    async def _create_workload(self, job: CachedJob, missing: Missing) -> Workload:
        stored, is_new = await self._create(WORKLOADS, job, missing, owners=[owner_reference(job)])
        if is_new:
            text = f"Created Workload {stored.metadata.name} for Job {job.metadata.name}"
            self._events.event(Regarding.of(JOBS, job), "Normal", "WorkloadCreated", text)
        kept = keep_workload(stored)
        self._workloads.read_own_write(kept)
        return kept.workload

    async def _create_pod_group(self, job: CachedJob, workload: Workload) -> PodGroup:
        owners = [owner_reference(job), _reference_to(workload)]
        stored, _ = await self._create(POD_GROUPS, job, gang.new_pod_group(workload), owners=owners)
        kept = keep_pod_group(stored)
        self._groups.read_own_write(kept)
        return kept.group

    async def _create(
        self, resource: Resource, job: CachedJob, missing: Missing, *, owners: list[dict[str, Any]]
    ) -> tuple[Object, bool]:
        """Create an object, or find the one that an earlier create has left; whether it is new."""
        namespace, flow = job.metadata.namespace, job.metadata.uid
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": missing.name, "namespace": namespace, "ownerReferences": owners},
            "spec": missing.spec,
        }
        request = requests.create(resource, body, namespace=namespace).in_line(Rank.FIRST, flow)
        try:
            try:
                return await self._client.send_object(request), True
            except AlreadyExists:
                # The watch is behind, or the answer was lost: the name, which holds the Job's uid, is most likely ours.
                found = await self._look_up(resource, job, missing.name)
                if found is None:
                    raise  # somebody else's: the Job waits until it is gone, as upstream's
                return found, False
        except KubeError as error:
            if not is_namespace_ending(error):
                # As Kubernetes 1.37 reports it of Workloads; 1.36 logs it.
                text = f"Failed to create {resource.kind} for Job {job.metadata.name}: {text_of(error)}"
                self._events.event(Regarding.of(JOBS, job), "Warning", f"Failed{resource.kind}Create", text)
            raise

    async def _look_up(self, resource: Resource, job: CachedJob, name: str) -> Object | None:
        """An object that a Job controls, asked of the server; who may list may do this."""
        namespace = job.metadata.namespace
        pages = list_pages(self._client, resource, namespace=namespace, field_selector=f"metadata.name={name}")
        async with aclosing(pages):
            async for page in pages:
                for found in page.objects:
                    if _controller_uid(found) == job.metadata.uid:
                        return found
        return None


def _indexed(store: Store, index: str, namespace: str, name: str) -> list[Object | None]:
    return [store.get(*found) for found in store.names(index, f"{namespace}/{name}")]


def _job_of(found: Object) -> tuple[str, ...]:
    name = found.job if isinstance(found, CachedWorkload) else ""
    return (f"{found.metadata.namespace}/{name}",) if name else ()


def _workload_of(found: Object) -> tuple[str, ...]:
    name = found.workload if isinstance(found, CachedPodGroup) else ""
    return (f"{found.metadata.namespace}/{name}",) if name else ()


def _reference_to(workload: Workload) -> dict[str, Any]:
    """An owner that does not control, and whose deletion waits for nothing."""
    return {"apiVersion": WORKLOADS.api_version, "kind": WORKLOADS.kind, "name": workload.name, "uid": workload.uid}


def _ignore(old: Object | None, new: Object | None, change: Change) -> None:
    """Nobody is interested."""
