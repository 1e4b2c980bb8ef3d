"""Another manager is asked over real loopback sockets: who is shown a token, and how long it is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from mirror.access.answers import Answer, StatusError, refusal
from mirror.access.bounds import Bounds
from mirror.access.logs import Cut
from mirror.access.peers import PASSED_ON, Caller, NoAnswer, Peers, Trust, digest_of, pieces_of
from mirror.access.request_parsing import Asked
from mirror.access.service import Access, Reply
from mirror.access.under_way import TooMany
from mirror.access.web import routes
from mirror.http_services import OwnAddress
from mirror.kube.errors import KubeError
from mirror.serving import https
from mirror.serving.certificates import Certificates, Material
from mirror.serving.x509 import Authority, KeyPair
from mirror.settings.schema import Settings
from mirror.telemetry.logs import get_log

OURS, OTHERS = (Authority.new(name, now=datetime.now(UTC)) for name in ("ours", "others"))
NAME = "jobmirror.jobmirror-system.svc"
TOKEN = "Bearer token-of-ann"
ANN = Caller(TOKEN, "ann", "east")
BOUNDS = Bounds(peer_seconds=10.0, peer_bytes=1_000)

Handling = Callable[[Asked, Reply], Coroutine[Any, Any, None]]


@dataclass
class Served:
    """A certificate that never changes."""

    authority: Authority
    name: str
    given: KeyPair | None = None
    """Served without its authority; None: a new one, with it."""
    every_seconds: float = 3600.0

    async def look(self) -> Material:
        if self.given is not None:
            return Material(self.given)
        return Material(self.authority.issue_server([self.name]), self.authority.certificate)


@dataclass
class Owner:
    """``access`` of another manager, which does as a test says."""

    handling: Handling
    asked: list[Asked] = field(default_factory=list)

    async def handle(self, asked: Asked, reply: Reply) -> None:
        self.asked.append(asked)
        await self.handling(asked, reply)


@asynccontextmanager
async def serving(
    handling: Handling, *, by: Authority | Served = OURS, name: str = NAME
) -> AsyncIterator[tuple[Owner, str]]:
    certificates = Certificates(by if isinstance(by, Served) else Served(by, name), log=get_log("test"))
    await certificates.load()
    owner = Owner(handling)
    app = https.application(routes(cast(Access, owner)))
    async with https.serve_https(("127.0.0.1", 0), app, certificates) as port:
        yield owner, f"127.0.0.1:{port}"


def peers(bounds: Bounds = BOUNDS, *, own: str = "127.0.0.1:8443", trust: Trust | None = None) -> Peers:
    return Peers(lambda: trust or Trust(OURS.certificate, NAME), lambda: own, bounds)


async def says_so(_: Asked, reply: Reply) -> None:
    await reply.whole(Answer(200, b'{"items":[]}'))


async def test_a_request_is_passed_on_with_the_callers_token_and_marked() -> None:
    async with serving(says_so) as (owner, address):
        found = await peers().answer(
            address, "/v1/namespaces/a/jobs/b/pods", (("limit", "5"),), ANN, seconds=BOUNDS.peer_seconds
        )

    assert (found.status, found.body) == (200, b'{"items":[]}')
    (asked,) = owner.asked
    assert (asked.method, asked.target) == ("GET", "/v1/namespaces/a/jobs/b/pods?limit=5")
    assert (asked.headers["authorization"], asked.headers[PASSED_ON]) == (TOKEN, digest_of("ann"))


async def test_a_refusal_is_an_answer() -> None:
    async def refuse(_: Asked, reply: Reply) -> None:
        await reply.whole(refusal(StatusError(429, "too many", retry_after_seconds=3)))

    async with serving(refuse) as (_, address):
        found = await peers().answer(address, "/v1/jobs", (), ANN, seconds=BOUNDS.peer_seconds)

    assert (found.status, found.headers["Retry-After"]) == (429, "3")


@pytest.mark.parametrize(
    ("by", "name"),
    [pytest.param(OTHERS, NAME, id="another authority"), pytest.param(OURS, "other.example.com", id="another name")],
)
async def test_who_cannot_show_our_certificate_sees_no_token(by: Authority, name: str) -> None:
    """Whoever writes a Lease that leads to a server of theirs gets a handshake, and nothing in it."""
    async with serving(says_so, by=by, name=name) as (owner, address):
        with pytest.raises(NoAnswer, match=r"does not answer: .*certificate"):
            await peers().answer(address, "/v1/jobs", (), ANN, seconds=BOUNDS.peer_seconds)
        with pytest.raises(NoAnswer, match=r"does not answer: .*certificate"):
            async with peers().opened(address, "/v1/jobs", (), ANN, seconds=10):
                pass

    assert owner.asked == []


async def test_without_an_authority_the_same_certificate_is_one_of_ours() -> None:
    """``https.certFile`` without ``ca.crt`` beside it, as ACME's are; another one of that authority will not do."""
    shown = Served(OURS, NAME, OURS.issue_server([NAME]))
    own = OwnAddress(Settings())
    own.certificates = Certificates(shown, log=get_log("test"))
    await own.certificates.load()
    same = Peers(own.trust, lambda: "127.0.0.1:8443", BOUNDS)
    async with serving(says_so, by=shown) as (_, address):
        assert (await same.answer(address, "/v1/jobs", (), ANN, seconds=BOUNDS.peer_seconds)).status == 200
    async with serving(says_so) as (owner, address):
        with pytest.raises(NoAnswer, match=r"does not answer: .*certificate"):
            await same.answer(address, "/v1/jobs", (), ANN, seconds=BOUNDS.peer_seconds)
        assert owner.asked == []


