"""One cluster's client over real sockets: what its failures mean, and what it does by itself."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable

import pytest
from wire import Clients, Received, always, answer, chunk, chunked_head, serving, status

from mirror.kube import requests
from mirror.kube.credentials import Credentials, Endpoint, Identity, IdentityUnavailable
from mirror.kube.errors import (
    AlreadyExists,
    ApiError,
    BadAnswer,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    OutcomeUnknown,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from mirror.kube.limits import Limiter
from mirror.kube.requests import Request
from mirror.kube.resources import JOBS

HTML = b"<html><body><h1>no healthy upstream</h1></body></html>"
JOB = b'{"metadata":{"name":"train","resourceVersion":"7","managedFields":[1]},"spec":{"a":1},"status":{}}'


def read(deadline_seconds: float = 5.0) -> Request:
    return Request("get", "GET", JOBS.path("team", "train"), deadline_seconds=deadline_seconds)


def write(deadline_seconds: float = 5.0) -> Request:
    made = requests.create(JOBS, {"metadata": {"name": "train"}}, namespace="team")
    return Request(made.verb, made.method, made.path, made.query, made.body, made.content_type, deadline_seconds)


EITHER = pytest.mark.parametrize("request_of", [read, write], ids=["a read", "a write"])
RequestOf = Callable[[float], Request]


async def never(_: Received, writer: asyncio.StreamWriter) -> None:
    await asyncio.get_running_loop().create_future()


async def hang_up(_: Received, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


# What is sent


async def test_a_request_arrives_as_it_was_meant(clients: Clients) -> None:
    """Method, path, query, body, and who we are; nothing is asked for compressed."""
    async with serving(always(answer(201, JOB))) as server:
        body = await clients.make(server.url).send(write())
    (got,) = server.received
    assert body == JOB
    assert (got.method, got.target) == ("POST", "/apis/batch/v1/namespaces/team/jobs?fieldManager=jobmirror")
    assert json.loads(got.body) == {"metadata": {"name": "train"}}
    assert got.headers["authorization"] == "Bearer one"
    assert (got.headers["accept"], got.headers["content-type"]) == ("application/json", "application/json")
    assert got.headers["accept-encoding"] == "identity"
    assert got.headers["user-agent"].startswith("jobmirror/")


async def test_names_and_selectors_reach_the_server_encoded(clients: Clients) -> None:
    """A name cannot leave its place in the path, nor a selector its place in the query."""
    async with serving(always(answer(200))) as server:
        client = clients.make(server.url)
        await client.send(requests.get(JOBS, "a/../b?x=1", namespace="t m"))
        await client.send(requests.list_page(JOBS, label_selector="a in (b,c)&limit=0"))
    assert [got.target for got in server.received] == [
        "/apis/batch/v1/namespaces/t%20m/jobs/a%2F..%2Fb%3Fx%3D1",
        "/apis/batch/v1/jobs?limit=500&labelSelector=a+in+%28b%2Cc%29%26limit%3D0",
    ]


async def test_a_server_below_a_path_is_found_there(clients: Clients) -> None:
    """Some proxies serve each cluster below a path of its own."""
    async with serving(always(answer(200))) as server:
        await clients.make(server.url + "/k8s/clusters/c-1").send(read())
    assert server.received[0].target == "/k8s/clusters/c-1/apis/batch/v1/namespaces/team/jobs/train"


async def test_a_large_body_is_sent_whole(clients: Clients) -> None:
    """A body of megabytes takes another way through the HTTP library, and arrives all the same."""
    async with serving(always(answer(200))) as server:
        body = b'{"a":"' + b"x" * 2_500_000 + b'"}'
        await clients.make(server.url).send(requests.create(JOBS, body, namespace="team"))
    assert body == server.received[0].body


async def test_a_connection_serves_many_requests(clients: Clients) -> None:
    """Also after refusals: a new TLS connection costs twenty requests."""
    async with serving(always(answer(200), answer(404, status(404, "NotFound")), answer(200))) as server:
        client = clients.make(server.url)
        for _ in range(5):
            try:
                await client.send(read())
            except NotFound:
                continue
    assert (len(server.received), server.connections) == (5, 1)


async def test_environment_and_netrc_are_not_looked_at(
    clients: Clients, monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    """A proxy variable or a netrc entry of whoever runs us must not change where tokens go."""
    with open(os.path.join(tmp_path, "netrc"), "w") as file:
        file.write("machine 127.0.0.1 login u password p\n")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NETRC", os.path.join(tmp_path, "netrc"))
    async with serving(always(answer(200))) as server:
        await clients.make(server.url).send(read())
    assert server.received[0].headers["authorization"] == "Bearer one"


# What answers mean


@pytest.mark.parametrize(
    ("code", "body", "kind"),
    [
        (400, status(400, "BadRequest"), BadRequest),
        (401, status(401, "Unauthorized"), Unauthorized),
        (403, status(403, "Forbidden"), Forbidden),
        (404, status(404, "NotFound"), NotFound),
        (409, status(409, "Conflict"), Conflict),
        (409, status(409, "AlreadyExists"), AlreadyExists),
        (410, status(410, "Expired"), Expired),
        (410, status(410, "Gone"), Expired),
        (415, status(415, "UnsupportedMediaType"), ApiError),
        (422, status(422, "Invalid"), Invalid),
        (429, status(429, "TooManyRequests"), TooManyRequests),
        (500, status(500, "InternalError"), ServerFailure),
        (503, HTML, ServerFailure),
        (504, b"", ServerFailure),
        (401, HTML, Unauthorized),
        (403, HTML, Forbidden),
        (429, b'{"kind":"Status","details":5}', TooManyRequests),
        (404, HTML, BadAnswer),
        (404, b"404 page not found", BadAnswer),
        (404, b'{"kind":"Job"}', BadAnswer),
        (404, b"[" * 100_000, BadAnswer),
        (409, b"", BadAnswer),
        (410, HTML, BadAnswer),
        (422, b'{"kind":"Status","code":"422","reason":["Invalid"]}', BadAnswer),
        (301, b"", BadAnswer),
        (302, HTML, BadAnswer),
        (304, b"", BadAnswer),
    ],
)
async def test_a_refusal_is_an_error_by_its_meaning(
    clients: Clients, code: int, body: bytes, kind: type[KubeError]
) -> None:
    """What says something about an object counts only with a Status: a proxy's 404 must not fail anybody's Job."""
    content_type = "text/html" if body == HTML else "application/json"
    async with serving(always(answer(code, body, content_type=content_type))) as server:
        with pytest.raises(KubeError) as caught:
            await clients.make(server.url).send(read())
    assert kind is type(caught.value)


async def test_a_status_is_read_with_its_causes(clients: Clients) -> None:
    """Causes tell which field was wrong; what it is about tells a missing namespace from a missing Job."""
    details = {"kind": "namespaces", "name": "team", "causes": [{"field": "spec.x", "reason": "FieldValueInvalid"}]}
    async with serving(always(answer(422, status(422, "Invalid", message="long", details=details)))) as server:
        with pytest.raises(Invalid) as caught:
            await clients.make(server.url).send(write())
    error = caught.value
    assert [(cause.field, cause.reason) for cause in error.causes] == [("spec.x", "FieldValueInvalid")]
    assert (error.about_kind, error.about_name, error.message) == ("namespaces", "team", "long")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (HTML, "text/html; charset=utf-8"),
        (b"ok", "text/plain"),
        (b"{}", ""),
        (b"\x00", "application/vnd.kubernetes.protobuf"),
    ],
    ids=["an HTML page", "plain text", "no type", "protobuf"],
)
async def test_success_that_is_not_json_is_a_bad_answer(clients: Clients, body: bytes, content_type: str) -> None:
    """A login page with 200 is no success."""
    async with serving(always(answer(200, body, content_type=content_type))) as server:
        with pytest.raises(BadAnswer):
            await clients.make(server.url).send(read())


@pytest.mark.parametrize(
    "body",
    [JOB[:-9], b"", b"null", b"[]", b'{"metadata":5}', b'{"metadata":{"labels":{"a":1}}}', b"[" * 100_000, b'"\xff"'],
)
async def test_what_is_no_object_is_a_bad_answer(clients: Clients, body: bytes) -> None:
    """Cut or wrong JSON never gets further than this."""
    async with serving(always(answer(200, body))) as server:
        with pytest.raises(BadAnswer):
            await clients.make(server.url).send_object(read())


async def test_an_object_is_decoded(clients: Clients) -> None:
    """Metadata at once, the rest on demand."""
    async with serving(always(answer(200, JOB))) as server:
        found = await clients.make(server.url).send_object(read())
    assert (found.metadata.name, found.version, found.spec_dict(), found.status_dict()) == ("train", 7, {"a": 1}, {})


async def test_redirects_are_not_followed(clients: Clients) -> None:
    """Our token goes to the server that the kubeconfig names, and to no other."""
    async with serving(always(answer(200))) as elsewhere:
        async with serving(always(answer(307, b"", location=elsewhere.url))) as server:
            with pytest.raises(BadAnswer, match="redirect"):
                await clients.make(server.url).send(read())
    assert elsewhere.received == []


async def test_a_compressed_answer_is_not_unpacked(clients: Clients) -> None:
    """We never ask for one, and a small one can be gigabytes."""
    async with serving(always(answer(200, b"\x1f\x8b", content_encoding="gzip"))) as server:
        with pytest.raises(BadAnswer, match="compressed"):
            await clients.make(server.url).send(read())


@pytest.mark.parametrize("announced", [True, False], ids=["announced", "not announced"])
async def test_an_endless_answer_is_cut_off(clients: Clients, announced: bool) -> None:
    """A worker must not fill our memory."""

    async def flood(_: Received, writer: asyncio.StreamWriter) -> None:
        if announced:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n")
            return
        writer.write(chunked_head())
        while not writer.is_closing():
            writer.write(chunk(b" " * 1_000_000))
            await writer.drain()

    async with serving(flood) as server:
        with pytest.raises(BadAnswer, match="more than"):
            await clients.make(server.url).send(read())


# What failures prove


async def test_a_closed_port_is_unreachable(clients: Clients) -> None:
    """Nothing was sent."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unreachable):
        await clients.make(f"http://127.0.0.1:{port}").send(write())


