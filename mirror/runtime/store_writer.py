"""Applies what a list or a watch shows to one scope of a store, and reports each change. Used by ``informer``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from mirror.kube.objects import Object, Partial, keep_spec
from mirror.kube.resources import Resource
from mirror.kube.watch import WatchEvent
from mirror.model.text import clean
from mirror.runtime.store import EVERYWHERE, Name, Store, name_of
from mirror.runtime.turns import Taker
from mirror.telemetry.logs import get_module_log

_log = get_module_log("watch")

LEFT_OUT_LOGGED_SECONDS = 60.0


class Change(Enum):
    """How it is known; deletions that only a relist's difference shows are not taken as certain (D10)."""

    SEEN = "seen"
    LISTED = "listed"
    """A list has shown it: it may have happened long ago, and to thousands of others as well."""
    DELETED = "deleted"
    MISSING = "missing"


class Listener(Protocol):
    """Called with each change of the store."""

    def __call__(self, old: Object | None, new: Object | None, change: Change) -> None: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """What is kept: a kind, in one namespace or everywhere, maybe only objects with certain labels or fields."""

    resource: Resource
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""

    @property
    def name(self) -> str:
        return self.namespace or EVERYWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which objects are stored, and what of them."""

    accept: Callable[[Object], bool] = lambda _: True
    keep: Callable[[Object], Object] = lambda found: found
    """What of an accepted object is stored and reported: a smaller one, say, or one that is decoded already."""
    keep_partial: Callable[[Partial], bool] | None = None
    """Whether to store an object that is too large to be read where nothing is known of it yet: its metadata alone."""


class StoreWriter:
    """One scope of a store. A list is ``begin_list``, ``take_listed`` for each object, ``finish_list``."""

    def __init__(self, scope: Scope, store: Store, wanted: Filter, *, on_change: Listener) -> None:
        self._scope = scope
        self._store = store
        self._accept = wanted.accept
        self._keep = wanted.keep
        self._keep_partial = wanted.keep_partial or self._leave_out
        self._on_change = on_change
        self._left_out_at = float("-inf")
        # Of the list under way: what it has shown, and what of that is older than what is stored.
        self._listed: set[Name] = set()
        self._older: dict[Name, Object] = {}

    def begin_list(self) -> None:
        """What a list that broke off has shown counts no more."""
        self._listed = set()
        self._older.clear()

    def take_listed(self, listed: Object) -> None:
        try:
            self._list_one(listed)
        except Exception as error:  # noqa: BLE001 - a bug that one object brings to light must not end a watch
            self._log_bug(listed, error)

    def _list_one(self, listed: Object) -> None:
        if isinstance(listed, Partial):
            self._listed.add(name_of(listed))
            self._apply_partial(listed)
            return
        if not self._accept(listed):
            return
        name = name_of(listed)
        self._listed.add(name)
        self._older.pop(name, None)
        old = self._store.get(*name)
        if old is not None and old.version > listed.version > 0:
            # A write of ours is newer, or the server went back: the list's version tells.
            self._older[name] = self._keep(listed)
        elif old is None or old.metadata.resource_version != listed.metadata.resource_version:
            kept = self._keep(listed)
            self._store.put(kept)
            self._on_change(old, kept, Change.LISTED)

    async def finish_list(self, version: str, taker: Taker, *, weight: int = 1) -> None:
        """The list was whole: what it has not shown is missing, which is reported some at a time.

        Args:
            version: as of which it was.
            taker: of the turns that the list has taken.
            weight: of each report.
        """
        listed_at = int(version) if version.isdecimal() else 0
        went_back = listed_at < self._store.progress(self._scope.name)
        self._settle_older(listed_at, went_back=went_back)
        unlisted = self._unlisted(listed_at, went_back=went_back)
        self._listed = set()
        for name, seen in unlisted:
            known = self._store.metadata_of(*name)
            if known is None or (known.uid, known.resource_version) != seen:
                continue  # meanwhile a write of ours or a read has shown that it is there, or that it is gone
            self._on_change(self._store.remove(name), None, Change.MISSING)
            # Of a server that went back all at once: no later list tells what is left of its lost future.
            if not taker.take(weight) and not went_back:
                await taker.wait()

    def _settle_older(self, listed_at: int, *, went_back: bool) -> None:
        """Go on from the list's version, with what it has shown in an older version than the one that is stored."""
        # A list shows all that was written before it, unless that is forgotten: a restored etcd may have its versions
        # raised, so that nobody goes on from one of the lost future.
        has_other_past = went_back or any(self._is_forgotten(name, listed_at) for name in self._older)
        self._store.restart(self._scope.name, listed_at, has_other_past=has_other_past)
        for listed in self._older.values():
            if has_other_past:
                self._on_change(self._store.put(listed), listed, Change.LISTED)
        self._older.clear()

    def _unlisted(self, listed_at: int, *, went_back: bool) -> list[tuple[Name, tuple[str, str]]]:
        """What the list should have shown and has not, with its uid and version."""
        found = []
        for name in self._store.names_in(self._scope.name):
            known = self._store.metadata_of(*name) if name not in self._listed else None
            if known is not None and (went_back or known.version <= listed_at or not listed_at):
                found.append((name, (known.uid, known.resource_version)))
        return found

    def _is_forgotten(self, name: Name, listed_at: int) -> bool:
        """Whether a list as of this version should have shown what is stored, and has shown an older version."""
        known = self._store.get(*name)
        return known is not None and known.version <= listed_at

    def take_deleted_while_listing(self, event: WatchEvent) -> None:
        """Which version to go on from is known once the list is whole."""
        self._listed.discard(name_of(event.object))
        self._older.pop(name_of(event.object), None)
        self._apply(event, event.object)

    def take_event(self, event: WatchEvent) -> None:
        """What the watch shows."""
        found = event.object
        if event.type != "BOOKMARK":
            self._apply(event, found)
        # Only now: what is read from the store must never be older than its progress.
        self._store.advance(self._scope.name, found.version)

    def _apply(self, event: WatchEvent, found: Object) -> None:
        try:
            self._apply_one(event, found)
        except Exception as error:  # noqa: BLE001 - as in ``take_listed``
            self._log_bug(found, error)

    def _log_bug(self, found: Object, error: Exception) -> None:
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
        if old is not None and 0 < found.version <= old.version:
            return  # the echo of a write of ours, or older than one
        keep_spec(found, old)
        if not self._accept(found):
            if old is not None:
                self._store.remove(name)
                self._on_change(old, None, Change.MISSING)
            return
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
        now = asyncio.get_running_loop().time()
        if now - self._left_out_at >= LEFT_OUT_LOGGED_SECONDS:
            self._left_out_at = now
            kind = self._scope.resource.kind
            _log.warning("object too large, left out", kind=kind, object=clean("/".join(name_of(found))))
        return False
