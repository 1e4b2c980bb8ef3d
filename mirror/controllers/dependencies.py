"""Copies what a source's pods refer to, before its mirror is made; the mirror owns the copies afterwards (D27).

Called by ``writing_mirrors`` where the settings have ``dependencies``; ``dependency_rounds`` keeps copies in step.
Nothing is watched: objects are read one by one when they are needed, which takes no right to list or watch them. No
contents are kept, and none get into a text or a log.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from mirror.controllers.dependencies_ahead import Ahead
from mirror.controllers.originals import Originals, Sent
from mirror.controllers.refusing import WorkerRefusal, refusal_text
from mirror.controllers.write_context import WriteContext
from mirror.decide import dependencies as deciding
from mirror.decide.dependencies import Contents, Found, Name
from mirror.decide.snapshot import Snapshot
from mirror.kinds.base import Kind
from mirror.kinds.dependencies import RESOURCES, DependencyPolicy, requested_kinds
from mirror.kube import requests
from mirror.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
)
from mirror.kube.objects import Meta, Object
from mirror.kube.requests import Request
from mirror.model.reasons import Obstruction, Reason
from mirror.workers.worker import Worker

MOST_TO_MAKE = 1_000
"""So many copies that were deleted to be made anew are remembered until they are."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a copy is, or would be."""

    worker: str
    namespace: str
    name: Name


@dataclass(frozen=True, slots=True)
class KnownCopy:
    """A copy as it was after our last write or look."""

    uid: str
    resource_version: str
    version: str
    """Of its original (``Contents.version``)."""


