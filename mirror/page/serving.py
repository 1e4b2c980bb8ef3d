"""The page over HTTP: its addresses, its headers, who is let in. ``http_services`` opens it where it is enabled.

There is nothing to change here: GET, and nothing else but logging in and out. Without TLS, it listens on the loopback
unless told otherwise; what reaches it from there is a port-forward, or a proxy (docs/page.md). Who asks, and what they
may see, is found out in ``entrance``; without ``visitors`` (``visiting``) everybody who gets here sees all Jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import sha256
from importlib.resources import files
from typing import TypeVar

import msgspec
from aiohttp import web

from mirror.kinds.registry import Kinds
from mirror.model.keys import SourceKey
from mirror.model.text import clean
from mirror.model.version import version
from mirror.model.views import Known
from mirror.page import hosts, inside
from mirror.page.badges import default_kind
from mirror.page.board import Board, NotReady
from mirror.page.entrance import MOST_BYTES, Entrance, form
from mirror.page.pace import Turns
from mirror.page.query import LONGEST, Query, parse
from mirror.page.scope import Scope
from mirror.page.skeleton import About, error_page, job_page, list_page
from mirror.page.streams import Renew, Streams, TooMany
from mirror.page.view import View
from mirror.page.visiting import Refused, Visitor, Visitors, scope_of
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
    "job.js": "text/javascript",
    "early.js": "text/javascript",
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

V = TypeVar("V")
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where the page is, and whose it is."""

    listen: tuple[str, int]
    """Host (empty: every interface) and port (0: any free one)."""
    kinds: Kinds
    """Those in use; the first is meant where an address names none."""
    hosts: Collection[str] = ()
    """Names by which proxies call us, beside addresses and localhost."""
    managed_by: str = ""
    origin: str = ""
    is_shared: bool = False
    """Whether several managers work at once."""


