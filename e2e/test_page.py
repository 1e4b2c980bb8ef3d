"""The page in a real Chromium: people see Jobs run without reloading, on every screen, and hostile text does nothing.

The first test has a real manager on control planes in this process; the others show it what is rare (``pretended``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import msgspec
import pytest

from e2e.browser import Tab, browser_tab, find_chromium
from e2e.ports import reserved_port
from mirror.cli.embedded import manager
from mirror.kinds.registry import BUILT_IN
from mirror.model.durations import human_duration
from mirror.model.keys import SourceKey
from mirror.model.views import Moment, WorkerView
from mirror.page.serving import Place, serve
from mirror.page.table import PAGE_JOBS
from mirror.page.times import relative
from mirror.planes.fleet import Fleet, fleet
from mirror.planes.samples import sample_jobs
from mirror.planes.shape import Shape
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from tests.doubles.pretended import NOW, Pretended, before, job, many, picture

CHROMIUM = find_chromium()

JOBS = "/apis/batch/v1/namespaces/default/jobs"
LIVE = "document.getElementById('live').textContent === 'Live'"
ROWS = "[...document.querySelectorAll('#rows tr')]"
HOSTILE = '</td></tr></table><script>pwned = 1</script><img src=x onerror="pwned = 1">\u202eevil'
SCREENS = [*product((390, 1280, 2200), ("light", "dark"))]


@pytest.fixture(autouse=True)
def chromium(required_program: Callable[..., Path]) -> None:
    """Without a browser these tests are skipped, unless the run is one that must have it."""
    required_program("chromium", lambda _: CHROMIUM)


@asynccontextmanager
async def seen(known: Pretended, *, port: int = 0) -> AsyncIterator[tuple[Tab, str]]:
    """A tab, and the address of a page that shows what is pretended."""
    assert CHROMIUM is not None
    place = Place(listen=("127.0.0.1", port), kinds=BUILT_IN, managed_by="jobmirror.io/controller", origin="7f3c9a4e")
    async with serve(known, place, is_leading=lambda: True, log=get_log("page")) as found, browser_tab(CHROMIUM) as tab:
        yield tab, f"http://127.0.0.1:{found}/"


@asynccontextmanager
async def managed(folder: Path) -> AsyncIterator[tuple[Tab, str, Fleet]]:
    """A tab, and the address of the page of a manager that leads, with the workers ``east`` and ``west``."""
    assert CHROMIUM is not None
    ports: list[int] = []
    async with fleet(["east", "west"], folder, Shape()) as made:
        running = manager(made.settings(page=True), 2, metrics=Metrics(), stop=asyncio.Event(), on_page=ports.append)
        async with running, browser_tab(CHROMIUM) as tab:
            yield tab, f"http://127.0.0.1:{ports[0]}/", made


async def test_jobs_are_seen_to_run_without_reloading(tmp_path: Path) -> None:
    """Jobs appear by themselves and end before our eyes; one of them tells its story, and that it is gone."""
    async with managed(tmp_path) as (tab, url, made):
        await tab.open(url)
        await tab.wait_for(f"{LIVE} && document.querySelectorAll('#fleet tr').length === 2")
        assert "leader" in await tab.text("header")
        assert "2/2 workers ready" in await tab.text("#summary")
        assert "No mirrored Jobs." in await tab.text("main")

        api, ours = made.management.plane.api, made.settings().managed_by
        bodies = [body for body in sample_jobs(ours) if body["metadata"]["name"].startswith("plain")]
        for body in bodies:
            await api.create(JOBS, body)
        await tab.wait_for(f"{ROWS}.length === {len(bodies)}")
        await tab.wait_for(f"{ROWS}.every(row => row.innerText.includes('Complete'))")
        assert tab.loads == 1, "it was reloaded"

        name = bodies[0]["metadata"]["name"]
        await tab.evaluate(f"document.querySelector('a[href=\"jobs/default/{name}\"]').click()")
        await tab.wait_for(f"document.querySelector('#timeline .good') && {LIVE}")
        kinds = [text.strip() for text in (await tab.text("#timeline")).splitlines()]
        order = [kinds.index(kind) for kind in ("Created", "Placed", "Mirrored", "Finished")]
        assert order == sorted(order)

        await api.delete(f"{JOBS}/{name}")
        await tab.wait_for("document.getElementById('head').innerText.includes('may have been deleted')")
        assert tab.complaints == []


async def test_a_worker_is_seen_to_be_lost_and_to_come_back(tmp_path: Path) -> None:
    """Its card says so within seconds, without reloading, and so does what is read aloud."""
    async with managed(tmp_path) as (tab, url, made):
        await tab.open(url)
        await tab.wait_for(f"{LIVE} && document.querySelectorAll('#fleet tr').length === 2")
        await made.workers["west"].plane.kill()
        await tab.wait_for("document.querySelector('#fleet .lost')?.id === 'w:west'")
        assert await tab.text("#summary") == "1/2 workers ready; lost: west"
        made.workers["west"].plane.start()
        await tab.wait_for("document.getElementById('summary').innerText === '2/2 workers ready'")
        assert (tab.loads, tab.complaints) == (1, [])


async def test_hostile_text_is_only_text() -> None:
    """Names, reasons, stories and versions made to break out of a page; the page's own policy has nothing to block."""
    known = Pretended()
    known.put_worker(WorkerView(name="east", state="Lost", because=HOSTILE, version=HOSTILE, uid=HOSTILE))
    known.put_worker(WorkerView(name=HOSTILE, state=HOSTILE))
    known.put(job("victim", "Waiting", because=HOSTILE, worker=HOSTILE), Moment(at=HOSTILE, kind=HOSTILE, text=HOSTILE))
    known.obstacles[SourceKey("Job", "default", "victim")] = {HOSTILE: HOSTILE}
    async with seen(known) as (tab, url):
        lures = ("?text=%3Cscript%3Epwned=1%3C/script%3E", "?worker=%22%3E%3Cimg%20src=x%20onerror=pwned=1%3E")
        for path in ("", "jobs/default/victim", *lures):
            await tab.open(url + path)
            await tab.wait_for(LIVE)
            assert await tab.evaluate("typeof pwned") == "undefined"
            assert await tab.evaluate("document.querySelectorAll('main script, main img').length") == 0
        await tab.open(url)
        await tab.wait_for(LIVE)
        known.put(job("victim", "Running", because=HOSTILE * 2, worker="", succeeded=1, completions=2))
        await tab.wait_for("document.querySelector('#rows .badge.running')")
        shown = await tab.text("#rows")
        assert "<script>pwned = 1</script>" in shown
        assert "\\u202eevil" in shown
        assert await tab.evaluate("typeof pwned") == "undefined"
        assert tab.complaints == []


