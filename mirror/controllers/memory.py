"""What this process remembers of sources beyond the clusters' objects, by uid; bounded by the sources that exist."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from msgspec.structs import replace

from mirror.decide.seen import Memory

MOST_GONE = 200_000


class Memories:
    """One ``Memory`` a source, and the uids of sources whose deletion was seen."""

    def __init__(self) -> None:
        self._memories: dict[str, Memory] = {}
        # Those that a worker has refused something; few, so that a worker's change costs nothing by the other sources.
        self._refused: set[str] = set()
        self._gone: OrderedDict[str, None] = OrderedDict()

    def of(self, uid: str) -> Memory:
        return self._memories.get(uid) or Memory(uid)

    def set(self, uid: str, **fields: Any) -> Memory:
        changed = replace(self.of(uid), **fields)
        if uid not in self._gone:  # work that was under way when its source went must leave nothing behind
            self._memories[uid] = changed
            (self._refused.add if changed.refusals or changed.patch_refused else self._refused.discard)(uid)
        return changed

    def forgive(self, worker: str) -> None:
        """This worker has changed: what it refused it may accept now."""
        for uid in list(self._refused):
            memory = self._memories[uid]
            if memory.patch_refused or worker in memory.refusal_texts:
                refusals = tuple(entry for entry in memory.refusals if entry[0] != worker)
                self.set(uid, refusals=refusals, patch_refused="")

    def forget_foreign_writes(self) -> None:
        """What was seen while somebody else led were that leader's writes."""
        for uid, memory in list(self._memories.items()):
            if memory.foreign_status_writes:
                self.set(uid, foreign_status_writes=0)

    def forget(self, uid: str) -> None:
        self._memories.pop(uid, None)
        self._refused.discard(uid)

    def note_gone(self, uid: str) -> None:
        """The deletion of this source was seen: nothing has to be asked before its mirror goes (D10)."""
        self.forget(uid)
        self._gone[uid] = None
        if len(self._gone) > MOST_GONE:
            self._gone.popitem(last=False)

    def is_gone(self, uid: str) -> bool:
        return uid in self._gone
