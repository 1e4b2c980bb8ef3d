"""A pod as the cache keeps it: decoded once into what the decisions look at, and little else.

Tens of thousands of finished pods may be cached: of one that succeeded and lost our finalizer hardly more is kept than
its name, unless a Job could still adopt it. Used as the ``keep`` and ``accept`` of the pods' informer.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from sys import intern

import msgspec

from mirror.jobcontroller.decide.values import (
    COMPLETION_INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    TRACKING_FINALIZER,
    Container,
    Pod,
    PodCondition,
)
from mirror.kube.objects import JUNK, Meta, Object, OwnerReference
from mirror.kube.resources import JOBS

_LARGEST_COUNT = 2**31 - 1
_LONGEST_GRACE_SECONDS = 2**31 - 1


class _Terminated(msgspec.Struct, gc=False, rename="camel"):
    exit_code: int = 0
    finished_at: datetime | None = None


class _State(msgspec.Struct, gc=False):
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    restart_count: int = 0
    state: _State | None = None


class _Condition(msgspec.Struct, gc=False, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _Status(msgspec.Struct, gc=False, rename="camel"):
    phase: str = "Pending"
    conditions: list[_Condition] | None = None
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None


class _InitContainer(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    restart_policy: str = ""


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""
    init_containers: list[_InitContainer] | None = None


_decode_spec = msgspec.json.Decoder(_Spec | None).decode
_decode_status = msgspec.json.Decoder(_Status | None).decode


class CachedPod(Object, kw_only=True, gc=False):
    """A pod in the cache: its spec and status are gone, ``pod`` has what matters of them."""

    pod: Pod
    owner: OwnerReference | None = None
    """Its controller."""

    @property
    def is_settled(self) -> bool:
        """Finished, and no longer tracked: nothing but a failure policy looks at it again."""
        return self.pod.is_finished and not self.pod.has_finalizer


def controller_of(found: Object) -> OwnerReference | None:
    """The owner that controls an object."""
    for owner in found.metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


def may_matter(found: Object) -> bool:
    """Whether a pod can ever concern us: another kind's pods are left out of the cache, unless they are tracked."""
    owner = controller_of(found)
    return owner is None or owner.kind == JOBS.kind or _is_tracked(found)


def keep_pod(found: Object) -> CachedPod:
    """What the cache keeps of a pod."""
    metadata = found.metadata
    owner = controller_of(found)
    slim = Meta(
        name=metadata.name,
        namespace=intern(metadata.namespace),
        uid=metadata.uid,
        resource_version=metadata.resource_version,
        labels=_shared(tuple(metadata.labels.items())) if metadata.labels else None,
    )
    return CachedPod(slim, pod=pod_of(found, slim), owner=_shared_owner(owner) if owner is not None else None)


def pod_of(found: Object, slim: Meta) -> Pod:
    """Read a pod; the strings are those of ``slim``, so that nothing else is kept alive."""
    metadata, annotations = found.metadata, found.annotations
    is_tracked = _is_tracked(found)
    index = _index(annotations.get(COMPLETION_INDEX))
    try:
        spec, status = _decode_spec(found.spec) or _Spec(), _decode_status(found.status) or _Status()
    except JUNK:
        spec, status = _Spec(), _Status(phase="Unknown")  # not from an API server: neither active work nor an end
    phase = intern(status.phase or "Pending")
    if phase == "Succeeded" and not is_tracked and controller_of(found) is not None:
        deleted = _time(metadata.deletion_timestamp)  # who is going is not adopted any more (O2)
        return Pod(slim.uid, slim.name, slim.namespace, phase, deleted=deleted, has_finalizer=False, index=index)
    sidecars = {one.name for one in spec.init_containers or () if one.restart_policy == "Always"}
    return Pod(
        uid=slim.uid,
        name=slim.name,
        namespace=slim.namespace,
        phase=phase,
        node=intern(spec.node_name),
        created=_time(metadata.creation_timestamp),
        deleted=_time(metadata.deletion_timestamp),
        grace_seconds=min(max(0, metadata.deletion_grace_period_seconds or 0), _LONGEST_GRACE_SECONDS),
        has_finalizer=is_tracked,
        index=index,
        index_failures=_count(annotations.get(INDEX_FAILURES)),
        index_ignored_failures=_count(annotations.get(INDEX_IGNORED_FAILURES)),
        conditions=tuple(
            PodCondition(intern(one.type), intern(one.status), one.last_transition_time)
            for one in status.conditions or ()
        ),
        containers=(
            *(_container(one, is_init=False, sidecars=sidecars) for one in status.container_statuses or ()),
            *(_container(one, is_init=True, sidecars=sidecars) for one in status.init_container_statuses or ()),
        ),
        finalizer_at=metadata.finalizers.index(TRACKING_FINALIZER) if is_tracked and metadata.finalizers else 0,
    )


def _container(found: _ContainerStatus, *, is_init: bool, sidecars: set[str]) -> Container:
    ended = found.state.terminated if found.state is not None else None
    return Container(
        name=intern(found.name),
        restarts=found.restart_count,
        is_init=is_init,
        is_sidecar=is_init and found.name in sidecars,
        exit_code=ended.exit_code if ended is not None else None,
        finished_at=ended.finished_at if ended is not None else None,
    )


def _is_tracked(found: Object) -> bool:
    return TRACKING_FINALIZER in (found.metadata.finalizers or ())


def _index(text: str | None) -> int | None:
    """A completion index; None when there is none that makes sense."""
    number = _integer(text)
    return number if number is not None and number >= 0 else None


def _count(text: str | None) -> int:
    """A failure counter; anybody may have written nonsense there, which counts as 0 (L1)."""
    number = _integer(text)
    return number if number is not None and 0 <= number <= _LARGEST_COUNT else 0


def _integer(text: str | None) -> int | None:
    """A decimal integer as Go reads one: ASCII digits and a sign, no spaces or underscores."""
    if not text or len(text) > 20 or not text.lstrip("+-").isdigit() or not text.isascii():
        return None
    try:
        return int(text)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _shared(items: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """One dictionary for all pods with the same labels; of a NonIndexed Job these are all."""
    return dict(items)


@lru_cache(maxsize=4096)
def _shared_owner(owner: OwnerReference) -> OwnerReference:
    return owner


def labels_of(pod: CachedPod) -> Mapping[str, str]:
    return pod.metadata.labels or {}
