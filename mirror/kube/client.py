"""One cluster's client: who we are, how fast we may ask, how long we wait, and what the answers mean.

Everybody who talks to a cluster uses a ``Client``; ``watch`` builds on ``stream``. It never tries again by itself, with
one exception: a 401 is repeated once when the credentials could be renewed, since a refused request did nothing. When
else to try again is decided in ``runtime/loop``. Connections are ``transport``'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NamedTuple, Protocol

from multidict import CIMultiDict

from mirror.kube import amounts
from mirror.kube.amounts import InFlight
from mirror.kube.answers import error_from_answer
from mirror.kube.credentials import Credentials
from mirror.kube.errors import (
    ApiError,
    BadAnswer,
    KubeError,
    OutcomeUnknown,
    ServerFailure,
    TooManyRequests,
    Unreachable,
)
from mirror.kube.limits import Limiter, LimiterState
from mirror.kube.objects import Object, decode_object
from mirror.kube.permits import WritePermit
from mirror.kube.requests import JSON, Request
from mirror.kube.streaming import Silence, read_error, read_lines, read_pieces, seconds_of
from mirror.kube.transport import Answer, HttpTransport, Opened, Transport, was_connecting
from mirror.model.version import version

_SOON_SECONDS = 2.0
"""What takes longer to be answered, or to be read, says too little of the server's clock (D14)."""
_UNASKED_PAUSE_SECONDS = 1.0
"""How long a 429 that names no time quietens a cluster."""


class Observer(Protocol):
    """Who counts requests."""

    def on_request(self, cluster: str, verb: str, code: str, seconds: float) -> None:
        """One request ended: ``code`` is its HTTP status, or ``error`` when there was no usable answer."""
        ...


class Uncounted:
    """An observer that looks away, for commands and for clients of tests."""

    def on_request(self, cluster: str, verb: str, code: str, seconds: float) -> None:
        """Nothing."""


class Tagged(NamedTuple):
    """An answer that has a version."""

    body: bytes | None
    """None: it is still the version that the request named."""
    tag: str
    """Its ETag; empty: it has none."""


@dataclass(frozen=True, slots=True)
class ClientState:
    """What a client looks like right now; for /healthz, logs and tests."""

    cluster: str
    server: str
    limits: LimiterState
    clock_offset_seconds: float | None


