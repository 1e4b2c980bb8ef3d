"""What this process remembers of sources beyond the clusters' objects, by uid; bounded by the sources that exist."""

from __future__ import annotations

from collections import OrderedDict
from typing import Unpack

from msgspec.structs import replace

from mirror.decide.snapshot import Memory, MemoryChange
from mirror.kinds.asking import was_moved
from mirror.kinds.base import Kind
from mirror.kube.objects import Object

MOST_GONE = 200_000
MOST_LEFT = 20_000
FOREIGN_WRITES_FORGOTTEN_SECONDS = 60.0


class Memories:
    """One ``Memory`` a source, and the uids of sources whose deletion was seen, and of their recorded mirrors."""

    def __init__(self) -> None:
        self._memories: dict[str, Memory] = {}
        # Those that a worker has refused something; few, so that a worker's change costs nothing by the other sources.
        self._refused: set[str] = set()
        self.others: set[str] = set()
        """Those that another manager of this cluster has placed: where a memory has ``other_manager``."""
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._left: OrderedDict[str, None] = OrderedDict()

    def of(self, uid: str) -> Memory:
        return self._memories.get(uid) or Memory(uid)

    def set(self, uid: str, **fields: Unpack[MemoryChange]) -> Memory:
        changed = replace(self.of(uid), **fields)
        if uid not in self._gone:  # work that was under way when its source went must leave nothing behind
            self._memories[uid] = changed
            (self._refused.add if changed.refusals or changed.patch_refused else self._refused.discard)(uid)
        return changed

    def begin_anew(self, uid: str) -> None:
        """A source has another worker: of its mirror on the one before nothing counts any more (D14)."""
        was = self._memories.get(uid)
        if was is None:
            return
        self.forget(uid)
        self.set(
            uid,
            refusals=was.refusals,
            moves_told=was.moves_told,
            waiting_written_at=was.waiting_written_at,
            foreign_status_writes=was.foreign_status_writes,
            foreign_written_at=was.foreign_written_at,
        )
        self.note_other_manager(uid, was.other_manager)

    def recorded_uid(self, kind: Kind, source: Object) -> str | None:
        """The uid of a source's mirror: the one that this process made or found, else the one that is recorded."""
        memory = self._memories.get(source.metadata.uid)
        remembered = memory.mirror_uid if memory is not None else None
        if remembered and was_moved(source) and remembered in {one.uid for one in kind.summary(source).left_behind}:
            remembered = None  # it was moved since
        return remembered or kind.summary(source).mirror_uid

    def clear_refusals(self, worker: str) -> None:
        """It is no worker any more: what it refused it may accept when it is one again."""
        for uid in list(self._refused):
            memory = self._memories[uid]
            if memory.patch_refused or worker in memory.refusal_texts:
                refusals = tuple(entry for entry in memory.refusals if entry[0] != worker)
                self.set(uid, refusals=refusals, patch_refused="")

    def forget_end(self, kind: Kind, source: Object, *, is_leading: bool) -> None:
        """A source whose end is stored needs no memory of its mirror's end; what else there is to tell, leaders do."""
        memory = self._memories.get(source.metadata.uid)
        if memory is not None and memory.ended is not None and kind.summary(source).is_finished:
            self.set(source.metadata.uid, ended=None, is_failure_untold=memory.is_failure_untold and is_leading)

    def forget_old_foreign_writes(self, uid: str, now: float) -> None:
        """Whoever wrote a source's status has stopped: its next write is the first one again (D20)."""
        memory = self._memories.get(uid)
        if memory is None or not memory.foreign_status_writes:
            return
        if now - memory.foreign_written_at > FOREIGN_WRITES_FORGOTTEN_SECONDS:
            self.set(uid, foreign_status_writes=0)

    def forget_foreign_writes(self) -> None:
        """What was seen while somebody else led were that leader's writes."""
        for uid, memory in list(self._memories.items()):
            if memory.foreign_status_writes:
                self.set(uid, foreign_status_writes=0)

    def forget(self, uid: str) -> None:
        self._memories.pop(uid, None)
        self._refused.discard(uid)
        self.others.discard(uid)

    def note_other_manager(self, uid: str, other: str) -> None:
        """Another manager of this cluster, in this namespace, has placed a source, or, where empty, none has (D2)."""
        self.set(uid, other_manager=other)
        (self.others.add if self.of(uid).other_manager else self.others.discard)(uid)

    def note_gone(self, uid: str, mirror_uid: str | None) -> None:
        """The deletion of this source was seen: nothing has to be asked before its mirror goes (D10)."""
        known = mirror_uid or self.of(uid).mirror_uid
        self.forget(uid)
        for gone in filter(None, (uid, known)):
            self._gone[gone] = None
            if len(self._gone) > MOST_GONE:
                self._gone.popitem(last=False)

    def note_back(self, uid: str) -> None:
        """A source that was deleted is there again with its uid: a backup was restored."""
        self._gone.pop(uid, None)
        self._left.pop(uid, None)

    def note_left(self, uid: str) -> None:
        """A source that was ours is not there any more, or not ours: which, is asked for."""
        self._left[uid] = None
        if len(self._left) > MOST_LEFT:
            self._left.popitem(last=False)

    def has_left(self, uid: str) -> bool:
        """Whether this process has seen the source as ours."""
        return uid in self._left

    def is_gone(self, uid: str) -> bool:
        """Whether the deletion of this source, or of the source of this recorded mirror, was seen."""
        return uid in self._gone
