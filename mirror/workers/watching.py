"""The watches that fill the stores of one worker's mirrors, in the namespaces that the prefix in use names (D19).

Made and run by ``worker``. Not here: when the prefix changes, and what a change of a mirror means.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from mirror.kinds.base import Kind
from mirror.kinds.registry import Kinds
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.resources import Resource
from mirror.model import names
from mirror.model.keys import MirrorKey
from mirror.runtime.discovering import Discovery
from mirror.runtime.informer import Filter, Informer, InformerHooks, Scope
from mirror.runtime.informers import Informers
from mirror.runtime.store import EVERYWHERE
from mirror.telemetry.logs import Log
from mirror.workers.mirrors import BY_STATE, MirrorStore

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WatchSettings:
    """What is watched on a worker."""

    worker: str
    kinds: Kinds
    selector: str
    """Of labels, by which mirrors are found."""
    source_namespaces: tuple[str, ...]
    """Whose mirrors are watched; empty: all namespaces, by one watch."""


@dataclass(frozen=True, slots=True)
class WatchHooks:
    """Callbacks of a worker's watches."""

    on_trouble: Callable[[KubeError], None]
    on_healthy: Callable[[], None]
    """After each list that was whole."""
    on_absent: Callable[[], None]
    """A kind was found not to be served."""


