"""One cluster's client: what it sends, what it makes of answers, and what it counts."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from wire import HTML, Clients, Received, always, answer, chunk, chunked_head, read, serving, status, write

from mirror.kube import requests
from mirror.kube.credentials import Credentials, Endpoint, Identity
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
    NotServed,
    PageNotFound,
    ServerFailure,
    TooLarge,
    TooManyRequests,
    Unauthorized,
)
from mirror.kube.openapi import addresses
from mirror.kube.resources import JOBS

JOB = b'{"metadata":{"name":"train","resourceVersion":"7","managedFields":[1]},"spec":{"a":1},"status":{}}'


# What is sent


async def test_a_request_arrives_as_it_was_meant(clients: Clients) -> None:
    """Method, path, query, body, and who we are; nothing is asked for compressed."""
    async with serving(always(answer(201, JOB))) as server:
        body = await clients.make(server.url).send(write())
    (got,) = server.received
    assert body == JOB
    assert (got.method, got.target) == (
        "POST",
        "/apis/batch/v1/namespaces/team/jobs?fieldManager=jobmirror&fieldValidation=Ignore",
    )
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
    async with serving(
        always(answer(200), answer(404, status(404, "NotFound", details={"name": "a"})), answer(200))
    ) as server:
        client = clients.make(server.url)
        for _ in range(5):
            try:
                await client.send(read())
            except NotFound:
                continue
    assert (len(server.received), server.connections) == (5, 1)


async def test_environment_and_netrc_are_not_looked_at(
    clients: Clients, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A proxy variable or a netrc entry of whoever runs us must not change where tokens go."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login u password p\n")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NETRC", str(netrc))
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
        (404, status(404, "NotFound", details={"name": "train", "kind": "jobs"}), NotFound),
        (404, status(404, "NotFound", details={}), NotServed),
        (404, status(404, "NotFound"), NotServed),
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
        (404, HTML, PageNotFound),
        (404, b"404 page not found", PageNotFound),
        (404, b'{"kind":"Job"}', PageNotFound),
        (404, b"[" * 100_000, PageNotFound),
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


async def test_an_index_of_schemas_is_json_that_comes_as_text(clients: Clients) -> None:
    """kube-apiserver answers ``/openapi/v3`` so, whatever is accepted."""
    index = b'{"paths":{"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1?hash=1"}}}'
    async with serving(always(answer(200, index, content_type="text/plain; charset=utf-8"))) as server:
        assert set(await addresses(clients.make(server.url))) == {"apis/example.com/v1"}
    async with serving(always(answer(200, HTML, content_type="text/html"))) as server:
        with pytest.raises(BadAnswer):
            await addresses(clients.make(server.url))


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
    async with (
        serving(always(answer(200))) as elsewhere,
        serving(always(answer(307, b"", location=elsewhere.url))) as server,
    ):
        with pytest.raises(BadAnswer, match="redirect"):
            await clients.make(server.url).send(read())
    assert elsewhere.received == []


async def test_an_answer_that_is_compressed_without_leave_is_not_unpacked(clients: Clients) -> None:
    """A small one can be gigabytes."""
    async with serving(always(answer(200, gzip.compress(JOB), content_encoding="gzip"))) as server:
        with pytest.raises(BadAnswer, match="compressed"):
            await clients.make(server.url).send(read())


async def test_an_answer_that_may_be_compressed_is_unpacked(clients: Clients) -> None:
    """In however many pieces it comes; the server may leave it as it is, too, and so may the user (kubeconfig)."""
    body = json.dumps({"items": [{"name": f"train-{number}"} for number in range(50_000)]}).encode()
    packed = gzip.compress(body)

    async def reply(received: Received, writer: asyncio.StreamWriter) -> None:
        if received.headers["accept-encoding"] != "gzip":
            writer.write(answer(200, body))
            return
        writer.write(chunked_head(content_encoding="gzip"))
        for begin in range(0, len(packed), 5_000):
            writer.write(chunk(packed[begin : begin + 5_000]))
            await writer.drain()
        writer.write(chunk(b""))

    async with serving(reply) as server:
        client = clients.make(server.url)
        assert [await client.send(read().may_be_compressed()) for _ in range(2)] == [body, body]
        assert server.connections == 1
        plain = Credentials(Endpoint(server.url, None, compresses=False), Identity())
        assert await clients.make(server.url, credentials=plain).send(read().may_be_compressed()) == body
    assert [got.headers["accept-encoding"] for got in server.received] == ["gzip", "gzip", "identity"]


@pytest.mark.parametrize(
    ("body", "encoding", "error"),
    [
        (gzip.compress(b" " * 100_000), "gzip", TooLarge),
        (gzip.compress(b" " * 1001), "gzip", TooLarge),
        (gzip.compress(b" " * 90)[:-9], "gzip", BadAnswer),
        (b"", "gzip", BadAnswer),
        (b"{}" * 40, "gzip", BadAnswer),
        (gzip.compress(b"{}") + b"x", "gzip", BadAnswer),
        (gzip.compress(b"{}") + gzip.compress(b"{}"), "gzip", BadAnswer),
        (zlib.compress(b"{}"), "deflate", BadAnswer),
    ],
    ids=[
        "a thousand times as long",
        "too long by one",
        "cut off",
        "empty",
        "not compressed",
        "followed by a byte",
        "followed by another",
        "another encoding",
    ],
)
async def test_a_compressed_answer_that_is_no_good_is_refused(
    clients: Clients, body: bytes, encoding: str, error: type[Exception]
) -> None:
    """Never more of it is unpacked than is taken of one that is not compressed (D29)."""
    async with serving(always(answer(200, body, content_encoding=encoding))) as server:
        with pytest.raises(error):
            await clients.make(server.url).send(replace(read(), most_bytes=1000).may_be_compressed())


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


async def test_a_client_describes_itself(clients: Clients) -> None:
    """Without credentials."""
    client = clients.make("http://127.0.0.1:1")
    assert (
        client.describe().cluster,
        client.describe().server,
        client.describe().clock_offset_seconds,
    ) == ("east", "http://127.0.0.1:1", None)
    assert "Bearer" not in repr(client.describe())
