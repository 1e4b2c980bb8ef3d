"""What a manager serves beside its metrics: HTTPS with the webhook and access, and the page for people.

``app`` imports it only where the settings want one of them: mirroring alone need not hold its ten MiB of code.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from mirror.access.reporting import AddressPublisher, Told
from mirror.access.reviews import Reviews
from mirror.access.service import Access
from mirror.access.sources import AccessSources
from mirror.access.web import routes as access_routes
from mirror.controllers.mirroring import Mirroring
from mirror.kube.client import Client
from mirror.model.losses import OnLoss
from mirror.page.serving import Place
from mirror.page.serving import serve as serve_page
from mirror.page_login import AccessVisitors
from mirror.runtime.clock import SystemClock
from mirror.serving.certificates import Certificates, Files, SelfManaged, Source, served_names
from mirror.serving.client_certificates import ClientAuthorities
from mirror.serving.https import Routes, application, serve_https
from mirror.settings.schema import Settings
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics
from mirror.webhook.bundles import Bundles
from mirror.webhook.routes import routes as webhook_routes
from mirror.workers.registry import Registry


class ManagerState(Protocol):
    """Whose services they are; ``app`` has it."""

    origin: str
    registry: Registry
    mirroring: Mirroring
    metrics: Metrics
    is_working: bool
    kept: list[tuple[str, Callable[[], Awaitable[None]]]]


@asynccontextmanager
async def http_services(
    settings: Settings, management: Client, manager: ManagerState, *, on_page: Callable[[int], None]
) -> AsyncIterator[None]:
    """Serve while the block runs; what must go on meanwhile is added to the manager's ``kept``.

    Raises:
        CannotStart: an address cannot be listened on.
    """
    access = _access(settings, management, manager) if settings.access.enabled else None
    async with (
        _https(settings, management, manager, access),
        _page(settings, management, manager, access, on_page=on_page),
    ):
        yield


@asynccontextmanager
async def _https(
    settings: Settings, management: Client, manager: ManagerState, access: Access | None
) -> AsyncIterator[None]:
    """The one HTTPS address, where a part wants it; all replicas serve it, those that stand by too."""
    if not (settings.webhook.enabled or settings.access.enabled):
        yield
        return
    log, wanted = get_log("https"), settings.https
    source: Source = (
        Files(wanted.cert_file, wanted.key_file)
        if wanted.cert_file
        else SelfManaged(
            management, settings.namespace, served_names(settings.namespace, wanted.names), now=SystemClock().now
        )
    )
    certificates = Certificates(
        source, log=log, on_loaded=lambda ends: manager.metrics.certificate_expiry.set(ends.timestamp())
    )
    await certificates.load()
    manager.kept.append(("keep certificates", certificates.keep))
    parts: list[Routes] = []
    ports: list[int] = []
    if settings.webhook.enabled:
        hooks, count = get_log("webhook"), manager.metrics.on_webhook
        kinds, namespaces = manager.mirroring.sources.kinds, settings.namespaces
        allowed = frozenset(map(OnLoss, settings.workers.on_loss_allowed))
        claims = webhook_routes(
            settings.managed_by,
            count=count,
            log=hooks,
            namespaces=namespaces,
            kinds=kinds,
            on_loss_allowed=allowed,
        )
        parts.append(claims)
        if not wanted.cert_file:
            manager.kept.append(("keep bundles", Bundles(management, certificates, log=hooks).keep))
    if access is not None:
        _publish(settings, management, manager, certificates, ports)
        parts.append(access_routes(access))
        if settings.access.client_certificates:
            authorities = ClientAuthorities(management, certificates.accept_clients, log=get_log("access"))
            manager.kept.append(("keep client authorities", authorities.keep))
    async with serve_https(wanted.listen_address, application(*parts), certificates) as port:
        ports.append(port)
        log.info("serving", listen=f"{wanted.listen_address[0]}:{port}")
        yield


def _access(settings: Settings, management: Client, manager: ManagerState) -> Access:
    """What users are told of their Jobs' mirrors."""
    mirroring = manager.mirroring
    known = mirroring.known()
    sources = AccessSources(
        management=management,
        kinds=mirroring.sources.kinds,
        sources=mirroring.sources.get,
        registry=manager.registry,
        known=known,
        obstacles_of_draft=known.obstacles_of_draft,
        choice_for_draft=known.choice_for_draft,
        transform=mirroring.transform,
        managed_by=settings.managed_by,
    )
    return Access(sources, log=get_log("access"))


def _publish(
    settings: Settings, management: Client, manager: ManagerState, certificates: Certificates, ports: list[int]
) -> None:
    """Where access is, and which kinds are mirrored, is told by the leader, once there is a port."""
    kinds = _kinds_told(settings)
    publisher = AddressPublisher(
        management,
        settings.namespace,
        lambda: Told(_reached(settings.access.url, ports), certificates.authority, kinds),
        is_leading=lambda: manager.is_working,
        log=get_log("access"),
    )
    manager.kept.append(("publish access", publisher.run))


def _kinds_told(settings: Settings) -> str:
    """The kinds beside Jobs, for users' commands."""
    if not settings.kinds:
        return "[]"
    from mirror.kinds.declared.published import written  # only where there are some

    return written(settings.kinds)


def _reached(url: str, ports: list[int]) -> str:
    """The URL that users are told; port 0, which only ``mirror dev`` and ``demo`` have, is the one that was opened."""
    return f"{url.removesuffix(':0')}:{ports[0]}" if url.endswith(":0") and ports else url


@asynccontextmanager
async def _page(
    settings: Settings,
    management: Client,
    manager: ManagerState,
    access: Access | None,
    *,
    on_page: Callable[[int], None],
) -> AsyncIterator[None]:
    """The page, where it is enabled; a standby manager serves it, too."""
    if not settings.page.enabled:
        yield
        return
    host, _ = settings.page.listen_address
    log, kinds = get_log("page"), manager.mirroring.sources.kinds
    place = Place(
        listen=settings.page.listen_address,
        kinds=kinds,
        hosts=settings.page.hosts,
        managed_by=settings.managed_by,
        origin=manager.origin,
    )
    visitors = AccessVisitors(Reviews(management), kinds, access) if settings.page.login else None
    known = manager.mirroring.known()
    serving = serve_page(known, place, is_leading=lambda: manager.is_working, log=log, visitors=visitors)
    async with serving as port:
        log.info("started", listen=f"{host}:{port}")
        on_page(port)
        yield
