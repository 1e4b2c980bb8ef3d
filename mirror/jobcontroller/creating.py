"""Creating pods: their bodies (A10, A11), and slow start (A8, A9)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mirror.jobcontroller.decide.values import (
    COMPLETION_INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    TRACKING_FINALIZER,
    PodCreate,
)
from mirror.jobcontroller.jobview import CachedJob
from mirror.jobcontroller.live_check import leaves_doubt
from mirror.jobcontroller.memory import JobMemory
from mirror.jobcontroller.parallel_requests import ParallelRequests
from mirror.jobcontroller.podwrites import PodWrites, is_namespace_ending, owner_reference
from mirror.jobcontroller.ports import Metrics
from mirror.kube.errors import KubeError
from mirror.runtime.clock import Clock

FIRST_BATCH = 1
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
_LONGEST_PREFIX = 58
"""The server adds five characters to a ``generateName``, for a name of at most 63."""


class NoLabels(KubeError):
    """A template without labels makes pods that nobody would find again."""


@dataclass(frozen=True, slots=True)
class Created:
    """What became of the births."""

    count: int = 0
    """Those that count as active: created, or refused because the namespace ends (A9)."""
    error: KubeError | None = None
    """The first refusal."""


class Creator:
    """Performs."""

    def __init__(self, writes: PodWrites, parallel: ParallelRequests, *, metrics: Metrics, clock: Clock) -> None:
        self._writes = writes
        self._parallel = parallel
        self._metrics = metrics
        self._clock = clock

    async def create(
        self, job: CachedJob, memory: JobMemory, spec: Mapping[str, Any], births: Sequence[PodCreate], *, reason: str
    ) -> Created:
        """Create pods in batches that double as long as all goes well; after a refusal the rest waits for a retry."""
        try:
            body_of = bodies(job, spec)
        except NoLabels as error:
            return Created(0, error)
        memory.expected.expect_creations(len(births), self._clock.monotonic())
        tried, succeeded, failed, size = 0, 0, 0, FIRST_BATCH
        first_error: KubeError | None = None

        async def one(birth: PodCreate) -> KubeError | None:
            try:
                await self._writes.create(job, memory, body_of(birth))
            except KubeError as error:
                memory.is_in_doubt |= leaves_doubt(error)
                return error
            return None

        while tried < len(births) and first_error is None:
            ended = await self._parallel.each(births[tried : tried + size], one, name=f"create pods of {job.key}")
            errors = [error for error in ended if error is not None and not is_namespace_ending(error)]
            tried, size = tried + len(ended), size * 2
            succeeded += sum(error is None for error in ended)
            failed += len(errors)
            first_error = next(iter(errors), None)
        missing = failed + len(births) - tried
        for _ in range(missing):
            memory.expected.creation_seen()  # nobody will see one
        for status, count in (("succeeded", succeeded), ("failed", failed)):
            if count:
                self._metrics.on_pods_created(reason, status, count)
        return Created(len(births) - missing, first_error)


def bodies(job: CachedJob, spec: Mapping[str, Any]) -> Callable[[PodCreate], bytes]:
    """What makes the bodies of a Job's pods; one body serves all pods that have no index.

    Raises:
        NoLabels: the template has none.
    """
    template = spec.get("template") or {}
    metadata = template.get("metadata") or {}
    if not metadata.get("labels"):
        raise NoLabels("unable to create pods, no labels")
    common = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
    finalizers = list(metadata.get("finalizers") or ())
    common["finalizers"] = finalizers if TRACKING_FINALIZER in finalizers else [*finalizers, TRACKING_FINALIZER]
    common["ownerReferences"] = [owner_reference(job)]
    pod_spec = template.get("spec") or {}
    name = job.metadata.name
    if spec.get("completionMode") != "Indexed":
        plain = _encode({**common, "generateName": f"{name}-"}, pod_spec)
        return lambda _: plain
    indexed_spec = _with_index_variable(pod_spec)

    def body_of(birth: PodCreate) -> bytes:
        index = str(birth.index)
        annotations = {**common.get("annotations", {}), COMPLETION_INDEX: index}
        if birth.index_failures is not None:
            annotations[INDEX_FAILURES] = str(birth.index_failures)
        if birth.index_ignored_failures:
            annotations[INDEX_IGNORED_FAILURES] = str(birth.index_ignored_failures)
        own = {
            "generateName": _indexed_prefix(name, index),
            "labels": {**common["labels"], COMPLETION_INDEX: index},
            "annotations": annotations,
        }
        return _encode({**common, **own}, {**indexed_spec, "hostname": f"{name}-{index}"})

    return body_of


def _encode(metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


def _indexed_prefix(name: str, index: str) -> str:
    """``NAME-INDEX-``, cut so that the index survives (A11)."""
    suffix = f"-{index}-"
    return name[: max(0, _LONGEST_PREFIX - len(suffix))] + suffix


def _with_index_variable(pod_spec: Mapping[str, Any]) -> dict[str, Any]:
    """The pod's spec with the index in every container's environment, unless the name is taken there."""
    path = f"metadata.labels['{COMPLETION_INDEX}']"
    variable = {"name": _INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}
    changed = dict(pod_spec)
    for kind in ("initContainers", "containers"):
        if pod_spec.get(kind):
            changed[kind] = [_with_variable(container, variable) for container in pod_spec[kind]]
    return changed


def _with_variable(container: Mapping[str, Any], variable: Mapping[str, Any]) -> Mapping[str, Any]:
    listed = container.get("env") or []
    if any(one.get("name") == _INDEX_VARIABLE for one in listed):
        return container
    return {**container, "env": [*listed, variable]}
