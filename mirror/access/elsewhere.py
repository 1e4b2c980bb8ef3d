"""Which manager knows what is asked for, where several work at once, and its answer (S2, decision 0032).

Used by ``service``, once the caller's rights are sure. What another manager follows is passed on to it by ``peers``,
once; what has been passed on already, is refused where it is not known.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote

import msgspec

from mirror.access.answers import StatusError
from mirror.access.bounds import Bounds
from mirror.access.logs import Cut
from mirror.access.peers import (
    PASSED_ON,
    Caller,
    NoAnswer,
    Peers,
    ip_of,
    ip_of_peer,
    is_digest,
    pieces_of,
    read_refusal,
)
from mirror.access.request_parsing import Asked, Question
from mirror.access.under_way import TooMany
from mirror.batch.syntax import subdomain_problems
from mirror.kinds.base import Kind
from mirror.kinds.registry import resource_name
from mirror.kube.errors import KubeError
from mirror.kube.objects import JUNK, Object
from mirror.kube.transport import Opened
from mirror.workers.worker import Worker

WORKER_HEADER, POD_HEADER = "X-Jobmirror-Worker", "X-Jobmirror-Pod"
"""Of an answer that is a log."""
_ADVICE = (
    "has to answer, and a client certificate cannot be passed on to it: use a bearer token of the management cluster "
    "(--token), or send the request to that manager itself, through a port-forward to its pod (--server)"
)


class PassedOn(StrEnum):
    """How it went with a request that only another manager can answer."""

    ANSWERED = "answered"
    """Of a log: it began."""
    REFUSED = "refused"
    """By the other manager, 4xx."""
    FAILED = "failed"
    """There, 5xx: the worker does not answer it, say."""
    UNREACHABLE = "unreachable"
    """It has not answered, or nobody does its work now."""
    THROTTLED = "throttled"
    """It was not sent, since as many are under way as may."""
    NO_TOKEN = "no_token"
    """It was not sent, since its caller has a client certificate."""


class NoToken(Exception):
    """A caller has none that could be passed on."""


class Members(Protocol):
    """Which managers there are, as their Leases say."""

    @property
    def me(self) -> str: ...

    @property
    def assigner(self) -> str:
        """Who assigns workers; empty: nobody."""
        ...

    def holder_of(self, worker: str) -> str:
        """Who follows a worker; empty: nobody."""
        ...

    def address_of(self, member: str) -> str:
        """Where it is asked; empty: that is not known."""
        ...

    @property
    def addresses(self) -> frozenset[str]:
        """Where those are asked that are there now."""
        ...


@dataclass(frozen=True, slots=True)
class Owner:
    """Who knows what is asked for; it is not us."""

    member: str
    """Empty: nobody."""
    worker: str = ""
    """The one that it follows; empty: it assigns workers."""

    @property
    def does(self) -> str:
        return f"follows worker {self.worker}" if self.worker else "assigns workers"

    def __str__(self) -> str:
        return f"manager {self.member}, which {self.does}," if self.member else f"no manager {self.does}"


class _Status(msgspec.Struct, rename="camel"):
    message: str = ""
    details: dict[str, Any] | None = None


class Elsewhere:
    """What other managers know."""

    def __init__(
        self,
        members: Members,
        peers: Peers,
        workers: Mapping[str, Worker],
        bounds: Bounds,
        *,
        count: Callable[[PassedOn], None],
    ) -> None:
        """``workers``: all; those that another manager follows are ``is_remote``."""
        self._members = members
        self._peers = peers
        self._workers = workers
        self._bounds = bounds
        self._count = count

    def owner(self, kind: Kind, source: Object, question: Question, asked: Asked) -> Owner | None:
        """Who has to be asked; None: this manager answers.

        Raises:
            StatusError: 503, another manager takes us for the one that knows.
        """
        worker = kind.summary(source).placed
        found: Owner | None = None
        if worker is None and question.what in ("", "diff"):
            found = Owner(self._members.assigner)
            found = None if found.member == self._members.me else found
        elif worker is not None:
            known, holder = self._workers.get(worker), self._members.holder_of(worker)
            # One that is registered no more is its slot's holder's, too: nobody else can say more of it.
            is_here = holder == self._members.me if known is None else not known.is_remote
            found = None if is_here else Owner(holder, worker)
        if found is not None and PASSED_ON in asked.headers:
            raise StatusError(503, f"manager {self._members.me} is not the one that {found.does}; retry")
        return found

    def passed_on_by(self, asked: Asked) -> tuple[str, str] | None:
        """Which manager passes a request on, by its address, and the digest of whom it takes the caller for.

        None: nobody does. The header alone proves nothing, since anybody may send it: the connection has to come from
        where a manager is. That proves little where something else has the same address, a proxy on a node whose
        network the manager's pod has, so it is used for nothing but to tell callers apart.
        """
        mark = asked.headers.get(PASSED_ON)
        if mark is None or not is_digest(mark):
            return None
        peer = ip_of_peer(asked.peer)
        is_member = peer is not None and peer in map(ip_of, self._members.addresses)
        return (str(peer), mark) if is_member else None

    async def answer(self, owner: Owner, kind: Kind, question: Question, asked: Asked, *, person: str) -> bytes:
        """What the owner says: the body of its answer.

        Raises:
            StatusError: as it says, or 503, which names what is not known, or 429.
        """
        seconds = self._bounds.peer_seconds if question.what else self._bounds.peer_job_seconds
        with self._passing_on(owner):
            address, caller = self._address(owner), _caller(owner, asked, person)
            found = await self._peers.answer(address, _path(kind, question), _query(asked), caller, seconds=seconds)
            if found.status != 200:
                raise _refused(owner, found.status, found.body, found.headers)
            return found.body

    async def log(
        self, owner: Owner, kind: Kind, question: Question, asked: Asked, stack: AsyncExitStack, *, person: str
    ) -> tuple[str, AsyncIterator[bytes]]:
        """The pod, and its log as it comes from the owner; the connection is on the stack. Raises as ``answer``."""
        bounds = self._bounds
        seconds = bounds.follow_seconds if question.log.follow else bounds.read_seconds
        with self._passing_on(owner):
            address, caller = self._address(owner), _caller(owner, asked, person)
            opened = await stack.enter_async_context(
                self._peers.opened(address, _path(kind, question), _query(asked), caller, seconds=seconds)
            )
            if opened.status != 200:
                body = await read_refusal(opened, most_bytes=bounds.peer_bytes, seconds=bounds.peer_seconds)
                raise _refused(owner, opened.status, body, opened.headers)
            pod = opened.headers.get(POD_HEADER, "")
            if subdomain_problems(pod):
                raise NoAnswer("names no pod")
        return pod, _handed_on(opened, owner, seconds)

    @contextmanager
    def _passing_on(self, owner: Owner) -> Iterator[None]:
        """Counts how it goes, and puts it for the caller.

        Raises:
            StatusError: it did not go well.
        """
        try:
            yield
        except (NoAnswer, KubeError) as error:
            self._count(PassedOn.UNREACHABLE)
            raise StatusError(503, f"{owner} {error}", retry_after_seconds=5) from error
        except NoToken as error:
            self._count(PassedOn.NO_TOKEN)
            raise StatusError(503, f"{owner} {_ADVICE}") from error
        except TooMany:
            self._count(PassedOn.THROTTLED)
            raise
        except StatusError as refused:
            self._count(PassedOn.REFUSED if refused.code < 500 else PassedOn.FAILED)
            raise
        self._count(PassedOn.ANSWERED)

    def _address(self, owner: Owner) -> str:
        """Raises NoAnswer: there is nobody to ask."""
        if not owner.member:
            raise NoAnswer("now: another one is about to")
        if owner.member == self._members.me:
            raise NoAnswer("is just taking it over")
        return self._members.address_of(owner.member)


async def _handed_on(opened: Opened, owner: Owner, seconds: float) -> AsyncIterator[bytes]:
    try:
        async for piece in pieces_of(opened, seconds=seconds):
            yield piece
    except KubeError as error:
        raise Cut(f"the connection to {owner} failed: {error}") from error


def _path(kind: Kind, question: Question) -> str:
    """What was understood, and nothing else of what somebody has sent."""
    place = f"{quote(question.namespace or '', safe='')}/{resource_name(kind)}/{quote(question.name, safe='')}"
    return f"/v1/namespaces/{place}" + (f"/{question.what}" if question.what else "")


def _query(asked: Asked) -> tuple[tuple[str, str], ...]:
    """Its parameters were checked when the question was read."""
    return tuple(parse_qsl(asked.target.partition("?")[2], keep_blank_values=True))


def _caller(owner: Owner, asked: Asked, person: str) -> Caller:
    """Raises NoToken."""
    authorization = asked.headers.get("authorization", "")
    if not authorization:
        raise NoToken
    return Caller(authorization, person, owner.worker)


def _refused(owner: Owner, status: int, body: bytes, headers: Mapping[str, str]) -> StatusError:
    """As the other manager says, which reviewed the caller itself."""
    try:
        said = msgspec.json.decode(body, type=_Status)
    except JUNK:
        said = _Status()
    code = status if 400 <= status < 600 else 502
    after = headers.get("Retry-After", "")
    seconds = int(after) if re.fullmatch("[0-9]{1,3}", after) else 0
    details = {key: value for key, value in (said.details or {}).items() if key != "retryAfterSeconds"}
    message = said.message or f"{owner} answers {status}"
    return StatusError(code, message, details=details, retry_after_seconds=seconds)