@asynccontextmanager
async def serve(
    known: Known,
    place: Place,
    *,
    is_leading: Callable[[], bool],
    log: Log,
    clock: Clock | None = None,
    visitors: Visitors | None = None,
) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port.

    Args:
        known: what can be shown.
        place: where.
        is_leading: whether this manager acts, now.
        log: where it is told who was too slow.
        clock: times are relative to it; the machine's by default.
        visitors: who may see what; None: everybody everything.

    Raises:
        CannotStart: the address cannot be listened on.
    """
    board = Board(known, is_leading=is_leading, clock=clock or SystemClock(), is_shared=place.is_shared)
    streams = Streams(board, log=log)
    app = _Site(board, streams, place, visitors).application()
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

    def __init__(self, board: Board, streams: Streams, place: Place, visitors: Visitors | None) -> None:
        self._board = board
        self._visitors = visitors
        self._entrance = Entrance(visitors, asyncio.get_running_loop().time)
        self._streams = streams
        self._turns = Turns()
        self._hosts = frozenset(name.lower() for name in place.hosts)
        self._assets = {name: files("mirror.page").joinpath("assets", name).read_bytes() for name in _ASSETS}
        self._about = About(
            kinds=place.kinds,
            managed_by=place.managed_by,
            origin=place.origin,
            version=version(),
            assets=sha256(b"".join(self._assets.values())).hexdigest()[:12],
        )

    def application(self) -> web.Application:
        @web.middleware
        async def guard(request: web.Request, handler: Answer) -> web.StreamResponse:
            self._check(request)
            try:
                return await handler(request)
            except Refused as refused:
                return _refusal(request, refused)

        async def set_headers(_: web.Request, response: web.StreamResponse) -> None:
            for name, value in _HEADERS.items():
                if name != "Cache-Control" or name not in response.headers:
                    response.headers[name] = value

        app = web.Application(middlewares=[guard], client_max_size=MOST_BYTES)
        app.on_response_prepare.append(set_headers)
        app.router.add_get("/", self._list, allow_head=False)
        app.router.add_get("/jobs/{namespace}/{name}", self._job, allow_head=False)
        app.router.add_get("/jobs/{namespace}/{name}/{part}", self._part, allow_head=False)
        app.router.add_get("/events", self._events, allow_head=False)
        app.router.add_post("/login", self._entrance.log_in)
        app.router.add_post("/logout", self._entrance.log_out)
        app.router.add_get("/static/{name}", self._asset, allow_head=False)
        return app

    def _check(self, request: web.Request) -> None:
        """Only reading, only for who means us, and for other sites' pages only a link to us."""
        is_login = self._visitors is not None and request.path in ("/login", "/logout")
        if request.method != ("POST" if is_login else "GET"):
            raise web.HTTPMethodNotAllowed(request.method, ["POST" if is_login else "GET"])
        if not hosts.is_ours(request.headers.get("Host"), known=self._hosts):
            raise web.HTTPForbidden(text="Unknown host name; add it to the setting page.hosts.\n")
        is_foreign = request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")
        if is_foreign and request.headers.get("Sec-Fetch-Mode") != "navigate":
            raise web.HTTPForbidden(text="Cross-site requests are rejected.\n")

    async def _list(self, request: web.Request) -> web.Response:
        query, visitor = parse(request.query), await self._entrance.visitor(request)
        with self._board.looking():
            if visitor is None:
                view = await self._first(query)
            else:
                scope = await self._scope(visitor, query)
                view = await self._when_ready(lambda: partial(self._board.list_view, query, scope))
            about = self._for(visitor)
            return await self._made(lambda: list_page(view().drawn(), query, about, self._board.now()), visitor)

    async def _scope(self, visitor: Visitor, query: Query) -> Scope | None:
        assert self._visitors is not None

        async def places() -> tuple[tuple[str, str], ...]:
            return await self._when_ready(self._board.places)

        return await scope_of(self._visitors, visitor, query, places)

    def _for(self, visitor: Visitor | None) -> About:
        """What does not change, for one person."""
        if visitor is None:
            return self._about
        has_inside = self._visitors is not None and self._visitors.has_inside
        return msgspec.structs.replace(self._about, visitor=visitor.name, has_inside=has_inside)

    async def _first(self, query: Query) -> Callable[[], View]:
        """What makes the list; where there are thousands of Jobs the newest at once, and the counts with the stream."""
        if query == Query() and not self._board.is_ready:
            with suppress(TimeoutError):
                async with asyncio.timeout(SOON_SECONDS):
                    await self._board.wait_until_ready()
            if not self._board.is_ready:
                return self._board.first_view
        return await self._when_ready(lambda: partial(self._board.list_view, query))

    async def _made(self, page: Callable[[], str], visitor: Visitor | None, *, status: int = 200) -> web.Response:
        """A page, once it is its turn: each may take a tenth of a second, in which nothing else is done."""
        try:
            return _html(await self._turns.make(page, visitor.name if visitor is not None else ""), status=status)
        except NotReady:
            raise _not_ready() from None

    async def _job(self, request: web.Request) -> web.Response:
        key = _key(request, request.match_info["namespace"], request.match_info["name"])
        visitor = await self._admitted(request, key)
        about, status = self._for(visitor), 200 if self._board.has(key) else 404

        def page() -> str:
            view = self._board.job_view(key, is_outlined=visitor is not None)
            return job_page(view.drawn(), key, about, self._board.now())

        return await self._made(page, visitor, status=status)

    async def _part(self, request: web.Request) -> web.StreamResponse:
        """What is inside a mirror; each is asked of ``access``, which finds out itself who may."""
        key = _key(request, request.match_info["namespace"], request.match_info["name"])
        visitor, part = await self._admitted(request, key), request.match_info["part"]
        if visitor is None or self._visitors is None or not self._visitors.has_inside:
            raise web.HTTPNotFound
        if part == "log":
            out = _LogOut(request)
            await self._visitors.log(visitor, key, request.query, out)
            return out.response
        match part:
            case "pods":
                drawn = inside.pods(await self._visitors.ask(visitor, key, "pods"), self._board.now())
            case "events":
                drawn = inside.events(await self._visitors.ask(visitor, key, "events"), self._board.now())
            case "manifest":
                bodies = await self._visitors.bodies(visitor, key)
                drawn = await asyncio.to_thread(inside.manifests, bodies)
            case _:
                raise web.HTTPNotFound
        return _html(drawn)

    async def _admitted(self, request: web.Request, key: SourceKey) -> Visitor | None:
        """The caller of a request about a Job.

        Raises:
            Refused: they may not see it, whether there is one or not.
        """
        visitor = await self._entrance.visitor(request)
        if visitor is not None and self._visitors is not None and not await self._visitors.may(visitor, "get", key):
            raise Refused(403, f"{visitor.name} has no permission to get this {key.kind} in namespace {key.namespace}.")
        return visitor

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """``?job=NAMESPACE/NAME`` for one Job, else as ``/``."""
        view, renew = await self._wanted(request)
        try:
            return await self._streams.serve(request, view, renew)
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

    async def _wanted(self, request: web.Request) -> tuple[Callable[[], View], Renew | None]:
        """What a user sees, and what checks again whether they may."""
        job = request.query.get("job")
        if job is None:
            return await self._wanted_list(request)
        namespace, _, name = job.partition("/")
        key = _key(request, namespace, name)
        visitor = await self._admitted(request, key)
        if visitor is None:
            return lambda: self._board.job_view(key), None

        async def renew() -> bool:
            with suppress(Refused):
                await self._admitted(request, key)
                return True
            return False

        return lambda: self._board.job_view(key, is_outlined=True), renew

    async def _wanted_list(self, request: web.Request) -> tuple[Callable[[], View], Renew | None]:
        query, visitor = parse(request.query), await self._entrance.visitor(request)
        if visitor is None:
            return lambda: self._board.list_view(query), None
        with self._board.looking():
            scope = await self._scope(visitor, query)

        async def renew() -> bool:
            nonlocal scope
            with suppress(Refused):
                again = await self._entrance.visitor(request)
                scope = await self._scope(again, query) if again is not None else scope
                return True
            return False

        return lambda: self._board.list_view(query, scope), renew

    async def _when_ready(self, view: Callable[[], V]) -> V:
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._board.wait_until_ready()
            return view()
        except (TimeoutError, NotReady):
            raise _not_ready() from None


