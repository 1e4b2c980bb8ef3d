"""A Job as the cache keeps it: the object, and what handlers ask of it with each event, decoded once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from mirror.batch import conditions
from mirror.batch.label_selectors import MISSING, LabelSelector, selector_of
from mirror.jobcontroller.decide.jobs import read_time
from mirror.kube.objects import JUNK, Object, OwnerReference
from mirror.kube.resources import JOBS
from mirror.model import names
from mirror.runtime.store import Store

BY_PIVOT = "pivot"
"""The index of Jobs by their selector's pivot, to find those that want an orphan (H4)."""

INDEXED, NON_INDEXED = "Indexed", "NonIndexed"


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    managed_by: str | None = None
    completion_mode: str | None = None
    active_deadline_seconds: int | None = None
    selector: Any = None


class _Condition(msgspec.Struct, gc=False):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct, gc=False, rename="camel"):
    start_time: str | None = None
    conditions: list[_Condition] | None = None


class JobSummary(msgspec.Struct, frozen=True):
    """What is looked at without decoding the whole Job."""

    managed_by: str | None
    completion_mode: str
    deadline_seconds: int | None
    started_at: datetime | None
    is_finished: bool
    selector: LabelSelector
    is_broken: bool = False
    """Its spec cannot be read, so nobody knows what it asks for, or who manages it: it is left alone."""


class CachedJob(Object, kw_only=True, gc=False):
    """A Job with its brief."""

    brief: JobSummary

    @property
    def key(self) -> str:
        return key_of(self)


_decode_spec = msgspec.json.Decoder(_Spec | None).decode
_decode_status = msgspec.json.Decoder(_Status | None).decode


def keep_job(found: Object) -> CachedJob:
    """What the cache keeps of a Job: everything, and its brief."""
    is_broken = False
    try:
        spec = _decode_spec(found.spec) or _Spec()
    except JUNK:
        spec, is_broken = _Spec(), True
    try:
        status = _decode_status(found.status) or _Status()
    except JUNK:
        status = _Status()  # says nothing of the spec, which says whose the Job is
    brief = JobSummary(
        managed_by=spec.managed_by,
        completion_mode=spec.completion_mode or NON_INDEXED,
        deadline_seconds=spec.active_deadline_seconds,
        started_at=read_time(status.start_time),
        is_finished=any(one.type in conditions.FINAL and one.status == "True" for one in status.conditions or ()),
        selector=selector_of(spec.selector),
        is_broken=is_broken,
    )
    return CachedJob(found.metadata, found.spec, found.status, brief=brief)


def key_of(found: Object) -> str:
    """What is queued."""
    return f"{found.metadata.namespace}/{found.metadata.name}"


class Jobs:
    """The Jobs of a cluster, as the watch shows them."""

    def __init__(self, *, heeds_managed_by: bool = True) -> None:
        self.store = Store({BY_PIVOT: _pivots})
        # The gate JobManagedBy: when off, the field is not looked at.
        self._heeds_managed_by = heeds_managed_by

    def __iter__(self) -> Iterator[CachedJob]:
        return (found for found in self.store if isinstance(found, CachedJob))

    def get(self, key: str) -> CachedJob | None:
        namespace, _, name = key.partition("/")
        found = self.store.get(namespace, name)
        return found if isinstance(found, CachedJob) else None

    def controlling(self, namespace: str, owner: OwnerReference | None) -> CachedJob | None:
        """The Job that an owner reference means, by kind, name, then uid (H4)."""
        if owner is None or owner.kind != JOBS.kind:
            return None
        found = self.get(f"{namespace}/{owner.name}")
        return found if found is not None and found.metadata.uid == owner.uid else None

    def selecting(self, namespace: str, labels: Mapping[str, str]) -> list[CachedJob]:
        """Every Job whose selector matches a pod with these labels; none when it has no labels at all."""
        if not labels:
            return []
        pivots = [_pivot_text(namespace, None), *(_pivot_text(namespace, pair) for pair in labels.items())]
        keys = sorted(name for pivot in pivots for name in self.store.names(BY_PIVOT, pivot))
        found = [self.get(f"{namespace}/{name}") for namespace, name in keys]
        return [job for job in found if job is not None and job.brief.selector.matches(labels)]

    def manager_of(self, job: CachedJob) -> str | None:
        """The external controller that a Job belongs to (Y3); None when it is ours."""
        manager = job.brief.managed_by
        return manager if self._heeds_managed_by and manager not in (None, names.BUILT_IN_MANAGED_BY) else None


def _pivots(found: Object) -> tuple[str, ...]:
    selector = found.brief.selector if isinstance(found, CachedJob) else MISSING
    return () if selector.is_missing else (_pivot_text(found.metadata.namespace, selector.pivot),)


def _pivot_text(namespace: str, pivot: tuple[str, str] | None) -> str:
    return f"{namespace} {pivot[0]}={pivot[1]}" if pivot else namespace
