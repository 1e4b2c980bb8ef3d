"""What is kept of the objects on one worker: bounded in number and bytes, whatever the worker sends (D12, D29).

A ``Worker`` has one store for each kind. Of an object that belongs to no source only what identifies it is kept; one
that does is kept whole within bounds, and as a ``Partial`` beyond them. Nothing is concluded from what was left out
(D11): who needs the rest reads the object from the worker (``Worker.read_whole``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from mirror.kinds.asking import state
from mirror.kinds.base import Kind
from mirror.kube.errors import TooLarge
from mirror.kube.objects import Meta, Object, Partial, partial_of, size_of
from mirror.model import names
from mirror.runtime.clock import Clock
from mirror.runtime.informer import Change, Listener
from mirror.runtime.rest import Rest
from mirror.runtime.slices import in_slices
from mirror.runtime.store import EVERYWHERE, Name, Store, name_of
from mirror.workers.known_workers import Holders

MOST_UNKNOWN = 5000
BY_STATE = "state"
MIRROR_SLACK_BYTES = 64 * 1024
"""What a mirror may take beyond twice what its source takes: a status that is not copied yet."""
MOST_SURPLUS_BYTES = 64 * 2**20
"""Of what all mirrors of one kind on a worker take beyond that."""
_LABELS = (names.ORIGIN, names.SOURCE_UID, names.MANAGEMENT_UID)


@dataclass(frozen=True, slots=True)
class MirrorHooks:
    """Callbacks of a mirror store."""

    on_change: Listener
    """Called with what requests have shown, and with what the watch shows."""
    is_source: Callable[[Object], bool]
    """Whether an object asks to be mirrored itself: a mirror never does, whatever labels it has (D1)."""
    source_of: Callable[[Object], Object | None]
    """The source that an object belongs to; None: it belongs to none."""
    has_source: Callable[[Meta], bool]
    """Whether there is one, by the object's metadata."""
    on_unknown_dropped: Callable[[], None]
    """Called for each object that is left out because there are too many without a source."""
    on_too_large: Callable[[], None]
    """Called each time that of an object with a source only what identifies it is kept."""


class StoreHost(Protocol):
    """What the stores of all workers share."""

    clock: Clock
    origin: str
    """The management cluster's, by which mirrors are watched."""
    rests: Mapping[str, Rest]
    """By name of the kind."""
    holders: Mapping[str, Holders]
    """By name of the kind; each store keeps its worker in it."""


