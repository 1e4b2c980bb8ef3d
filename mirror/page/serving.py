"""The page over HTTP: its addresses, its headers, who may ask. ``app`` opens it when settings say so.

There is nothing to change here: GET, and nothing else. Without TLS and login, it listens on the loopback unless told
otherwise; what reaches it from there is a port-forward, or a proxy that asks who is there (docs/page.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from importlib.resources import files

import msgspec
from aiohttp import web

from mirror.model.keys import SourceKey
from mirror.model.version import version
from mirror.model.views import Known
from mirror.page import hosts
from mirror.page.badges import default_kind
from mirror.page.board import Board, NotReady
from mirror.page.query import LONGEST, Query, parse
from mirror.page.skeleton import About, error_page, job_page, list_page
from mirror.page.streams import Streams, TooMany
from mirror.page.view import View
from mirror.runtime.clock import Clock, SystemClock
from mirror.runtime.supervise import supervise
from mirror.serving.connection_limits import Limits
from mirror.serving.listening import Port, serve_application
from mirror.telemetry.logs import Log

LIMITS = Limits(in_all=128, of_peer=64)
"""A browser has six connections at most; a proxy has those of many people."""
READY_SECONDS = 10.0
SOON_SECONDS = 0.12
"""So long it is waited for counts before a page without them is sent."""
_ASSETS = {
    "page.css": "text/css",
    "page.js": "text/javascript",
    "keys.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_HEADERS = {
    # Nothing from elsewhere, nothing inline, no frame around us and no form to elsewhere.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "jobmirror",
}

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the page is, and whose it is."""

    listen: tuple[str, int]
    """Host (empty: every interface) and port (0: any free one)."""
    hosts: Collection[str] = ()
    """Names by which proxies call us, beside addresses and localhost."""
    managed_by: str = ""
    origin: str = ""


@asynccontextmanager
async def serve(
    known: Known, place: Place, *, is_leading: Callable[[], bool], log: Log, clock: Clock | None = None
) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port.

    Args:
        known: what can be shown.
        place: where.
        is_leading: whether this manager acts, now.
        log: where it is told who was too slow.
        clock: times are relative to it; the machine's by default.

    Raises:
        CannotStart: the address cannot be listened on.
    """
    board = Board(known, is_leading=is_leading, clock=clock or SystemClock())
    streams = Streams(board, log=log)
    app = _Site(board, streams, place).application()
    failure: Exception | None = None
    async with asyncio.TaskGroup() as scope:
        following = scope.create_task(supervise("page", board.run, log=log), name="page")
        try:
            async with serve_application(app, Port(place.listen, "page.listen", LIMITS)) as port:
                try:
                    yield port
                finally:
                    streams.end()
        except Exception as error:  # noqa: BLE001 - raised below: out of the scope it would come as a group
            failure = error
        finally:
            following.cancel()
    if failure is not None:
        raise failure


class _Site:
    """What is at which address."""

    def __init__(self, board: Board, streams: Streams, place: Place) -> None:
        self._board = board
        self._streams = streams
        self._hosts = frozenset(name.lower() for name in place.hosts)
        self._assets = {name: files("mirror.page").joinpath("assets", name).read_bytes() for name in _ASSETS}
        self._about = About(
            managed_by=place.managed_by,
            origin=place.origin,
            version=version(),
            assets=sha256(b"".join(self._assets.values())).hexdigest()[:12],
        )

    def application(self) -> web.Application:
        @web.middleware
        async def guard(request: web.Request, handler: Answer) -> web.StreamResponse:
            self._check(request)
            return await handler(request)

        async def set_headers(_: web.Request, response: web.StreamResponse) -> None:
            for name, value in _HEADERS.items():
                if name != "Cache-Control" or name not in response.headers:
                    response.headers[name] = value

        app = web.Application(middlewares=[guard], client_max_size=1024)
        app.on_response_prepare.append(set_headers)
        app.router.add_get("/", self._list, allow_head=False)
        app.router.add_get("/jobs/{namespace}/{name}", self._job, allow_head=False)
        app.router.add_get("/events", self._events, allow_head=False)
        app.router.add_get("/static/{name}", self._asset, allow_head=False)
        return app

    def _check(self, request: web.Request) -> None:
        """Only reading, only for who means us, and for other sites' pages only a link to us."""
        if request.method != "GET":
            raise web.HTTPMethodNotAllowed(request.method, ["GET"])
        if not hosts.is_ours(request.headers.get("Host"), known=self._hosts):
            raise web.HTTPForbidden(text="Unknown host name; add it to the setting page.hosts.\n")
        is_foreign = request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        if is_foreign and request.headers.get("Sec-Fetch-Mode") != "navigate":
            raise web.HTTPForbidden(text="Cross-site requests are rejected.\n")

    async def _list(self, request: web.Request) -> web.Response:
        query = parse(request.query)
        with self._board.looking():
            drawn = await self._first(query)
        return _html(list_page(drawn.drawn(), query, self._about, self._board.now()))

    async def _first(self, query: Query) -> View:
        """The list; where there are thousands of Jobs the newest at once, and the counts with the stream."""
        if query == Query() and not self._board.is_ready:
            with suppress(TimeoutError):
                async with asyncio.timeout(SOON_SECONDS):
                    await self._board.wait_until_ready()
            if not self._board.is_ready:
                return self._board.first_view()
        return await self._when_ready(lambda: self._board.list_view(query))

    async def _job(self, request: web.Request) -> web.Response:
        key = _key(request, request.match_info["namespace"], request.match_info["name"])
        page = job_page(self._board.job_view(key).drawn(), key, self._about, self._board.now())
        return _html(page, status=200 if self._board.has(key) else 404)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """``?job=NAMESPACE/NAME`` for one Job, else as ``/``."""
        view = self._wanted(request)
        try:
            return await self._streams.serve(request, view)
        except TooMany:
            raise web.HTTPServiceUnavailable(
                text="Too many open pages; try again in 30 seconds.\n", headers={"Retry-After": "30"}
            ) from None

    async def _asset(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        body = self._assets.get(name)
        if body is None:
            raise web.HTTPNotFound
        headers = {"Cache-Control": "public, max-age=86400, immutable"}
        return web.Response(body=body, content_type=_ASSETS[name], charset="utf-8", headers=headers)

    def _wanted(self, request: web.Request) -> Callable[[], View]:
        job = request.query.get("job")
        if job is None:
            query: Query = parse(request.query)
            return lambda: self._board.list_view(query)
        namespace, _, name = job.partition("/")
        key = _key(request, namespace, name)
        return lambda: self._board.job_view(key)

    async def _when_ready(self, view: Callable[[], View]) -> View:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._board.wait_until_ready()
            return view()
        except (TimeoutError, NotReady):
            raise web.HTTPServiceUnavailable(
                body=error_page("Not ready", "The manager is still loading Jobs and workers. Try again in a moment."),
                content_type="text/html",
            ) from None


def _key(request: web.Request, namespace: str, name: str) -> SourceKey:
    """The key of what an address names; ``?kind=`` says of which kind it is, where it is no Job.

    Raises:
        HTTPNotFound: no object can have this name.
    """
    kind = request.query.get("kind") or default_kind()
    if not namespace or not name or max(len(kind), len(namespace), len(name)) > LONGEST:
        raise web.HTTPNotFound
    return SourceKey(kind, namespace, name)


def _html(page: str, *, status: int = 200) -> web.Response:
    return web.Response(text=page, status=status, content_type="text/html", charset="utf-8")
