"""The page over a real loopback socket: addresses, headers, who is refused, streams."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest

from mirror.kinds.registry import BUILT_IN
from mirror.model.endings import CannotStart
from mirror.page import streams
from mirror.page.hosts import is_ours
from mirror.page.serving import Place, serve
from mirror.telemetry.logs import get_log
from tests.doubles.pretended import Pretended, job, many, picture

ANY_PORT = Place(
    listen=("127.0.0.1", 0),
    kinds=BUILT_IN,
    hosts=("Jobs.Example.com",),
    managed_by="jobmirror.io/controller",
    origin="o",
)


class Site:
    """A page that is served, and a client of it."""

    def __init__(self, known: Pretended, port: int, session: aiohttp.ClientSession) -> None:
        self.known = known
        self.url = f"http://127.0.0.1:{port}"
        self.session = session

    async def get(self, path: str, *, method: str = "GET", **headers: str) -> tuple[int, str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, self.url + path, headers=named) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def serving(known: Pretended, place: Place = ANY_PORT) -> AsyncIterator[Site]:
    async with (
        serve(known, place, is_leading=lambda: True, log=get_log("test")) as port,
        aiohttp.ClientSession() as session,
    ):
        yield Site(known, port, session)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving(picture()) as made:
        yield made


async def test_the_list_and_a_job_are_pages(site: Site) -> None:
    """What a person opens."""
    status, text = await site.get("/")
    assert status == 200
    assert text.startswith("<!DOCTYPE html>")
    assert "train-resnet-large" in text
    status, text = await site.get("/jobs/research/train-resnet-large")
    assert status == 200
    assert "Timeline" in text


async def test_filters_are_the_servers(site: Site) -> None:
    """They work without scripts."""
    _, text = await site.get("/?state=Failed&namespace=billing")
    assert "reconcile-2026-11-20" in text
    assert "invoices-november" not in text


async def test_a_job_that_is_not_there_is_404_and_still_a_page(site: Site) -> None:
    """Who keeps the page open will see it when it comes."""
    status, text = await site.get("/jobs/research/nothing")
    assert status == 404
    assert "Job not found" in text


@pytest.mark.parametrize("path", ["/", "/jobs/a/b", "/events", "/static/page.js", "/static/other", "/nowhere"])
async def test_every_answer_is_guarded(site: Site, path: str) -> None:
    """Nothing from elsewhere, nothing inline, no frames, no sniffing, no cookies; errors too."""
    async with site.session.get(site.url + path) as answer:
        headers = answer.headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert (headers["X-Frame-Options"], headers["X-Content-Type-Options"]) == ("DENY", "nosniff")
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Set-Cookie" not in headers
    assert "aiohttp" not in headers["Server"]


async def test_nothing_is_inline(site: Site) -> None:
    """What the policy would block is not there in the first place."""
    for path in ("/", "/jobs/research/train-resnet-large"):
        _, text = await site.get(path)
        assert "<script>" not in text
        assert " style=" not in text
        assert " on" + "click" not in text
        assert "http://" not in text
        assert "https://" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/events", "/jobs/a/b", "/nowhere"])
async def test_there_is_only_get(site: Site, method: str, path: str) -> None:
    """Nothing can be changed here."""
    status, _ = await site.get(path, method=method)
    assert status == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8081", 200), ("localhost:9", 200), ("[::1]:8081", 200), ("10.1.2.3", 200), ("LOCALHOST.", 200),
        ("jobs.example.com", 200), ("JOBS.example.com:443", 200), ("page.localhost", 200),
        ("evil.example", 403), ("localhost.evil.example", 403), ("127.0.0.1.evil.example", 403), ("", 403),
        (".localhost.", 200), ("evil.example:127", 403), ("jobs.example.com.evil", 403),
    ],
)  # fmt: skip
async def test_only_who_means_us_is_answered(site: Site, host: str, status: int) -> None:
    """A foreign name that points at us is refused: DNS rebinding."""
    assert (await site.get("/", Host=host))[0] == status


def test_no_host_is_not_ours() -> None:
    """HTTP/1.0 without one."""
    assert not is_ours(None, known=("",))


@pytest.mark.parametrize(
    ("site_is", "mode", "status"),
    [("same-origin", "cors", 200), ("none", "navigate", 200), ("cross-site", "navigate", 200),
     ("cross-site", "cors", 403), ("same-site", "no-cors", 403)],
)  # fmt: skip
async def test_other_sites_may_only_link(site: Site, site_is: str, mode: str, status: int) -> None:
    """Their scripts can neither read us nor take up streams."""
    answer = await site.get("/", Sec_Fetch_Site=site_is, Sec_Fetch_Mode=mode)
    assert answer[0] == status


@pytest.mark.parametrize("path", ["/jobs/%3Cscript%3Ealert(1)/x", "/?text=%22%3E%3Cscript%3Ealert(1)%3C/script%3E"])
async def test_addresses_are_text_too(site: Site, path: str) -> None:
    """What somebody is lured to open."""
    _, text = await site.get(path)
    assert "<script>" not in text
    assert "<script " in text


@pytest.mark.parametrize(
    "path", ["/jobs/" + "x" * 300 + "/y", "/events?job=x", "/events?job=/", "/static/..%2fserving.py"]
)
async def test_what_is_nowhere_is_404(site: Site, path: str) -> None:
    """No other file, no unbounded name."""
    assert (await site.get(path))[0] == 404


@pytest.mark.parametrize("name", ["page.css", "page.js", "keys.js", "icon.svg"])
async def test_assets_are_part_of_the_package(site: Site, name: str) -> None:
    """They are found where the package is, under the address that the page names."""
    _, page = await site.get("/")
    address = next(part for part in page.split('"') if part.startswith(f"static/{name}?"))
    async with site.session.get(f"{site.url}/{address}") as answer:
        assert answer.status == 200
        assert "immutable" in answer.headers["Cache-Control"]
        assert await answer.text()


async def test_a_stream_sends_the_page_and_then_a_change(site: Site) -> None:
    """As a browser gets it."""
    async with site.session.get(site.url + "/events?namespace=web") as answer:
        assert answer.content_type == "text/event-stream"
        assert await answer.content.readuntil(b"\n\n") == b"retry: 2000\n\n"
        first = json.loads((await answer.content.readuntil(b"\n\n")).removeprefix(b"data: "))
        assert all(row.startswith("j:web/") for row in first["lists"]["rows"])
        site.known.put(job("new", namespace="web"))
        second = json.loads((await answer.content.readuntil(b"\n\n")).removeprefix(b"data: "))
        assert "j:web/new" in second["parts"]


async def test_a_jobs_stream_tells_its_story(site: Site) -> None:
    """The part after ``job=`` is its namespace and name."""
    async with site.session.get(site.url + "/events?job=research/train-resnet-large") as answer:
        await answer.content.readuntil(b"\n\n")
        first = json.loads((await answer.content.readuntil(b"\n\n")).removeprefix(b"data: "))
        assert len(first["lists"]["timeline"]) == 10


async def test_streams_are_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more is refused, and may come when another has gone."""
    monkeypatch.setattr(streams, "MOST_STREAMS", 2)
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(site.session.get(site.url + "/events"))
        async with site.session.get(site.url + "/events") as answer:
            assert answer.status == 503
            assert answer.headers["Retry-After"]
    async with asyncio.timeout(60):
        while (await _status(site)) != 200:  # noqa: ASYNC110 - until the server has seen who is gone
            await asyncio.sleep(0.02)


