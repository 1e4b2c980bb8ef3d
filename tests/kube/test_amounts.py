"""What a server sends is bounded in bytes and values before it is decoded (D29)."""

from __future__ import annotations

import asyncio
import json
import time
import tracemalloc
from collections.abc import Callable
from contextlib import aclosing, suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire import Clients, InMemory, always, answer, event, serving

from mirror.kube import amounts, objects, requests
from mirror.kube.answers import error_from_answer
from mirror.kube.errors import BadAnswer, TooLarge
from mirror.kube.objects import Partial, decode_object
from mirror.kube.resources import JOBS
from mirror.kube.watch import WatchEvent, decode_event, list_pages, watch

MIB = 2**20


def object_of(name: str = "train", **more: object) -> bytes:
    metadata = {"name": name, "namespace": "team", "uid": "u-1", "resourceVersion": "7", "labels": {"a": "b"}}
    return json.dumps({"kind": "Job", "apiVersion": "batch/v1", "metadata": metadata, **more}).encode()


def line_of(raw: bytes, kind: str = "MODIFIED") -> bytes:
    return b'{"type":"%s","object":%s}' % (kind.encode(), raw)


async def events_of(clients: Clients, *lines: bytes) -> list[WatchEvent]:
    content = b"".join(line + b"\n" for line in lines)
    pieces = [(0.0, content[begin : begin + 700_001]) for begin in range(0, len(content), 700_001)]
    client = clients.make("", transport=InMemory(*pieces))
    events = watch(client, requests.watch(JOBS, resource_version="1", timeout_seconds=300), silent_seconds=5.0)
    async with aclosing(events):
        return [found async for found in events]


async def test_a_line_that_is_too_long_is_known_by_its_metadata_and_the_watch_goes_on(clients: Clients) -> None:
    """Who may create an object on a worker can make its JSON many MiB long, and must not stop the watch by it."""
    long = line_of(object_of(spec={"x": "y" * (5 * MIB)}))
    found, after = await events_of(clients, long, event("ADDED", "next"))
    assert isinstance(found.object, Partial)
    metadata = found.object.metadata
    assert (found.type, metadata.name, metadata.namespace, metadata.uid) == ("MODIFIED", "train", "team", "u-1")
    assert (metadata.resource_version, found.object.labels, bytes(found.object.spec)) == (
        "7",
        {"a": "b"},
        b"null",
    )
    assert after.object.metadata.name == "next"


async def test_a_line_without_end_ends_the_watch(clients: Clients) -> None:
    """What is dropped is bounded, too."""
    with pytest.raises(TooLarge, match="a line of more than"):
        await events_of(clients, b"x" * (amounts.MOST_LINE_BYTES + 1))


@pytest.mark.parametrize(
    "spec",
    [
        b"[" * 300_000 + b"]" * 300_000,
        b"[" + b"{}," * 250_000 + b"{}]",
        b"{" + b",".join(b'"%x":0' % number for number in range(210_000)) + b"}",
    ],
    ids=["nested", "empty maps", "members"],
)
def test_millions_of_values_are_counted_before_they_are_decoded(spec: bytes) -> None:
    """A byte of JSON can become a hundred bytes of memory, and minutes of work for who walks through it."""
    raw = object_of()[:-1] + b',"spec":' + spec + b"}"
    assert isinstance(decode_event(line_of(raw)).object, Partial)
    with pytest.raises(TooLarge):
        decode_object(raw)


def test_labels_by_the_hundred_thousand_are_not_decoded() -> None:
    """They would be kept as texts of their own, each with fifty bytes of overhead."""
    labels = b",".join(b'"%07x":""' % number for number in range(300_000))
    line = line_of(b'{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"1","labels":{%s}}}' % labels)
    found = decode_event(line).object
    assert isinstance(found, Partial)
    assert len(found.labels) <= 64


def test_an_object_full_of_commas_in_texts_is_read() -> None:
    """A table of numbers in an environment variable is one value."""
    found = decode_object(object_of(spec={"env": '1,2,{[\\"' * 100_000}))
    assert not isinstance(found, Partial)


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "resourceVersion"])
def test_names_that_no_server_gives_are_no_answer(field: str) -> None:
    """They are what is kept of objects of which nothing else is."""
    raw = json.dumps({"metadata": {"name": "x", field: "y" * 5000}}).encode()
    with pytest.raises(BadAnswer):
        decode_object(raw)


def test_only_short_texts_are_remembered_for_others() -> None:
    """A cache of 8,192 texts of a MiB each is 8 GiB."""
    objects._kept_once.cache_clear()
    decode_object(object_of()[:-2] + b',"annotations":{}},"spec":{}}')
    before = objects._kept_once.cache_info().currsize
    long = json.dumps({"metadata": {"name": "x", "labels": {"a": "v" * 5000}, "creationTimestamp": "t" * 5000}})
    found = decode_object(long.encode())
    assert found.labels == {"a": "v" * 5000}
    assert len(found.metadata.creation_timestamp or "") <= 64
    assert objects._kept_once.cache_info().currsize <= before + 2


