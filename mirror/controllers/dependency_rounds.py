"""Keeps copies like their originals while a mirror needs them, and deletes what nobody needs (D27, D10).

Every interval, each reachable worker's copies are listed by our label, metadata only; the originals are asked for their
version, each once. So nothing has to be remembered over restarts. Started by ``mirroring`` where the settings have
``dependencies``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from mirror.controllers.dependencies import Dependencies, KnownCopy, Place
from mirror.controllers.events import warn_about_secret
from mirror.controllers.refusing import WorkerRefusal
from mirror.controllers.write_context import WriteContext
from mirror.decide import dependencies as deciding
from mirror.decide.dependencies import Name
from mirror.decide.identity import Identity
from mirror.decide.mirror_verdict import is_too_many
from mirror.kinds.base import Kind
from mirror.kinds.dependencies import RESOURCES, BadCarry, DependencyPolicy
from mirror.kube import requests
from mirror.kube.errors import AlreadyExists, Conflict, Forbidden, KubeError, NotFound, TooLarge
from mirror.kube.objects import Meta, Object, size_of
from mirror.kube.requests import Rank
from mirror.kube.resources import SECRETS, SERVICE_ACCOUNTS
from mirror.kube.watch import list_pages
from mirror.model import names
from mirror.model.reasons import Obstruction
from mirror.runtime.slices import in_slices
from mirror.workers.registry import Registry
from mirror.workers.worker import Worker

MOST_LISTED_BYTES = 64 * 2**20
"""Of the metadata of a worker's copies: more is no worker's that we filled (D29)."""


@dataclass(frozen=True, slots=True)
class Need:
    """A mirror that needs a copy."""

    kind: Kind
    source: Object
    mirror_uid: str
    is_optional: bool


@dataclass(slots=True)
class Round:
    """What one round over a worker has found."""

    copies: dict[Place, Meta] = field(default_factory=dict)
    bytes_listed: int = 0
    is_whole: bool = True
    """Everything could be listed: what is not among the copies is not there."""
    needs: dict[Place, list[Need]] = field(default_factory=dict)
    versions: dict[tuple[str, Name], str | None] = field(default_factory=dict)
    """Of originals, by the sources' namespace; None: there is none."""
    accounts: dict[str, set[Place]] = field(default_factory=dict)
    """Copies of ServiceAccounts that mirrors need, by the mirror's uid."""
    pull_secrets: dict[Place, frozenset[Name]] = field(default_factory=dict)
    """What these ServiceAccounts name here, as far as it was asked for."""


