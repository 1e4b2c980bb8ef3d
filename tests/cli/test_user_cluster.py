"""Long lists as commands for users read them: the server works on the next page while one is looked at."""

from __future__ import annotations

import asyncio
import json
from typing import cast

import pytest

from mirror.cli.user import cluster as user_cluster
from mirror.cli.user.cluster import Cluster
from mirror.cli.user.failures import Failure
from mirror.kube.credentials import Credentials
from mirror.kube.errors import ServerFailure
from mirror.kube.requests import Request
from mirror.kube.resources import JOBS


class Pages:
    """A client whose server has this many pages of 60 Jobs; the last may break."""

    server = "https://management"

    def __init__(self, pages: int, *, breaks: bool = False) -> None:
        self._pages = pages
        self._breaks = breaks
        self.asked: list[int] = []

    async def send(self, request: Request) -> bytes:
        page = int(dict(request.query).get("continue") or 0)
        self.asked.append(page)
        await asyncio.sleep(0)
        if self._breaks and page == self._pages - 1:
            raise ServerFailure(500, "InternalError", "etcd is away")
        items = [{"metadata": {"name": f"job-{page}-{number}"}} for number in range(60)]
        token = str(page + 1) if page + 1 < self._pages else ""
        return json.dumps({"metadata": {"resourceVersion": "7", "continue": token}, "items": items}).encode()


def cluster(client: Pages) -> Cluster:
    return Cluster(cast("user_cluster.Client", client), cast("Credentials", None), "n")


async def test_the_next_page_is_asked_for_while_one_is_looked_at() -> None:
    client, seen = Pages(3), []
    async for jobs, version in cluster(client).object_pages(JOBS, namespace="n"):
        seen += [(job.metadata.name, version, len(client.asked)) for job in jobs]

    assert [name for name, _, _ in seen] == [f"job-{page}-{number}" for page in range(3) for number in range(60)]
    assert {version for _, version, _ in seen} == {"7"}
    assert seen[59] == ("job-0-59", "7", 2), "the second page is asked for before the first was looked at to its end"
    assert client.asked == [0, 1, 2]


async def test_an_empty_list_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    async def empty(self: object, request: Request) -> bytes:
        return b'{"metadata":{"resourceVersion":"9"},"items":[]}'

    monkeypatch.setattr(Pages, "send", empty)
    assert await cluster(Pages(1)).objects(JOBS, namespace="n") == ([], "9")


async def test_a_page_that_breaks_is_a_failure_after_what_came_before() -> None:
    seen: list[str] = []

    async def look() -> None:
        async for jobs, _ in cluster(Pages(3, breaks=True)).object_pages(JOBS, namespace="n"):
            seen.extend(job.metadata.name for job in jobs)

    with pytest.raises(Failure, match="etcd is away"):
        await look()
    assert len(seen) == 120


@pytest.mark.parametrize("breaks", [False, True])
async def test_who_stops_early_leaves_nothing_behind(breaks: bool) -> None:
    """Not even the failure of a page that nobody will look at."""
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    pages = cluster(Pages(2, breaks=breaks)).object_pages(JOBS, namespace="n")
    for _ in range(2):
        await anext(pages)
    await pages.aclose()
    assert len(asyncio.all_tasks()) == 1
    assert not complaints


async def test_a_list_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_cluster, "MOST_PAGES", 2)
    with pytest.raises(Failure, match="does not end the list"):
        await cluster(Pages(5)).objects(JOBS, namespace="n")