class Dependencies:
    """One write to one copy at a time."""

    def __init__(self, context: WriteContext, policy: DependencyPolicy) -> None:
        self._t = context
        self._policy = policy
        self.originals = Originals(context.management, policy)
        self._log = context.environment.log
        self.to_make: dict[Place, Meta] = {}
        """Of copies that were deleted to be made anew, and are not yet: who needs them is known from nowhere else."""
        # Spares a look at copies that sources share; of copies that exist, as the last round has seen.
        self.known: dict[Place, KnownCopy] = {}
        self.ahead = Ahead(self, context.environment.clock)
        # Held while a copy is written; of places that are written or waited for.
        self._locks: dict[Place, tuple[asyncio.Lock, int]] = {}

    def is_copy(self, metadata: Meta) -> bool:
        """Whether an object on a worker is a copy of ours."""
        transform = self._t.state.transform
        return deciding.is_copy(metadata, origin=transform.origin, management_uid=transform.management_uid)

    # -- before a mirror is created ------------------------------------------------------------------------------------

    async def send(self, seen: Snapshot, worker: Worker) -> Sent | Obstruction | WorkerRefusal:
        """Have everything on the worker that goes along with a source, or say why it cannot be.

        Raises:
            KubeError: a cluster did not answer as it should; to be tried again.
        """
        self._tell_what_stays(seen)
        done = self.ahead.take(seen.source.uid)
        originals = done.originals if done is not None else None
        if originals is None:
            found = await self.originals.of_source(seen.source.kind, seen.source.found)
            if isinstance(found, Obstruction):
                return found
            originals = found
        ahead = done.copied if done is not None and done.worker == worker.name else {}
        missing = {name: original for name, original in originals.items() if name not in ahead}
        results = {**ahead, **(await self.copy_lacking(seen, worker, missing) if missing else {})}
        for result in results.values():
            if isinstance(result, WorkerRefusal):
                return result
        for result in results.values():
            if isinstance(result, KubeError):
                worker.suspect(result)
                raise result
        return {name: original for name, original in originals.items() if results.get(name, True) is True}

    async def copy_lacking(
        self, seen: Snapshot, worker: Worker, originals: Sent
    ) -> dict[Name, bool | WorkerRefusal | KubeError]:
        """Have copies of these on a worker, and say what became of each that was not known to be there."""
        kind, source = seen.source.kind, seen.source.found
        namespace = worker.namespace_of(source.metadata.namespace)
        notes = {deciding.note_of(source.metadata.uid): f"{kind.name}/{source.metadata.name}"}
        places = {name: Place(worker.name, namespace, name) for name in originals}
        # One that is known to be there gets no note: the mirror soon owns it, and if it goes before, it is made again.
        lacking = [name for name, place in places.items() if not self._is_known(place, originals[name])]
        async with asyncio.TaskGroup() as scope:
            tasks = {
                name: scope.create_task(self._put_or_error(worker, places[name], originals[name], notes), name="copy")
                for name in lacking
            }
        return {name: task.result() for name, task in tasks.items()}

    def _is_known(self, place: Place, original: Contents) -> bool:
        known = self.known.get(place)
        return known is not None and known.version == original.version

    def _tell_what_stays(self, seen: Snapshot) -> None:
        """The user has asked for something to go along that the settings keep here: an event, and nothing more."""
        kind, source = seen.source.kind, seen.source.found
        stays = requested_kinds(source.annotations) - self._policy.allowed(source.metadata.namespace)
        named = (
            sorted({f"{one.kind} {one.name}" for one in kind.references(source) if one.kind in stays}) if stays else []
        )
        if named:
            text = f"{', '.join(named[: deciding.MOST_NAMED])}: not copied, since the settings (dependencies) forbid it"
            self._t.record_event(seen, Reason.DEPENDENCY_NOT_COPIED, text)

    # -- copies --------------------------------------------------------------------------------------------------------

    async def _put_or_error(
        self, worker: Worker, place: Place, original: Contents, notes: Mapping[str, str]
    ) -> bool | WorkerRefusal | KubeError:
        try:
            return await self.put(worker, place, original, notes)
        except KubeError as error:
            return error

    async def put(
        self, worker: Worker, place: Place, original: Contents, notes: Mapping[str, str]
    ) -> bool | WorkerRefusal:
        """Have a copy like its original, with these notes on it; return whether it is ours, or somebody else's.

        Raises:
            KubeError: the worker did not answer as it should.
        """
        async with self.writing(place):
            try:
                return await self._create(worker, place, original, notes)
            except (Forbidden, NotFound, Invalid, BadRequest) as error:
                text = f"{place.name}: {refusal_text(error)}"
                return WorkerRefusal(text, Reason.DEPENDENCY_REFUSED, error)

    async def _create(
        self, worker: Worker, place: Place, original: Contents, notes: Mapping[str, str]
    ) -> bool | WorkerRefusal:
        name, resource = place.name, RESOURCES[place.name.kind]
        labels = self._t.state.transform.cluster_labels
        body = deciding.copy_body(name, original, namespace=place.namespace, labels=labels, notes=notes)
        try:
            created = await worker.client.send_object(requests.create(resource, body, namespace=place.namespace))
        except AlreadyExists:
            return await self._take_existing(worker, place, original, notes)
        self._remember(place, created, original.version)
        self._log.info("copied", worker=worker.name, namespace=place.namespace, object=name)
        return True

    async def _take_existing(
        self, worker: Worker, place: Place, original: Contents, notes: Mapping[str, str]
    ) -> bool | WorkerRefusal:
        there = await self._read_copy(worker, place)
        transform = self._t.state.transform
        match deciding.identify_copy(
            place.name, there, original, origin=transform.origin, management_uid=transform.management_uid
        ):
            case Found.SAME:
                return False
            case Found.FOREIGN:
                text = f"{place.name} exists there with other contents, and is not ours"
                return WorkerRefusal(text, Reason.DEPENDENCY_CONFLICT)
        if deciding.is_of_another_type(place.name, there, original):
            if there.metadata.deletion_timestamp is not None:
                text = f"{place.name} is being deleted there, and is of another type than here"
                return WorkerRefusal(text, Reason.DEPENDENCY_REFUSED)
            await self._make_anew(worker, place, there, original, notes)
            return True
        await self._bring_in_step(worker, place, there, original)
        await self._patch(worker, place, {"metadata": {"uid": there.metadata.uid, "annotations": dict(notes)}})
        return True

    async def _read_copy(self, worker: Worker, place: Place) -> Contents:
        request = requests.get(RESOURCES[place.name.kind], place.name.name, namespace=place.namespace)
        return deciding.read_contents(await worker.client.send(request))

    async def _bring_in_step(self, worker: Worker, place: Place, there: Contents, original: Contents) -> None:
        operations = deciding.update_operations(place.name, there, original)
        if not operations:
            self.known[place] = KnownCopy(there.metadata.uid, there.metadata.resource_version, original.version)
            return
        resource, name = RESOURCES[place.name.kind], place.name.name
        patch = requests.json_patch(resource, name, operations, namespace=place.namespace)
        self._remember(place, await worker.client.send_object(patch), original.version)
        self._log.info("copy updated", worker=worker.name, namespace=place.namespace, object=place.name)

    async def _make_anew(
        self, worker: Worker, place: Place, there: Contents, original: Contents, notes: Mapping[str, str]
    ) -> None:
        """Delete a copy of ours that no update makes like its original, and create it, for all that need it.

        As the user did with the original: pods that start in between wait for it, others keep what they have.

        Raises:
            KubeError: it could not be done; what is not there then is made by the next round (``make_again``).
        """
        resource, name, namespace = RESOURCES[place.name.kind], place.name.name, place.namespace
        request = self._request_of(place, there, original, notes)
        self.known.pop(place, None)
        try:
            # Admission comes before the name: nothing is deleted that would not be created again.
            created = await worker.client.send_object(request)
        except AlreadyExists:
            metadata = there.metadata
            precisely = {"uid": metadata.uid, "resource_version": metadata.resource_version}
            self.to_make[place] = metadata
            if len(self.to_make) > MOST_TO_MAKE:
                del self.to_make[next(iter(self.to_make))]
            with suppress(NotFound):
                await worker.client.send(requests.delete(resource, name, namespace=namespace, **precisely))
            created = await worker.client.send_object(request)
        self._note_made(worker, place, created, original)

    def _request_of(self, place: Place, there: Contents, original: Contents, notes: Mapping[str, str]) -> Request:
        labels, namespace = self._t.state.transform.cluster_labels, place.namespace
        body = deciding.body_made_anew(place.name, there, original, namespace=namespace, labels=labels, notes=notes)
        return requests.create(RESOURCES[place.name.kind], body, namespace=namespace)

    def _note_made(self, worker: Worker, place: Place, created: Object, original: Contents) -> None:
        self.to_make.pop(place, None)
        self._remember(place, created, original.version)
        self._log.info("copy made anew", worker=worker.name, namespace=place.namespace, object=place.name)

    async def make_again(self, worker: Worker, place: Place, original: Contents) -> None:
        """Make one that was deleted to be made anew, for those that needed it then.

        Raises:
            KubeError: it could not be done; ``AlreadyExists``: something has its name.
        """
        async with self.writing(place):
            if (metadata := self.to_make.get(place)) is None:
                return
            request = self._request_of(place, Contents(metadata), original, {})
            self._note_made(worker, place, await worker.client.send_object(request), original)

    async def refresh(self, worker: Worker, place: Place, original: Contents) -> None:
        """Make a copy of ours like its original again, if it still is there.

        Raises:
            KubeError: it could not be done.
        """
        async with self.writing(place):
            there = await self._read_copy(worker, place)
            if not self.is_copy(there.metadata):
                return
            if not deciding.is_of_another_type(place.name, there, original):
                await self._bring_in_step(worker, place, there, original)
            elif there.metadata.deletion_timestamp is None:
                await self._make_anew(worker, place, there, original, {})

    async def _patch(self, worker: Worker, place: Place, body: Mapping[str, object]) -> None:
        resource = RESOURCES[place.name.kind]
        patch = requests.strategic_merge_patch(resource, place.name.name, body, namespace=place.namespace)
        known = self.known.get(place)
        patched = await worker.client.send_object(patch)
        if known is not None and known.uid == patched.metadata.uid:
            self._remember(place, patched, known.version)

    def _remember(self, place: Place, stored: Object, version: str) -> None:
        self.known[place] = KnownCopy(stored.metadata.uid, stored.metadata.resource_version, version)

    # -- once there is a mirror ----------------------------------------------------------------------------------------

    async def own(self, seen: Snapshot, worker: Worker, copies: Sent) -> None:
        """Make a mirror that was just created an owner of its copies; what fails is left to the next round."""
        mirror_uid = self._t.state.memories.of(seen.source.uid).mirror_uid
        if not mirror_uid:
            return
        kind, source, namespace = seen.source.kind, seen.source.found, worker.namespace_of(seen.key.namespace)
        async with asyncio.TaskGroup() as scope:
            for name, original in copies.items():
                owning = self._own_or_copy(
                    worker, Place(worker.name, namespace, name), original, kind, source, mirror_uid
                )
                scope.create_task(owning, name="own a copy")

    async def _own_or_copy(
        self, worker: Worker, place: Place, original: Contents, kind: Kind, source: Object, mirror_uid: str
    ) -> None:
        """The last owner of a copy that sources share may have gone meanwhile, and the copy with it."""
        if await self.add_owner(worker, place, kind, source, mirror_uid):
            return
        try:
            if await self.put(worker, place, original, {}) is not True:
                return
        except KubeError as error:
            self._log.warning("copy not made again", worker=worker.name, object=place.name, error=error)
            return
        await self.add_owner(worker, place, kind, source, mirror_uid)

    async def add_owner(self, worker: Worker, place: Place, kind: Kind, source: Object, mirror_uid: str) -> bool:
        """Make a mirror an owner of a copy, which is held for its source no more; False: the copy is not there."""
        resource = kind.resource
        owner = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": source.metadata.name,
            "uid": mirror_uid,
        }
        async with self.writing(place):
            known = self.known.get(place)
            if known is None:
                return False
            try:
                await self._patch(worker, place, deciding.own_patch(known.uid, source.metadata.uid, owner))
            except (NotFound, Conflict):
                self.known.pop(place, None)
                return False
            except KubeError as error:
                self._log.warning("copy has no owner yet", worker=worker.name, object=place.name, error=error)
        return True

    @asynccontextmanager
    async def writing(self, place: Place) -> AsyncIterator[None]:
        """One at a time for each copy: sources that share one are worked on side by side."""
        lock, count = self._locks.get(place) or (asyncio.Lock(), 0)
        self._locks[place] = lock, count + 1
        try:
            async with lock:
                yield
        finally:
            lock, count = self._locks[place]
            if count > 1:
                self._locks[place] = lock, count - 1
            else:
                del self._locks[place]