def test_what_identifies_a_large_object_is_found_wherever_a_user_put_the_same_words() -> None:
    """Its creator chooses annotations and labels, and must not choose whose object it seems to be."""
    liar = '{"name":"other","namespace":"other","uid":"other"}'
    metadata = {
        "annotations": {"metadata": liar, "name": "other"},
        "labels": {"uid": "other"},
        "name": "mine",
        "namespace": "team",
        "ownerReferences": [{"name": "other", "uid": "other"}],
        "uid": "u-9",
    }
    raw = json.dumps({"apiVersion": "v1", "metadata": metadata, "spec": {"metadata": {"name": "other"}}}).encode()
    found = amounts.skim(raw, is_event=False)
    assert found.texts == {"name": "mine", "namespace": "team", "uid": "u-9"}
    assert found.labels == {"uid": "other"}


async def test_a_page_that_is_too_large_is_read_in_smaller_ones(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five hundred objects of a MiB are no reason to hold half a GiB, nor to give up."""
    monkeypatch.setattr(amounts, "MOST_PAGE_BYTES", 10_000)
    names = [f"j{number}" for number in range(20)]

    async def answering(received: object, writer: asyncio.StreamWriter) -> None:
        target = getattr(received, "target", "")
        query = dict(part.split("=") for part in target.partition("?")[2].split("&"))
        begin, limit = int(query.get("continue") or 0), int(query["limit"])
        shown = names[begin : begin + limit]
        more = str(begin + limit) if begin + limit < len(names) else ""
        items = b",".join(object_of(name, spec={"x": "y" * 900}) for name in shown)
        writer.write(
            answer(200, b'{"metadata":{"resourceVersion":"9","continue":"%s"},"items":[%s]}' % (more.encode(), items))
        )

    async with serving(answering) as server:
        pages = [page async for page in list_pages(clients.make(server.url), JOBS, limit=64)]
    assert [one.metadata.name for page in pages for one in page.objects] == names


async def test_one_object_of_a_list_that_is_too_large_is_known_by_its_metadata(clients: Clients) -> None:
    """A list without it would say that it does not exist (D11)."""
    large = object_of("large", spec={"x": "y" * (5 * MIB)})
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%s,%s]}' % (object_of("small"), large)
    async with serving(always(answer(200, body))) as server:
        pages = [page async for page in list_pages(clients.make(server.url), JOBS)]
    found = [one for page in pages for one in page.objects]
    assert [(one.metadata.name, isinstance(one, Partial)) for one in found] == [("small", False), ("large", True)]


async def test_a_page_of_millions_of_items_is_refused(clients: Clients) -> None:
    """Each would be a Python object, however empty."""
    body = b'{"metadata":{"resourceVersion":"9"},"items":[' + b"{}," * 1_500_000 + b"{}]}"
    async with serving(always(answer(200, body))) as server:
        with pytest.raises(TooLarge, match="values"):
            _ = [page async for page in list_pages(clients.make(server.url), JOBS)]


async def test_all_answers_of_one_server_together_are_bounded(clients: Clients) -> None:
    """Sixty requests may be under way at once; a worker chooses when their answers end."""
    in_flight = amounts.InFlight(100)
    with in_flight.share() as one, in_flight.share() as other:
        one.hold(60)
        with pytest.raises(TooLarge):
            other.hold(41)
        one.hold(30)
        other.hold(70)
    assert in_flight.held == 0


def test_a_refusal_of_a_million_causes_is_not_decoded() -> None:
    """It is a refusal that cannot be read, and that is all."""
    body = b'{"kind":"Status","code":403,"details":{"causes":[' + b"{}," * 1_000_000 + b"{}]}}"
    tracemalloc.start()
    error_from_answer(403, {}, body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * MIB


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda size: b'{"metadata":{"name":"x","labels":{"a":"' + b'\\"' * (size // 2) + b'"}}}',
        lambda size: b'{"metadata":{"name":"x"},"spec":' + b"[" * (size // 2) + b"]" * (size // 2) + b"}",
        lambda size: b'{"metadata":{"name":"x"},"spec":[' + b'"",' * (size // 3) + b'""]}',
        lambda size: b'{"metadata":{"name":"x"},"spec":[' + b"1," * (size // 2) + b"1]}",
        lambda size: b'{"metadata":{"name":"x","labels":{' + b'"":"",' * (size // 6) + b'"":""}}}',
        lambda size: b'"' * size,
        lambda size: b"\\" * size,
    ],
    ids=["escapes", "nested", "texts", "numbers", "labels", "quotes", "backslashes"],
)
def test_no_line_of_4_mib_takes_a_quarter_of_a_second(make: Callable[[int], bytes]) -> None:
    """Whatever it is made of: others wait meanwhile (CPU time, the best of three)."""
    line, best = line_of(make(4 * MIB - 200)), 9.0
    for _ in range(3):
        began = time.process_time()
        with suppress(BadAnswer):
            decode_event(line)
        best = min(best, time.process_time() - began)
    assert best < 0.25


def test_a_server_cannot_say_that_its_object_is_partial() -> None:
    """Only we leave things out."""
    assert type(msgspec.json.decode(object_of(), type=objects.Object)) is objects.Object


VALUES = st.recursive(
    st.none() | st.integers() | st.text("[{,x"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("[,x", max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(value=VALUES)
def test_what_a_part_may_have_at_most_is_told_without_decoding_it(value: object) -> None:
    assert amounts.most_amount(json.dumps(value).encode()) >= amounts.amount(value)
