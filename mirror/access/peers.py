"""Asks another manager for what only that one knows, where several work at once (decision 0032).

With the caller's own token, so that the other one reviews it itself; one hop, which ``PASSED_ON`` marks. Where a
manager is, its member Lease says, which nobody but managers may write. It is not believed for that: the address is to
be an IP, and the token is not sent before TLS has shown a certificate of our own authority. Not here: who knows what
(``elsewhere``).
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass

from multidict import CIMultiDict

from mirror.access.answers import JSON_TYPE
from mirror.access.bounds import Bounds
from mirror.access.under_way import Most, UnderWay
from mirror.kube.addresses import judge_address
from mirror.kube.credentials import Endpoint
from mirror.kube.errors import BadAnswer, KubeError, Unreachable, describe
from mirror.kube.requests import Request
from mirror.kube.tls import BadCertificate, client_context
from mirror.kube.transport import Answer, HttpTransport, Opened
from mirror.model.version import version
from mirror.settings.texts import split_address

PASSED_ON = "x-jobmirror-passed-on"
"""The header of a request that another manager passes on: it is answered from what is known here, or refused.

Its value is a digest of whom that manager takes the caller for (``digest_of``)."""

IP = ipaddress.IPv4Address | ipaddress.IPv6Address


class NoAnswer(Exception):
    """A manager was not asked, or did not answer; the text says why, to follow its name."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for what, as far as it is bounded."""

    authorization: str
    """The caller's, passed on unchanged."""
    person: str
    worker: str
    """Of what is asked for; empty: of none."""


@dataclass(frozen=True, slots=True)
class Trust:
    """What another manager has to show: a certificate of the same authority as ours or, without one, the same."""

    authority: bytes
    """PEM: our authority, or our certificate; empty: there is none."""
    name: str
    """A name of our own certificate; empty: it has none."""


class Peers:
    """Sends requests to other managers. Each has a connection of its own, so that nothing is kept of their tokens."""

    def __init__(self, trust: Callable[[], Trust], own_address: Callable[[], str], bounds: Bounds) -> None:
        """``own_address``: of this manager; only where it is on a loopback, others may be, too."""
        self._trust = trust
        self._own_address = own_address
        self._bounds = bounds
        self._under_way = UnderWay()
        """Requests but for logs."""
        self._context: tuple[bytes, ssl.SSLContext] | None = None

    async def answer(
        self, address: str, path: str, query: tuple[tuple[str, str], ...], caller: Caller, *, seconds: float
    ) -> Answer:
        """A whole answer, whatever its status.

        Args:
            address: as the manager's Lease has it.
            path: percent-encoded.
            query: not encoded.
            seconds: how long it may take.

        Raises:
            NoAnswer: there is none that can be used.
            TooMany: it is not asked now.
        """
        request = Request("get", "GET", path, query, deadline_seconds=seconds)
        with self._counted(address, caller), self._failures(seconds):
            async with self._connected(address) as transport, asyncio.timeout(seconds):
                found = await transport.exchange(request, headers_of(caller), self._bounds.peer_bytes)
        if not found.headers.get("Content-Type", "").startswith(JSON_TYPE):
            raise NoAnswer("answers something else than JSON")
        return found

    @asynccontextmanager
    async def opened(
        self, address: str, path: str, query: tuple[tuple[str, str], ...], caller: Caller, *, seconds: float
    ) -> AsyncIterator[Opened]:
        """An answer while it comes, once its head is there; arguments and errors as of ``answer``.

        ``seconds``: how long the whole may take.
        """
        request = Request("get", "GET", path, query, deadline_seconds=seconds)
        async with self._connected(address) as transport, AsyncExitStack() as stack:
            with self._failures(self._bounds.peer_seconds):
                async with asyncio.timeout(self._bounds.peer_seconds):
                    found = await stack.enter_async_context(transport.open(request, headers_of(caller)))
            yield found

    def _counted(self, address: str, caller: Caller) -> AbstractContextManager[None]:
        """One worker that hangs, or one person, keeps nobody else from what another worker has (D12)."""
        of_worker, of_one, of_peer = (
            self._bounds.calls_of_worker,
            self._bounds.requests_of_one,
            self._bounds.requests_of_peer,
        )
        about = f"about worker {caller.worker}" if caller.worker else "about Jobs without a worker"
        bounds = (
            Most((address, "worker", caller.worker), of_worker, _reached(of_worker, about)),
            Most((address, "person", caller.person), of_one, _reached(of_one, f"of {caller.person}")),
            Most((address,), of_peer, _reached(of_peer, "to that manager")),
        )
        return self._under_way.one_more(bounds)

    @contextmanager
    def _failures(self, seconds: float) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise NoAnswer(f"does not answer within {seconds:g} s") from None
        except KubeError as error:
            raise NoAnswer(f"does not answer: {describe(error)}") from error

    @asynccontextmanager
    async def _connected(self, address: str) -> AsyncIterator[HttpTransport]:
        """Raises NoAnswer: it may not be connected to."""
        server, context, name = _server(address, self._own_address()), *self._verifying()
        transport = HttpTransport(Endpoint(server, context, server_hostname=name, peer="the manager"))
        try:
            yield transport
        finally:
            await transport.close()

    def _verifying(self) -> tuple[ssl.SSLContext, str]:
        trust = self._trust()
        if not trust.authority or not trust.name:
            lacks = "certificate of ours" if not trust.authority else "name in our certificate"
            raise NoAnswer(f"cannot be verified: there is no {lacks}")
        try:
            trust.name.encode("idna")  # as TLS does, which would raise that once connected
        except UnicodeError:
            raise NoAnswer("cannot be verified: the first name in our certificate is no host name") from None
        if self._context is None or self._context[0] != trust.authority:
            try:
                self._context = trust.authority, client_context(ca_pem=trust.authority)
            except BadCertificate as error:
                raise NoAnswer(f"cannot be verified: our authority {error}") from error
        return self._context[1], trust.name


