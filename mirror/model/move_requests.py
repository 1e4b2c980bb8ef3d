"""What the holder of a worker's slot requests of who assigns workers: that a source gets another one (D14, S2). Pure.

It stands in the reason of the condition ``jobmirror.io/Placed``, between its mark and the term (``terms``).
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from mirror.model.moves import FENCED, GONE, LeftBehind


class Step(StrEnum):
    """What is requested, and how far it is."""

    PLACE = "PlaceWanted"
    """Its worker is drained, or no pod of it became ready there: it stops there once there is another one for it."""
    FOUND = "PlaceFound"
    """There is one, which is kept for it."""
    MOVE = "MoveWanted"
    """The record may go to another worker: its holder does nothing about it any more."""


class Why(StrEnum):
    """Why its worker is left, which says what becomes of the copy there."""

    LOST = ""
    FENCED = "Fenced"
    """Lost, and its lease has ended."""
    GONE = "Gone"
    """Somebody says that nothing runs there any more."""
    EXPIRED = "Expired"
    """Its lease has ended it; it may get the same worker again."""
    DRAINED = "Drained"
    """Its absence there is proved."""
    RETRIED = "Retried"
    """No pod of it became ready there. Only a place is requested: its holder takes the record away itself (D31)."""


_LOST = "worker {} is lost"
_BECAUSE = {
    Why.EXPIRED: "the lease on worker {} has expired",
    Why.DRAINED: "worker {} is drained",
    Why.RETRIED: "no pod of it became ready on worker {}",
    Why.GONE: "worker {} is declared dead",
}
_PROMISES = {Why.FENCED: FENCED, Why.EXPIRED: FENCED, Why.GONE: GONE}
_UNMADE = "Unmade"
_TEXT = re.compile(f"({'|'.join(Step)})({'|'.join(filter(None, Why))})?({_UNMADE})?")
_STEPS = tuple(step.encode() for step in Step)


class MoveRequest(msgspec.Struct, frozen=True):
    """One request, as the record has it."""

    step: Step = Step.MOVE
    why: Why = Why.LOST
    is_unmade: bool = False
    """No create can have been sent there, so that nothing is left."""

    @property
    def text(self) -> str:
        """As in the reason."""
        return f"{self.step}{self.why}{_UNMADE if self.is_unmade else ''}"

    @property
    def may_stay(self) -> bool:
        """Whether the worker that it is on is as good as any other."""
        return self.why is Why.EXPIRED

    def because(self, worker: str) -> str:
        """Why, for people."""
        return _BECAUSE.get(self.why, _LOST).format(worker)

    def left_on(self, worker: str, uid: str) -> LeftBehind | None:
        """What is left on the worker; ``uid``: of the mirror there, empty where it is not known."""
        if self.is_unmade or self.why is Why.DRAINED:
            return None
        return LeftBehind(worker, uid, _PROMISES.get(self.why, ""))


def parse_request(text: str) -> MoveRequest | None:
    """From the reason; None: nothing is requested, or it is none of ours."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    return MoveRequest(Step(found[1]), Why(found[2] or ""), is_unmade=found[3] is not None)


def may_have_request(status: bytes) -> bool:
    """Whether a status may have a request, without decoding it: few have."""
    return any(step in status for step in _STEPS)
