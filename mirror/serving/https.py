"""The one HTTPS address of the manager, for API servers that call our webhook and for users of ``access``.

``app`` opens it when one of both is enabled, on every replica: who stands by answers too. What is answered is in the
application that it is given. Not here: certificates (``certificates``), who gets in (``connection_limits``), and
metrics and health (``health``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiohttp import web

from mirror.serving import connection_limits
from mirror.serving.certificates import Certificates
from mirror.serving.listening import Port, serve_application

MOST_BODY_BYTES = 4 << 20
"""Two objects of the size that etcd takes, the new and the old one, and something around them."""

Routes = Iterable[web.AbstractRouteDef]
"""What one part answers, as ``aiohttp.web`` has it (``web.post(path, handler)`` …)."""


def application(*parts: Routes) -> web.Application:
    """An application of the routes of all parts, with the bounds that everything behind this address has."""
    app = web.Application(client_max_size=MOST_BODY_BYTES)
    for routes in parts:
        app.add_routes(routes)
    return app


@asynccontextmanager
async def serve_https(address: tuple[str, int], app: web.Application, certificates: Certificates) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port, which is a free one if port 0 was asked for.

    Args:
        address: host (empty: every interface) and port, as of ``Https.listen_address``.
        app: of ``application``, with its routes.
        certificates: loaded; what it loads later is shown to connections that are opened later.

    Raises:
        CannotStart: the address cannot be listened on.
    """
    limits = connection_limits.Limits(connection_limits.MOST_CONNECTIONS, connection_limits.MOST_OF_PEER)
    port = Port(address, "https.listen", limits, tls=lambda: certificates.context)
    async with serve_application(app, port) as found:
        yield found
