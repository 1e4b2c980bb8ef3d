"""Keeps a store like a collection on the server, for ever: list, watch, resume, relist (docs/libraries.md).

Prefers a watch that begins with all objects, and falls back to paged lists where the server does not offer it. A watch
that ends is resumed from its last version; 410 in any form means a new list, whose difference to the store shows the
deletions that were missed. Not here: what a change means (``on_change``).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import BadRequest, Expired, Forbidden, Invalid, KubeError, Unauthorized
from mirror.kube.objects import Object, Partial
from mirror.kube.resources import Resource
from mirror.kube.watch import WatchEvent, list_pages, watch
from mirror.model.text import clean
from mirror.runtime.backoff import Backoff
from mirror.runtime.store import EVERYWHERE, Name, Store, name_of
from mirror.telemetry.logs import get_module_log

_log = get_module_log("watch")

RELIST = Backoff(first=0.8, most=30.0, jitter=0.3)
QUIET_SECONDS = 120.0
LASTED_SECONDS = 1.0
# Bookmarks come about once a minute by the API server's own design.
SILENT_SECONDS = 150.0
LISTING_SILENT_SECONDS = 30.0
"""Nothing holds up a server that is to say what there is already, and nobody can work before."""
BREATH_EVERY = 200
JUST_NOW_SECONDS = 1.0
LEFT_OUT_LOGGED_SECONDS = 60.0


class Phase(Enum):
    """Where an informer is; shown in health pages."""

    LISTING = "listing"
    WATCHING = "watching"
    BACKING_OFF = "backing off"


class Change(Enum):
    """How it is known; deletions that only a relist's difference shows are not taken as certain (D10)."""

    SEEN = "seen"
    DELETED = "deleted"
    MISSING = "missing"


class Listener(Protocol):
    """Who is told of each change of the store."""

    def __call__(self, old: Object | None, new: Object | None, change: Change) -> None: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """What is kept: a kind, in one namespace or everywhere, maybe only objects with certain labels."""

    resource: Resource
    namespace: str | None = None
    label_selector: str = ""

    @property
    def name(self) -> str:
        return self.namespace or EVERYWHERE


@dataclass(frozen=True, slots=True)
class Described:
    """A snapshot for health pages and tests."""

    phase: Phase
    restarts: int
    silent_for_seconds: float