async def test_a_policy_stands_behind_the_escaping() -> None:
    """Even markup that came through would run nothing."""
    async with seen(picture()) as (tab, url):
        await tab.open(url)
        await tab.wait_for(LIVE)
        await tab.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"pwned = 1\">')")
        await tab.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'pwned = 1'}))")
        await tab.until_complaint("Content Security Policy")
        assert await tab.evaluate("typeof pwned") == "undefined"


async def test_filters_work_by_keyboard_and_need_no_reload() -> None:
    """Slash, type, see; the state is kept; a worker's change does not throw anybody out of the field."""
    known = picture(datetime.now(UTC))
    async with seen(known) as (tab, url):
        await tab.open(url)
        await tab.wait_for(LIVE)
        await tab.evaluate("document.querySelector('.state.failed').click()")
        await tab.wait_for(f"{ROWS}.length === 4")
        await tab.press("/")
        await tab.type("nightly")
        await tab.wait_for(f"{ROWS}.length === 3")
        assert await tab.evaluate("location.search") == "?state=Failed&text=nightly"
        known.put_worker(WorkerView(name="south", state="Connected"))
        await tab.wait_for("document.querySelectorAll('#fleet tr').length === 5")
        assert await tab.evaluate("document.activeElement.name") == "text"
        assert await tab.evaluate("document.activeElement.value") == "nightly"
        assert (tab.loads, tab.complaints) == (1, [])


async def test_focus_stays_on_a_row_that_changes() -> None:
    """Who walks by keyboard is not thrown back to the top."""
    known = picture()
    async with seen(known) as (tab, url):
        await tab.open(url)
        await tab.wait_for(LIVE)
        await tab.evaluate("document.querySelector('#rows tr:nth-child(3) a').focus()")
        before_it = await tab.evaluate("document.activeElement.href")
        known.put(msgspec.structs.replace(known.by_key[SourceKey("Job", "billing", "invoices-november")], failed=7))
        known.put(job("newest", created="2030-01-01T00:00:00Z"))
        await tab.wait_for(f"{ROWS}[0].innerText.includes('newest') && {ROWS}[3].innerText.includes('7 failed')")
        assert await tab.evaluate("document.activeElement.href") == before_it


async def test_it_can_be_paused() -> None:
    """Moving content can be stopped; then nothing moves, and afterwards all is there."""
    known = picture()
    async with seen(known) as (tab, url):
        await tab.open(url)
        await tab.wait_for(LIVE)
        await tab.evaluate("document.getElementById('pause').click()")
        assert await tab.text("#live") == "Paused"
        known.put(job("meanwhile", created="2030-01-01T00:00:00Z"))
        await asyncio.sleep(1)  # two messages would have come by now
        assert "meanwhile" not in await tab.text("#rows")
        await tab.evaluate("document.getElementById('pause').click()")
        await tab.wait_for(f"{LIVE} && {ROWS}[0].innerText.includes('meanwhile')")


