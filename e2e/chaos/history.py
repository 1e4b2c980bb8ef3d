"""What a campaign writes down, one JSON object a line, and how it is read again. Pure but for the file.

Versions of objects come from etcd itself, so none is missed while an API server is away; requests come from the audit
logs. Times are seconds since 1970 by this machine's clock, which all the clusters share, and managers but for
``ClockSet``. Not here: who writes (``recording``), and what is right (``judging``).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

Json = dict[str, Any]


class Opening(msgspec.Struct, frozen=True, tag="opening"):
    """The first line: what the campaign is like."""

    at: float
    seed: int
    origin: str
    managed_by: str
    workers: list[str]
    users: list[str]
    """What audit logs call the managers."""
    on_loss: str = "Wait"
    """Where a Job says nothing."""
    retention_seconds: float | None = None
    """How long copies that have ended are kept; None: as long as their source."""
    seeds_progress: bool = False
    """Whether what was counted goes along with a move."""
    lost_after_seconds: float = 0.0
    move_rate: float = 0.0
    """Moves a second, and of each source in all; 0: as many as it likes."""
    move_limit: int = 0
    suspends_losers: bool = False
    """Whether copies that were left on a lost worker and do not count stay there, suspended, once it is back."""
    tells_breaches: bool = False
    """Whether the history has what managers have logged of copies that run on against a promise."""


class Version(msgspec.Struct, frozen=True, tag="version"):
    """An object as it was stored, or that it is gone, when its watch told of it."""

    at: float
    cluster: str
    resource: str
    revision: int
    """Of etcd: the order of all writes to one cluster."""
    key: str
    """``NAMESPACE/NAME``."""
    body: Json | None = None
    """Without what no rule asks for, as ``recording.kept`` has it. None: deleted."""


class Request(msgspec.Struct, frozen=True, tag="request"):
    """A write by a manager, as an API server has answered it."""

    at: float
    """When it was answered; ``received`` is when it had come."""
    received: float
    cluster: str
    user: str
    verb: str
    subresource: str
    key: str
    code: int
    resource: str = "jobs"
    process: str = ""
    """Of the manager, as the Lease begins to name it: ``manager-0_4711``; empty: it did not say."""


class Fault(msgspec.Struct, frozen=True, tag="fault"):
    """Something is broken, or is whole again."""

    at: float
    name: str
    target: str
    """A cluster, or a manager."""
    is_over: bool = False


class ClockSet(msgspec.Struct, frozen=True, tag="clock"):
    """From now on the clock of a manager's machine is ahead of all clusters' by so many seconds, or behind them."""

    at: float
    manager: str
    seconds: float


class Restored(msgspec.Struct, frozen=True, tag="restored"):
    """A cluster has forgotten what was written since its snapshot."""

    at: float
    cluster: str
    snapshot_at: float


class Phase(msgspec.Struct, frozen=True, tag="phase"):
    """The campaign's own steps: ``healed``, ``settled``, ``emptied``."""

    at: float
    name: str


class EraBegun(msgspec.Struct, frozen=True, tag="era"):
    """A part of the campaign begins."""

    at: float
    name: str
    worker: str = ""
    """The one that is lost in it."""


class Complaint(msgspec.Struct, frozen=True, tag="complaint"):
    """A line of a manager's log that must not be there."""

    at: float
    manager: str
    text: str


class BreachTold(msgspec.Struct, frozen=True, tag="breach-told"):
    """A manager has logged that a copy runs though it was promised that it does not."""

    at: float
    manager: str
    worker: str
    uid: str
    """Of the copy."""


Record = Opening | Complaint | Version | Request | Fault | ClockSet | Restored | Phase | EraBegun | BreachTold

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Record)


class BadHistory(ValueError):
    """The file is no history; the text names the line."""


def encode(record: Record) -> bytes:
    """One line, with its end."""
    return _ENCODER.encode(record) + b"\n"


def decode(lines: Iterable[bytes], *, where: str = "history") -> list[Record]:
    """All records of these lines.

    Raises:
        BadHistory: a line is none of ours; a last one without its end is left out, since its writer was killed.
    """
    found: list[Record] = []
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            break
        try:
            found.append(_DECODER.decode(line))
        except msgspec.DecodeError as error:
            raise BadHistory(f"{where}, line {number}: {error}") from error
    if not found or not isinstance(found[0], Opening):
        raise BadHistory(f"{where}: the first line is not the opening of a campaign")
    return found


def read(path: Path) -> list[Record]:
    """A stored history.

    Raises:
        BadHistory: see ``decode``.
        OSError: there is no such file.
    """
    with path.open("rb") as lines:
        return decode(lines, where=str(path))