async def _status(site: Site) -> int:
    async with site.session.get(site.url + "/events") as answer:
        return answer.status


async def test_the_end_does_not_wait_for_readers() -> None:
    """A manager stops within a second though browsers look."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        async with serving(many(10)) as site:
            answer = await stack.enter_async_context(site.session.get(site.url + "/events"))
            await answer.content.readuntil(b"\n\n")
            began = loop.time()
        assert loop.time() - began < 30  # a reader stays for ever, and aiohttp would wait for 60 s


async def test_a_port_in_use_is_told() -> None:
    """The operator learns which setting to change."""
    async with serving(Pretended()) as site:
        port = int(site.url.rpartition(":")[2])
        with pytest.raises(CannotStart, match=r"setting page\.listen"):
            async with serving(Pretended(), Place(listen=("127.0.0.1", port), kinds=BUILT_IN)):
                raise AssertionError("listening twice")


async def test_the_newest_are_shown_before_all_have_been_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of thousands of Jobs is there at once; its counts follow."""
    monkeypatch.setattr("mirror.page.serving.SOON_SECONDS", 0.0)
    async with serving(many(5_000)) as site:
        _, text = await site.get("/")
        assert "the newest 100" in text
        assert text.count('class="count">…<') > 5
        assert "team-0/</span>" in text
        async with site.session.get(site.url + "/events") as answer:
            await answer.content.readuntil(b"\n\n")
            first = json.loads((await answer.content.readuntil(b"\n\n")).removeprefix(b"data: "))
            assert "of 5,000" in first["parts"]["found"]
        _, text = await site.get("/")
        assert "of 5,000" in text
