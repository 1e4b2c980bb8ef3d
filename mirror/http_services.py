"""What a manager serves beside its metrics: HTTPS with the webhook and access, and the page for people.

``app`` imports it only where the settings want one of them: mirroring alone need not hold its ten MiB of code.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from mirror.access.bounds import Bounds
from mirror.access.elsewhere import Elsewhere, Members
from mirror.access.peers import Peers, Trust
from mirror.access.reporting import AddressPublisher, Told
from mirror.access.reviews import Reviews
from mirror.access.service import Access
from mirror.access.sources import AccessSources
from mirror.access.web import routes as access_routes
from mirror.controllers.known import Knowledge
from mirror.controllers.known_over_slots import KnowledgeOverSlots, Owners, WorkersOverSlots
from mirror.controllers.mirroring import Mirroring
from mirror.controllers.state import MirroringState
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
from mirror.workers.worker import Worker

POD_IP = "POD_IP"
"""The environment variable in which our manifests have the address of the pod."""


class Coordinating(Members, Owners, Protocol):
    """What each of several managers that work at once knows of all of them."""


class Beside(Protocol):
    """One of several managers that work at once; ``sharded`` has it."""

    @property
    def coordinator(self) -> Coordinating: ...

    def held(self) -> tuple[MirroringState, ...]:
        """What the instances know that run here now."""
        ...

    def publish(self, address: Callable[[], str]) -> None:
        """Let the others know where this one is asked; empty: nowhere."""
        ...


class ManagerState(Protocol):
    """Whose services they are; ``app`` has it."""

    origin: str
    registry: Registry
    mirroring: Mirroring
    metrics: Metrics
    kept: list[tuple[str, Callable[[], Awaitable[None]]]]

    @property
    def leads(self) -> bool:
        """Whether it leads or, of several that work at once, assigns workers."""
        ...

    @property
    def sharded(self) -> Beside | None:
        """Where several work at once."""
        ...


class OwnAddress:
    """Where other managers ask this one, and what they have to show to be asked."""

    def __init__(self, settings: Settings) -> None:
        self._address = settings.sharding.address or os.environ.get(POD_IP, "")
        self.port = 0
        """Of HTTPS; 0: not opened yet."""
        self.certificates: Certificates | None = None

    @property
    def is_known(self) -> bool:
        return bool(self._address)

    def text(self) -> str:
        """Address and port, as a member's Lease has them; empty while there is none."""
        if not self._address or not self.port:
            return ""
        return f"[{self._address}]:{self.port}" if ":" in self._address else f"{self._address}:{self.port}"

    def trust(self) -> Trust:
        """The same as they have of us."""
        found = self.certificates
        return Trust(b"", "") if found is None else Trust(found.authority or found.certificate, found.name)


@asynccontextmanager
async def http_services(
    settings: Settings, management: Client, manager: ManagerState, *, on_page: Callable[[int], None]
) -> AsyncIterator[None]:
    """Serve while the block runs; what must go on meanwhile is added to the manager's ``kept``.

    Raises:
        CannotStart: an address cannot be listened on.
    """
    at = OwnAddress(settings)
    access = _access(settings, management, manager, at) if settings.access.enabled else None
    async with (
        _https(settings, management, manager, access, at),
        _page(settings, management, manager, access, on_page=on_page),
    ):
        yield


@asynccontextmanager
async def _https(
    settings: Settings, management: Client, manager: ManagerState, access: Access | None, at: OwnAddress
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
    at.certificates = certificates
    manager.kept.append(("keep certificates", certificates.keep))
    parts: list[Routes] = []
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
        _publish(settings, management, manager, certificates, at)
        parts.append(access_routes(access))
        if settings.access.client_certificates:
            authorities = ClientAuthorities(management, certificates.accept_clients, log=get_log("access"))
            manager.kept.append(("keep client authorities", authorities.keep))
    async with serve_https(wanted.listen_address, application(*parts), certificates) as port:
        at.port = port
        log.info("serving", listen=f"{wanted.listen_address[0]}:{port}")
        yield


def _access(settings: Settings, management: Client, manager: ManagerState, at: OwnAddress) -> Access:
    """What users are told of their Jobs' mirrors."""
    mirroring, sharded = manager.mirroring, manager.sharded
    known, workers, bounds = _known(manager), _workers(manager), Bounds()
    elsewhere = None
    if sharded is not None:
        peers, count = Peers(at.trust, at.text, bounds), manager.metrics.on_passed_on
        elsewhere = Elsewhere(sharded.coordinator, peers, workers, bounds, count=count)
        sharded.publish(at.text)
        if not at.is_known:
            get_log("access").warning(
                "other managers cannot ask this one", because="sharding.address and POD_IP are empty"
            )
    sources = access_sources(management, mirroring, known, workers, managed_by=settings.managed_by)
    return Access(sources, log=get_log("access"), bounds=bounds, elsewhere=elsewhere)


def access_sources(
    management: Client,
    mirroring: Mirroring,
    known: Knowledge,
    workers: Mapping[str, Worker],
    *,
    managed_by: str,
) -> AccessSources:
    """What access needs of a manager.

    Args:
        management: for users' reviews.
        mirroring: an instance that sees all sources.
        known: what the manager knows of them, for people.
        workers: all, each as whoever follows it here knows it.
        managed_by: the value that makes a Job ours.
    """
    return AccessSources(
        management=management,
        kinds=mirroring.sources.kinds,
        sources=mirroring.sources.get,
        workers=workers,
        known=known,
        obstacles_of_draft=known.obstacles_of_draft,
        choice_for_draft=known.choice_for_draft,
        transform=mirroring.transform,
        managed_by=managed_by,
    )


def _known(manager: ManagerState) -> Knowledge:
    """What this manager knows, for people; of several that work at once with what its instances know."""
    known, sharded = manager.mirroring.known(), manager.sharded
    return known if sharded is None else KnowledgeOverSlots(known.state, sharded.held, sharded.coordinator)


def _workers(manager: ManagerState) -> Mapping[str, Worker]:
    every, sharded = manager.registry.workers, manager.sharded
    return every if sharded is None else WorkersOverSlots(every, sharded.held)


def _publish(
    settings: Settings, management: Client, manager: ManagerState, certificates: Certificates, at: OwnAddress
) -> None:
    """Where access is, and which kinds are mirrored, is published by whoever leads, once there is a port."""
    kinds = _kinds_told(settings)
    publisher = AddressPublisher(
        management,
        settings.namespace,
        lambda: Told(_reached(settings.access.url, at.port), certificates.authority, kinds),
        is_leading=lambda: manager.leads,
        log=get_log("access"),
    )
    manager.kept.append(("publish access", publisher.run))


def _kinds_told(settings: Settings) -> str:
    """The kinds beside Jobs, for users' commands."""
    if not settings.kinds:
        return "[]"
    from mirror.kinds.declared.published import written  # only where there are some

    return written(settings.kinds)


def _reached(url: str, port: int) -> str:
    """The URL that users are told; port 0, which only ``mirror dev`` and ``demo`` have, is the one that was opened."""
    return f"{url.removesuffix(':0')}:{port}" if url.endswith(":0") and port else url


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
        is_shared=manager.sharded is not None,
    )
    visitors = AccessVisitors(Reviews(management), kinds, access) if settings.page.login else None
    known = _known(manager)
    serving = serve_page(known, place, is_leading=lambda: manager.leads, log=log, visitors=visitors)
    async with serving as port:
        log.info("started", listen=f"{host}:{port}")
        on_page(port)
        yield