async def pieces_of(opened: Opened, *, seconds: float) -> AsyncIterator[bytes]:
    """What comes, as it comes, to its end.

    Raises:
        KubeError: it did not come to its end in time.
    """
    ends_at = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            async with asyncio.timeout_at(ends_at):
                piece = await opened.chunk()
        except TimeoutError as error:
            raise Unreachable("it did not end in time") from error
        if not piece:
            return
        yield piece


async def read_refusal(opened: Opened, *, most_bytes: int, seconds: float) -> bytes:
    """The body of an answer that is none.

    Raises:
        KubeError: it is too long, or does not end in time.
    """
    body = bytearray()
    async for piece in pieces_of(opened, seconds=seconds):
        body += piece
        if len(body) > most_bytes:
            raise BadAnswer("it is too long")
    return bytes(body)


def _reached(most: int, whose: str) -> str:
    return f"{most} requests {whose} are under way; retry in one second"


def headers_of(caller: Caller) -> CIMultiDict[str]:
    """All headers of a request that is passed on."""
    return CIMultiDict(
        {
            "Authorization": caller.authorization,
            "Accept-Encoding": "identity",
            "User-Agent": f"jobmirror/{version()}",
            PASSED_ON: digest_of(caller.person),
        }
    )


def digest_of(person: str) -> str:
    """Whom a manager takes a caller for, in a form that fits in a header, whatever users are called."""
    return hashlib.sha256(person.encode()).hexdigest()[:32]


def is_digest(text: str) -> bool:
    """Whether it may be one."""
    return re.fullmatch("[0-9a-f]{32}", text) is not None


def _server(address: str, own_address: str) -> str:
    """The URL of a manager's address; raises NoAnswer: it is none that managers have."""
    if not address:
        raise NoAnswer("does not say where it is (POD_IP, or setting sharding.address)")
    try:
        host, port = split_address(address)
        found = ipaddress.ip_address(host)
        if getattr(found, "scope_id", None):
            raise ValueError(host)  # of an interface, which is looked up by its name
    except ValueError:
        raise NoAnswer("has an address that is no IP address and port") from None
    because = judge_address(found)
    if because is not None and not (found.is_loopback and _is_loopback(own_address)):
        raise NoAnswer(f"has an address that is not used: {because}")
    return f"https://[{found}]:{port}" if found.version == 6 else f"https://{found}:{port}"


def _is_loopback(address: str) -> bool:
    found = ip_of(address)
    return found is not None and found.is_loopback


def ip_of(address: str) -> IP | None:
    """The IP of a manager's address; None: it has none."""
    try:
        return ipaddress.ip_address(split_address(address)[0])
    except ValueError:
        return None


def ip_of_peer(peer: str) -> IP | None:
    """The IP that a connection comes from; None: it is none."""
    try:
        found = ipaddress.ip_address(peer)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
