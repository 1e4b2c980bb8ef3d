"""Looks whether a worker has what a Job's pods name, for ``diff`` (D27): existence alone, never contents.

Only for who may get the object of that name on the management cluster: nobody learns of a worker what they could not
ask at home (D18). Where the manager has no permission on the worker, that is reported, and nothing else fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgspec

from mirror.access.answers import StatusError
from mirror.access.mirrors import Mirrors
from mirror.access.reviews import Person, Reviews
from mirror.batch.syntax import subdomain_problems
from mirror.kinds.dependencies import RESOURCES, Reference
from mirror.kinds.pod_references import PRIORITY_CLASS, RUNTIME_CLASS, VOLUME_CLAIM
from mirror.kube import requests
from mirror.kube.errors import Forbidden, NotFound
from mirror.kube.objects import JUNK, Meta
from mirror.kube.permissions import Permission
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.workers.worker import Worker

MOST_OBJECTS = 30
"""Of one Job; each costs a review here and a request there."""
MOST_WORKERS = 3
"""Before a Job is created, so many of those that could take it are looked at, by name."""
MOST_LIMIT_RANGES = 5
LOOKS_A_SECOND_OF_ONE, LOOKS_AT_ONCE_OF_ONE = 1.0, 10
EXISTS, COPIED, MISSING, UNKNOWN = "Exists", "Copied", "Missing", "Unknown"

LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
_RESOURCES = {
    **RESOURCES,
    VOLUME_CLAIM: Resource("", "v1", "persistentvolumeclaims", VOLUME_CLAIM),
    PRIORITY_CLASS: Resource("scheduling.k8s.io", "v1", "priorityclasses", PRIORITY_CLASS, namespaced=False),
    RUNTIME_CLASS: Resource("node.k8s.io", "v1", "runtimeclasses", RUNTIME_CLASS, namespaced=False),
}


class OnWorker(msgspec.Struct, frozen=True, rename="camel"):
    """One object as a worker has it."""

    worker: str
    object: str
    """Kind and name."""
    state: str
    """``Exists``, ``Copied`` (it is a copy of ours), ``Missing`` or ``Unknown``."""
    message: str = ""


class _Object(msgspec.Struct):
    metadata: Meta


class _List(msgspec.Struct):
    items: list[_Object] | None = None


class Looking:
    """Make it with what ``access`` has."""

    def __init__(self, mirrors: Mirrors, reviews: Reviews) -> None:
        self._mirrors = mirrors
        self._reviews = reviews

    async def look(
        self, workers: Iterable[Worker], namespace: str, wanted: Iterable[Reference], person: Person
    ) -> list[OnWorker]:
        """What of this each of a few workers has, for a Job of this namespace here.

        Raises:
            StatusError: 429 where the same person has just asked for too much.
        """
        self._reviews.bound("look", person.name, LOOKS_A_SECOND_OF_ONE, LOOKS_AT_ONCE_OF_ONE)
        named = list(islice(dict.fromkeys((one.kind, one.name) for one in wanted), MOST_OBJECTS))
        found: list[OnWorker] = []
        for worker in islice(workers, MOST_WORKERS):
            for kind, name in named:
                if kind in _RESOURCES and not subdomain_problems(name):
                    found.append(await self._look_for(worker, _RESOURCES[kind], namespace, name, person))
            found += await self._limit_ranges(worker, namespace, person)
        return found

    async def _look_for(
        self, worker: Worker, resource: Resource, namespace: str, name: str, person: Person
    ) -> OnWorker:
        text = f"{resource.kind} {name}"
        here, there = (namespace, worker.namespace_of(namespace)) if resource.namespaced else ("", None)
        right = Permission("get", resource.group, resource.plural, name=name, namespace=here)
        try:
            await self._reviews.require(person, right)
            request = requests.get(resource, name, namespace=there).metadata_only()
            raw = await self._mirrors.send(worker, request, person, f"get {resource.plural}")
            annotations = msgspec.json.decode(raw, type=_Object).metadata.annotations or {}
        except NotFound:
            return OnWorker(worker.name, text, MISSING)
        except StatusError as error:
            return OnWorker(worker.name, text, UNKNOWN, _why(error, worker, f"get {resource.plural}"))
        except JUNK:
            return OnWorker(worker.name, text, UNKNOWN, "the response cannot be decoded")
        return OnWorker(worker.name, text, COPIED if names.COPY_OF in annotations else EXISTS)

    async def _limit_ranges(self, worker: Worker, namespace: str, person: Person) -> list[OnWorker]:
        """They change or refuse pods' resources; where one may not see them, nothing is said."""
        doing, there = "list limitranges", worker.namespace_of(namespace)
        try:
            await self._reviews.require(person, Permission("list", "", LIMIT_RANGES.plural, namespace=namespace))
            request = requests.list_page(LIMIT_RANGES, namespace=there, limit=MOST_LIMIT_RANGES).metadata_only()
            listed = msgspec.json.decode(await self._mirrors.send(worker, request, person, doing), type=_List).items
        except (NotFound, StatusError, *JUNK):
            return []
        text = "its limits and defaults apply to the Job's pods"
        shown = (listed or ())[:MOST_LIMIT_RANGES]
        return [OnWorker(worker.name, f"LimitRange {one.metadata.name}", EXISTS, text) for one in shown]


def _why(error: StatusError, worker: Worker, doing: str) -> str:
    if isinstance(error.__cause__, Forbidden):
        return f"the manager has no permission to {doing} on worker {worker.name}"
    return error.message
