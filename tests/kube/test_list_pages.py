"""Lists, page by page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing

import pytest
from wire import Answering, Clients, Received, always, answer, chunk, chunked_head, serving, status

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import BadAnswer, Expired, KubeError
from mirror.kube.requests import Request
from mirror.kube.resources import JOBS
from mirror.kube.watch import Page, WatchEvent, list_pages, watch


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


# Lists


def page(names: Sequence[str], *, then: str = "", version: str = "9") -> bytes:
    items = [{"metadata": {"name": name}, "spec": {}} for name in names]
    return answer(
        200, json.dumps({"metadata": {"resourceVersion": version, "continue": then}, "items": items}).encode()
    )


async def pages_of(client: Client) -> list[Page]:
    return [page async for page in list_pages(client, JOBS, label_selector="a=b")]


async def test_a_list_is_read_page_by_page(clients: Clients) -> None:
    """The version comes with each page; the last one says that it is."""
    async with serving(always(page("ab", then="x&y"), page("c", then="z"), page(""))) as server:
        pages = await pages_of(clients.make(server.url))
    assert [([found.metadata.name for found in one.objects], one.is_last) for one in pages] == [
        (["a", "b"], False),
        (["c"], False),
        ([], True),
    ]
    assert {one.resource_version for one in pages} == {"9"}
    assert [got.target.partition("?")[2] for got in server.received] == [
        "limit=500&labelSelector=a%3Db",
        "limit=500&labelSelector=a%3Db&continue=x%26y",
        "limit=500&labelSelector=a%3Db&continue=z",
    ]


async def test_a_page_that_is_too_large_is_handed_out_in_parts(clients: Clients) -> None:
    """A server that ignores the limit does not hold up everything else."""
    async with serving(always(page([f"job-{n}" for n in range(1200)]))) as server:
        pages = await pages_of(clients.make(server.url))
    assert [(len(one.objects), one.is_last) for one in pages] == [(500, False), (500, False), (200, True)]


async def test_a_list_without_items_is_empty(clients: Clients) -> None:
    """Go writes ``null`` for an empty list."""
    async with serving(always(answer(200, b'{"metadata":{"resourceVersion":"3"},"items":null}'))) as server:
        assert await pages_of(clients.make(server.url)) == [Page([], "3", is_last=True)]


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ((answer(410, status(410, "Expired")),), Expired),
        ((page("a", then="x"), answer(410, status(410, "Expired"))), Expired),
        ((page("a", then="x"), page("b", then="x")), BadAnswer),
        ((answer(200, b'{"items":[]}'),), BadAnswer),
        ((answer(200, b'{"metadata":{},"items":[{"metadata":1}]}'),), BadAnswer),
        ((answer(200, b'{"metadata":{},"items":{}}'),), BadAnswer),
        ((answer(200, b"[]"),), BadAnswer),
    ],
    ids=["410", "410 in the middle", "going in circles", "no metadata", "an item of junk", "no items", "no list"],
)
async def test_a_list_fails_by_meaning(clients: Clients, answers: tuple[bytes, ...], kind: type[KubeError]) -> None:
    """Expired in the middle is the caller's to begin again."""
    async with serving(always(*answers)) as server:
        with pytest.raises(KubeError) as caught:
            await pages_of(clients.make(server.url))
    assert type(caught.value) is kind
