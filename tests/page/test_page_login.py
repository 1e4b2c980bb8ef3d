"""Who looks: tokens from a header, a proxy or a form, and that nobody sees what they may not get or list."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from test_page_serving import ANY_PORT, Site

from mirror.model.keys import SourceKey
from mirror.model.views import WorkerView
from mirror.page import streams
from mirror.page.entrance import MOST_SESSIONS, MOST_SESSIONS_OF_ONE, SESSION_SECONDS, Sessions
from mirror.page.query import Query
from mirror.page.scope import Scope
from mirror.page.serving import serve
from mirror.page.visiting import MOST_PLACES, Visitor, scope_of
from mirror.telemetry.logs import get_log
from tests.doubles.page_visitors import PretendedVisitors
from tests.doubles.pretended import Pretended, job, picture

ALL = {("list", "Job", ""), ("get", "Job", "")}
WEB = {("list", "Job", "web"), ("get", "Job", "web")}
TRAIN = "/jobs/research/train-resnet-large"


class House(Site):
    """A site with a login."""

    visitors: PretendedVisitors


@pytest.fixture
async def house() -> AsyncIterator[House]:
    visitors, known = PretendedVisitors(), picture()
    visitors.tokens = {"admin": ALL, "web": WEB, "nobody": set()}
    visitors.log_goes_on.set()
    known.put(job("on-lost", namespace="web", worker="north"))
    async with (
        serve(known, ANY_PORT, is_leading=lambda: True, log=get_log("test"), visitors=visitors) as port,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        made = House(known, port, session)
        made.visitors = visitors
        yield made


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", ["/", "/?namespace=web", TRAIN, "/jobs/no/such"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer stolen"}, {"Authorization": "Basic YTpi"}])
async def test_nobody_gets_in_without_a_token(house: House, path: str, headers: dict[str, str]) -> None:
    """A form is all there is, of what exists and what does not."""
    status, text = await house.get(path, **headers)
    assert status == 401
    assert 'type="password"' in text
    assert "resnet" not in text
    assert "research" not in text


@pytest.mark.parametrize("path", ["/events", "/events?job=web/x", f"{TRAIN}/pods", f"{TRAIN}/log", f"{TRAIN}/manifest"])
async def test_scripts_are_told_in_a_line(house: House, path: str) -> None:
    """No stream and nothing inside a mirror without a token."""
    status, text = await house.get(path)
    assert (status, len(text.splitlines())) == (401, 1)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer admin"},
        {"authorization": "bearer admin"},
        {"X-Forwarded-Access-Token": "admin"},
        {"Authorization": "Basic YTpi", "X-Forwarded-Access-Token": "admin"},
    ],
    ids=["a bearer token", "in lower case", "as oauth2-proxy forwards it", "beside a proxy's own password"],
)
async def test_a_token_of_who_may_list_all_shows_all(house: House, headers: dict[str, str]) -> None:
    """As the page is without a login, and with the name of who looks."""
    status, text = await house.get("/", **headers)
    assert status == 200
    assert "train-resnet-large" in text
    assert "connection refused" in text
    assert "user-of-admin" in text
    assert "Bearer" not in text
    assert "Log out" in text


async def test_others_see_their_namespaces_and_nothing_shines_through(house: House) -> None:
    """Neither rows, nor counts, suggestions, workers' loads and errors, nor the chart tell of others' Jobs."""
    status, text = await house.get("/", **bearer("web"))
    assert status == 200
    mine = [key for key in house.known.by_key if key.namespace == "web"]
    assert f"of {len(mine)}<" in text
    for foreign in (
        "research",
        "billing",
        "nightly",
        "WorkersFull",
        "connection refused",
        "10.20.0.14",
        "of 40",
        "a100",
    ):
        assert foreign not in text
    assert "north unreachable" in text
    assert "gpu-frankfurt" not in text
    status, text = await house.get("/", **bearer("nobody"))
    assert status == 200
    assert "No mirrored Jobs." in text
    assert "east" not in text


async def test_a_namespace_that_is_named_is_asked_for(house: House) -> None:
    """Though it may be none of the hundred with most Jobs; what may not be listed stays hidden."""
    _, text = await house.get("/?namespace=research", **bearer("web"))
    assert "train-resnet-large" not in text


async def test_a_job_needs_the_right_to_get_it(house: House) -> None:
    """Before it is looked for: what is there and what is not get the same answer."""
    assert (await house.get("/jobs/web/on-lost", **bearer("web")))[0] == 200
    there, absent = await house.get(TRAIN, **bearer("web")), await house.get("/jobs/research/x", **bearer("web"))
    assert there[0] == absent[0] == 403
    assert there[1] == absent[1]
    assert (await house.get(f"{TRAIN}/pods", **bearer("web")))[0] == 403
    assert (await house.get("/events?job=research/train-resnet-large", **bearer("web")))[0] == 403


async def test_a_stream_shows_only_what_may_be_seen_and_ends_with_the_right(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A right that is withdrawn ends an open page within a minute."""
    monkeypatch.setattr(streams, "RENEW_SECONDS", 0.0)
    async with house.session.get(house.url + "/events", headers=bearer("web")) as answer:
        await answer.content.readuntil(b"\n\n")
        first = json.loads((await answer.content.readuntil(b"\n\n")).removeprefix(b"data: "))
        assert first["lists"]["rows"]
        assert all(row.startswith("j:web/") for row in first["lists"]["rows"])
        house.known.put(job("secret", namespace="research", created="2030-01-01T00:00:00Z"))
        house.known.put(job("mine", namespace="web", created="2030-01-01T00:00:00Z"))
        message = await answer.content.readuntil(b"\n\n")
        assert b"secret" not in message
        assert b"j:web/mine" in message
        del house.visitors.tokens["web"]
        house.known.put(job("later", namespace="web"))
        assert await answer.content.readuntil(b"\n\n") == b"event: login\ndata: {}\n\n"
        assert await answer.content.read() == b""


