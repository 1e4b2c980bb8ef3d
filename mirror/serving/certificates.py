"""The certificate that our HTTPS shows, live: looked at again every few seconds, and replaced without a restart.

``app`` makes one ``Certificates`` over a ``Source``: files that somebody else renews (cert-manager), or a Secret in
which we keep an authority of our own, shared by all replicas. What is to be renewed is ``renewing``'s to say. Not
here: the server (``https``), and who is told whom to trust (``webhook``, ``access``).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

import tenacity

from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import Conflict, Forbidden, KubeError, NotFound, Unauthorized, describe
from mirror.kube.objects import Object
from mirror.kube.requests import Rank
from mirror.kube.resources import SECRETS
from mirror.kube.tls import BadCertificate
from mirror.model import names
from mirror.model.endings import CannotStart
from mirror.model.failures import file_words
from mirror.serving import renewing
from mirror.serving.x509 import KeyPair, server_context
from mirror.telemetry.logs import Log

LOOK_AT_FILES_SECONDS = 5.0
LOOK_AT_SECRET_SECONDS = 15.0
FIRST_LOOK_SECONDS = 30.0
_MOST_ATTEMPTS = 5
_MOST_FILE_BYTES = 1 << 20


class Unusable(Exception):
    """There is no certificate to serve with, in words for the operator."""


@dataclass(frozen=True, slots=True)
class Material:
    """What to serve with, and what clients are to trust (PEM; empty where we do not know)."""

    pair: KeyPair
    authority: bytes = b""


class Source(Protocol):
    """Where the certificate comes from."""

    every_seconds: float

    async def look(self) -> Material:
        """What is to be served now.

        Raises:
            Unusable: there is nothing, or nothing whole.
            KubeError: the cluster cannot be asked.
        """
        ...


def _may_pass(error: BaseException) -> bool:
    """Whether the same request may work in a moment: a missing permission stays missing."""
    return isinstance(error, KubeError) and not isinstance(error, Forbidden | Unauthorized)


class Certificates:
    """What is served now. ``load`` it first, then let ``keep`` run for as long as anything is served."""

    def __init__(self, source: Source, *, log: Log, on_loaded: Callable[[datetime], None] = lambda _: None) -> None:
        self._source = source
        self._log = log
        self._on_loaded = on_loaded
        self._material: Material | None = None
        self._context: ssl.SSLContext | None = None
        self._client_authorities = b""
        self._trouble = ""
        self._listeners: list[Callable[[], None]] = []

    @property
    def context(self) -> ssl.SSLContext:
        """For a new connection: a new object after each change.

        One that loads a second pair would show either; and a session is resumed, without being verified again, only by
        the object that began it: never by other authorities of clients than it was verified by.
        """
        assert self._context is not None, "load() comes first"
        return self._context

    @property
    def authority(self) -> bytes:
        """What clients are to trust (PEM, one certificate or several); empty where we do not know."""
        return self._material.authority if self._material is not None else b""

    @property
    def certificate(self) -> bytes:
        """What is served (PEM); empty: nothing yet."""
        return self._material.pair.certificate if self._material is not None else b""

    @property
    def name(self) -> str:
        """The first name that the certificate is good for; empty: it has none. All replicas have the same one."""
        return renewing.first_name(self._material.pair) if self._material is not None else ""

    def accept_clients(self, authorities: bytes) -> None:
        """Ask clients for certificates of these authorities (PEM) from now on, who need not have one; empty: do not.

        Raises:
            BadCertificate: they do not load; nothing has changed.
        """
        if authorities == self._client_authorities:
            return
        if self._material is not None:
            self._context = server_context(self._material.pair, client_authority=authorities)
        self._client_authorities = authorities
        self._log.info("client certificates accepted" if authorities else "client certificates no longer accepted")

    def when_changed(self, listener: Callable[[], None]) -> None:
        """Have it called after each change of what is served or of ``authority``; it must neither block nor fail."""
        self._listeners.append(listener)

    async def load(self) -> None:
        """The first look; a cluster that does not answer is retried for half a minute.

        Raises:
            CannotStart: there is nothing to serve with.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + FIRST_LOOK_SECONDS
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(_may_pass),
            wait=tenacity.wait_fixed(1.0),
            stop=lambda _: loop.time() >= deadline,  # not tenacity's own clock, which no test can move
            reraise=True,
        )
        try:
            self._use(await retrying(self._source.look))
        except (Unusable, BadCertificate) as error:
            raise CannotStart(f"HTTPS: {error}") from error
        except (Forbidden, Unauthorized) as error:
            secret = f"Secret {names.HTTPS_SECRET} in our namespace (config/rbac/https.yaml)"
            raise CannotStart(f"HTTPS: missing permission to write {secret}: {error}") from error
        except KubeError as error:
            raise CannotStart(f"HTTPS: Secret {names.HTTPS_SECRET}: {describe(error)}") from error

    async def keep(self) -> None:
        """Look again and again; what is broken is told once, and what we have stays."""
        while True:
            await asyncio.sleep(self._source.every_seconds)
            try:
                self._use(await self._source.look())
                self._trouble = ""
            except (Unusable, BadCertificate, KubeError) as error:
                text = describe(error) if isinstance(error, KubeError) else str(error)
                if text != self._trouble:
                    self._log.error("certificate not renewed, the old one is served on", because=text)
                self._trouble = text

    def _use(self, found: Material) -> None:
        if found == self._material:
            return
        self._context = server_context(found.pair, client_authority=self._client_authorities)
        self._material = found
        ends = renewing.expiry(found.pair)
        self._on_loaded(ends)
        for listener in self._listeners:
            listener()
        self._log.info("certificate loaded", ends=ends.isoformat())