@pytest.mark.parametrize("name", [".a", "x..y", "a" * 64])
async def test_a_name_that_is_no_host_name_is_said(name: str) -> None:
    async with serving(says_so) as (owner, address):
        with pytest.raises(NoAnswer, match="no host name"):
            await peers(trust=Trust(OURS.certificate, name)).answer(
                address, "/v1/jobs", (), ANN, seconds=BOUNDS.peer_seconds
            )
        assert owner.asked == []


@pytest.mark.parametrize(
    ("trust", "why"),
    [(Trust(b"", NAME), "certificate of ours"), (Trust(OURS.certificate, ""), "name in our certificate")],
)
async def test_without_something_to_verify_by_nobody_is_asked(trust: Trust, why: str) -> None:
    async with serving(says_so) as (owner, address):
        with pytest.raises(NoAnswer, match=f"cannot be verified: there is no {why}"):
            await peers(trust=trust).answer(address, "/v1/jobs", (), ANN, seconds=BOUNDS.peer_seconds)

    assert owner.asked == []


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("", "does not say where it is"),
        ("manager-1.example.com:8443", "no IP address and port"),
        ("10.0.0.1", "no IP address and port"),
        ("10.0.0.1:8443/v1", "no IP address and port"),
        ("user@10.0.0.1:8443", "no IP address and port"),
        ("[fe80::1%eth0]:8443", "no IP address and port"),
        ("169.254.169.254:443", "link-local"),
        ("[fd00:ec2::254]:443", "metadata service"),
        ("0.0.0.0:8443", "unspecified"),
        ("127.0.0.1:8443", "loopback"),
        ("[::1]:8443", "loopback"),
    ],
)
async def test_only_addresses_that_managers_have_are_connected_to(address: str, why: str) -> None:
    with pytest.raises(NoAnswer, match=why):
        await peers(own="10.0.0.2:8443").answer(address, "/v1/jobs", (), ANN, seconds=BOUNDS.peer_seconds)


async def test_an_answer_that_is_too_long_is_none() -> None:
    async def flood(_: Asked, reply: Reply) -> None:
        await reply.whole(Answer(200, b'"' + b"x" * 2_000 + b'"'))

    async with serving(flood) as (_, address):
        with pytest.raises(NoAnswer, match="an answer of more than 1000 bytes"):
            await peers().answer(address, "/v1/jobs", (), ANN, seconds=BOUNDS.peer_seconds)


async def test_who_is_silent_is_not_waited_for() -> None:
    async def hang(_: Asked, reply: Reply) -> None:
        await asyncio.get_running_loop().create_future()

    async with serving(hang) as (_, address):
        soon = peers(replace(BOUNDS, peer_seconds=0.3))
        with pytest.raises(NoAnswer, match=r"does not answer within 0\.3 s"):
            await soon.answer(address, "/v1/jobs", (), ANN, seconds=0.3)
        with pytest.raises(NoAnswer, match=r"does not answer within 0\.3 s"):
            async with soon.opened(address, "/v1/jobs", (), ANN, seconds=60):
                pass


@pytest.mark.parametrize(
    ("bounds", "kept", "lets_through"),
    [
        (replace(BOUNDS, calls_of_worker=1), Caller(TOKEN, "bob", "east"), Caller(TOKEN, "ann", "west")),
        (replace(BOUNDS, requests_of_one=1), Caller(TOKEN, "ann", "west"), Caller(TOKEN, "bob", "east")),
        (replace(BOUNDS, requests_of_peer=1), Caller(TOKEN, "bob", "west"), None),
    ],
    ids=["about one worker", "of one person", "to one manager"],
)
async def test_only_so_many_wait(bounds: Bounds, kept: Caller, lets_through: Caller | None) -> None:
    """One worker that hangs, or one person, holds a few requests of ours, and nobody else's (D12)."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait(asked: Asked, reply: Reply) -> None:
        if "other" not in asked.target:
            begun.set()
            await go_on.wait()
        await reply.whole(Answer(200, b"{}"))

    async with serving(wait) as (_, address), asyncio.TaskGroup() as scope:
        asking = peers(bounds)

        async def ask(path: str, caller: Caller) -> int:
            return (await asking.answer(address, path, (), caller, seconds=bounds.peer_seconds)).status

        first = scope.create_task(ask("/v1/jobs", ANN))
        await begun.wait()
        with pytest.raises(TooMany, match=r"1 requests .* are under way"):
            await ask("/v1/other", kept)
        if lets_through is not None:
            assert await ask("/v1/other", lets_through) == 200
        go_on.set()
        assert await first == 200
        assert await ask("/v1/jobs", kept) == 200


async def test_a_log_comes_as_it_is_written_and_one_that_is_cut_does_not_look_whole() -> None:
    go_on = asyncio.Event()

    async def write(asked: Asked, reply: Reply) -> None:
        await reply.begin((("X-Jobmirror-Pod", "train-x"),))
        await reply.write(b"one\n")
        await go_on.wait()
        await reply.write(b"two\n")
        if "cut" in asked.target:
            raise Cut("the worker broke off")

    async with serving(write) as (_, address):
        for path in ("/v1/whole", "/v1/cut"):
            go_on.clear()
            async with peers().opened(address, path, (), ANN, seconds=60) as opened:
                pieces = pieces_of(opened, seconds=60)
                assert (opened.status, opened.headers["X-Jobmirror-Pod"]) == (200, "train-x")
                assert await anext(pieces) == b"one\n"
                go_on.set()
                if path == "/v1/whole":
                    assert b"".join([piece async for piece in pieces]) == b"two\n"
                else:
                    with pytest.raises(KubeError):
                        assert b"".join([piece async for piece in pieces]) == b"two\n"