@pytest.fixture
def other_port() -> Iterator[int]:
    """For a server that goes and comes back."""
    with reserved_port() as port:
        yield port


async def test_a_manager_that_goes_is_told_and_found_again(other_port: int) -> None:
    """A restart needs no reload."""
    known = picture()
    async with seen(known) as (tab, _):
        place = Place(listen=("127.0.0.1", other_port), kinds=BUILT_IN)
        async with serve(known, place, is_leading=lambda: True, log=get_log("page")):
            await tab.open(f"http://127.0.0.1:{other_port}/")
            await tab.wait_for(LIVE)
        await tab.wait_for("document.getElementById('live').textContent.startsWith('Not live')")
        async with serve(known, place, is_leading=lambda: False, log=get_log("page")):
            await tab.wait_for(f"{LIVE} && document.getElementById('role').innerText === 'standby'")
            assert tab.loads == 1


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
async def test_it_fits_every_screen(width: int, scheme: str, tmp_path: Path) -> None:
    """Nothing sticks out, nothing jumps when the page becomes live or a Job changes, and a picture can be taken."""
    known = picture(datetime.now(UTC))
    known.put(job("with-a-name-of-" + "sixty-three-characters-" * 2, because="a reason of many words " * 20))
    async with seen(known) as (tab, url):
        await tab.look(width=width, scheme=scheme)
        for path in ("", "jobs/research/train-resnet-large", "jobs/research/embed-corpus-7", "jobs/nowhere/nothing"):
            await tab.open(url + path)
            await tab.wait_for(LIVE)
            known.put(
                msgspec.structs.replace(known.by_key[SourceKey("Job", "web", "thumbnails-28841")], succeeded=len(path))
            )
            await asyncio.sleep(1)  # two messages: what they make jump has jumped
            assert await tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is too wide"
            assert await tab.evaluate(_SHIFTS) < 0.02, f"{path} jumps"
            dark = await tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 22, 27)"
            assert dark is (scheme == "dark")
            shot = await tab.picture()
            (tmp_path / "page.png").write_bytes(shot)
            assert len(shot) > 5_000
        assert [text for text in tab.complaints if "404" not in text] == []


async def test_everything_has_a_name_for_those_who_hear_it() -> None:
    """Links, buttons, fields and pictures of numbers are named; the table is a table on narrow screens, too."""
    async with seen(picture()) as (tab, url):
        await tab.look(width=400)
        for path in ("", "jobs/research/train-resnet-large"):
            await tab.open(url + path)
            await tab.wait_for(LIVE)
            nodes = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
            heard = [
                (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]
            ]
            named = {"link", "button", "textbox", "searchbox", "combobox", "meter", "progressbar", "navigation"}
            assert [role for role, name in heard if role in named and not name] == []
            roles = {role for role, _ in heard}
            assert {"banner", "main", "contentinfo", "heading", "status"} <= roles
            if not path:
                assert {"table", "row", "columnheader", "rowheader", "cell", "search"} <= roles


async def test_twenty_thousand_jobs_are_one_page_of_them() -> None:
    """Neither browser nor manager minds; every Job can be found."""
    known = many(20_000)
    async with seen(known) as (tab, url):
        await tab.open(url)
        await tab.wait_for(f"{LIVE} && {ROWS}.length === {PAGE_JOBS}")
        assert "of 20,000" in await tab.text("#found")
        await tab.press("/")
        await tab.type("job-19876")
        await tab.wait_for(f"{ROWS}.length === 1")
        assert await tab.evaluate("document.querySelectorAll('*').length") < 3_000


async def test_the_browser_says_times_as_the_server_does() -> None:
    """Otherwise they would change their words when a page becomes live."""
    spans = [
        0,
        1,
        119,
        120,
        299,
        300,
        3599,
        3600,
        10_799,
        10_800,
        35_999,
        86_399,
        172_800,
        863_999,
        10**7,
        10**8,
        10**9,
    ]
    async with seen(picture()) as (tab, url):
        await tab.open(url)
        assert await tab.evaluate(f"{spans}.map(seconds => age(seconds))") == list(map(human_duration, spans))
        for seconds in (90, -18_000, 0):
            at = before(seconds=seconds)
            script = f"shown({{dateTime: '{at}', dataset: {{as: 'ago'}}}}, Date.parse('{before()}'))"
            assert await tab.evaluate(script) == relative(datetime.fromisoformat(at), NOW)


_SHIFTS = """new Promise(done => {
  let sum = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) sum += entry.hadRecentInput ? 0 : entry.value;
  }).observe({type: 'layout-shift', buffered: true});
  setTimeout(() => done(sum), 100);
})"""
"""How much of the screen has moved by itself; browsers call 0.1 bad."""
