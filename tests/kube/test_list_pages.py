"""Lists, page by page."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from wire import Clients, always, answer, serving, status

from mirror.kube.client import Client
from mirror.kube.errors import BadAnswer, Expired, KubeError
from mirror.kube.resources import JOBS
from mirror.kube.watch import Page, list_pages


def page(names: Sequence[str], *, then: str = "", version: str = "9") -> bytes:
    items = [{"metadata": {"name": name}, "spec": {}} for name in names]
    return answer(
        200, json.dumps({"metadata": {"resourceVersion": version, "continue": then}, "items": items}).encode()
    )


async def pages_of(client: Client) -> list[Page]:
    return [page async for page in list_pages(client, JOBS, label_selector="a=b")]


async def test_a_list_is_read_page_by_page(clients: Clients) -> None:
    """The version comes with each page; the last one has no more."""
    async with serving(always(page("ab", then="x&y"), page("c", then="z"), page(""))) as server:
        pages = await pages_of(clients.make(server.url))
    assert [[found.metadata.name for found in one.objects] for one in pages] == [["a", "b"], ["c"], []]
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
    assert [len(one.objects) for one in pages] == [500, 500, 200]


async def test_a_list_without_items_is_empty(clients: Clients) -> None:
    """Go writes ``null`` for an empty list."""
    async with serving(always(answer(200, b'{"metadata":{"resourceVersion":"3"},"items":null}'))) as server:
        assert await pages_of(clients.make(server.url)) == [Page([], "3")]


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
