"""Watch: what is there, what happens to it, and bookmarks in between, for one reader and one selection of objects.

An event is encoded once for all readers that want it in the same form. A reader's place is a version, not a queue.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Iterator

from mirror.embedded.apiserver.apimachinery import objects
from mirror.embedded.apiserver.apimachinery.errors import Json, StatusError, failure, gone, internal, not_acceptable
from mirror.embedded.apiserver.messages import Stream
from mirror.embedded.apiserver.registry import listing
from mirror.embedded.apiserver.registry.dependencies import Dependencies
from mirror.embedded.apiserver.registry.listing import Predicate
from mirror.embedded.apiserver.request import options, responses
from mirror.embedded.apiserver.request.info import RequestScope
from mirror.embedded.apiserver.request.options import PARTIAL, PARTIAL_LIST, TABLE, ListOptions
from mirror.embedded.apiserver.storage.records import Event, Gone, Record
from mirror.embedded.apiserver.storage.subscriptions import Subscription

_log = logging.getLogger(__name__)

BOOKMARK_SECONDS = 60.0
SHORTEST_SECONDS = 1800
"""A watch without ``timeoutSeconds`` ends after this time, or after up to twice of it."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_LAST_BOOKMARK_SECONDS = 2.0
"""Before the end comes one more, so that the next watch begins where this one was."""
_PIECE_BYTES = 2**16
_TICK_SECONDS = 0.001
"""Nobody waits for less: sums of times are off by a little, and virtual time would stand still."""
_ADDED, _MODIFIED, _DELETED = b"ADDED", b"MODIFIED", b"DELETED"
_LEFT = b"LEFT"
"""An object that changed so that it is not meant any more: DELETED, with what it was."""


async def watch(deps: Dependencies, scope: RequestScope) -> Stream:
    """Raises: StatusError 400, 406, 422, 504."""
    wanted = await scope.pure(lambda: options.list_options(scope.request, is_watch=scope.is_watch_path))
    predicate = listing.predicate_of(scope, wanted)
    if scope.format.is_yaml:
        raise options.no_stream()
    try:
        version = listing.parsed_version(wanted.version)
    except ValueError as error:
        raise StatusError(failure(500, "", str(error))) from error
    storage, stored_as = deps.storage, scope.kind.stored_as
    seconds = wanted.timeout_seconds or deps.random.uniform(SHORTEST_SECONDS, 2 * SHORTEST_SECONDS)
    starts_with_state = wanted.sends_initial_events is True or (wanted.sends_initial_events is None and version == 0)
    if starts_with_state and version > storage.version:
        raise listing.too_large(scope.kind, version, storage.version)
    forms = Forms(deps, scope)
    if not starts_with_state and version:
        try:
            subscription = storage.watch(stored_as, version)
        except Gone:
            return Stream(200, _refusing(f"too old resource version: {version} ({storage.oldest(stored_as)})"))
        return Stream(200, _Watch(forms, predicate, wanted, subscription).run(seconds))
    subscription = storage.watch(stored_as, storage.version)
    watching = _Watch(forms, predicate, wanted, subscription)
    if starts_with_state:
        watching.state = (await listing.page_of(storage, scope, predicate, ListOptions())).records
    return Stream(200, watching.run(seconds))


class Forms:
    """How the events look that one reader gets."""

    def __init__(self, deps: Dependencies, scope: RequestScope) -> None:
        self.kind = scope.kind
        self._clock = deps.clock
        self._target, self._version = scope.format.target, scope.format.version
        if self._target == PARTIAL_LIST:
            message = f"you requested {PARTIAL_LIST}, but the requested object is not a list (*{self.kind.kind})"
            raise not_acceptable(message)
        self._include = responses.included(scope.request.parameters) if self._target == TABLE else ""
        self._has_columns = self._target == TABLE
        self.key = (self.kind.api_version, self._target, self._version, self._include)
        self._empty: Json | None = None

    @property
    def is_shared(self) -> bool:
        """Whether others get the same lines. The first table of a watch is one of a kind."""
        return not self._has_columns

    def line(self, type_: bytes, event: Event) -> bytes:
        """An event of the history as this reader gets it."""
        if self._has_columns:
            return self.fresh_line(type_, self._raw(type_, event))
        key = (type_, self.key)
        if event.encoded is None:
            event.encoded = {}
        found = event.encoded.get(key)
        if found is None:
            found = event.encoded[key] = self.fresh_line(type_, self._raw(type_, event))
        return found

    def fresh_line(self, type_: bytes, raw: bytes) -> bytes:
        """An event about an object in this kind's form."""
        if self._target == TABLE:
            raw = self._table(raw)
        elif self._target == PARTIAL:
            raw = objects.encode(responses.partial(raw, self._version))
        return b'{"type":"%b","object":%b}\n' % (_DELETED if type_ is _LEFT else type_, raw)

    def bookmark(self, version: int, *, ends_initial_events: bool) -> bytes:
        """What tells a reader how far it has come."""
        if self._empty is None:
            self._empty = objects.empty(self.kind)
        meta: Json = {"resourceVersion": str(version)}
        if ends_initial_events:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        return self.fresh_line(b"BOOKMARK", objects.encoded(self.kind, self._empty | {"metadata": meta}))

    def _raw(self, type_: bytes, event: Event) -> bytes:
        if type_ is _LEFT and event.previous is not None:
            return objects.at_version(self.kind, event.previous, event.version)
        return objects.shown(self.kind, event.record)

    def _table(self, raw: bytes) -> bytes:
        meta = {"resourceVersion": objects.decode(bytes(objects.metadata_of(raw))).get("resourceVersion", "")}
        now = self._clock.now()
        made = responses.table(self.kind, [raw], meta, now=now, version=self._version, include=self._include)
        if not self._has_columns:
            made["columnDefinitions"] = None
        self._has_columns = False
        return objects.encode(made)


