"""What a client does by itself when it is refused: it renews its token once, and lets a cluster rest."""

from __future__ import annotations

import asyncio

import pytest
from wire import HTML, Clients, InMemory, Received, always, answer, read, serving, status, write

from mirror.kube.credentials import Credentials, Endpoint, Identity, IdentityUnavailable
from mirror.kube.errors import (
    ServerFailure,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from mirror.kube.limits import Limiter


class Tokens:
    """Hands out one token after the other."""

    def __init__(self, *tokens: str) -> None:
        self.left = list(tokens)

    async def fetch(self) -> Identity:
        if not self.left:
            raise IdentityUnavailable("no more tokens")
        return Identity(authorization=f"Bearer {self.left.pop(0)}")


async def only_two(received: Received, writer: asyncio.StreamWriter) -> None:
    good = received.headers.get("authorization") == "Bearer two"
    writer.write(answer(200) if good else answer(401, status(401, "Unauthorized")))


async def test_a_refused_token_is_renewed_and_the_request_repeated_once(clients: Clients) -> None:
    """A 401 did nothing, so a write may be repeated; callers do not notice."""
    async with serving(only_two) as server:
        credentials = Credentials(Endpoint(server.url, None), Identity("Bearer one"), source=Tokens("two"))
        await clients.make(server.url, credentials=credentials).send(write())
    assert [got.headers["authorization"] for got in server.received] == ["Bearer one", "Bearer two"]
    assert clients.observed.requests == [("east", "create", "200")]


@pytest.mark.parametrize("tokens", [("three",), ("one",), ()], ids=["another bad one", "the same", "none"])
async def test_a_token_that_stays_refused_is_unauthorized(clients: Clients, tokens: tuple[str, ...]) -> None:
    """There is one repetition at most, and none when nothing better was found."""
    async with serving(only_two) as server:
        credentials = Credentials(Endpoint(server.url, None), Identity("Bearer one"), source=Tokens(*tokens))
        with pytest.raises(Unauthorized):
            await clients.make(server.url, credentials=credentials).send(read())
    assert len(server.received) == (2 if tokens == ("three",) else 1)


async def test_many_refused_requests_renew_once(clients: Clients) -> None:
    """A plugin is a whole process: it runs once for all of them."""
    tokens = Tokens("two", "three")
    async with serving(only_two) as server:
        credentials = Credentials(Endpoint(server.url, None), Identity("Bearer one"), source=tokens)
        client = clients.make(server.url, credentials=credentials)
        await asyncio.gather(*(client.send(read()) for _ in range(20)))
    assert tokens.left == ["three"]


async def test_a_static_token_is_not_tried_again(clients: Clients) -> None:
    """Nothing could be better the second time."""
    async with serving(only_two) as server:
        with pytest.raises(Unauthorized):
            await clients.make(server.url).send(read())
    assert len(server.received) == 1


async def test_credentials_that_do_not_come_leave_the_server_unreachable(clients: Clients) -> None:
    """A plugin that hangs ends with the request's deadline, and nothing was sent."""

    class Stuck:
        async def fetch(self) -> Identity:
            await asyncio.get_running_loop().create_future()
            raise AssertionError

    async with serving(always(answer(200))) as server:
        stale = Identity("Bearer one", renew_at=0.0, expires_at=0.0)
        credentials = Credentials(Endpoint(server.url, None), stale, source=Stuck())
        with pytest.raises(Unreachable):
            await clients.make(server.url, credentials=credentials).send(write(0.1))
    assert server.received == []


@pytest.mark.parametrize(
    ("code", "headers", "body", "pause", "told"),
    [
        (429, {"Retry-After": "3"}, b"", 3.0, 3.0),
        (429, {}, b"", 1.0, None),
        (429, {}, status(429, "TooManyRequests", details={"retryAfterSeconds": 4}), 4.0, 4.0),
        (503, {"Retry-After": "3"}, HTML, 3.0, 3.0),
        (503, {}, HTML, 0.0, None),
        (429, {"Retry-After": str(86400 * 30)}, b"", 60.0, 60.0),
        (429, {"Retry-After": "9" * 500}, b"", 60.0, 60.0),
        (429, {}, status(429, "TooManyRequests", details={"retryAfterSeconds": 1e300}), 60.0, 60.0),
        (429, {"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}, b"", 1.0, None),
        (429, {"Retry-After": "-5"}, b"", 1.0, None),
        (500, {"Retry-After": "3"}, b"", 0.0, 3.0),
    ],
    ids=[
        "429 with a header",
        "429 without",
        "429 with details",
        "503 with a header",
        "503 without",
        "a month",
        "a number of 500 digits",
        "details of ages",
        "a date",
        "the past",
        "500 says it for itself only",
    ],
)
async def test_a_cluster_that_asks_for_rest_gets_it(
    clients: Clients, code: int, headers: dict[str, str], body: bytes, pause: float, told: float | None
) -> None:
    """The whole cluster pauses, for a minute at most, and the caller is told; nothing is repeated here."""
    limits = Limiter(10, 10, asyncio.get_running_loop().time)
    async with serving(always(answer(code, body, **headers))) as server:
        with pytest.raises(TooManyRequests if code == 429 else ServerFailure) as caught:
            await clients.make(server.url, limiter=limits).send(read())
    assert told == caught.value.retry_after_seconds
    assert pytest.approx(pause, abs=0.5) == limits.describe().paused_seconds
    assert len(server.received) == 1


@pytest.mark.looptime
async def test_waiting_for_the_limit_does_not_count_against_the_deadline(clients: Clients) -> None:
    """The deadline is for the server, not for our own politeness."""
    limits = Limiter(0.1, 1, asyncio.get_running_loop().time)
    limits.acquire_nowait()
    client = clients.make("", limiter=limits, transport=InMemory((4.0, b"{}")))
    assert await client.send(read(5.0)) == b"{}"