async def test_a_name_that_nobody_knows_is_unreachable(clients: Clients) -> None:
    """``.invalid`` never resolves."""
    with pytest.raises(Unreachable):
        await clients.make("http://nobody.invalid:6443").send(write())


async def test_a_connection_that_takes_too_long_is_unreachable(clients: Clients) -> None:
    """A full backlog: the handshake never ends, so nothing was sent."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        crowd = []
        for _ in range(3):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            crowd.append(one)
        try:
            with pytest.raises(Unreachable):
                await clients.make(f"http://127.0.0.1:{full.getsockname()[1]}").send(write(0.15))
        finally:
            for one in crowd:
                one.close()


async def test_tls_that_never_gets_going_is_unreachable(clients: Clients) -> None:
    """A server that does not speak TLS, and one that accepts and says nothing."""
    async with serving(always(answer(200))) as server:
        with pytest.raises(Unreachable):
            await clients.make(server.url.replace("http:", "https:")).send(write(0.15))


@EITHER
async def test_silence_leaves_the_outcome_unknown(clients: Clients, request_of: RequestOf) -> None:
    """It was sent: the server may have done it."""
    async with serving(never) as server:
        with pytest.raises(OutcomeUnknown):
            await clients.make(server.url).send(request_of(0.1))
        assert len(server.received) == 1
    assert [("east", request_of(1).verb, "error")] == clients.observed.requests


async def test_a_lost_connection_leaves_a_write_s_outcome_unknown(clients: Clients) -> None:
    """The server hangs up instead of answering; the write is not sent again."""
    async with serving(hang_up) as server:
        with pytest.raises(OutcomeUnknown):
            await clients.make(server.url).send(write())
    assert len(server.received) == 1


@EITHER
@pytest.mark.parametrize(
    "part",
    [
        b"HTTP/1.1 200 OK\r\ncontent-type: app",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
        chunked_head() + chunk(b'{"metadata"') + b"9\r\nx",
    ],
    ids=["within the head", "within the body", "within a chunk"],
)
async def test_half_an_answer_leaves_the_outcome_unknown(clients: Clients, request_of: RequestOf, part: bytes) -> None:
    """Cut off by the network, or stuck for ever: both the same."""

    async def cut(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(part)
        await writer.drain()
        writer.close()

    async def stuck(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(part)
        await never(received, writer)

    for answering in (cut, stuck):
        async with serving(answering) as server:
            with pytest.raises(OutcomeUnknown):
                await clients.make(server.url).send(request_of(0.2))


@pytest.mark.parametrize("junk", [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x46" * 9 + b"\r\n\r\n"])
async def test_what_is_not_http_is_a_bad_answer(clients: Clients, junk: bytes) -> None:
    """Another kind of server on the port."""
    async with serving(always(junk)) as server:
        with pytest.raises(BadAnswer):
            await clients.make(server.url).send(read(0.5))


async def test_cancelling_a_request_is_a_cancellation(clients: Clients) -> None:
    """It is never mistaken for a failure."""
    async with serving(never) as server:
        task = asyncio.create_task(clients.make(server.url).send(read()), name="request")
        while not server.received:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# 401, 429, 503


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


async def test_waiting_for_the_limit_does_not_count_against_the_deadline(clients: Clients) -> None:
    """The deadline is for the server, not for our own politeness."""
    limits = Limiter(5, 1, asyncio.get_running_loop().time)
    limits.acquire_nowait()
    async with serving(always(answer(200))) as server:
        await clients.make(server.url, limiter=limits).send(read(0.15))


# What is measured, and the end


async def test_every_request_is_counted_by_its_outcome(clients: Clients) -> None:
    """The code of HTTP, or ``error`` when there was no usable answer."""
    async with serving(
        always(answer(200), answer(409, status(409, "Conflict")), answer(200, HTML, content_type="x"))
    ) as server:
        client = clients.make(server.url)
        for request in (read(), write(), read()):
            try:
                await client.send(request)
            except KubeError:
                continue
    assert clients.observed.requests == [("east", "get", "200"), ("east", "create", "409"), ("east", "get", "error")]


@pytest.mark.parametrize(
    ("date", "offset"),
    [
        ("Tue, 14 Nov 2023 22:13:20 GMT", 0.5),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.5),
        ("Tue, 14 Nov 2023 21:13:20 GMT", -3599.5),
        ("yesterday", None),
        ("Tue, 99 Nov 2023 22:13:20 GMT", None),
        ("Mon, 01 Jan 99999999999999 00:00:00 GMT", None),
    ],
    ids=["the same second", "ahead", "behind", "no date", "no such day", "no such year"],
)
async def test_the_server_s_clock_is_compared_with_ours(date: str, offset: float | None, clients: Clients) -> None:
    """The Date header is cut to seconds, so the middle of that second is assumed; junk is ignored."""
    async with serving(always(answer(200, Date=date))) as server:
        client = clients.make(server.url)
        client._wall = lambda: 1_700_000_000.0
        assert client.clock_offset_seconds is None
        await client.send(read())
    assert offset == client.clock_offset_seconds


def open_sockets() -> int:
    return sum(
        os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
        for fd in os.listdir("/proc/self/fd")
        if os.path.islink(f"/proc/self/fd/{fd}")
    )


async def test_closing_leaves_no_socket(clients: Clients) -> None:
    """Neither of idle connections, nor of a request under way; that one fails as a request, not as a cancellation."""
    before = open_sockets()
    async with serving(always(answer(200))) as server, serving(never) as silent:
        client = clients.make(server.url)
        await asyncio.gather(*(client.send(read()) for _ in range(5)))
        other = clients.make(silent.url)
        pending = asyncio.create_task(other.send(write()), name="pending")
        while not silent.received:
            await asyncio.sleep(0)
        await client.close()
        await other.close()
        with pytest.raises(OutcomeUnknown):
            await pending
    await asyncio.sleep(0.01)
    assert before == open_sockets()


async def test_closing_fails_those_who_wait_for_a_connection(clients: Clients) -> None:
    """With all 64 connections in use, the next request waits; it must not believe itself cancelled."""
    async with serving(never) as server:
        client = clients.make(server.url)
        pending = [asyncio.create_task(client.send(read()), name=f"request {n}") for n in range(70)]
        while len(server.received) < 64:
            await asyncio.sleep(0.001)
        await client.close()
        results = await asyncio.gather(*pending, return_exceptions=True)
    assert {OutcomeUnknown} == {type(result) for result in results}


async def test_a_closed_client_is_unreachable(clients: Clients) -> None:
    """Whoever still holds the old client after a rotation learns that nothing was sent."""
    async with serving(always(answer(200))) as server:
        client = clients.make(server.url)
        await client.close()
        with pytest.raises(Unreachable, match="closed"):
            await client.send(read())


async def test_a_client_describes_itself(clients: Clients) -> None:
    """Without credentials."""
    client = clients.make("http://127.0.0.1:1")
    assert (
        client.describe().cluster,
        client.describe().server,
        client.describe().clock_offset_seconds,
    ) == ("east", "http://127.0.0.1:1", None)
    assert "Bearer" not in repr(client.describe())