class Informer:
    """One list+watch that fills one scope of a store."""

    def __init__(
        self,
        scope: Scope,
        store: Store,
        *,
        client: Callable[[], Client],
        on_change: Listener,
        accept: Callable[[Object], bool] = lambda _: True,
        keep: Callable[[Object], Object] = lambda found: found,
        keep_partial: Callable[[Partial], bool] | None = None,
        on_event: Callable[[WatchEvent], None] = lambda _: None,
        on_trouble: Callable[[KubeError], None] = lambda _: None,
        on_healthy: Callable[[], None] = lambda: None,
        relist: Backoff = RELIST,
    ) -> None:
        self._scope = scope
        self._store = store
        self._client = client
        self._on_change = on_change
        self._accept = accept
        # What of an accepted object is stored and told: a smaller one, say, or one that is decoded already.
        self._keep = keep
        # Whether to store an object that is too large to be read where nothing is known of it yet: its metadata alone.
        self._keep_partial = keep_partial or self._leave_out
        self._left_out_at = float("-inf")
        self._on_event = on_event
        self._on_trouble = on_trouble
        self._on_healthy = on_healthy
        self._relist = relist
        self._chance = random.Random()
        self._version = ""
        self._phase = Phase.LISTING
        self._failures = 0
        self._restarts = 0
        self._heard_at = 0.0
        self._watching_since: float | None = None
        self._listing_since: float | None = None
        self._can_stream_lists = True
        self._older: dict[Name, Object] = {}
        self._synced = asyncio.Event()
        self._nudge = asyncio.Event()

    @property
    def resource(self) -> Resource:
        """What is kept."""
        return self._scope.resource

    async def wait_until_synced(self) -> None:
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    @property
    def has_just_begun(self) -> bool:
        """Whether nothing is known yet, and what the list under way will show is as of now."""
        if self.is_synced:
            return False
        return self._listing_since is None or self._now() - self._listing_since < JUST_NOW_SECONDS

    def expire(self) -> None:
        """Take nothing that is known for granted: the next ``run`` lists anew. Only while it is not running."""
        self._version = ""
        self._synced.clear()

    def nudge(self) -> None:
        """The server is known to answer again: do not wait for the backoff to end."""
        self._nudge.set()

    def describe(self) -> Described:
        silent = self._now() - self._heard_at if self._heard_at else 0.0
        return Described(self._phase, self._restarts, silent)

    async def run(self) -> None:
        """Keep the store like the server; ends only by cancellation."""
        while True:
            self._nudge.clear()
            try:
                await (self._watch() if self._version else self._list())
            except Expired:
                self._version = ""
                self._failures += 1
            except (Unauthorized, Forbidden) as error:
                self._version = ""  # a new list proves that the rights are back
                self._failures += 1
                self._on_trouble(error)
            except KubeError as error:
                # A watch that ran for a while and broke is no repeated failure: it is resumed at once.
                ran = self._watched_seconds() > LASTED_SECONDS
                self._failures = 1 if ran else self._failures + 1
                self._on_trouble(error)
            else:
                if self._watched_seconds() > LASTED_SECONDS:
                    self._failures = 0
                elif self._phase is Phase.WATCHING:
                    self._failures += 1  # a server that ends each watch at once must not be hammered
            self._restarts += 1
            if self._watched_seconds() > QUIET_SECONDS:
                self._failures = min(self._failures, 1)
            self._watching_since = None
            await self._back_off()

    async def _back_off(self) -> None:
        """The first failure is retried at once: most ends of a watch are none at all."""
        if self._failures <= 1:
            return
        self._phase = Phase.BACKING_OFF
        try:
            async with asyncio.timeout(self._relist.delay(self._failures - 1, self._chance)):
                await self._nudge.wait()
        except TimeoutError:
            return
        self._failures = 0

    async def _list(self) -> None:
        self._phase = Phase.LISTING
        self._listing_since = self._now()
        self._older.clear()  # of a list that broke off
        if self._can_stream_lists:
            try:
                await self._list_by_watch()
            except (BadRequest, Invalid):
                self._can_stream_lists = False  # an older server: remembered for this cluster
            else:
                return
        await self._list_pages()

    async def _list_pages(self) -> None:
        scope = self._scope
        found: set[Name] = set()
        version = ""
        pages = list_pages(
            self._client(), scope.resource, namespace=scope.namespace, label_selector=scope.label_selector
        )
        async with aclosing(pages) as stream:
            async for page in stream:
                version = page.resource_version
                for listed in page.objects:
                    self._take_listed(listed, found)
                self._heard_at = self._now()
                await asyncio.sleep(0)
        self._finish_list(found, version)

    async def _list_by_watch(self) -> None:
        async with self._events(initial=True) as events:
            if await self._take_all_listed(events):
                self._begin_watching()
                await self._follow(events)
            else:
                # Ended before it was complete: this server cannot do it, or something on the way cut it.
                self._can_stream_lists = False

    async def _watch(self) -> None:
        self._begin_watching()
        async with self._events(initial=False) as events:
            await self._follow(events)

    def _events(self, *, initial: bool) -> aclosing[AsyncGenerator[WatchEvent, None]]:
        scope = self._scope
        request = requests.watch(
            scope.resource,
            namespace=scope.namespace,
            label_selector=scope.label_selector,
            resource_version="" if initial else self._version,
            timeout_seconds=self._chance.randrange(240, 480),
            initial_events=initial,
        )
        return aclosing(watch(self._client(), request, silent_seconds=self._patience))

    def _patience(self) -> float:
        return LISTING_SILENT_SECONDS if self._phase is Phase.LISTING else SILENT_SECONDS

    async def _take_all_listed(self, events: AsyncGenerator[WatchEvent, None]) -> bool:
        """Whether the list was whole when it ended."""
        found: set[Name] = set()
        count = 0
        async for event in events:
            self._heard_at = self._now()
            if event.type == "BOOKMARK" and event.initial_events_end:
                self._finish_list(found, event.object.metadata.resource_version)
                return True
            self._take_first(event, found)
            count += 1
            if count % BREATH_EVERY == 0:
                await asyncio.sleep(0)
        return False

    def _take_first(self, event: WatchEvent, found: set[Name]) -> None:
        if event.type in ("ADDED", "MODIFIED"):
            self._take_listed(event.object, found)
        elif event.type == "DELETED":
            found.discard(name_of(event.object))
            self._on_event(event)
            self._apply(event, event.object)  # the version to go on from is known once the list is whole

    async def _follow(self, events: AsyncGenerator[WatchEvent, None]) -> None:
        count = 0
        async for event in events:
            self._heard_at = self._now()
            self._take_event(event)
            count += 1
            if count % BREATH_EVERY == 0:
                await asyncio.sleep(0)

    def _take_listed(self, listed: Object, found: set[Name]) -> None:
        try:
            self._list_one(listed, found)
        except Exception as error:  # noqa: BLE001 - a bug that one object brings to light must not end a watch
            self._tell_bug(listed, error)

    def _list_one(self, listed: Object, found: set[Name]) -> None:
        if isinstance(listed, Partial):
            found.add(name_of(listed))
            self._apply_partial(listed)
            return
        if not self._accept(listed):
            return
        name = name_of(listed)
        found.add(name)
        old = self._store.get(*name)
        if old is not None and old.version > listed.version > 0:
            # A write of ours is newer, or the server went back: the list's version tells.
            self._older[name] = self._keep(listed)
        elif old is None or old.metadata.resource_version != listed.metadata.resource_version:
            kept = self._keep(listed)
            self._store.put(kept)
            self._on_change(old, kept, Change.SEEN)

    def _finish_list(self, found: set[Name], version: str) -> None:
        self._version = version
        listed_at = int(version) if version.isdecimal() else 0
        went_back = listed_at < self._store.progress(self._scope.name)
        self._store.restart(self._scope.name, listed_at)
        for listed in self._older.values():
            if went_back:
                self._on_change(self._store.put(listed), listed, Change.SEEN)
        self._older.clear()
        for name in self._store.names_in(self._scope.name):
            known = self._store.get(*name)
            if name not in found and known is not None and (went_back or known.version <= listed_at or not listed_at):
                self._on_change(self._store.remove(name), None, Change.MISSING)
        self._store.mark_synced(self._scope.name)
        self._synced.set()
        self._on_healthy()

    def _take_event(self, event: WatchEvent) -> None:
        found = event.object
        self._version = found.metadata.resource_version or self._version
        if event.type != "BOOKMARK":
            self._on_event(event)
            self._apply(event, found)
        # Only now: what is read from the store must never be older than its progress.
        self._store.advance(self._scope.name, found.version)

    def _apply(self, event: WatchEvent, found: Object) -> None:
        try:
            self._apply_one(event, found)
        except Exception as error:  # noqa: BLE001 - as in ``_take_listed``
            self._tell_bug(found, error)

    def _tell_bug(self, found: Object, error: Exception) -> None:
        kind = self._scope.resource.kind
        _log.error("unexpected error", kind=kind, object="/".join(name_of(found)), error=error, exc_info=error)

    def _apply_one(self, event: WatchEvent, found: Object) -> None:
        name = name_of(found)
        old = self._store.get(*name)
        if event.type == "DELETED":
            if old is not None and (old.metadata.uid == found.metadata.uid):
                self._store.remove(name)
                # The event shows the last state, which no other event may have shown.
                last = self._keep(found) if found.version > old.version else old
                self._on_change(last, None, Change.DELETED)
            return
        if isinstance(found, Partial):
            self._apply_partial(found)
            return
        if not self._accept(found):
            if old is not None:
                self._store.remove(name)
                self._on_change(old, None, Change.MISSING)
            return
        if old is not None and 0 < found.version <= old.version:
            return  # the echo of a write of ours, or older than one
        kept = self._keep(found)
        self._store.put(kept)
        self._on_change(old, kept, Change.SEEN)

    def _apply_partial(self, found: Partial) -> None:
        """One that is too large exists: what was known of it stays known, and nothing is concluded from the rest."""
        name = name_of(found)
        old = self._store.get(*name)
        if old is not None and old.metadata.uid == found.metadata.uid:
            self._keep_partial(found)
            return
        if old is not None:
            self._store.remove(name)
            self._on_change(old, None, Change.DELETED)
        if self._keep_partial(found):
            self._store.put(found)
            self._on_change(None, found, Change.SEEN)

    def _leave_out(self, found: Partial) -> bool:
        """Log one in a minute: who can write the object can write it often."""
        if self._now() - self._left_out_at >= LEFT_OUT_LOGGED_SECONDS:
            self._left_out_at = self._now()
            kind = self._scope.resource.kind
            _log.warning("object too large, left out", kind=kind, object=clean("/".join(name_of(found))))
        return False

    def _begin_watching(self) -> None:
        self._phase = Phase.WATCHING
        self._watching_since = self._now()

    def _watched_seconds(self) -> float:
        """How long the watch that has just ended lasted; 0 if none had begun."""
        if self._watching_since is None:
            return 0.0
        return self._now() - self._watching_since

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
