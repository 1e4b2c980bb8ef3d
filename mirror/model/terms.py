"""In which term of its worker's slot a source was recorded, and what is requested: its record's reason (S2, S6). Pure.

It is ``MARK``, ``MARK:TERM`` or ``MARK,REQUEST:TERM``. Where there are no slots there is no term, and the reason is as
it was. The mark may name the manager that recorded it, by its namespace: ``PlacedBy_jobmirror_system`` (D2, D25); a
reason has no hyphens, and a namespace no underscores.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from mirror.model import names
from mirror.model.move_requests import MoveRequest, parse_request

_BEFORE_TERM, _BEFORE_REQUEST, _BEFORE_MANAGER = ":", ",", "By_"
"""As reasons of conditions may have them."""


CARRIED_OUT_SECONDS = 60.0
"""No API server carries a request out later than that after it was sent (S8)."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms that one instance of mirroring knows of; empty texts where there are none."""

    of: Callable[[str], str] = lambda worker: ""
    """In which term the slot of a worker is held, by whomever; of a slot's holder its own, whatever worker it is."""
    read: Callable[[str], Awaitable[str]] | None = None
    """The same as the API server has it now, for who assigns; raises KubeError. None: ``of`` is never late."""
    holder: Callable[[str], str] = lambda worker: ""
    """Which replica holds the slot of a worker; empty: nobody, or that is not known."""

    async def current(self, worker: str) -> str:
        """In which term the slot of a worker is held, as of a moment since this was asked.

        Raises:
            KubeError: it could not be read.
        """
        return self.of(worker) if self.read is None else await self.read(worker)


NO_TERMS = Terms()
"""Of who has no slots."""


class _Reason(NamedTuple):
    mark: str = ""
    request: str = ""
    term: str = ""
    manager: str = ""

    def __str__(self) -> str:
        by = f"{_BEFORE_MANAGER}{self.manager.replace('-', '_')}" if self.manager else ""
        asked = f"{_BEFORE_REQUEST}{self.request}" if self.request else ""
        return f"{self.mark}{by}{asked}{_BEFORE_TERM}{self.term}" if self.term else f"{self.mark}{by}{asked}"


def term_of(status: Mapping[str, Any]) -> str:
    """In which a source was recorded; empty: in none, or it is not recorded."""
    return _reason_in(status).term


def mark_in(status: Mapping[str, Any]) -> str:
    """What the reason says beside manager, request and term; empty: there is no record."""
    return _reason_in(status).mark


def manager_in(status: Mapping[str, Any]) -> str:
    """The namespace of the manager that has recorded a source; empty: the record does not say, or there is none."""
    return _reason_in(status).manager


def may_name_manager(status: bytes) -> bool:
    """Whether a status may say that, without decoding it."""
    return _BEFORE_MANAGER.encode() in status


def request_in(status: Mapping[str, Any]) -> MoveRequest | None:
    """What the holder of its worker's slot requests."""
    return parse_request(text) if (text := _reason_in(status).request) else None


def with_term(status: Mapping[str, Any], term: str) -> dict[str, Any]:
    """The same status, of a source that has a worker, with this term; empty: with none."""
    return _with_record(status, lambda reason: reason._replace(term=term))


def with_mark(status: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """The same status, of a source that has a worker, with another mark but the same term."""
    return _with_record(status, lambda reason: reason._replace(mark=mark))


def with_manager(status: Mapping[str, Any], manager: str) -> dict[str, Any]:
    """The same status, of a source that has a worker, recorded by the manager in this namespace."""
    return _with_record(status, lambda reason: reason._replace(manager=manager))


def with_request(status: Mapping[str, Any], request: MoveRequest | None, term: str) -> dict[str, Any]:
    """The same status, of a source that has a worker, with this request of this term; None: with no request."""
    text = request.text if request is not None else ""
    return _with_record(status, lambda reason: reason._replace(request=text, term=term))


def recorded_anew(status: Mapping[str, Any], at: str) -> dict[str, Any]:
    """The same status, of a source that has a worker, recorded there since this moment (RFC 3339, whole seconds)."""
    return _with_record(status, lambda reason: reason, lastProbeTime=at, lastTransitionTime=at)


def _reason_in(status: Mapping[str, Any]) -> _Reason:
    for one in status.get("conditions") or ():
        if _is_record(one):
            return _parse(str(one.get("reason", "")))
    return _Reason()


def _parse(text: str) -> _Reason:
    before, _, term = text.partition(_BEFORE_TERM)
    named, _, request = before.partition(_BEFORE_REQUEST)
    mark, _, manager = named.partition(_BEFORE_MANAGER)
    return _Reason(mark, request, term, manager.replace("_", "-"))


def _with_record(status: Mapping[str, Any], reason: Callable[[_Reason], _Reason], **more: str) -> dict[str, Any]:
    def changed(one: Mapping[str, Any]) -> Mapping[str, Any]:
        if not _is_record(one):
            return one
        return {**one, "reason": str(reason(_parse(str(one.get("reason", ""))))), **more}

    return {**status, "conditions": [changed(one) for one in status.get("conditions") or ()]}


def _is_record(condition: Mapping[str, Any]) -> bool:
    return condition.get("type") == names.PLACED and condition.get("status") == "True"
