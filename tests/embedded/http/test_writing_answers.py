"""Answers as bytes: what each kind of answer has, and has not."""

import pytest

from mirror.embedded.apiserver.messages import Response, Stream
from mirror.embedded.http import writing

DATE = b"Date: now\r\n"


def lines(data: bytes) -> list[bytes]:
    """Of the head."""
    return data.partition(b"\r\n\r\n")[0].split(b"\r\n")


def test_a_whole_answer_has_its_length() -> None:
    """And its type and date."""
    data = writing.whole(Response(200, b"body"), date=DATE)
    assert lines(data)[0] == b"HTTP/1.1 200 OK"
    assert {b"Content-Length: 4", b"Content-Type: application/json", b"Date: now"} <= set(lines(data))
    assert data.endswith(b"\r\n\r\nbody")


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_says_nothing_of_one(status: int) -> None:
    """A client's cache would take a type for that of what it has."""
    data = writing.whole(Response(status, b"", headers=(("ETag", '"a"'),)), date=DATE)
    names = {line.partition(b":")[0] for line in lines(data)[1:]}
    assert not names & {b"Content-Type", b"Content-Length", b"Transfer-Encoding"}
    assert b'ETag: "a"' in lines(data)
    assert data.endswith(b"\r\n\r\n")


def test_a_value_cannot_begin_another_header() -> None:
    """Whatever a worker or a user has put into a warning."""
    data = writing.whole(Response(200, headers=(("Warning", "a\r\nEvil: b\x00ü"),)), date=DATE)
    assert "Warning: a  Evil: b ü".encode() in lines(data)


def test_an_unknown_status_has_a_phrase() -> None:
    """There must be one."""
    assert lines(writing.whole(Response(299), date=b""))[0] == b"HTTP/1.1 299 Unknown"


def test_a_stream_is_chunked_where_the_client_knows_chunks() -> None:
    """Else it ends with the connection."""

    async def nothing():
        yield b""

    answer = Stream(200, nothing())
    modern = writing.stream_head(answer, date=DATE, is_chunked=True, closes=False)
    old = writing.stream_head(answer, date=DATE, is_chunked=False, closes=True)
    assert b"Transfer-Encoding: chunked" in lines(modern)
    assert b"Connection: close" in lines(old)
    assert b"Transfer-Encoding: chunked" not in lines(old)


@pytest.mark.parametrize(("pieces", "expected"), [([b"ab", b"c"], b"3\r\nabc\r\n"), ([b""], b""), ([], b"")])
def test_chunks(pieces: list[bytes], expected: bytes) -> None:
    """Nothing is no chunk: an empty one would be the end."""
    assert writing.chunk(pieces) == expected