class DependencyRounds:
    """Looks at all copies of all workers from time to time."""

    def __init__(
        self,
        context: WriteContext,
        dependencies: Dependencies,
        registry: Registry,
        *,
        policy: DependencyPolicy,
        namespaces: tuple[str, ...],
        interval_seconds: float,
    ) -> None:
        """``namespaces``: of sources; empty: all."""
        self._interval_seconds = interval_seconds
        self._t = context
        self._state = context.state
        self._dependencies = dependencies
        self._registry = registry
        self._policy = policy
        self._namespaces = namespaces
        self._log = context.environment.log
        self._halted: dict[str, int] = {}
        self._busy: set[str] = set()

    async def run(self) -> None:
        """Go round each worker every interval, until cancelled."""
        # Side by side: a worker that hangs must not keep the others' copies from being in step (D12).
        async with asyncio.TaskGroup() as scope:
            while True:
                await asyncio.sleep(self._interval_seconds)
                for worker in list(self._registry.workers.values()):
                    if worker.is_reachable and worker.name not in self._busy:
                        self._busy.add(worker.name)
                        scope.create_task(self._go_round(worker), name=f"copies on {worker.name}")
                self._forget_unregistered()
                self._dependencies.ahead.forget_old()

    def _forget_unregistered(self) -> None:
        for place in [place for place in self._dependencies.known if place.worker not in self._registry.workers]:
            del self._dependencies.known[place]
        for place in [place for place in self._dependencies.to_make if place.worker not in self._registry.workers]:
            del self._dependencies.to_make[place]
        for name in self._halted.keys() - self._registry.workers.keys():
            del self._halted[name]

    async def _go_round(self, worker: Worker) -> None:
        try:
            found = await self._look(worker)
            await self._keep_in_step(worker, found)
            await self._sweep(worker, found)
        except KubeError as error:
            self._log.warning("copies not looked at", worker=worker.name, error=error)
        finally:
            self._busy.discard(worker.name)

    # -- what there is -------------------------------------------------------------------------------------------------

    async def _look(self, worker: Worker) -> Round:
        found = Round()
        # First: what is needed from now on is noted on its copy, which keeps it.
        known = set(self._dependencies.known)
        for kind_name in sorted(self._policy.kinds):
            await self._list(worker, kind_name, found)
        if found.is_whole:
            for place in known:
                if place.worker == worker.name and place not in found.copies:
                    self._dependencies.known.pop(place, None)
        async for kind, source, mirror in self._mirrored(worker):
            self._note_needs(worker, kind, source, mirror, found)
        return found

    async def _list(self, worker: Worker, kind_name: str, found: Round) -> None:
        namespaces: tuple[str | None, ...] = tuple(map(worker.namespace_of, self._namespaces)) or (None,)
        try:
            await self._list_in(worker, kind_name, namespaces, found)
        except Forbidden:
            # The right may be given by namespace: those of the sources that are there.
            found.is_whole = False
            own = {worker.namespace_of(source.metadata.namespace) async for _, source, _ in self._mirrored(worker)}
            for namespace in sorted(own):
                try:
                    await self._list_in(worker, kind_name, (namespace,), found)
                except Forbidden as error:
                    self._log.debug("copies not listed", worker=worker.name, kind=kind_name, error=error)

    async def _list_in(self, worker: Worker, kind_name: str, namespaces: tuple[str | None, ...], found: Round) -> None:
        selector = f"{names.ORIGIN}={self._state.transform.origin}"
        for namespace in namespaces:
            resource = RESOURCES[kind_name]
            pages = list_pages(
                worker.client, resource, namespace=namespace, label_selector=selector, metadata_only=True
            )
            async for page in pages:
                for one in page.objects:
                    found.bytes_listed += size_of(one)
                    if found.bytes_listed > MOST_LISTED_BYTES:
                        raise TooLarge("its copies take more bytes than are looked at")
                    if self._dependencies.is_copy(one.metadata):
                        place = Place(worker.name, one.metadata.namespace, Name(kind_name, one.metadata.name))
                        found.copies[place] = one.metadata

    async def _mirrored(self, worker: Worker) -> AsyncIterator[tuple[Kind, Object, Object]]:
        """The sources whose mirrors are on a worker, have not ended, and may need copies."""
        async for key in in_slices(self._state.sources.keys_on(worker.name)):
            source, kind = self._state.sources.get(key), self._state.sources.kinds[key.kind]
            if source is None or names.CARRY not in source.annotations or source.metadata.deletion_timestamp:
                continue
            mirror = worker.mirrors_of(kind).get(worker.namespace_of(key.namespace), key.name)
            if mirror is None or mirror.metadata.deletion_timestamp:
                continue
            identity = self._state.comparison.identity_of(kind, source, mirror)
            if identity in (Identity.OURS, Identity.UNLABELED):
                yield kind, source, mirror

    def _note_needs(self, worker: Worker, kind: Kind, source: Object, mirror: Object, found: Round) -> None:
        try:
            wanted = self._dependencies.originals.wanted_by(kind, source)
        except BadCarry:
            return
        for name, is_optional in wanted.items():
            place = Place(worker.name, mirror.metadata.namespace, name)
            need = Need(kind, source, mirror.metadata.uid, is_optional)
            found.needs.setdefault(place, []).append(need)
            if name.kind == SERVICE_ACCOUNTS.kind:
                found.accounts.setdefault(need.mirror_uid, set()).add(place)

    # -- keeping in step -----------------------------------------------------------------------------------------------

    async def _keep_in_step(self, worker: Worker, found: Round) -> None:
        for place in [place for place in self._dependencies.to_make if place.worker == worker.name]:
            try:
                await self._make_again(worker, place)
            except AlreadyExists:
                continue  # it is going, or its name is somebody's
            except KubeError as error:
                self._log.warning("copy not made again", worker=worker.name, object=place.name, error=error)
        for place in sorted(found.copies.keys() | found.needs.keys()):
            try:
                await self._keep_one(worker, place, found)
            except KubeError as error:
                self._log.warning("copy not kept in step", worker=worker.name, object=place.name, error=error)

    async def _make_again(self, worker: Worker, place: Place) -> None:
        """One that was deleted to be made anew; not where its original is gone, or something has its name by now."""
        namespace = worker.source_namespace_of(place.namespace)
        wanted = {place.name: True}
        originals = await self._dependencies.originals.read(namespace, wanted) if namespace is not None else {}
        original = originals.get(place.name) if not isinstance(originals, Obstruction) else None
        if original is None or deciding.judge_originals({place.name: original}) is not None:
            self._dependencies.to_make.pop(place, None)
            return
        await self._dependencies.make_again(worker, place, original)

    async def _keep_one(self, worker: Worker, place: Place, found: Round) -> None:
        copy, needs = found.copies.get(place), found.needs.get(place, [])
        source_namespace = worker.source_namespace_of(place.namespace)
        if source_namespace is None or (copy is None and not found.is_whole):
            return
        owners = {owner.uid for owner in copy.owner_references or ()} if copy is not None else set[str]()
        in_use = needs or await self._is_pull_secret(place, owners, source_namespace, found)
        if in_use and not self._is_in_step(place, copy, await self._version_of(source_namespace, place.name, found)):
            await self._make_alike(worker, place, source_namespace, is_there=copy is not None)
        for need in needs:
            if need.mirror_uid not in owners and len(owners) < deciding.MOST_OWNERS:
                if copy is not None and place not in self._dependencies.known:
                    self._know(place, copy)
                await self._dependencies.add_owner(worker, place, need.kind, need.source, need.mirror_uid)

    async def _is_pull_secret(self, place: Place, owners: set[str], source_namespace: str, found: Round) -> bool:
        """Whether an account that goes along names this Secret here.

        What the object there says of itself proves nothing: it would be filled with whatever has its name here (D18).
        """
        if place.name.kind != SECRETS.kind:
            return False
        accounts = {one for uid in owners for one in found.accounts.get(uid, ())}
        for account in sorted(accounts):
            if account.namespace != place.namespace:
                continue
            if account not in found.pull_secrets:
                originals = await self._dependencies.originals.read(source_namespace, {account.name: True})
                named = {} if isinstance(originals, Obstruction) else deciding.pull_secrets(originals)
                found.pull_secrets[account] = frozenset(named)
            if place.name in found.pull_secrets[account]:
                return True
        return False

    async def _version_of(self, namespace: str, name: Name, found: Round) -> str | None:
        """An original's version, asked for once a round."""
        if (namespace, name) not in found.versions:
            request = requests.get(RESOURCES[name.kind], name.name, namespace=namespace)
            version = None
            try:
                raw = await self._t.management.send(request.metadata_only().in_line(Rank.LAST))
                version = deciding.read_contents(raw).version
            except NotFound:
                pass
            found.versions[namespace, name] = version
        return found.versions[namespace, name]

    def _is_in_step(self, place: Place, copy: Meta | None, version: str | None) -> bool:
        """Whether there is nothing to do: an original that is gone leaves its copy as it is, for pods that run."""
        if version is None:
            return True
        if copy is None:
            return False
        known = self._dependencies.known.get(place)
        return known is not None and known.resource_version == copy.resource_version and known.version == version

    async def _make_alike(self, worker: Worker, place: Place, source_namespace: str, *, is_there: bool) -> None:
        originals = await self._dependencies.originals.read(source_namespace, {place.name: True})
        why = originals if isinstance(originals, Obstruction) else deciding.judge_originals(originals)
        if why is not None or isinstance(originals, Obstruction):
            self._log.warning("copy not updated", worker=worker.name, object=place.name, because=why and why.text)
            return
        original = originals.get(place.name)
        if original is None:
            return
        if is_there:
            await self._dependencies.refresh(worker, place, original)
            return
        result = await self._dependencies.put(worker, place, original, {})
        if isinstance(result, WorkerRefusal):
            self._log.warning("copy not made again", worker=worker.name, because=result.text)

    def _know(self, place: Place, copy: Meta) -> None:
        noted = (copy.annotations or {}).get(names.COPY_OF, "")
        # Not its version: somebody may have changed it, so that it is read once.
        self._dependencies.known[place] = KnownCopy(copy.uid, "", noted)

    # -- what nobody needs ---------------------------------------------------------------------------------------------

    async def _sweep(self, worker: Worker, found: Round) -> None:
        going = [
            place
            for place, copy in found.copies.items()
            if not copy.owner_references and not found.needs.get(place) and await self._is_unneeded(worker, copy)
        ]
        if is_too_many(len(going), len(found.copies)):
            self._halt(worker, len(going), len(found.copies))
            return
        self._halted.pop(worker.name, None)
        for place in going:
            await self._delete(worker, place, found.copies[place])

    async def _is_unneeded(self, worker: Worker, copy: Meta) -> bool:
        """Whether the management cluster says that each source which the copy is held for is gone, or elsewhere."""
        namespace = worker.source_namespace_of(copy.namespace)
        if namespace is None:
            return False
        for uid, (kind_name, name) in deciding.notes_on(copy).items():
            kind = self._state.sources.kinds.by_name.get(kind_name)
            if kind is None or not name or not await self._is_gone(worker, kind, namespace, name, uid):
                return False
        return True

    async def _is_gone(self, worker: Worker, kind: Kind, namespace: str, name: str, uid: str) -> bool:
        seen = self._state.sources.of(kind).get(namespace, name)
        if seen is not None and seen.metadata.uid == uid and kind.summary(seen).placed in (None, worker.name):
            return False
        try:
            request = requests.get(kind.resource, name, namespace=namespace)
            now = await self._t.management.send_object(request.in_line(Rank.LAST))
        except NotFound:
            return True
        except KubeError as error:
            self._log.warning("source lookup failed", source=f"{namespace}/{name}", error=error)
            return False
        return now.metadata.uid != uid or kind.summary(now).placed not in (None, worker.name)

    async def _delete(self, worker: Worker, place: Place, copy: Meta) -> None:
        """If nobody has noted a source on it meanwhile: that is another version."""
        request = requests.delete(
            RESOURCES[place.name.kind],
            place.name.name,
            namespace=place.namespace,
            uid=copy.uid,
            resource_version=copy.resource_version,
        )
        async with self._dependencies.writing(place):
            self._dependencies.known.pop(place, None)
            try:
                await worker.client.send(request.in_line(Rank.LAST))
            except (NotFound, Conflict):
                return
        self._log.info("copy deleted", worker=worker.name, namespace=place.namespace, object=place.name)

    def _halt(self, worker: Worker, count: int, copies: int) -> None:
        if self._halted.get(worker.name) == count:
            return
        self._halted[worker.name] = count
        self._log.error("sweep of copies halted", worker=worker.name, count=count, copies=copies)
        text = (
            f"{count} of {copies} copies on this worker have no source: more than one sweep may delete; none was "
            f"deleted. If their sources are really gone, delete them there (label {names.ORIGIN})"
        )
        if (secret := self._registry.secret_of(worker.name)) is not None:
            warn_about_secret(self._t.recorder, secret, "SweepHalted", text)