async def test_a_typed_token_opens_a_session_and_stays_here(house: House) -> None:
    """The browser gets a number that means nothing elsewhere, which scripts cannot read and other sites not send."""
    form = {"token": " admin \n"}
    async with house.session.post(house.url + "/login", data=form, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, ".")
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly; SameSite=Strict" in cookie
    assert "admin" not in cookie
    assert "Path" not in cookie
    assert (await house.get("/"))[0] == 200
    async with house.session.post(house.url + "/logout", allow_redirects=False) as answer:
        assert answer.status == 303
    assert (await house.get("/"))[0] == 401


@pytest.mark.parametrize("token", ["", "wrong", "x" * 17_000])
async def test_a_token_that_is_no_good_is_told(house: House, token: str) -> None:
    """On the form, with no cookie."""
    async with house.session.post(house.url + "/login", data={"token": token}) as answer:
        assert answer.status == 401
        assert 'role="alert"' in await answer.text()
        assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}, 303),
        ({"Host": "evil.example"}, 403),
        ({"X-Forwarded-Proto": "https"}, 303),
    ],
)
async def test_other_sites_cannot_log_anybody_in(house: House, headers: dict[str, str], status: int) -> None:
    """Or somebody would look at a page as another without knowing."""
    options = {"data": {"token": "admin"}, "headers": headers, "allow_redirects": False}
    async with house.session.post(house.url + "/login", **options) as answer:
        assert answer.status == status
        is_secure = "Secure" in answer.headers.get("Set-Cookie", "")
        assert is_secure is (headers.get("X-Forwarded-Proto") == "https")


async def test_what_is_inside_a_mirror_is_shown(house: House) -> None:
    """Pods, events, manifests and logs, as access answers them."""
    _, page = await house.get(TRAIN, **bearer("admin"))
    assert 'data-part="pods"' in page
    assert "cannot show this here" not in page
    _, pods = await house.get(f"{TRAIN}/pods", **bearer("admin"))
    assert "ImagePullBackOff: container train: image train:7: not found" in pods
    assert "ImagePullBackOff" in pods
    assert (await house.get(f"{TRAIN}/nothing", **bearer("admin")))[0] == 404
    async with house.session.get(f"{house.url}{TRAIN}/log?pod=a", headers=bearer("admin")) as answer:
        assert answer.content_type == "text/plain"
        assert answer.headers["X-Jobmirror-Pod"] == "a"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert (await answer.text()).endswith("the end\n")