def _not_ready() -> web.HTTPServiceUnavailable:
    text = "The manager is still loading Jobs and workers. Try again in a moment."
    return web.HTTPServiceUnavailable(body=error_page("Not ready", text), content_type="text/html")


def _key(request: web.Request, namespace: str, name: str) -> SourceKey:
    """The key of what an address names; ``?kind=`` is its kind, where it is no Job.

    Raises:
        HTTPNotFound: no object can have this name.
    """
    kind = request.query.get("kind") or default_kind()
    if not namespace or not name or max(len(kind), len(namespace), len(name)) > LONGEST:
        raise web.HTTPNotFound
    return SourceKey(kind, namespace, name)


def _refusal(request: web.Request, refused: Refused) -> web.Response:
    """A page for who opens one, a line for a script."""
    is_page = request.path == "/" or (request.path.startswith("/jobs/") and request.path.count("/") == 3)
    base = "" if request.path == "/" else "../../"
    if not is_page:
        return web.Response(text=f"{clean(refused.text or 'Log in.')}\n", status=refused.code)
    if refused.code == 401:
        return form(refused, base=base)
    return _html(error_page("Not allowed" if refused.code == 403 else "Not now", refused.text), status=refused.code)


class _LogOut:
    """``visiting.LogOut`` over HTTP; as text, so that no browser makes anything else of it."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response = web.StreamResponse(headers={"Content-Type": "text/plain; charset=utf-8"})

    async def begin(self, headers: Mapping[str, str]) -> None:
        self.response.headers.update(headers)
        self.response.headers["X-Accel-Buffering"] = "no"
        await self.response.prepare(self._request)

    async def write(self, piece: bytes) -> None:
        await self.response.write(piece)


def _html(page: str, *, status: int = 200) -> web.Response:
    return web.Response(text=page, status=status, content_type="text/html", charset="utf-8")