class _Watch:
    """One reader's watch."""

    def __init__(self, forms: Forms, predicate: Predicate, wanted: ListOptions, subscription: Subscription) -> None:
        self._forms = forms
        self._predicate = predicate
        self._wanted = wanted
        self._subscription = subscription
        self.state: list[Record] | None = None

    async def run(self, seconds: float) -> AsyncGenerator[bytes, None]:
        """Pieces of whole events, until the time is over or the history has been cut before this reader's place."""
        now = asyncio.get_running_loop().time
        ends = now() + seconds
        bookmark = self._bookmark_time(now(), ends)
        try:
            for piece in self._initial():
                yield piece
                await asyncio.sleep(0)
            # Readers want the headers at once, be there events or not.
            yield b""
            while True:
                for piece in self._take():
                    yield piece
                if self._subscription.is_behind:
                    await asyncio.sleep(0)  # others first: it may be behind by thousands
                    continue
                rest = ends - now()
                if rest <= _TICK_SECONDS:
                    return
                if bookmark - now() <= _TICK_SECONDS:
                    bookmark = self._bookmark_time(now() + _TICK_SECONDS, ends)
                    yield self._forms.bookmark(self._subscription.progress(), ends_initial_events=False)
                    continue
                await self._subscription.wait(min(rest, bookmark - now()))
        except Gone:
            return
        except Exception:  # noqa: BLE001 - as for other requests: its client gets an answer, the log the rest
            _log.exception("watch failed kind=%s", self._forms.kind.plural)
            yield _error_line(internal("unexpected error; the server's log has the details"))

    def _bookmark_time(self, now: float, ends: float) -> float:
        """When the next bookmark is due: in a minute, or shortly before the end; never, if that has passed."""
        last = ends - _LAST_BOOKMARK_SECONDS
        if not self._wanted.allows_bookmarks or last <= now:
            return math.inf
        return min(now + BOOKMARK_SECONDS, last)

    def _initial(self) -> Iterator[bytes]:
        if self.state is None:
            return
        records, self.state = self.state, None
        kind, version = self._forms.kind, self._subscription.version
        lines = (self._forms.fresh_line(_ADDED, objects.shown(kind, one)) for one in records)
        yield from _joined(lines)
        if self._wanted.sends_initial_events and self._wanted.allows_bookmarks:
            yield self._forms.bookmark(version, ends_initial_events=True)

    def _take(self) -> list[bytes]:
        """The next events, those that are meant, in pieces. Raises: Gone."""
        if not self._subscription.is_behind:
            return []
        if self._forms.is_shared:
            return self._subscription.take_as((self._forms.key, self._predicate), self._pieces)
        return self._pieces(self._subscription.take_some())

    def _pieces(self, events: list[Event]) -> list[bytes]:
        predicate, line = self._predicate, self._forms.line
        if predicate.is_everything and not predicate.namespace:
            return list(_joined(line(_type_of(one), one) for one in events))
        return list(_joined(filter(None, map(self._selected, events))))

    def _selected(self, event: Event) -> bytes | None:
        """The event as it looks to who sees only some of the objects."""
        kind, takes = self._forms.kind, self._predicate.takes
        was_meant = event.previous is not None and takes(kind, event.previous)
        if event.is_deletion:
            return self._forms.line(_DELETED, event) if was_meant else None
        if takes(kind, event.record):
            return self._forms.line(_MODIFIED if was_meant else _ADDED, event)
        return self._forms.line(_LEFT, event) if was_meant else None


def _type_of(event: Event) -> bytes:
    if event.is_deletion:
        return _DELETED
    return _MODIFIED if event.previous is not None else _ADDED


def _joined(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Lines in pieces of a size that is good to send."""
    piece: list[bytes] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= _PIECE_BYTES:
            yield b"".join(piece)
            piece, size = [], 0
    if piece:
        yield b"".join(piece)


async def _refusing(message: str) -> AsyncGenerator[bytes, None]:
    """A watch that cannot begin says so in an event."""
    yield _error_line(gone(message))


def _error_line(refused: StatusError) -> bytes:
    return b'{"type":"ERROR","object":%b}\n' % objects.encode(refused.status)