async def test_without_access_the_page_says_what_to_run() -> None:
    """With a login and without one."""
    for visitors in (None, PretendedVisitors(has_inside=False)):
        if visitors is not None:
            visitors.tokens = {"admin": ALL}
        known = picture()
        async with (
            serve(known, ANY_PORT, is_leading=lambda: True, log=get_log("test"), visitors=visitors) as port,
            aiohttp.ClientSession() as session,
        ):
            site = Site(known, port, session)
            _, page = await site.get(TRAIN, **bearer("admin"))
            assert page.count("cannot show this here") == 4
            assert "mirror logs train-resnet-large -n research -f" in page
            assert "data-part" not in page
            assert (await site.get(f"{TRAIN}/pods", **bearer("admin")))[0] == 404


async def test_without_a_login_nothing_of_it_is_there() -> None:
    """As it was: GET only, no cookie, no form."""
    async with (
        serve(Pretended(), ANY_PORT, is_leading=lambda: True, log=get_log("test")) as port,
        aiohttp.ClientSession() as session,
    ):
        site = Site(Pretended(), port, session)
        assert (await site.get("/login", method="POST"))[0] == 405
        assert "Log out" not in (await site.get("/"))[1]


def test_sessions_are_bounded_in_number_and_time() -> None:
    """The oldest go first."""
    now = [0.0]
    kept = Sessions(lambda: now[0])
    first = kept.open("first", "first")
    others = [kept.open(str(number), str(number)) for number in range(MOST_SESSIONS)]
    assert (kept.token(first), kept.token(others[-1])) == ("", str(MOST_SESSIONS - 1))
    now[0] = SESSION_SECONDS
    assert kept.token(others[-1]) == ""
    assert kept.token("guessed") == ""


def test_nobody_ends_the_sessions_of_others() -> None:
    """Whoever may log in could do so a thousand times."""
    kept = Sessions(lambda: 0.0)
    other = kept.open("other", "ann")
    own = [kept.open(str(number), "bob") for number in range(MOST_SESSIONS)]
    assert kept.token(other) == "other"
    assert [one for one in own if kept.token(one)] == own[-MOST_SESSIONS_OF_ONE:]


async def test_rights_are_asked_for_in_bounded_numbers() -> None:
    """However many namespaces there are."""
    visitors = PretendedVisitors()
    visitors.tokens = {"t": {("list", "Job", "n3"), ("list", "Job", "far")}}

    async def places() -> tuple[tuple[str, str], ...]:
        await asyncio.sleep(0)
        return (*((("Job", f"n{number}")) for number in range(MOST_PLACES)), ("Job", "far"))

    visitor = Visitor("u", "t", "")
    assert await scope_of(visitors, visitor, Query(), places) == Scope(frozenset({("Job", "n3")}))
    named = await scope_of(visitors, visitor, Query(namespace="far"), places)
    assert named == Scope(frozenset({("Job", "n3"), ("Job", "far")}))
    assert "t" not in repr(visitor).replace("Visitor", "")


async def test_a_kind_that_may_not_be_listed_is_not_seen() -> None:
    """Rights are by kind."""
    visitors = PretendedVisitors()
    visitors.kinds = ("Job", "Drill")
    visitors.tokens = {"t": {("list", "Job", "")}}

    async def places() -> tuple[tuple[str, str], ...]:
        return (("Job", "a"), ("Drill", "a"))

    assert await scope_of(visitors, Visitor("u", "t", ""), Query(), places) == Scope(frozenset({("Job", "a")}))


def test_workers_are_told_only_as_far_as_their_jobs_tell() -> None:
    """Neither load nor labels, errors, versions and tokens."""
    from mirror.page.scope import seen_workers

    east = WorkerView(name="east", state="Lost", because="10.0.0.1 refuses", jobs=9, labels={"a": "b"}, version="v1")
    (seen,) = seen_workers([east, WorkerView(name="west", state="Connected")], {"east"})
    assert seen == WorkerView(name="east", state="Lost")
    assert SourceKey("Job", "a", "b").namespace == "a"
