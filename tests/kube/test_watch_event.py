"""One line of a watch: an event, an error by its meaning, or junk."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import Answering, Received, chunk, chunked_head, status

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import ApiError, BadAnswer, Expired, Forbidden, KubeError, ServerFailure
from mirror.kube.requests import Request
from mirror.kube.resources import JOBS
from mirror.kube.watch import INITIAL_EVENTS_END, WatchEvent, decode_event, watch


def event(kind: str, name: str = "train", version: str = "5", **more: object) -> bytes:
    found = {"metadata": {"name": name, "resourceVersion": version, "managedFields": [{"x": 1}]}, **more}
    return json.dumps({"type": kind, "object": found}).encode()


def error(code: int, reason: str) -> bytes:
    return b'{"type":"ERROR","object":' + status(code, reason) + b"}"


EXPIRED = error(410, "Expired")


def watching(*pieces: bytes, end: bool = True) -> Answering:
    """A watch that sends these pieces, one HTTP chunk each, and then ends or goes on for ever without a word."""

    async def answering(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(chunked_head())
        for piece in pieces:
            writer.write(chunk(piece))
            await writer.drain()
            await asyncio.sleep(0)
        if end:
            writer.write(b"0\r\n\r\n")
        else:
            await asyncio.get_running_loop().create_future()

    return answering


def request(deadline_seconds: float = 5.0) -> Request:
    made = requests.watch(JOBS, resource_version="1", timeout_seconds=300)
    return Request(made.verb, made.method, made.path, made.query, deadline_seconds=deadline_seconds)


async def collect(client: Client, *, silent_seconds: float = 2.0, deadline_seconds: float = 5.0) -> list[WatchEvent]:
    events = watch(client, request(deadline_seconds), silent_seconds=silent_seconds)
    async with aclosing(events):
        return [event async for event in events]


# One line


def test_an_event_is_decoded_without_managed_fields() -> None:
    """Metadata is there at once; spec and status are bytes until somebody wants them."""
    found = decode_event(event("MODIFIED", spec={"a": 1}, status={"b": [2]}))
    assert (found.type, found.object.metadata.name, found.object.version) == ("MODIFIED", "train", 5)
    assert (found.object.spec_dict(), found.object.status_dict()) == ({"a": 1}, {"b": [2]})


def test_what_is_kept_of_a_line_does_not_keep_the_line() -> None:
    """A spec of some bytes must not pin a message of megabytes."""
    line = event("ADDED", spec={"a": 1}, extra="x" * 100_000)
    kept = memoryview(decode_event(line).object.spec)
    assert kept.obj is not line
    assert len(kept.obj) < 100  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "ends"),
    [
        (event("BOOKMARK"), False),
        (json.dumps({"type": "BOOKMARK", "object": {"metadata": {"annotations": {INITIAL_EVENTS_END: "true"}}}}), True),
        (json.dumps({"type": "ADDED", "object": {"metadata": {"annotations": {INITIAL_EVENTS_END: "true"}}}}), False),
        (event("ADDED")[:-1] + b',"initial_events_end":true}', False),
        (event("BOOKMARK")[:-1] + b',"initial_events_end":true}', False),
    ],
    ids=["a usual bookmark", "the marking bookmark", "an object with its annotation", "a forged field", "and another"],
)
def test_only_the_marking_bookmark_ends_the_initial_events(line: str | bytes, ends: bool) -> None:
    """A user may put the annotation on a Job; that ends nothing."""
    assert decode_event(line if isinstance(line, bytes) else line.encode()).initial_events_end is ends


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (EXPIRED, Expired),
        (error(410, "Gone"), Expired),
        (error(0, "Expired"), Expired),
        (error(410, ""), Expired),
        (error(500, "InternalError"), ServerFailure),
        (error(403, "Forbidden"), Forbidden),
        (error(418, "Teapot"), ApiError),
        (b'{"type":"ERROR","object":{"message":"x","code":410,"metadata":{}}}', Expired),
        (b'{"type":"ERROR","object":{}}', ApiError),
        (b'{"type":"ERROR"}', BadAnswer),
        (b'{"type":"ERROR","object":{"code":"410"}}', BadAnswer),
        (b'{"type":"PURGED","object":{"metadata":{}}}', BadAnswer),
        (b'{"type":"ADDED","object":{}}', BadAnswer),
        (b'{"type":"ADDED","object":null}', BadAnswer),
        (b'{"object":{"metadata":{}}}', BadAnswer),
        (b"<html>no healthy upstream</html>", BadAnswer),
        (event("ADDED")[:-3], BadAnswer),
        (event("ADDED") + b"{}", BadAnswer),
        (b"[" * 200_000, BadAnswer),
        (b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}', BadAnswer),
        (b'{"type":"ADDED","object":{"metadata":{"generation":' + b"9" * 5000 + b"}}}", BadAnswer),
        (b"", BadAnswer),
    ],
)
def test_a_line_that_is_no_event_is_an_error_by_its_meaning(line: bytes, kind: type[KubeError]) -> None:
    """An ERROR event tells what a status would; anything else is not the Kubernetes API."""
    with pytest.raises(KubeError) as caught:
        decode_event(line)
    assert type(caught.value) is kind


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: event("ADDED", text)[:-5] + text.encode()))
def test_junk_is_a_bad_answer_and_nothing_else(line: bytes) -> None:
    """Whatever bytes come, no other exception does."""
    try:
        decode_event(line)
    except BadAnswer:
        return


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
KEYS = st.sampled_from(["name", "labels", "annotations", "generation", "ownerReferences", "resourceVersion"])


@given(st.sampled_from(["ADDED", "ERROR", "BOOKMARK"]), st.dictionaries(KEYS, JSON), JSON)
def test_an_event_of_wrong_types_is_an_error_of_ours(kind: str, metadata: dict[str, object], rest: object) -> None:
    """Near misses: the right shape with other types inside."""
    line = json.dumps({"type": kind, "object": {"metadata": metadata, "spec": rest, "code": rest, "details": rest}})
    try:
        decode_event(line.encode()).object.spec_dict()
    except KubeError:
        return
