"""Looks whether a worker has what a Job's pods name, for ``diff`` (D27): existence alone, never contents.

Only for who may get the object of that name on the management cluster: nobody learns of a worker what they could not
ask at home (D18). Where the manager has no permission on the worker, that is reported, and nothing else fails. What
goes along is looked for on the management cluster, too (``going_along``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from mirror.access.answers import StatusError
from mirror.access.going_along import EXISTS, MISSING, REFUSED, UNKNOWN, Along, GoingAlong, Here
from mirror.access.mirrors import Mirrors
from mirror.access.reviews import Person, Reviews
from mirror.batch.syntax import subdomain_problems
from mirror.decide import dependencies as deciding
from mirror.decide.dependencies import Name
from mirror.kinds.base import Kind, MirrorTransform
from mirror.kinds.dependencies import RESOURCES, Reference
from mirror.kinds.pod_references import PRIORITY_CLASS, RUNTIME_CLASS, VOLUME_CLAIM
from mirror.kube import requests
from mirror.kube.errors import Forbidden, NotFound
from mirror.kube.objects import JUNK, Meta, Object
from mirror.kube.permissions import Permission
from mirror.kube.resources import SERVICE_ACCOUNTS, Resource
from mirror.model.reasons import Reason
from mirror.workers.worker import Worker

MOST_OBJECTS = 30
"""Of one Job; each costs a review here and a request there."""
MOST_WORKERS = 3
"""Before a Job is created, so many of those that could take it are looked at, by name."""
MOST_LIMIT_RANGES = 5
LOOKS_A_SECOND_OF_ONE, LOOKS_AT_ONCE_OF_ONE = 1.0, 10
COPIED, FOREIGN = "Copied", "Foreign"

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
    """``Exists``, ``Copied`` (it is a copy of ours), ``Foreign`` (it goes along, and what is there is no copy of ours),
    ``Missing`` or ``Unknown``."""
    message: str = ""


class LeftOut(msgspec.Struct, frozen=True, rename="camel"):
    """How many were not looked at, beyond the bounds."""

    objects: int = 0
    workers: int = 0


class Looked(NamedTuple):
    """What was found."""

    goes_along: list[Along]
    on_worker: list[OnWorker]
    left_out: LeftOut


class _Object(msgspec.Struct):
    metadata: Meta


class _ListMeta(msgspec.Struct):
    continue_: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[_Object] | None = None


class _Sought(NamedTuple):
    """One object, and where its kind is served."""

    name: Name
    resource: Resource

    @property
    def may_go_along(self) -> bool:
        """Not so a custom resource, whatever its kind is called."""
        return RESOURCES.get(self.name.kind) == self.resource


def _of_reference(one: Reference) -> _Sought | None:
    """None: nobody knows where such an object is."""
    resource = one.resource or _RESOURCES.get(one.kind)
    return None if resource is None else _Sought(Name(one.kind, one.name), resource)


class Looking:
    """Make it with what ``access`` has."""

    def __init__(self, mirrors: Mirrors, reviews: Reviews, going_along: GoingAlong, transform: MirrorTransform) -> None:
        self._mirrors = mirrors
        self._reviews = reviews
        self._going_along = going_along
        self._transform = transform

    async def look(self, workers: Sequence[Worker], kind: Kind, source: Object, person: Person) -> Looked:
        """What a source's pods name: as it is here, where it goes along, and on each of a few workers.

        Raises:
            StatusError: 429 where the same person has just asked for too much.
        """
        self._reviews.bound("look", person.name, LOOKS_A_SECOND_OF_ONE, LOOKS_AT_ONCE_OF_ONE)
        namespace = source.metadata.namespace
        required = filter(None, map(_of_reference, kind.requirements(source)))
        named, along = list(dict.fromkeys(required)), self._going_along.requested(kind, source)
        first = [one.name for one in named[:MOST_OBJECTS] if one.may_go_along]
        wanted = {name: along[name] for name in first if name in along}
        room = MOST_OBJECTS - len(named[:MOST_OBJECTS])  # for image pull secrets
        here = await self._going_along.look(namespace, wanted, person, most=len(wanted) + room)
        pull_secrets = (_Sought(name, RESOURCES[name.kind]) for name in here.pull_secrets)
        named += [one for one in pull_secrets if one not in named]
        found: list[OnWorker] = []
        for worker in workers[:MOST_WORKERS]:
            looked_for = [one for one in named[:MOST_OBJECTS] if not subdomain_problems(one.name.name)]
            found += [await self._look_for(worker, one, namespace, person, here) for one in looked_for]
            found += await self._limit_ranges(worker, namespace, person)
        listed = [here.found[one.name] for one in named[:MOST_OBJECTS] if one.may_go_along and one.name in here.found]
        if (too_many := deciding.too_many(len(along))) is not None:
            listed.append(Along(f"{len(along)} objects", REFUSED, f"{too_many.text} ({too_many.reason})"))
        return Looked(listed, found, _left_out(len(named), len(workers)))

    async def _look_for(self, worker: Worker, one: _Sought, namespace: str, person: Person, here: Here) -> OnWorker:
        (name, resource), text = one, str(one.name)
        if not one.may_go_along:
            here = Here(until=here.until)
        home, there = (namespace, worker.namespace_of(namespace)) if resource.namespaced else ("", None)
        right = Permission("get", resource.group, resource.plural, name=name.name, namespace=home)
        try:
            await self._reviews.require(person, right)
            request = requests.get(resource, name.name, namespace=there).metadata_only()
            raw = await self._mirrors.send(worker, request, person, f"get {resource.plural}")
            metadata = msgspec.json.decode(raw, type=_Object).metadata
        except NotFound:
            return OnWorker(worker.name, text, MISSING, _of_missing(name, here))
        except StatusError as error:
            return OnWorker(worker.name, text, UNKNOWN, _why(error, worker, f"get {resource.plural}"))
        except JUNK:
            return OnWorker(worker.name, text, UNKNOWN, "the response cannot be decoded")
        transform = self._transform
        if deciding.is_copy(metadata, origin=transform.origin, management_uid=transform.management_uid):
            return OnWorker(worker.name, text, COPIED)
        if name not in here.found:
            return OnWorker(worker.name, text, EXISTS)
        return OnWorker(worker.name, text, FOREIGN, _of_foreign(name, here))

    async def _limit_ranges(self, worker: Worker, namespace: str, person: Person) -> list[OnWorker]:
        """They change or refuse pods' resources; where one may not see them, nothing is said."""
        doing, there = "list limitranges", worker.namespace_of(namespace)
        try:
            await self._reviews.require(person, Permission("list", "", LIMIT_RANGES.plural, namespace=namespace))
            request = requests.list_page(LIMIT_RANGES, namespace=there, limit=MOST_LIMIT_RANGES).metadata_only()
            listed = msgspec.json.decode(await self._mirrors.send(worker, request, person, doing), type=_List)
        except (NotFound, StatusError, *JUNK):
            return []
        text = "its limits and defaults apply to the Job's pods"
        items = listed.items or []
        shown = [f"LimitRange {one.metadata.name}" for one in items[:MOST_LIMIT_RANGES]]
        if listed.metadata.continue_ or len(items) > MOST_LIMIT_RANGES:
            shown.append("more LimitRanges")
        return [OnWorker(worker.name, one, EXISTS, text) for one in shown]


def _of_missing(name: Name, here: Here) -> str:
    """What becomes of an object that a worker has not."""
    if here.is_sent(name):
        return "the manager copies it"
    return "nothing to copy: it is missing here" if here.is_missing(name) and name not in here.optional else ""


def _of_foreign(name: Name, here: Here) -> str:
    """What becomes of an object that goes along, where a worker has one of its own (``decide.dependencies``)."""
    if name.kind == SERVICE_ACCOUNTS.kind or (here.is_missing(name) and name in here.optional):
        return "not ours: used as it is"
    conflict = f"otherwise the worker refuses the Job ({Reason.DEPENDENCY_CONFLICT})"
    return f"not ours: used only if its contents are the same, {conflict}"


def _left_out(objects: int, workers: int) -> LeftOut:
    return LeftOut(max(0, objects - MOST_OBJECTS), max(0, workers - MOST_WORKERS))


def _why(error: StatusError, worker: Worker, doing: str) -> str:
    if isinstance(error.__cause__, Forbidden):
        return f"the manager has no permission to {doing} on worker {worker.name}"
    return error.message