class MirrorStore(Store):
    """A worker's objects of one kind with our labels.

    Invariants: ``_unknown`` holds at most ``MOST_UNKNOWN`` names; ``_surplus`` holds what each mirror takes beyond its
    allowance, ``MOST_SURPLUS_BYTES`` together; ``_too_large`` and ``_going`` hold names that are stored; ``_holders``
    has ``worker`` for each object under the prefix, by the name of its source.
    """

    def __init__(self, kind: Kind, host: StoreHost, *, worker: str, hooks: MirrorHooks) -> None:
        super().__init__({BY_STATE: lambda found: (state(kind, found),)}, rest=host.rests[kind.name])
        self._worker = worker
        self._holders = host.holders[kind.name]
        self._prefix = ""
        self._clock = host.clock
        self._origin = host.origin
        self.on_change = hooks.on_change
        self._hooks = hooks
        self._unknown: set[Name] = set()
        self._pruned_at = float("-inf")
        self._surplus: dict[Name, int] = {}
        self._surplus_bytes = 0
        self._too_large: set[Name] = set()
        # Of stored objects: those that a request of ours is about to delete, or may have deleted, by their uid.
        self._going: dict[Name, str] = {}

    @property
    def excess(self) -> str:
        """What people should know of what is left out; empty when nothing is."""
        return "it sends mirrors that are too large to be kept: their status is not copied" if self._too_large else ""

    def accepts(self, found: Object) -> bool:
        """Whether to store an object: objects that belong to no source are stored to a bounded number (D12)."""
        if not isinstance(found, Partial) and self._hooks.is_source(found):
            return False
        name = name_of(found)
        if self.metadata_of(*name) is not None or self._hooks.has_source(found.metadata):
            return True
        if len(self._unknown) >= MOST_UNKNOWN:
            self._forget_known()
        if len(self._unknown) >= MOST_UNKNOWN:
            self._hooks.on_unknown_dropped()
            return False
        self._unknown.add(name)
        return True

    def accepts_partial(self, found: Partial) -> bool:
        """The same for an object that was too large to be read."""
        if self._hooks.has_source(found.metadata):
            self._mark_too_large(name_of(found))
        return self.accepts(found)

    def put(self, found: Object) -> Object | None:
        return super().put(self._kept(found))

    def remove(self, name: Name) -> Object | None:
        self._going.pop(name, None)
        self._unknown.discard(name)
        self._too_large.discard(name)
        self._surplus_bytes -= self._surplus.pop(name, 0)
        return super().remove(name)

    def use_prefix(self, prefix: str) -> None:
        """Mirrors are under this prefix from now on, and the worker is found by what has a source's name there."""
        found = self.names_in(EVERYWHERE) if prefix != self._prefix else []
        for name in found:
            self._hold(name, is_so=False)
        self._prefix = prefix
        for name in found:
            self._hold(name)

    def leave_holders(self) -> None:
        """The worker is found by nothing from now on, whatever is still stored."""
        for name in self.names_in(EVERYWHERE):
            self._hold(name, is_so=False)
        self._holders = Holders()

    def _enter(self, name: Name) -> None:
        super()._enter(name)
        self._hold(name)

    def _leave(self, name: Name) -> None:
        super()._leave(name)
        self._hold(name, is_so=False)

    def _hold(self, name: Name, *, is_so: bool = True) -> None:
        """Have the worker found by the source whose mirror has this name, or not any more."""
        prefix, source = self._prefix, name
        if prefix:
            if not name[0].startswith(prefix):
                return  # the mirror of none
            source = name[0].removeprefix(prefix), name[1]
        (self._holders.add if is_so else self._holders.discard)(source, self._worker)

    def has_one_of(self, source: Object, namespace: str) -> bool:
        """Whether there is, or was when the worker was last reachable, a mirror of this source in this namespace."""
        found = self.metadata_of(namespace, source.metadata.name)
        return found is not None and (found.labels or {}).get(names.SOURCE_UID) == source.metadata.uid

    def has_elsewhere(self, source: Object, uid: str) -> bool:
        """Whether there is a mirror of this source in any namespace; ``uid``: the object's, empty for any one."""
        metadata = [self.metadata_of(*name) for name in self.namesakes(source.metadata.name)]
        return any(
            one is not None and (one.labels or {}).get(names.SOURCE_UID) == source.metadata.uid and uid in ("", one.uid)
            for one in metadata
        )

    def note_going(self, found: Object, *, is_so: bool = True) -> None:
        """Nothing is to be built on an object that we may delete any moment; or not any more."""
        if is_so and self.metadata_of(*name_of(found)) is not None:
            self._going[name_of(found)] = found.metadata.uid
        elif not is_so:
            self._going.pop(name_of(found), None)

    def is_going(self, found: Object) -> bool:
        """Whether we are about to delete it, or may have."""
        return self._going.get(name_of(found)) == found.metadata.uid

    def take_own_write(self, written: Object) -> None:
        """Take the worker's answer to a write of ours before the watch brings it, or although it never will."""
        if self._is_watched(written):
            self.read_own_write(written)
        else:
            self.put(written)

    def take_read(self, found: Object, *, was_dropped: bool = False) -> None:
        """Take what a live read has shown, and report it as the watch would.

        Args:
            found: the object as it is now.
            was_dropped: the watch may have shown it and it was not kept, as one of too many unknown ones.
        """
        old = self.get(*name_of(found))
        if self._is_watched(found) and not was_dropped:
            if not self.read_own_write(found):
                return  # the watch has shown more: it went since, or it comes
        elif old is not None and old.version >= found.version:
            return
        else:
            self.put(found)
        self.on_change(old, found, Change.SEEN)

    def take_whole(self, partial: Object, whole: Object | None) -> None:
        """Take what a live read has shown of an object of which only the metadata is kept; None: it is gone.

        Raises:
            TooLarge: it is larger than what is kept of it.
        """
        name = name_of(partial)
        if self.get(*name) is not partial:
            return  # the watch was faster
        if whole is None or partial.labels.items() - whole.labels.items():  # it is not, or not any more, what we watch
            self.remove(name)
            self.on_change(partial, None, Change.MISSING)
            return
        self.put(whole)
        if isinstance(self.get(*name), Partial):
            raise TooLarge("mirrors take more bytes than are kept")

    def forget_deleted(self, namespace: str, name: str, uid: str) -> None:
        """A live request has shown that this object is gone; maybe no watch ever does."""
        old = self.get(namespace, name)
        if old is not None and old.metadata.uid == uid:
            self.remove((namespace, name))
            self.on_change(old, None, Change.MISSING)

    def _is_watched(self, found: Object) -> bool:
        """Whether our watches show this object: it carries our label (D11)."""
        return found.labels.get(names.ORIGIN) == self._origin

    async def shrink(self) -> None:
        """Keep only what identifies them of objects whose source is gone, in case the worker never deletes them."""
        async for name in in_slices(self.names_in(EVERYWHERE)):
            metadata = self.metadata_of(*name)
            if metadata is None or self._hooks.has_source(metadata):
                continue  # most have one, and stay packed
            found = self.get(*name)
            if found is not None and not isinstance(found, Partial):
                self._unknown.add(name_of(found))
                self.put(found)

    def _kept(self, found: Object) -> Object:
        name = name_of(found)
        before = self._surplus.pop(name, 0)
        self._surplus_bytes -= before
        if isinstance(found, Partial) or not self._hooks.has_source(found.metadata):
            return partial_of(found, _LABELS)
        surplus = self._surplus_of(found)
        if surplus > 0:
            if self._surplus_bytes + surplus > MOST_SURPLUS_BYTES:
                self._mark_too_large(name)
                return partial_of(found, _LABELS)
            self._surplus[name] = surplus
            self._surplus_bytes += surplus
        self._too_large.discard(name)
        return found

    def _surplus_of(self, found: Object) -> int:
        """How many bytes it takes beyond what its source allows; none, if not positive."""
        surplus = size_of(found) - MIRROR_SLACK_BYTES
        source = self._hooks.source_of(found) if surplus > 0 else None
        return surplus - 2 * size_of(source) if source is not None else surplus

    def _mark_too_large(self, name: Name) -> None:
        self._too_large.add(name)
        self._hooks.on_too_large()

    def _forget_known(self) -> None:
        """Those that were unknown and have a source by now; looked for once a second at most."""
        now = self._clock.monotonic()
        if now - self._pruned_at < 1.0:
            return
        self._pruned_at = now
        known = {name for name in self._unknown if (found := self.metadata_of(*name)) and self._hooks.has_source(found)}
        self._unknown -= known