class Client:
    """Talks to one cluster. Make it inside the running loop and ``close()`` it there.

    A changed kubeconfig means a new client: build it, swap it in, close the old one.
    """

    def __init__(  # noqa: PLR0913 - options, each with a default
        self,
        name: str,
        credentials: Credentials,
        limiter: Limiter,
        observer: Observer | None = None,
        *,
        transport: Transport | None = None,
        permit: WritePermit | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """``observer``: without it, nobody counts. ``permit``: without it, writes are sent whoever leads."""
        self.name = name
        self._credentials = credentials
        self._limiter = limiter
        self._observer = observer or Uncounted()
        self._permit = permit
        self._transport: Transport = (
            transport if transport is not None else HttpTransport(credentials.endpoint, permit=permit)
        )
        self._wall = wall
        self._user_agent = f"jobmirror/{version()}"
        # The headers by content type and what is accepted, valid as long as the credentials hand out this very object.
        self._identity: CIMultiDict[str] | None = None
        self._headers: dict[tuple[str | None, str, bool], CIMultiDict[str]] = {}
        self._certificate_generation = credentials.certificate_generation
        self._last_date = ""
        self._clock_offset: float | None = None
        self._lines_in_flight = InFlight()

    @property
    def clock_offset_seconds(self) -> float | None:
        """How far the server's clock is ahead of ours, from the newest answer; None before the first.

        A Date header has whole seconds, so half a second of error is usual.
        """
        return self._clock_offset

    @property
    def credentials(self) -> Credentials:
        """Who asks, and where."""
        return self._credentials

    @property
    def server(self) -> str:
        return self._credentials.endpoint.server

    @property
    def is_saturated(self) -> bool:
        """Whether requests wait for the rate limit right now."""
        return self._limiter.is_saturated

    def describe(self) -> ClientState:
        return ClientState(self.name, self.server, self._limiter.describe(), self._clock_offset)

    async def send(self, request: Request) -> bytes:
        """Carry out one request and return the JSON of the answer.

        Waiting for the rate limit does not count against the request's deadline.

        Raises:
            Unreachable: it was certainly not carried out; ``NotLeading``: because it may not be.
            OutcomeUnknown: it was sent, and no answer came in time.
            BadAnswer: what answered is not the Kubernetes API.
            ApiError: the server refused it; a subclass by meaning.
        """
        return (await self._answer(request)).body

    async def send_tagged(self, request: Request) -> Tagged:
        """As ``send``, with the answer's version; without a body where that is the request's ``if_none_match``."""
        answer = await self._answer(request)
        body = None if answer.status == HTTPStatus.NOT_MODIFIED else answer.body
        return Tagged(body, answer.headers.get("ETag", ""))

    async def send_object(self, request: Request) -> Object:
        """As ``send``, decoded; raises ``BadAnswer`` when it is no object."""
        return decode_object(await self.send(request))

    @asynccontextmanager
    async def stream(self, request: Request, *, silent_seconds: Silence) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Open a watch and hand out its lines as they come, without line ends and empty ones, until the server ends it.

        Of a line that is too long for an object its ``Head`` is handed out.

        Raises, also while the lines are read:
            Unreachable: no byte came for ``silent_seconds``, the request's deadline is over, or the connection broke.
            BadAnswer: it is not JSON.
            TooLarge: a line has no end, or all lines that have begun are too much together.
            ApiError: the server refused it.
        """
        if not self._limiter.acquire_nowait(urgent=request.urgent):
            await self._limiter.acquire(urgent=request.urgent, rank=request.rank, flow=request.flow)
        ends_at = asyncio.get_running_loop().time() + request.deadline_seconds
        async with contextlib.AsyncExitStack() as stack:
            opened = await self._open(request, stack, seconds_of(silent_seconds))
            _require_json(opened.status, opened.headers.get("Content-Type", ""))
            share = stack.enter_context(self._lines_in_flight.share())
            lines = read_lines(opened, silent_seconds, ends_at, share)
            yield await stack.enter_async_context(contextlib.aclosing(lines))

    @asynccontextmanager
    async def text(
        self, request: Request, *, answered_within_seconds: float
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Open an answer that is text, such as a container's log, and hand out its pieces as they come, to their end.

        The request's deadline bounds the whole; between two pieces any time may pass.

        Raises, also while pieces are read:
            Unreachable: it was not answered in time, the request's deadline is over, or the connection broke.
            ApiError: the server refused it.
        """
        if not self._limiter.acquire_nowait(urgent=request.urgent):
            await self._limiter.acquire(urgent=request.urgent, rank=request.rank, flow=request.flow)
        ends_at = asyncio.get_running_loop().time() + request.deadline_seconds
        async with contextlib.AsyncExitStack() as stack:
            opened = await self._open(request, stack, answered_within_seconds)
            if opened.status >= 300:
                raise BadAnswer(f"the response is a redirect ({opened.status}), which an API server never sends")
            yield await stack.enter_async_context(contextlib.aclosing(read_pieces(opened, ends_at)))

    async def close(self) -> None:
        """Close all connections; requests under way fail, later ones find it unreachable."""
        await self._transport.close()

    async def _answer(self, request: Request) -> Answer:
        """Carry out one request; raises as ``send``."""
        if not self._limiter.acquire_nowait(urgent=request.urgent):
            await self._limiter.acquire(urgent=request.urgent, rank=request.rank, flow=request.flow)
        with _Counted(self, request) as counted:
            answer = await self._exchange(request)
            counted.code = str(answer.status)
            if self._clock_offset is None or counted.seconds < _SOON_SECONDS:
                self._compare_clocks(answer.headers.get("Date", ""))
            if answer.status >= 400:
                raise self._refusal(answer)
            if answer.status != HTTPStatus.NOT_MODIFIED or not request.if_none_match:
                content_type = JSON if request.any_type else answer.headers.get("Content-Type", "")
                _require_json(answer.status, content_type)
        return answer

    async def _exchange(self, request: Request) -> Answer:
        usual = amounts.MOST_PAGE_BYTES if request.verb == "list" else amounts.MOST_OBJECT_BYTES
        most = request.most_bytes or usual
        deadline_seconds, sent = self._deadline_seconds(request), False
        try:
            async with asyncio.timeout(deadline_seconds):
                identity, headers = await self._prepare(request)
                self._check_permit(request)
                sent = True
                answer = await self._transport.exchange(request, headers, most)
                if answer.status == 401 and await self._credentials.renew(identity):
                    sent = False
                    _, headers = await self._prepare(request)
                    self._check_permit(request)
                    sent = True
                    answer = await self._transport.exchange(request, headers, most)
                return answer
        except TimeoutError as error:
            raise self._too_late(deadline_seconds, sent=sent, is_connected=not was_connecting(error)) from error

    def _deadline_seconds(self, request: Request) -> float:
        """For how long its answer may be waited for: a write's not when the Lease may be another's (D28).

        Raises:
            NotLeading: it must not be sent.
        """
        if self._permit is None or not request.needs_permit:
            return request.deadline_seconds
        self._permit.check()
        return min(request.deadline_seconds, self._permit.seconds_left())

    def _check_permit(self, request: Request) -> None:
        """Whoever waited for credentials may have lost the Lease meanwhile (``transport`` looks once more).

        Raises:
            NotLeading: so it is.
        """
        if self._permit is not None and request.needs_permit:
            self._permit.check()

    async def _open(self, request: Request, stack: contextlib.AsyncExitStack, silent_seconds: float) -> Opened:
        """The answer to a watch or a log once its head is there."""
        with _Counted(self, request) as counted:
            try:
                async with asyncio.timeout(min(silent_seconds, request.deadline_seconds)):
                    identity, headers = await self._prepare(request)
                    opened = await stack.enter_async_context(self._transport.open(request, headers))
                    if opened.status == 401 and await self._credentials.renew(identity):
                        await stack.aclose()
                        _, headers = await self._prepare(request)
                        opened = await stack.enter_async_context(self._transport.open(request, headers))
                    counted.code = str(opened.status)
                    if opened.status >= 400:
                        raise self._refusal(Answer(opened.status, opened.headers, await read_error(opened)))
            except TimeoutError as error:
                raise Unreachable(f"no response to the watch within {silent_seconds:g} s") from error
            except OutcomeUnknown as error:
                raise Unreachable(str(error)) from error
        return opened

    async def _prepare(self, request: Request) -> tuple[CIMultiDict[str], CIMultiDict[str]]:
        """Who we are now, and the headers to send."""
        identity = await self._credentials.headers()
        if identity is not self._identity:
            self._identity = identity
            self._headers.clear()
        if self._certificate_generation != self._credentials.certificate_generation:
            self._certificate_generation = self._credentials.certificate_generation
            await self._transport.reconnect()
        wanted = request.content_type, request.accept, request.compressed
        headers = self._headers.get(wanted)
        if headers is None:
            encoding = "gzip" if request.compressed and self._credentials.endpoint.compresses else "identity"
            headers = CIMultiDict(
                {"Accept": request.accept, "Accept-Encoding": encoding, "User-Agent": self._user_agent}
            )
            if request.content_type is not None:
                headers["Content-Type"] = request.content_type
            headers.extend(identity)
            self._headers[wanted] = headers
        if request.if_none_match:
            headers = headers.copy()
            headers["If-None-Match"] = request.if_none_match
        return identity, headers

    def _refusal(self, answer: Answer) -> KubeError:
        """The error that an answer stands for; the whole cluster rests when it says so (docs/libraries.md)."""
        error = error_from_answer(answer.status, answer.headers, answer.body)
        if isinstance(error, TooManyRequests):
            self._limiter.pause(error.retry_after_seconds or _UNASKED_PAUSE_SECONDS)
        elif isinstance(error, ServerFailure) and error.code == 503 and error.retry_after_seconds:
            self._limiter.pause(error.retry_after_seconds)
        return error

    def _too_late(self, seconds: float, *, sent: bool, is_connected: bool) -> KubeError:
        if not sent:
            return Unreachable(f"no credentials within {seconds:.3g} s")
        if not is_connected:
            return Unreachable(f"no connection within {seconds:.3g} s")
        return OutcomeUnknown(f"no response within {seconds:.3g} s")

    def _compare_clocks(self, date: str) -> None:
        """Look at a Date header; once per second of the server's, as reading one is not cheap."""
        if not date or date == self._last_date:
            return
        self._last_date = date
        with contextlib.suppress(ValueError, OverflowError):
            # The header is cut to whole seconds: on average it was half a second later than it says.
            self._clock_offset = parsedate_to_datetime(date).timestamp() + 0.5 - self._wall()


class _Counted:
    """Tells the observer about one request when it is over."""

    __slots__ = ("_began", "_client", "_request", "code")

    def __init__(self, client: Client, request: Request) -> None:
        self._client = client
        self._request = request
        self.code = "error"

    def __enter__(self) -> _Counted:
        self._began = time.perf_counter()
        return self

    @property
    def seconds(self) -> float:
        """Since it was sent."""
        return time.perf_counter() - self._began

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        code = self.code if error is None or isinstance(error, ApiError) else "error"
        self._client._observer.on_request(self._client.name, self._request.verb, code, self.seconds)


def _require_json(status: int, content_type: str) -> None:
    if status >= 300:
        raise BadAnswer(f"the response is a redirect ({status}), which an API server never sends")
    if not content_type.lower().startswith(JSON):
        raise BadAnswer("the response is not JSON: this is not a Kubernetes API server")