class Files:
    """A certificate and a key that somebody else renews, with ``ca.crt`` beside them where cert-manager made them."""

    every_seconds = LOOK_AT_FILES_SECONDS

    def __init__(self, certificate: str, key: str) -> None:
        self._certificate = Path(certificate)
        self._key = Path(key)
        self._authority = self._certificate.with_name(renewing.AUTHORITIES)

    async def look(self) -> Material:
        """As ``Source`` has it; contents count, since times of links in mounted Secrets tell little."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> Material:
        try:
            pair = KeyPair(_content(self._certificate), _content(self._key))
        except OSError as error:
            raise Unusable(f"{error.filename}: {file_words(error)}") from error
        try:
            renewing.expiry(pair)
        except ValueError as error:
            raise Unusable(f"{self._certificate} holds no certificate (PEM)") from error
        authority = b""
        with suppress(OSError):
            authority = _content(self._authority)
        return Material(pair, authority)


class SelfManaged:
    """An authority of our own and what it signed, in a Secret that all replicas share; who loses a race reads."""

    every_seconds = LOOK_AT_SECRET_SECONDS

    def __init__(
        self, client: Client, namespace: str, served_names: Sequence[str], *, now: Callable[[], datetime]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._names = tuple(served_names)
        self._now = now

    async def look(self) -> Material:
        """As ``Source`` has it; what is due is renewed and stored before it is given."""
        # After a conflict another replica was first: what it wrote is looked at.
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(Conflict),
            stop=tenacity.stop_after_attempt(_MOST_ATTEMPTS),
            reraise=True,
        )
        try:
            return await retrying(self._look_once)
        except Conflict:
            raise Unusable(f"Secret {names.HTTPS_SECRET} changes faster than it can be read") from None

    async def _look_once(self) -> Material:
        get = requests.get(SECRETS, names.HTTPS_SECRET, namespace=self._namespace).in_line(Rank.LAST)
        try:
            found: Object | None = await self._client.send_object(get)
        except NotFound:
            found = None
        kept = renewing.read(_data(found)) if found is not None else renewing.Kept()
        wanted = renewing.renewed(kept, self._names, self._now())
        if wanted is not kept:
            await self._write(found, renewing.written(wanted))
        assert wanted.serving is not None
        return Material(wanted.serving, wanted.trusted)

    async def _write(self, found: Object | None, data: Mapping[str, bytes]) -> None:
        metadata: dict[str, object] = {"name": names.HTTPS_SECRET, "namespace": self._namespace}
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}
        if found is None:
            body["type"] = "Opaque"
            create = requests.create(SECRETS, body, namespace=self._namespace)
            await self._client.send(create.by_any_replica())
            return
        version = found.metadata.resource_version
        patch: list[Mapping[str, object]] = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/data", "value": encoded},
        ]
        update = requests.json_patch(SECRETS, names.HTTPS_SECRET, patch, namespace=self._namespace)
        await self._client.send(update.by_any_replica())


def served_names(namespace: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """The names of our Services, and what the settings add."""
    services = [f"{service}.{namespace}.svc" for service in (names.SERVICE, names.WEBHOOK_SERVICE)]
    return tuple(dict.fromkeys((*services, *(f"{service}.cluster.local" for service in services), *more)))


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_FILE_BYTES)


def _data(found: Object) -> dict[str, bytes]:
    data = {}
    for key, value in found.data_dict().items():
        with suppress(binascii.Error, ValueError):
            data[key] = base64.b64decode(value) if isinstance(value, str) else b""
    return data
