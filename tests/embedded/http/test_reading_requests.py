"""Requests are read as RFC 9112 has it, in whatever pieces they come; what is ambiguous is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror.embedded.http.reading import LONGEST_BODY, LONGEST_HEAD, Malformed, Reader, Received

GET = b"GET /api/v1/pods?limit=1 HTTP/1.1\r\nHost: here\r\nAccept: application/json\r\n\r\n"
POST = b"POST /api HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nbody"
CHUNKED = (
    b"POST /api HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nbod\r\n1\r\ny\r\n0\r\nTrailer: one\r\n\r\n"
)


def read(data: bytes) -> list[Received]:
    reader = Reader()
    reader.feed(data)
    return list(iter(reader.next_request, None))


def head(*lines: str, first: str = "GET / HTTP/1.1", host: str = "Host: here") -> bytes:
    return "\r\n".join([first, *([host] if host else []), *lines, "", ""]).encode("latin-1")


def test_a_request_has_its_parts() -> None:
    """Names of headers are in lower case, the query is not decoded."""
    (found,) = read(GET)
    assert (found.head.method, found.head.path, found.head.query) == ("GET", "/api/v1/pods", "limit=1")
    assert found.head.headers == {"host": "here", "accept": "application/json"}
    assert found.head.is_kept_alive
    assert found.body == b""


@pytest.mark.parametrize("data", [POST, CHUNKED], ids=["with its length", "in chunks"])
def test_a_body_comes_whole(data: bytes) -> None:
    """However it is framed."""
    (found,) = read(data)
    assert found.body == b"body"


@given(st.lists(st.sampled_from([GET, POST, CHUNKED]), min_size=1, max_size=4), st.data())
def test_pieces_do_not_matter(requests: list[bytes], data: st.DataObject) -> None:
    """The same requests come out wherever the bytes are cut."""
    whole = b"".join(requests)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    reader, found = Reader(), []
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        reader.feed(whole[start:end])
        found.extend(iter(reader.next_request, None))
    assert read(whole) == found
    assert len(requests) == len(found)
    assert not reader.has_begun


def refusals(pieces: list[bytes]) -> list[int]:
    """The codes of refusals; there is at most one."""
    reader = Reader()
    try:
        for piece in pieces:
            reader.feed(piece)
            list(iter(reader.next_request, None))
    except Malformed as malformed:
        return [malformed.refusal.code]
    return []


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_no_bytes_break_it(pieces: list[bytes]) -> None:
    """They are requests, or part of one, or refused as malformed."""
    assert all(400 <= code < 600 for code in refusals(pieces))


TOKENS = [b"\r\n", b"\n", b" ", b":", b"0", b"GET", b"/", b"HTTP/1.1", b"Host: a", b"5", b"\x00"]


@given(st.lists(st.sampled_from(TOKENS)))
def test_no_tokens_break_it(tokens: list[bytes]) -> None:
    """The same with what looks more like requests."""
    assert all(400 <= code < 600 for code in refusals(tokens))


@pytest.mark.parametrize(
    ("code", "data"),
    [
        pytest.param(400, b"nonsense\r\n\r\n", id="no request line"),
        pytest.param(400, b"GET  / HTTP/1.1\r\n\r\n", id="two spaces"),
        pytest.param(400, b"GET / HTTP/1.1\nHost: a\n\n", id="bare line feeds"),
        pytest.param(400, head(host=""), id="no host"),
        pytest.param(400, head("Host: there"), id="two hosts"),
        pytest.param(400, head("Name : value"), id="a space before the colon"),
        pytest.param(400, head(" folded"), id="a folded line"),
        pytest.param(400, head("Name: a\x00b"), id="a control character"),
        pytest.param(400, head("Name: a\rb"), id="a carriage return"),
        pytest.param(400, head(first="GET pods HTTP/1.1"), id="a relative target"),
        pytest.param(400, head(first="CONNECT here:443 HTTP/1.1"), id="a proxy's method"),
        pytest.param(505, head(first="GET / HTTP/2.0"), id="another version"),
        pytest.param(400, head("Content-Length: 1", "Content-Length: 2"), id="two lengths"),
        pytest.param(400, head("Content-Length: +1"), id="a sign in a length"),
        pytest.param(400, head("Content-Length: 1,1"), id="a list of lengths"),
        pytest.param(400, head("Content-Length: 1", "Transfer-Encoding: chunked"), id="length and chunks"),
        pytest.param(501, head("Transfer-Encoding: gzip, chunked"), id="another coding"),
        pytest.param(400, head("Transfer-Encoding: chunked", first="GET / HTTP/1.0"), id="chunks in 1.0"),
        pytest.param(417, head("Expect: more"), id="an unknown expectation"),
        pytest.param(413, head(f"Content-Length: {LONGEST_BODY + 1}"), id="a body that is too long"),
        pytest.param(413, head("Transfer-Encoding: chunked") + b"7fffffff\r\n", id="a chunk that is too long"),
        pytest.param(400, head("Transfer-Encoding: chunked") + b"x\r\n", id="no size of a chunk"),
        pytest.param(400, head("Transfer-Encoding: chunked") + b"1\r\nabc", id="a chunk that goes on"),
        pytest.param(431, b"GET / HTTP/1.1\r\n" + b"a" * LONGEST_HEAD, id="a head that is too long"),
    ],
)
def test_what_is_malformed_is_refused(code: int, data: bytes) -> None:
    """With a Status, like everything else."""
    with pytest.raises(Malformed) as raised:
        read(data)
    assert code == raised.value.refusal.code
    assert raised.value.refusal.status["kind"] == "Status"


def test_a_few_empty_lines_are_passed_over() -> None:
    """Clients leave them after bodies, also between requests that come together."""
    assert len(read(b"\r\n" + POST + b"\r\n\r\n" + GET)) == 2


@pytest.mark.parametrize(
    ("begins", "repeats"),
    [
        pytest.param(b"", b"\r\n", id="empty lines"),
        pytest.param(head("Transfer-Encoding: chunked") + b"0\r\n", b"a: b\r\n", id="trailers"),
    ],
)
def test_nothing_is_taken_without_an_end(begins: bytes, repeats: bytes) -> None:
    """However small the pieces are."""
    assert refusals([begins, *([repeats] * 10_000)]) == [400]


def test_several_headers_of_one_name_are_put_together() -> None:
    """Those about users by line feeds, which no value has; of some the first counts."""
    lines = ["Accept: a", "Accept: b", "Authorization: one", "Authorization: two"]
    (found,) = read(head(*lines, "Impersonate-Group: a, b", "Impersonate-Group: c"))
    values = found.head.headers
    assert values["accept"] == "a, b"
    assert values["authorization"] == "one"
    assert values["impersonate-group"] == "a, b\nc"


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("http://elsewhere/api", "/api"),
        ("https://elsewhere", "/"),
        ("/caf\xe9", "/caf%E9"),
        ("/a%2Fb", "/a%2Fb"),
    ],
)
def test_targets(target: str, path: str) -> None:
    """Absolute ones lose their host; what is not ASCII is encoded."""
    (found,) = read(head(first=f"GET {target} HTTP/1.1"))
    assert path == found.head.path


@pytest.mark.parametrize(
    ("is_kept", "data"),
    [
        (True, head()),
        (False, head("Connection: close")),
        (False, head("Connection: Keep-Alive, CLOSE")),
        (False, head(first="GET / HTTP/1.0")),
        (True, head("Connection: keep-alive", first="GET / HTTP/1.0")),
    ],
)
def test_connections_are_kept(is_kept: bool, data: bytes) -> None:
    """As the version and the client want it."""
    (found,) = read(data)
    assert is_kept == found.head.is_kept_alive


def test_a_client_that_waits_is_told_to_go_on() -> None:
    """Only when its body is really to come."""
    reader = Reader()
    reader.feed(head("Expect: 100-continue", "Content-Length: 2"))
    assert reader.next_request() is None
    assert reader.expects_continue
    reader.feed(b"ok")
    assert not reader.expects_continue
    assert reader.next_request() is not None
