"""The dashboard in a real browser: triage, sorting, keys, tabs, a login, and what axe-core says of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pytest

from e2e.axe import NoAxe, read_axe, violations
from e2e.browser import Tab, browser_tab, find_chromium
from mirror.kinds.registry import BUILT_IN
from mirror.page.serving import Place, serve
from mirror.telemetry.logs import get_log
from tests.doubles.page_visitors import PretendedVisitors
from tests.doubles.pretended import Pretended, many, picture

CHROMIUM = find_chromium()
LIVE = "document.getElementById('live')?.textContent === 'Live'"
ROWS = "[...document.querySelectorAll('#rows tr')]"
TRAIN = "jobs/research/train-resnet-large"
HOSTILE = '<img src=x onerror="pwned = 1"><script>pwned = 1</script>'


@pytest.fixture(autouse=True)
def chromium(required_program: Callable[..., Path]) -> None:
    """Without a browser these tests are skipped, unless the run is one that must have it."""
    required_program("chromium", lambda _: CHROMIUM)


@pytest.fixture(scope="module")
def axe(do_without: Callable[..., NoReturn]) -> str:
    """The script of axe-core; without it these tests are skipped, unless the run is one that must have it."""
    try:
        return read_axe()
    except NoAxe as reason:
        do_without(reason)


@asynccontextmanager
async def seen(known: Pretended, visitors: PretendedVisitors | None = None) -> AsyncIterator[tuple[Tab, str]]:
    """A tab, and the address of a page that shows what is pretended."""
    assert CHROMIUM is not None
    place = Place(listen=("127.0.0.1", 0), kinds=BUILT_IN, managed_by="jobmirror.io/controller", origin="7f3c9a4e")
    serving = serve(known, place, is_leading=lambda: True, log=get_log("page"), visitors=visitors)
    async with serving as port, browser_tab(CHROMIUM) as tab:
        yield tab, f"http://127.0.0.1:{port}/"


def opened() -> PretendedVisitors:
    visitors = PretendedVisitors()
    visitors.tokens = {"admin": {("list", "Job", ""), ("get", "Job", "")}}
    return visitors


async def log_in(tab: Tab, url: str) -> None:
    await tab.open(url)
    await tab.evaluate("document.getElementById('token').focus()")
    await tab.type("admin")
    await tab.evaluate("document.querySelector('form').requestSubmit()")
    await tab.wait_for(LIVE)


async def test_a_number_of_the_strip_is_a_filter_and_a_title_sorts() -> None:
    """Without reloading; the address holds it, the fields say it, and it can be taken back."""
    async with seen(picture(datetime.now(UTC))) as (tab, url):
        await tab.open(url)
        await tab.wait_for(LIVE)
        await tab.evaluate("document.querySelector('.tile.wait .parts a').click()")
        await tab.wait_for(f"{ROWS}.length === 2")
        assert await tab.evaluate("location.search") == "?state=Waiting&reason=WorkersFull"
        await tab.evaluate("document.querySelector('#chosen a').click()")
        await tab.wait_for(f"{ROWS}.length === 3")
        await tab.evaluate("document.querySelector('#columns .job a').click()")
        await tab.wait_for("document.querySelector('#columns [aria-sort=ascending]')?.innerText.startsWith('Job')")
        names = await tab.evaluate(f"{ROWS}.map(row => row.querySelector('.name').innerText)")
        assert names == sorted(names)
        assert await tab.evaluate("document.getElementById('filter').elements.sort.value") == "name"
        await tab.evaluate("document.querySelector('#fleet a').click()")
        await tab.wait_for("document.getElementById('worker').value === 'east'")
        unknown = "document.querySelector('.tile.bad .parts a')"
        await tab.evaluate(f"{unknown}.click()")
        await tab.wait_for(f"{ROWS}.length === 1 && {ROWS}[0].innerText.includes('Unknown')")
        assert "north unreachable for 4m" in await tab.text("#rows .why")
        assert (tab.loads, tab.complaints) == (1, [])


async def test_keys_do_what_their_list_says() -> None:
    """Walk, filter, page, open, come back, choose a tab; where somebody types they are letters."""
    async with seen(many(250)) as (tab, url):
        await tab.open(url)
        await tab.wait_for(f"{LIVE} && {ROWS}.length === 100")
        for key in "jjk":
            await tab.press(key)
        assert await tab.evaluate(f"{ROWS}[0].contains(document.activeElement)")
        await tab.press("n")
        await tab.wait_for("document.getElementById('found').innerText.includes('101–200')")
        await tab.press("f")
        await tab.wait_for("location.search === '?state=Failed'")
        await tab.press("?")
        assert await tab.evaluate("document.getElementById('keys').open")
        await tab.evaluate("document.querySelector('#keys button').click()")
        await tab.press("/")
        await tab.type("af")
        assert await tab.evaluate("location.search") == "?state=Failed"
        await tab.open(f"{url}jobs/team-0/job-00000")
        await tab.wait_for(LIVE)
        await tab.press("6")
        await tab.wait_for("!document.getElementById('panel-commands').hidden")
        assert await tab.evaluate("location.hash") == "#commands"
        await tab.press("b")
        await tab.wait_for(f"location.pathname === '/' && {ROWS}.length === 100")
        assert tab.complaints == []


async def test_without_rights_the_tabs_say_what_to_run() -> None:
    """In one line, which can be copied."""
    async with seen(picture(datetime.now(UTC))) as (tab, url):
        await tab.open(f"{url}{TRAIN}#logs")
        await tab.wait_for(LIVE)
        assert "mirror logs train-resnet-large -n research -f" in await tab.text("#panel-logs")
        await tab.evaluate("document.querySelector('#panel-logs [data-copy]').click()")
        await tab.wait_for("['Copied', 'Selected'].includes(document.querySelector('#panel-logs button').innerText)")
        assert tab.complaints == []


async def test_a_login_shows_pods_manifests_and_a_log_that_grows() -> None:
    """A token that is typed; hostile pods and logs are only text."""
    visitors = opened()
    visitors.pods["items"][0]["metadata"]["annotations"] = {"x": HOSTILE}
    visitors.events["items"][0]["message"] = HOSTILE
    visitors.log_pieces.append(HOSTILE.encode() + b"\n")
    async with seen(picture(datetime.now(UTC)), visitors) as (tab, url):
        await log_in(tab, url)
        assert "user-of-admin" in await tab.text("header")
        assert "admin" not in await tab.evaluate("document.cookie")
        await tab.open(f"{url}{TRAIN}#pods")
        await tab.wait_for("document.querySelectorAll('#pods-inside tbody tr').length === 2")
        await tab.press("4")
        await tab.wait_for("document.getElementById('events-inside').innerText.includes('onerror')")
        await tab.press("5")
        await tab.wait_for("document.querySelectorAll('#yaml-inside .minus').length > 2")
        await tab.press("2")
        await tab.evaluate("document.querySelector('[data-container=metrics]').click()")
        await tab.wait_for("document.getElementById('log').innerText.includes('onerror')")
        assert "train-resnet-large-0-x7k2p · metrics on gpu-frankfurt" in await tab.text("#log-of")
        visitors.log_goes_on.set()
        await tab.wait_for("document.getElementById('log').innerText.includes('the end')")
        await tab.wait_for("document.getElementById('logs-problem').innerText === 'The log has ended.'")
        assert await tab.evaluate("typeof pwned") == "undefined"
        assert await tab.evaluate("document.querySelectorAll('main img, main script').length") == 0
        assert [text for text in tab.complaints if "401" not in text and "favicon" not in text] == []


async def test_a_login_that_ends_leads_back_to_the_form() -> None:
    """Nothing stays on the screen."""
    visitors = opened()
    async with seen(picture(datetime.now(UTC)), visitors) as (tab, url):
        await log_in(tab, url)
        await tab.evaluate("document.querySelector('.leave button').click()")
        await tab.wait_for("document.getElementById('token')")
        assert "train-resnet-large" not in await tab.text("body")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 2200])
async def test_axe_finds_nothing(width: int, scheme: str, axe: str) -> None:
    """Contrast, names, roles, order of headings: on each page and in each tab."""
    visitors = opened()
    async with seen(picture(datetime.now(UTC)), visitors) as (tab, url):
        await tab.look(width=width, scheme=scheme)
        await tab.open(url)
        assert await violations(tab, axe) == []
        await log_in(tab, url)
        assert await violations(tab, axe) == []
        await tab.evaluate("document.getElementById('keys').showModal()")
        assert await violations(tab, axe) == []
        await tab.open(f"{url}{TRAIN}")
        await tab.wait_for(LIVE)
        for name, there in (
            ("timeline", "li"), ("pods", "tbody tr"), ("logs", "pre"), ("events", "tbody tr"), ("yaml", ".minus"),
            ("commands", "code"),
        ):  # fmt: skip
            await tab.evaluate(f"document.getElementById('tab-{name}').click()")
            await tab.wait_for(f"document.querySelector('#panel-{name} {there}')")
            assert await violations(tab, axe) == [], name
            assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is too wide"


async def test_axe_finds_what_is_planted(axe: str) -> None:
    """Else nothing found would mean nothing."""
    async with seen(picture(datetime.now(UTC))) as (tab, url):
        await tab.open(url)
        await tab.wait_for(LIVE)
        await tab.evaluate("document.querySelector('main').append(document.createElement('img'))")
        assert any(one.startswith("image-alt: ") for one in await violations(tab, axe))
