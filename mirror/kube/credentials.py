"""Who we are to one cluster, kept fresh: headers, and client certificates that a plugin hands out.

Built by ``auth``, used by ``client``. Where identities come from (files, plugins) is in ``identities``.
"""

from __future__ import annotations

import asyncio
import math
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from multidict import CIMultiDict

from mirror.kube.errors import Unreachable
from mirror.kube.tls import BadCertificate, load_client_certificate
from mirror.model.failures import API_SERVER

_SCHEDULED_APART_SECONDS = 1.0
_FORCED_APART_SECONDS = 10.0
"""Between renewals that a 401 asks for, and after a failure: a plugin is a whole process."""
_EARLY_SECONDS = 300.0
_EARLY_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a cluster is, and how to get there."""

    server: str
    """Scheme, host, port and perhaps a path, without a slash at the end."""
    tls: ssl.SSLContext | None
    server_hostname: str | None = None
    """The name to expect in the certificate, where it is not the host's."""
    proxy: str | None = None
    refuse_address: Callable[[str], str | None] | None = None
    """Says why a resolved address must not be connected to, or None."""
    compresses: bool = True
    """Whether what may come compressed is to."""
    peer: str = API_SERVER
    """Who is there, in texts about a connection that failed."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a source hands out."""

    authorization: str = field(default="", repr=False)
    """The value of the Authorization header; empty for none."""
    certificate_pem: bytes = field(default=b"", repr=False)
    key_pem: bytes = field(default=b"", repr=False)
    renew_at: float = math.inf
    """When to ask the source again, in seconds since the epoch."""
    expires_at: float = math.inf
    """From when on it is of no use at all."""


class IdentityUnavailable(Exception):
    """A source could not say who we are: a plugin failed, a token file is gone."""


class IdentitySource(Protocol):
    """Where identities come from."""

    async def fetch(self) -> Identity:
        """Get a fresh one; raises ``IdentityUnavailable``."""
        ...


class Credentials:
    """The identity for one cluster. ``headers()`` costs nothing while it is fresh.

    Renewing is single-flight: whoever comes first does it, others wait and use what came of it.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        identity: Identity,
        *,
        source: IdentitySource | None = None,
        impersonation: tuple[tuple[str, str], ...] = (),
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.endpoint = endpoint
        self.certificate_generation = 0
        """Grows when the client certificate changes; connections made before it still use the old one."""
        self._identity = identity
        self._source = source
        self._impersonation = impersonation
        self._wall = wall
        self._lock = asyncio.Lock()
        self._renewals = 0
        self._asked_at = -math.inf
        self._failure = ""
        self._headers = self._build_headers()

    async def headers(self) -> CIMultiDict[str]:
        """The headers that say who we are. The same object as long as nothing changed: do not change it.

        Raises:
            Unreachable: there is no usable identity; nothing was sent.
        """
        if self._wall() >= self._identity.renew_at:
            await self._renew(self._renewals, at_least_apart_seconds=_SCHEDULED_APART_SECONDS)
            if self._wall() >= self._identity.expires_at:
                raise Unreachable(self._failure or "the credentials have expired")
        return self._headers

    @property
    def certificate(self) -> Identity | None:
        """The client certificate that connections present, with its key and no headers; None where there is none."""
        found = self._identity
        pair = Identity(certificate_pem=found.certificate_pem, key_pem=found.key_pem)
        return pair if pair.certificate_pem else None

    async def renew(self, rejected: CIMultiDict[str]) -> bool:
        """The server did not accept these headers: is there something better now?"""
        if self._source is None:
            return False
        certificates = self.certificate_generation
        if self._headers is rejected:
            await self._renew(self._renewals, at_least_apart_seconds=_FORCED_APART_SECONDS)
        return self._headers is not rejected or self.certificate_generation != certificates

    async def _renew(self, renewals: int, *, at_least_apart_seconds: float) -> None:
        """Ask the source, unless somebody did meanwhile, or it was asked a moment ago."""
        assert self._source is not None
        async with self._lock:
            now = self._wall()
            apart = _FORCED_APART_SECONDS if self._failure else at_least_apart_seconds
            if self._renewals != renewals or 0 <= now - self._asked_at < apart:
                return
            self._asked_at = now
            try:
                self._accept(await self._source.fetch())
            except (IdentityUnavailable, BadCertificate) as error:
                self._failure = str(error)
                return
            self._failure = ""
            self._renewals += 1

    def _accept(self, fresh: Identity) -> None:
        old = self._identity
        if fresh.certificate_pem and (fresh.certificate_pem, fresh.key_pem) != (old.certificate_pem, old.key_pem):
            if self.endpoint.tls is not None:
                load_client_certificate(self.endpoint.tls, fresh.certificate_pem, fresh.key_pem)
            self.certificate_generation += 1
        self._identity = fresh
        if fresh.authorization != old.authorization:
            self._headers = self._build_headers()

    def _build_headers(self) -> CIMultiDict[str]:
        headers = CIMultiDict[str]()
        if self._identity.authorization:
            headers["Authorization"] = self._identity.authorization
        for name, value in self._impersonation:
            headers.add(name, value)
        return headers


def renewal_time(now: float, expires_at: float) -> float:
    """When to renew what expires then: five minutes before, or when a fifth of its time is left if that is later."""
    return expires_at - min(_EARLY_SECONDS, _EARLY_SHARE * max(0.0, expires_at - now))
