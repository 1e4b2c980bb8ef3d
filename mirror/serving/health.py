"""``/metrics``, ``/healthz``, ``/livez`` and ``/readyz`` over HTTP, for scrapers, probes and people with curl.

``app`` opens it before anything else and closes it last. What is healthy or ready is decided by the checks that it is
given. Not here: the metrics themselves (``telemetry.metrics``), and who gets in (``connection_limits``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from mirror.model.text import clean
from mirror.serving.connection_limits import Limits
from mirror.serving.listening import Port, serve_application
from mirror.telemetry.metrics import Metrics

Check = Callable[[], tuple[bool, str]]
"""Is it fine, and one line about it. Called on each request; must neither block nor fail."""

Answer = Callable[[web.Request], Awaitable[web.Response]]

LIMITS = Limits(in_all=128, of_peer=32)
"""A kubelet and some scrapers need one or two connections each."""
_MOST_BODY_BYTES = 1024

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


@asynccontextmanager
async def serve(
    address: tuple[str, int], *, metrics: Metrics, health: Mapping[str, Check], readiness: Mapping[str, Check]
) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port, which is a free one if port 0 was asked for.

    Args:
        address: host (empty: every interface) and port, as of ``Settings.listen_address``.
        health: what must hold for the process to be left alive, by name.
        readiness: what must hold for it to do its work, by name.

    Raises:
        CannotStart: the address cannot be listened on.
    """
    app = web.Application(client_max_size=_MOST_BODY_BYTES)
    app.router.add_get("/metrics", _metrics(metrics))
    app.router.add_get("/healthz", _checks(health))
    app.router.add_get("/livez", _checks(health))
    app.router.add_get("/readyz", _checks(readiness))
    async with serve_application(app, Port(address, "listen", LIMITS)) as port:
        yield port


class _Scrapes:
    """Scrapes, one after the other, whoever goes away meanwhile.

    A hundred series of each of a thousand workers take a second to be written down: a thread's, which lets the event
    loop have its turns.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._rendered: asyncio.Future[tuple[bytes, str]] | None = None

    async def text(self, accept: str) -> tuple[bytes, str]:
        """As ``Metrics.render``, of what there is once it is this scrape's turn."""
        while self._rendered is not None and not self._rendered.done():
            await asyncio.wait({self._rendered})
        self._metrics.refresh()
        rendered = asyncio.get_running_loop().run_in_executor(None, self._metrics.render, accept)
        self._rendered = rendered
        return await asyncio.shield(rendered)


def _metrics(metrics: Metrics) -> Answer:
    scrapes = _Scrapes(metrics)

    async def answer(request: web.Request) -> web.Response:
        body, content_type = await scrapes.text(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type, **_HEADERS})

    return answer


def _checks(checks: Mapping[str, Check]) -> Answer:
    """200 or 503, and a line per check; what checks say may quote a worker, so it is cleaned (D18)."""

    async def answer(_: web.Request) -> web.Response:
        results = [(name, *check()) for name, check in checks.items()]
        lines = [f"{name}: {'ok' if fine else 'failed'} {clean(text)}".rstrip() for name, fine, text in results]
        all_fine = all(fine for _, fine, _ in results)
        return web.Response(text="\n".join(lines or ["ok"]) + "\n", status=200 if all_fine else 503, headers=_HEADERS)

    return answer
