"""Keeps a store like a collection on the server, for ever: list, watch, resume, relist (docs/libraries.md).

Prefers a watch that begins with all objects, and falls back to paged lists where the server does not offer it. A watch
that ends is resumed from its last version; 410 in any form means a new list, whose difference to the store shows the
deletions that were missed. Not here: what a change means (``on_change``).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import (
    BadRequest,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    NotServed,
    PageNotFound,
    Unauthorized,
)
from mirror.kube.resources import Resource
from mirror.kube.watch import WatchEvent, list_pages, watch
from mirror.runtime import turns
from mirror.runtime.backoff import Backoff
from mirror.runtime.informer_states import (
    Absent,
    AttemptEnd,
    BackingOff,
    Listing,
    Phase,
    Resuming,
    State,
    Watching,
    failures_after,
    phase_of,
)
from mirror.runtime.store import Store
from mirror.runtime.store_writer import Change, Filter, Listener, Scope, StoreWriter

__all__ = ["Change", "Described", "Filter", "Informer", "Listener", "Phase", "Scope"]

RELIST = Backoff(first=0.8, most=30.0, jitter=0.3)
# Bookmarks come about once a minute by the API server's own design.
SILENT_SECONDS = 150.0
UNANSWERED_SECONDS = 30.0
"""Nothing holds up a server that is to say what there is already, or that it takes a watch; nobody can work before."""
JUST_NOW_SECONDS = 1.0
ABSENT_SECONDS = 15.0
"""Between two lists of a resource that is not served, where nobody knows when it is."""


@dataclass(frozen=True, slots=True)
class Described:
    """A snapshot for health pages and tests."""

    phase: Phase
    restarts: int
    silent_for_seconds: float


@dataclass(frozen=True, slots=True)
class InformerHooks:
    """Callbacks of an informer."""

    on_change: Listener
    on_event: Callable[[WatchEvent], None] = lambda _: None
    """Called with each event of the watch, before what it changes is reported."""
    on_trouble: Callable[[KubeError], None] = lambda _: None
    on_healthy: Callable[[], None] = lambda: None
    """Called after each list that was whole, and when what was refused, or was to be found anew, is found not to be
    served."""
    on_absent: Callable[[KubeError], None] | None = None
    """Called when it is found that the resource is not served; None: it always is, and anything else is trouble."""
    wait_until_served: Callable[[], Awaitable[None]] | None = None
    """Returns once what was found not to be served is worth another list (``discovering``); None: after
    ``ABSENT_SECONDS`` it is, and after a nudge."""
    weight: int = 1
    """What ``on_change`` costs beside that of a Job, which takes about 50 µs (``turns``)."""
    of_workers: bool = False
    """Its server is one of many workers, which share what a turn of the event loop may take."""


EVERYTHING = Filter()


class Informer:
    """One list+watch that fills one scope of a store."""

    def __init__(
        self,
        scope: Scope,
        store: Store,
        *,
        client: Callable[[], Client],
        hooks: InformerHooks,
        wanted: Filter = EVERYTHING,
        relist: Backoff = RELIST,
    ) -> None:
        self._scope = scope
        self._client = client
        self._writer = StoreWriter(scope, store, wanted, on_change=hooks.on_change)
        self._hooks = hooks
        self._relist = relist
        self._chance = random.Random()
        self._version = ""
        self._state: State = Listing()
        self._failures = 0
        self._restarts = 0
        self._heard_at: float | None = None
        self._listing_since: float | None = None
        self._can_stream_lists = True
        self._lists = 0
        self._is_refused = False
        """Whoever was told so hears when it is over."""
        self._synced = asyncio.Event()
        self._on_sync: Callable[[bool], None] = lambda is_synced: None
        self._nudge = asyncio.Event()

    @property
    def resource(self) -> Resource:
        """What is kept."""
        return self._scope.resource

    @property
    def silent_for_seconds(self) -> float:
        """Since the server has last said anything of it, or, before it ever did, since it was first asked."""
        return self._now() - self._heard_at if self._heard_at is not None else 0.0

    async def wait_until_synced(self) -> None:
        await self._synced.wait()

    @property
    def is_synced(self) -> bool:
        return self._synced.is_set()

    def report_sync_to(self, listener: Callable[[bool], None]) -> None:
        """From now on, call this one with ``is_synced`` whenever that is another than before."""
        self._on_sync = listener

    def _set_synced(self, is_synced: bool) -> None:
        if is_synced is not self.is_synced:
            (self._synced.set if is_synced else self._synced.clear)()
            self._on_sync(is_synced)

    @property
    def has_just_begun(self) -> bool:
        """Whether nothing is known yet, and what the list under way will show is as of now."""
        if self.is_synced:
            return False
        return self._listing_since is None or self._now() - self._listing_since < JUST_NOW_SECONDS

    def expire(self) -> None:
        """Take nothing that is known for granted: the next ``run`` lists anew. Only while it is not running."""
        self._version = ""
        self._set_synced(False)

    @property
    def is_absent(self) -> bool:
        """Whether the server was last found not to serve it."""
        return isinstance(self._state, Absent)

    @property
    def lists(self) -> int:
        """How many lists were whole. One more than before: what was known could not be followed, as of a resource
        whose definition was replaced."""
        return self._lists

    def nudge(self) -> None:
        """The server is known to answer again: do not wait for the backoff to end."""
        self._nudge.set()

    def describe(self) -> Described:
        return Described(phase_of(self._state), self._restarts, self.silent_for_seconds)

    async def run(self) -> None:
        """Keep the store like the server; ends only by cancellation."""
        if self._heard_at is None:
            self._note_heard()
        while True:
            self._nudge.clear()
            end = await self._attempt()
            if end is AttemptEnd.ABSENT:
                await self._wait_until_served()
                continue
            watched = self._now() - self._state.since if isinstance(self._state, Watching) else None
            self._failures = failures_after(self._failures, end, watched_seconds=watched)
            self._restarts += 1
            await self._back_off()

    async def _attempt(self) -> AttemptEnd:
        """List, or watch where a version to go on from is known, until that ends."""
        try:
            await (self._watch() if self._version else self._list())
        except Expired:
            self._version = ""
            return AttemptEnd.EXPIRED
        except (NotServed, PageNotFound, Forbidden) as error:
            if self._is_absent_by(error):
                self._note_absent(error)
                return AttemptEnd.ABSENT
            self._version = ""
            self._is_refused = isinstance(error, Forbidden)
            self._hooks.on_trouble(error)
            return AttemptEnd.REFUSED if self._is_refused else AttemptEnd.BROKEN
        except Unauthorized as error:
            self._version, self._is_refused = "", True
            self._hooks.on_trouble(error)
            return AttemptEnd.REFUSED
        except KubeError as error:
            self._hooks.on_trouble(error)
            return AttemptEnd.BROKEN
        return AttemptEnd.CLOSED

    def _is_absent_by(self, error: KubeError) -> bool:
        """Whether this tells that the resource is not served.

        Who has no permission is refused before the server looks what it serves: where nothing was ever seen, that is
        no more trouble than a resource that is not there.
        """
        if self._hooks.on_absent is None:
            return False
        return not isinstance(error, Forbidden) or not self._lists

    def _note_absent(self, error: KubeError) -> None:
        was_absent, self._state, self._version = self.is_absent, Absent(), ""
        was_refused, self._is_refused = self._is_refused, False
        was_awaited = was_absent and not self.is_synced
        self._note_heard()
        self._set_synced(True)  # there is nothing to wait for
        if was_refused or was_awaited:
            self._hooks.on_healthy()
        if not was_absent and self._hooks.on_absent is not None:
            self._hooks.on_absent(error)

    async def _wait_until_served(self) -> None:
        if (wait := self._hooks.wait_until_served) is not None:
            await wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(ABSENT_SECONDS):
                await self._nudge.wait()

    async def _back_off(self) -> None:
        """The first failure is retried at once: most ends of a watch are none at all."""
        if self._failures <= 1:
            return
        self._state = BackingOff(self._relist.delay(self._failures - 1, self._chance))
        try:
            async with asyncio.timeout(self._state.seconds):
                await self._nudge.wait()
        except TimeoutError:
            return
        self._failures = 0

    async def _list(self) -> None:
        if not self.is_absent:  # it is until an answer says otherwise
            self._state = Listing()
        if self._hooks.of_workers:
            await turns.beginning().wait()
        self._listing_since = self._now()
        self._writer.begin_list()
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
        self._writer.begin_list()  # a watch may have shown some before
        version, taker = "", turns.listing(of_workers=self._hooks.of_workers)
        pages = list_pages(
            self._client(),
            scope.resource,
            namespace=scope.namespace,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
        )
        async with aclosing(pages) as stream:
            async for page in stream:
                version = page.resource_version
                for listed in page.objects:
                    self._writer.take_listed(listed)
                    if not taker.take(self._hooks.weight):
                        await taker.wait()
                self._note_heard()
        await self._finish_list(version, taker)

    async def _list_by_watch(self) -> None:
        async with self._events(initial=True) as events:
            if await self._take_all_listed(events):
                self._begin_watching()
                await self._follow(events)
            else:
                # Ended before it was complete: this server cannot do it, or something on the way cut it.
                self._can_stream_lists = False

    async def _watch(self) -> None:
        self._state = Resuming()
        async with self._events(initial=False) as events:
            await self._follow(events)
        self._note_heard()  # that it is over

    def _events(self, *, initial: bool) -> aclosing[AsyncGenerator[WatchEvent, None]]:
        scope = self._scope
        request = requests.watch(
            scope.resource,
            namespace=scope.namespace,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            resource_version="" if initial else self._version,
            timeout_seconds=self._chance.randrange(240, 480),
            initial_events=initial,
        )
        # A list that is accepted may never come; where the version to go on from is known, there may be nothing to say.
        on_accepted = (lambda: None) if initial else self._begin_watching
        return aclosing(watch(self._client(), request, silent_seconds=self._patience, on_accepted=on_accepted))

    def _patience(self) -> float:
        return SILENT_SECONDS if isinstance(self._state, Watching) else UNANSWERED_SECONDS

    async def _take_all_listed(self, events: AsyncGenerator[WatchEvent, None]) -> bool:
        """Whether the list was whole when it ended."""
        taker = turns.listing(of_workers=self._hooks.of_workers)
        async for event in events:
            self._note_heard()
            if event.type == "BOOKMARK" and event.initial_events_end:
                await self._finish_list(event.object.metadata.resource_version, taker)
                return True
            self._take_first(event)
            if not taker.take(self._hooks.weight):
                await taker.wait()
        return False

    def _take_first(self, event: WatchEvent) -> None:
        if event.type in ("ADDED", "MODIFIED"):
            self._writer.take_listed(event.object)
        elif event.type == "DELETED":
            self._hooks.on_event(event)
            self._writer.take_deleted_while_listing(event)

    async def _finish_list(self, version: str, taker: turns.Taker) -> None:
        await self._writer.finish_list(version, taker, weight=self._hooks.weight)
        self._note_heard()  # while others had their turn, nobody listened
        self._version = version  # not before: a list that is cut off here is to be made anew
        if self.is_absent:
            self._state = Listing()
        self._lists, self._is_refused = self._lists + 1, False
        self._set_synced(True)
        self._hooks.on_healthy()

    async def _follow(self, events: AsyncGenerator[WatchEvent, None]) -> None:
        taker = turns.watching(of_workers=self._hooks.of_workers)
        async for event in events:
            self._note_heard()
            self._version = event.object.metadata.resource_version or self._version
            if event.type != "BOOKMARK":
                self._hooks.on_event(event)
            self._writer.take_event(event)
            if not taker.take(self._hooks.weight):
                await taker.wait()

    def _note_heard(self) -> None:
        self._heard_at = self._now()

    def _begin_watching(self) -> None:
        self._note_heard()
        self._state = Watching(self._now())

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
