"""The only writer of pods: one method per kind of write, with its event and the record of its version (Y1).

Used by ``creating``, ``removing``, ``claiming`` and ``orphans``, which decide what is written and what an error means.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mirror.jobcontroller.decide.values import TRACKING_FINALIZER, Pod
from mirror.jobcontroller.jobview import CachedJob
from mirror.jobcontroller.memory import JobMemory
from mirror.jobcontroller.ports import Events
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import ApiError, BadAnswer, KubeError, NotFound
from mirror.kube.objects import JUNK
from mirror.kube.requests import Rank, Request
from mirror.kube.resources import JOBS, PODS
from mirror.runtime.events import Regarding

_STRIP = msgspec.json.encode({"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}})
_NAMESPACE_TERMINATING = "NamespaceTerminating"


class _WrittenMeta(msgspec.Struct, gc=False, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Written(msgspec.Struct, gc=False):
    """All that is read of the answer to a write."""

    metadata: _WrittenMeta


_decode_written = msgspec.json.Decoder(_Written).decode


def text_of(error: KubeError) -> str:
    """What an event says about an error: the server's own words."""
    return error.message if isinstance(error, ApiError) else str(error)


def is_namespace_ending(error: KubeError) -> bool:
    """The namespace is being deleted: nothing can be created in it, and nobody need be told (A9)."""
    return isinstance(error, ApiError) and any(cause.reason == _NAMESPACE_TERMINATING for cause in error.causes)


class PodWrites:
    """Writes pods; all methods raise KubeError."""

    def __init__(self, client: Client, events: Events) -> None:
        self._client = client
        self._events = events

    async def create(self, job: CachedJob, memory: JobMemory, body: bytes) -> None:
        """Create a pod of a Job."""
        namespace, uid = job.metadata.namespace, job.metadata.uid
        request = requests.create(PODS, body, namespace=namespace).in_line(Rank.FIRST, uid)
        try:
            created = _written(await self._client.send(request))
        except KubeError as error:
            if not is_namespace_ending(error):
                self._events.event(
                    Regarding.of(JOBS, job), "Warning", "FailedCreate", f"Error creating: {text_of(error)}"
                )
            raise
        memory.written.wrote_pod(_version(created))
        self._events.event(
            Regarding.of(JOBS, job), "Normal", "SuccessfulCreate", f"Created pod: {created.metadata.name}"
        )

    async def delete(self, job: CachedJob, pod: Pod) -> None:
        """Delete a pod as its Job's controller."""
        request = requests.delete(PODS, pod.name, namespace=pod.namespace).in_line(Rank.FIRST, job.metadata.uid)
        try:
            await self._client.send(request)
        except NotFound:
            raise
        except KubeError as error:
            self._events.event(Regarding.of(JOBS, job), "Warning", "FailedDelete", f"Error deleting: {text_of(error)}")
            raise
        self._events.event(Regarding.of(JOBS, job), "Normal", "SuccessfulDelete", f"Deleted pod: {pod.name}")

    async def strip(self, pod: Pod, *, flow: str, memory: JobMemory | None = None) -> None:
        """Take our finalizer off a pod (O6)."""
        await self._patch(pod, _STRIP, flow, memory)

    async def strip_active(self, job: CachedJob, memory: JobMemory, pod: Pod) -> None:
        """Take our finalizer off an active pod; whatever else changes about it meanwhile does not matter.

        Raises:
            Invalid: it has another phase than we know, is being deleted, or its finalizers are others.
            KubeError: as for all writes.
        """
        finalizer = f"/metadata/finalizers/{pod.finalizer_at}"
        tests = {
            "/metadata/uid": pod.uid,
            "/metadata/deletionTimestamp": None,
            "/status/phase": pod.phase,
            finalizer: TRACKING_FINALIZER,
        }
        operations: list[dict[str, object]] = [
            {"op": "test", "path": path, "value": value} for path, value in tests.items()
        ]
        operations.append({"op": "remove", "path": finalizer})
        request = requests.json_patch(PODS, pod.name, operations, namespace=pod.namespace)
        await self._send_patch(request, job.metadata.uid, memory)

    async def adopt(self, job: CachedJob, memory: JobMemory, pod: Pod) -> None:
        """Make a Job the controller of a pod, and track it (O4)."""
        metadata = {
            "uid": pod.uid,
            "ownerReferences": [owner_reference(job)],
            "finalizers": [TRACKING_FINALIZER],
        }
        await self._patch(pod, msgspec.json.encode({"metadata": metadata}), job.metadata.uid, memory)

    async def release(self, job: CachedJob, pod: Pod) -> None:
        """Let go of a pod (O4). Its version is not awaited: it is no pod of the Job any more."""
        metadata = {
            "uid": pod.uid,
            "ownerReferences": [{"$patch": "delete", "uid": job.metadata.uid}],
            "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER],
        }
        await self._patch(pod, msgspec.json.encode({"metadata": metadata}), job.metadata.uid, None)

    async def _patch(self, pod: Pod, body: bytes, flow: str, memory: JobMemory | None) -> None:
        request = requests.strategic_merge_patch(PODS, pod.name, body, namespace=pod.namespace)
        await self._send_patch(request, flow, memory)

    async def _send_patch(self, request: Request, flow: str, memory: JobMemory | None) -> None:
        answer = await self._client.send(request.in_line(Rank.FIRST, flow))
        if memory is not None:
            memory.written.wrote_pod(_version(_written(answer)))


def owner_reference(job: CachedJob) -> dict[str, Any]:
    """What a pod says about the Job that controls it (A10)."""
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _written(answer: bytes) -> _Written:
    try:
        return _decode_written(answer)
    except JUNK as error:
        raise BadAnswer("the response is not a Pod") from error


def _version(written: _Written) -> int:
    text = written.metadata.resource_version
    return int(text) if text.isascii() and text.isdecimal() else 0
