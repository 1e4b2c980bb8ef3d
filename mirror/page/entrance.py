"""The login over HTTP: where a token comes from, and who is sent to the form. ``serving`` calls it for each request.

A token is taken from ``Authorization`` or ``X-Forwarded-Access-Token``, which a proxy sets, or from a session: who
types one gets a cookie with a number that means nothing elsewhere; the token stays here, in memory, for half a day.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from urllib.parse import urlsplit

from aiohttp import web

from mirror.page.skeleton import login_page
from mirror.page.visiting import Refused, Visitor, Visitors
from mirror.serving.peers import peer_of

COOKIE = "jobmirror-page"
SESSION_SECONDS = 12 * 3600.0
MOST_SESSIONS = 1_000
MOST_SESSIONS_OF_ONE = 20
"""Of one user: else whoever may log in could end all others' sessions."""
LONGEST_TOKEN = 16_384
MOST_BYTES = 20_000
"""Of what a form sends."""


class Sessions:
    """Tokens that were typed, and whose, by the digest of what the browser has. Bounded; the oldest go first."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._kept: OrderedDict[bytes, tuple[float, str, str]] = OrderedDict()

    def open(self, token: str, user: str) -> str:
        """What the browser gets."""
        own = [digest for digest, (_, _, whose) in self._kept.items() if whose == user]
        if len(own) >= MOST_SESSIONS_OF_ONE:
            del self._kept[own[0]]
        secret = secrets.token_urlsafe(32)
        self._kept[_digest(secret)] = (self._now() + SESSION_SECONDS, token, user)
        while len(self._kept) > MOST_SESSIONS:
            self._kept.popitem(last=False)
        return secret

    def token(self, secret: str) -> str:
        """The token of a session; empty if there is none (any more)."""
        ends, token, _ = self._kept.get(_digest(secret), (0.0, "", ""))
        if ends <= self._now():
            self._kept.pop(_digest(secret), None)
            return ""
        return token

    def close(self, secret: str) -> None:
        """Forget it."""
        self._kept.pop(_digest(secret), None)


class Entrance:
    """Who comes in; without ``visitors`` everybody who reaches the page."""

    def __init__(self, visitors: Visitors | None, now: Callable[[], float]) -> None:
        self._visitors = visitors
        self._sessions = Sessions(now)

    async def visitor(self, request: web.Request) -> Visitor | None:
        """The caller; None without a login.

        Raises:
            Refused: 401 without a token that holds, or it cannot be found out.
        """
        if self._visitors is None:
            return None
        token = self._token(request)
        if not token:
            raise Refused(401, "")
        return await self._visitors.visitor(token, peer_of(request.remote or ""))

    async def log_in(self, request: web.Request) -> web.StreamResponse:
        """Take a token from the form."""
        if self._visitors is None:
            raise web.HTTPNotFound
        _only_from_here(request)
        token = str((await request.post()).get("token", "")).strip()
        try:
            if not token or len(token) > LONGEST_TOKEN:
                raise Refused(401, "Enter a bearer token of the management cluster.")
            visitor = await self._visitors.visitor(token, peer_of(request.remote or ""))
        except Refused as refused:
            return form(refused, base="")
        response = web.Response(status=303, headers={"Location": "."})
        is_secure = request.secure or request.headers.get("X-Forwarded-Proto", "").lower() == "https"
        # Without a path it is that of this address, wherever a proxy puts it.
        secret, more = self._sessions.open(token, visitor.name), "; Secure" if is_secure else ""
        response.headers["Set-Cookie"] = f"{COOKIE}={secret}; HttpOnly; SameSite=Strict{more}"
        return response

    async def log_out(self, request: web.Request) -> web.StreamResponse:
        """End a session."""
        _only_from_here(request)
        self._sessions.close(request.cookies.get(COOKIE, ""))
        return web.Response(status=303, headers={"Location": "."})

    def _token(self, request: web.Request) -> str:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return token.strip()
        forwarded = request.headers.get("X-Forwarded-Access-Token", "").strip()
        return forwarded or self._sessions.token(request.cookies.get(COOKIE, ""))


def form(refused: Refused, *, base: str) -> web.Response:
    """Where a token is typed, and why the last was no good."""
    text = login_page(refused.text, base=base)
    return web.Response(text=text, status=refused.code, content_type="text/html", charset="utf-8")


def _only_from_here(request: web.Request) -> None:
    """Without this, forms of other sites could log a visitor in as another user."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin", "")
    is_foreign = site not in ("same-origin", "none") if site else False
    if is_foreign or (not site and origin and urlsplit(origin).netloc != request.headers.get("Host", "")):
        raise web.HTTPForbidden(text="Cross-site requests are rejected.\n")


def _digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()
