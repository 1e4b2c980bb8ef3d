"""How a source says that it was moved from lost workers, and which copies it left there (D14). Pure.

It is the message of the condition ``jobmirror.io/Moved``, for people and for us: whoever may write statuses is trusted.
"""

from __future__ import annotations

import re

import msgspec

MOST_LEFT_BEHIND = 100
_MOVED = re.compile(r"move (?P<count>[0-9]{1,6}), from (?P<origin>\S+) to (?P<to>\S+)(; left behind: (?P<left>.*))?")
_COPY = re.compile(r"(?P<worker>\S+) \(uid (?P<uid>[^\s,)]+)(, (?P<promise>fenced|gone))?\)")
_UID = re.compile(r"[0-9A-Za-z-]{1,64}", re.ASCII)
_BETWEEN = re.compile(r"(?<=\)), ")
_UNKNOWN = "unknown"
FENCED = "fenced"
GONE = "gone"


_FATES = {
    "": "the copy on {} may still run",
    FENCED: "the copy on {} has ended by its lease",
    GONE: "the copy on {} is declared dead",
}


class LeftBehind(msgspec.Struct, frozen=True):
    """A copy on a worker that its source was moved from; it may still run there."""

    worker: str
    uid: str = ""
    """Of the copy; empty: it was not known whether it was made, so that any with our labels may be it."""
    promise: str = ""
    """Why nothing of it runs any more: ``FENCED``, ``GONE``; empty: it may."""

    def __str__(self) -> str:
        promise = f", {self.promise}" if self.promise else ""
        uid = self.uid if _UID.fullmatch(self.uid) else _UNKNOWN  # a worker gives it, and it must not be read as more
        return f"{self.worker} (uid {uid}{promise})"


class Moves(msgspec.Struct, frozen=True):
    """What is recorded of a source's moves."""

    count: int = 0
    origin: str = ""
    """Where it was moved from the last time, and to."""
    to: str = ""
    left_behind: tuple[LeftBehind, ...] = ()

    def moved(self, origin: str, to: str, left: LeftBehind | None, *, is_gone: bool = False) -> Moves:
        """After one more move; ``left`` is what may be on the worker that it leaves.

        Its copies have one name, so a later one on the same worker says that earlier ones are gone. With ``is_gone``
        there was one, and it is proved that nothing is left of it; without either an earlier one may be in its way.
        """
        kept = [one for one in self.left_behind if not (is_gone or left) or one.worker != origin]
        added = (left,) if left is not None else ()
        return Moves(self.count + 1, origin, to, (*kept, *added))

    def returned(self, worker: str, left: LeftBehind | None) -> Moves:
        """Its copy on this worker counts again, instead of the one that is left now."""
        kept = tuple(one for one in self.left_behind if one.worker != worker)
        return msgspec.structs.replace(self, left_behind=(*kept, left) if left is not None else kept)

    def undone(self, worker: str) -> Moves:
        """It is on this worker again, since the one that it was moved to has refused it: that was no move."""
        return msgspec.structs.replace(self.returned(worker, None), count=max(0, self.count - 1))

    def last_left_on(self, worker: str) -> LeftBehind | None:
        """The copy that may be on this worker: the last one that was left there."""
        return next((one for one in reversed(self.left_behind) if one.worker == worker), None)

    @property
    def is_start_over(self) -> bool:
        """The last one was none: it began anew where its mirror had vanished, of which nothing is left (D11)."""
        return bool(self.count) and self.origin == self.to and self.last_left_on(self.origin) is None

    @property
    def event(self) -> str:
        """The last one, for people."""
        if self.is_start_over:
            return (
                f"started over on {self.to} (move {self.count}): its mirror there had vanished, and no pod of it runs"
            )
        left = next((one for one in reversed(self.left_behind) if one.worker == self.origin), None)
        copy = f"no copy is left on {self.origin}" if left is None else _FATES[left.promise].format(self.origin)
        return f"moved from {self.origin} to {self.to} (move {self.count}); {copy}"

    @property
    def why(self) -> str:
        """What let it be moved the last time, for metrics."""
        if self.is_start_over:
            return "Recreated"
        left = next((one for one in reversed(self.left_behind) if one.worker == self.origin), None)
        return {FENCED: "Fenced", GONE: "Gone"}.get(left.promise if left else "", "WorkerLost")

    @property
    def message(self) -> str:
        """As in the condition."""
        text = f"move {self.count}, from {self.origin} to {self.to}"
        listed = ", ".join(map(str, self.left_behind))
        return f"{text}; left behind: {listed}" if listed else text


def parse_moves(message: str) -> Moves:
    """From the condition; what is none of ours says nothing."""
    found = _MOVED.fullmatch(message)
    if found is None:
        return Moves()
    copies = [_COPY.fullmatch(part) for part in _BETWEEN.split(found["left"] or "")[:MOST_LEFT_BEHIND]]
    left = tuple(
        LeftBehind(copy["worker"], "" if copy["uid"] == _UNKNOWN else copy["uid"], copy["promise"] or "")
        for copy in copies
        if copy is not None
    )
    return Moves(int(found["count"]), found["origin"], found["to"], left)


def is_left_behind(left: tuple[LeftBehind, ...], *, worker: str, uid: str, placed: str | None) -> bool:
    """Whether an object with a source's labels is a copy that was left on this worker.

    While the source has no worker, none is: the copy may be the only one.
    """
    if placed is None:
        return False
    return any(one.worker == worker and (one.uid == uid if one.uid else placed != worker) for one in left)
