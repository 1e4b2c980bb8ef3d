"""How a source says that it is tried on another worker, and what was seen of the pods for that (D31). Pure.

It is the condition ``jobmirror.io/Retrying``: its status is the state, its message the rest, for people and for us.
Whoever may write statuses is trusted; what cannot be understood says nothing, so that nothing is deleted by it.
"""

from __future__ import annotations

import re
from enum import Enum, StrEnum

import msgspec

from mirror.model.text import clean

MOST_TRIED = 3
AVOIDED_SECONDS = 3600
"""So long a worker that was tried is avoided, if others are eligible."""
LONGEST_RECORD = 4096
LONGEST_WHY = 300

_UID = r"[A-Za-z0-9-]{1,64}"
_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"
_RECORD = re.compile(
    rf"(?:mirror (?P<uid>{_UID}))?(?:; |\A)?(?:not started at (?P<start>{_TIME}))?(?:; |\A)?"
    r"(?:tried (?P<tried>[^;]+))?(?:(?:; |\A)given up: (?P<why>.*))?",
    re.ASCII | re.DOTALL,
)
_TRIED = re.compile(rf"(?P<worker>[^\s,;]{{1,253}}) at (?P<at>{_TIME})", re.ASCII)


class RetryState(StrEnum):
    """The status of the condition."""

    DRAINING = "Unknown"
    """Its mirror is, or is about to be, suspended; whether anything of it ran is not known yet."""
    PROVED = "True"
    """Nothing of its mirror, of this uid, ever ran: it may be deleted, and must not run any more."""
    OVER = "False"
    """It has another worker, or waits for one; or the mirror stays."""


REASONS = {
    RetryState.DRAINING: "StoppingMirror",
    RetryState.PROVED: "NothingRan",
    RetryState.OVER: "TriedElsewhere",
}
GIVEN_UP = "GivenUp"


class Tried(msgspec.Struct, frozen=True):
    """A worker on which nothing of a source ran, and when it left it; RFC 3339."""

    worker: str
    at: str


class Retries(msgspec.Struct, frozen=True):
    """What is recorded of a source's retries."""

    state: RetryState | None = None
    """None: it was never tried elsewhere."""
    uid: str = ""
    """Of the mirror that the state is about."""
    start: str = ""
    """The startTime that the API keeps on an unsuspended source (V37), of a mirror of which nothing ran."""
    tried: tuple[Tried, ...] = ()
    why: str = ""
    """Why the last attempt was given up."""

    @property
    def is_under_way(self) -> bool:
        return bool(self.uid) and self.state in (RetryState.DRAINING, RetryState.PROVED)

    @property
    def reason(self) -> str:
        return GIVEN_UP if self.why else REASONS[self.state or RetryState.OVER]

    @property
    def message(self) -> str:
        """As in the condition."""
        parts = [f"mirror {self.uid}"] if self.uid else []
        parts += [f"not started at {self.start}"] if self.start else []
        listed = ", ".join(f"{one.worker} at {one.at}" for one in self.tried)
        parts += [f"tried {listed}"] if listed else []
        parts += [f"given up: {clean(self.why, longest=LONGEST_WHY)}"] if self.why else []
        return "; ".join(parts)

    def draining(self, uid: str) -> Retries:
        """The mirror of this uid is about to be suspended."""
        return Retries(RetryState.DRAINING, uid, tried=self.tried)

    def proved(self, start: str) -> Retries:
        """Nothing of it ever ran."""
        return Retries(RetryState.PROVED, self.uid, start, self.tried)

    def left(self, worker: str, at: str) -> Retries:
        """Its mirror on this worker is gone."""
        return Retries(RetryState.OVER, start=self.start, tried=(*self.tried, Tried(worker, at))[-MOST_TRIED:])

    def given_up(self, why: str, *, keeps_start: bool) -> Retries:
        """It stays where it is."""
        return Retries(RetryState.OVER, start=self.start if keeps_start else "", tried=self.tried, why=why)


def parse_retries(status: object, message: object) -> Retries:
    """From the condition; what is none of ours says nothing but that there is one."""
    if status not in tuple(RetryState):
        return Retries()
    nothing = Retries(RetryState.OVER)
    if not isinstance(message, str) or len(message) > LONGEST_RECORD:
        return nothing
    found = _RECORD.fullmatch(message)
    if found is None:
        return nothing
    tried: list[Tried] = []
    for part in (found["tried"] or "").split(", ") if found["tried"] else ():
        one = _TRIED.fullmatch(part)
        if one is None:
            return nothing
        tried.append(Tried(one["worker"], one["at"]))
    state = RetryState(str(status))
    if state is not RetryState.OVER and not found["uid"]:
        return nothing
    return Retries(state, found["uid"] or "", found["start"] or "", tuple(tried[-MOST_TRIED:]), found["why"] or "")


class ProofState(Enum):
    """What one process has seen of the pods of a mirror that is to be tried elsewhere."""

    LOOKING = "looking"
    """They are being listed."""
    WATCHED = "watched"
    """All that there are, or were since, are known; none has started."""
    CONFIRMING = "confirming"
    """They are listed once more, and the watch is waited for until it has shown all until then."""
    CONFIRMED = "confirmed"
    """As of a version of the mirror there is none, and none ever started."""
    STARTED = "started"
    """One has, for good."""
    BROKEN = "broken"
    """Something was, or may have been, missed: nothing is proved."""


class PodProof(msgspec.Struct, frozen=True):
    """See ``workers.pod_proofs``."""

    state: ProofState
    mark: str = ""
    """By which a mirror is known that was suspended after its pods were listed for this, and by nobody else."""
    because: str = ""
    """Of one that has started or is broken."""
    confirmed_version: str = ""
    """The mirror's resourceVersion that it was confirmed for."""