class MirrorWatches:
    """The mirrors of one worker by kind, and their watches; there are none before ``begin``."""

    def __init__(self, settings: WatchSettings, stores: Mapping[str, MirrorStore], *, log: Log) -> None:
        self._settings = settings
        self._stores = stores
        self._log = log
        self._prefix = ""
        self._prefix_changed = asyncio.Event()
        self._informers = Informers({}, log=log)

    def __iter__(self) -> Iterator[Informer]:
        return iter(self._informers)

    # -- mirrors ------------------------------------------------------------------------------------------------------

    def of(self, kind: Kind) -> MirrorStore:
        return self._stores[kind.name]

    def source_uid_of(self, kind: str, namespace: str, name: str, uid: str) -> str | None:
        """Whose mirror this is; None: nobody knows, or it is none."""
        if (mirrors := self._stores.get(kind)) is None:
            return None
        mirror = mirrors.get(namespace, name)
        return mirror.labels.get(names.SOURCE_UID) if mirror is not None and mirror.metadata.uid == uid else None

    def keys(self, worker: str) -> Iterator[MirrorKey]:
        """Of all mirrors; ``worker`` is whose they are."""
        for kind, mirrors in self._stores.items():
            for namespace, name in mirrors.names_in(EVERYWHERE):
                yield MirrorKey(worker, kind, namespace, name)

    def count(self, state: str | None = None) -> int:
        """How many mirrors there are, or are in a state (``kinds.asking.state``)."""
        stores = self._stores.values()
        return sum(len(mirrors) if state is None else mirrors.count(BY_STATE, state) for mirrors in stores)

    def count_of(self, kind: Kind, state: str) -> int:
        """How many mirrors of one kind are in a state."""
        return self._stores[kind.name].count(BY_STATE, state)

    def has_any_of_a_source(self) -> bool:
        stores = self._stores.values()
        return any(names.SOURCE_UID in (one.labels or ()) for mirrors in stores for one in mirrors.metadata())

    def leave_holders(self) -> None:
        """See ``MirrorStore.leave_holders``."""
        for mirrors in self._stores.values():
            mirrors.leave_holders()

    @property
    def excess(self) -> str:
        """What people should know of what is left out of the mirrors; empty when nothing is."""
        return next(filter(None, (mirrors.excess for mirrors in self._stores.values())), "")

    async def shrink(self) -> None:
        """See ``MirrorStore.shrink``."""
        for mirrors in self._stores.values():
            await mirrors.shrink()
        await asyncio.sleep(0)  # with a thousand workers of few mirrors each, too, others have their turns

    # -- the prefix ---------------------------------------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """Where mirrors are looked for: before the name of their source's namespace."""
        return self._prefix

    def namespace_of(self, source_namespace: str) -> str:
        """Where the mirrors of a namespace's sources live."""
        return self._prefix + source_namespace

    def source_namespace_of(self, namespace: str) -> str | None:
        """The inverse; None for a namespace that is not under the prefix."""
        return namespace[len(self._prefix) :] if namespace.startswith(self._prefix) else None

    def use_prefix(self, prefix: str) -> None:
        """Look for mirrors under this prefix from now on."""
        self._take_prefix(prefix)
        if self._settings.source_namespaces:  # otherwise one watch shows all namespaces
            for mirrors in self._stores.values():
                for name in mirrors.names_in(EVERYWHERE):
                    mirrors.remove(name)
            self._prefix_changed.set()

    def _take_prefix(self, prefix: str) -> None:
        self._prefix = prefix
        for mirrors in self._stores.values():
            mirrors.use_prefix(prefix)

    @property
    def namespaces(self) -> tuple[str | None, ...]:
        """Where mirrors are; None: everywhere, by one watch."""
        return tuple(map(self.namespace_of, self._settings.source_namespaces)) or (None,)

    # -- watches ------------------------------------------------------------------------------------------------------

    @property
    def have_begun(self) -> bool:
        return len(self._informers) > 0

    @property
    def are_synced(self) -> bool:
        """Whether all mirrors have been seen."""
        return self.have_begun and self._informers.is_synced

    @property
    def silent_for_seconds(self) -> float:
        """For how long the worker has said nothing of some of its mirrors, although it was asked for them.

        A kind that is known already and may vanish does not count: its definition may be broken, and nothing else.
        """
        always = {kind.resource for kind in self._settings.kinds if not kind.can_vanish}
        asked = (one for one in self._informers if not one.is_absent and (one.resource in always or not one.is_synced))
        return max((one.silent_for_seconds for one in asked), default=0.0)

    @property
    def unserved_kinds(self) -> frozenset[str]:
        """The kinds that the worker does not serve."""
        absent = {informer.resource for informer in self._informers if informer.is_absent}
        return frozenset(kind.name for kind in self._settings.kinds if kind.resource in absent) if absent else _NONE

    def lists(self) -> Mapping[Resource, int]:
        """How often all mirrors of a kind were listed (``Informer.lists``), by its resource."""
        found = Counter[Resource]()
        for informer in self._informers:
            found[informer.resource] += informer.lists
        return found

    def begin(
        self,
        prefix: str,
        *,
        client: Callable[[], Client],
        hooks: WatchHooks,
    ) -> None:
        """Make the watches for this prefix; ``run`` runs them."""
        self._take_prefix(prefix)
        self._prefix_changed.clear()
        settings = self._settings
        namespaces = self.namespaces
        optional = [kind.resource for kind in settings.kinds if kind.can_vanish]
        discovery = Discovery(client, optional, of_workers=True, log=self._log) if optional else None

        def on_absent(kind: Kind, error: KubeError) -> None:
            self._log.warning("kind not served", kind=kind.name, error=error)
            hooks.on_absent()

        def hooks_of(kind: Kind) -> InformerHooks:
            usual = InformerHooks(
                self.of(kind).on_change, on_trouble=hooks.on_trouble, on_healthy=hooks.on_healthy, of_workers=True
            )
            if discovery is None or not kind.can_vanish:
                return usual
            wait = partial(discovery.wait_until_served, kind.resource)
            return replace(usual, on_absent=partial(on_absent, kind), wait_until_served=wait)

        self._informers = Informers(
            {
                f"{kind.resource.plural} of {settings.worker} in {namespace or '*'}": Informer(
                    Scope(kind.resource, namespace, settings.selector),
                    self.of(kind),
                    client=client,
                    hooks=hooks_of(kind),
                    wanted=Filter(accept=self.of(kind).accepts, keep_partial=self.of(kind).accepts_partial),
                )
                for kind in settings.kinds
                for namespace in namespaces
            },
            log=self._log,
            discovery=discovery,
        )

    async def run(self) -> None:
        """Keep the stores, until cancelled."""
        await self._informers.run()

    async def wait_until_prefix_changed(self) -> None:
        """Until mirrors are to be watched in other namespaces than ``begin`` said."""
        await self._prefix_changed.wait()

    def nudge(self) -> None:
        """See ``Informers.nudge``."""
        self._informers.nudge()

    def list_anew(self) -> None:
        """See ``Informers.list_anew``."""
        self._informers.list_anew()
