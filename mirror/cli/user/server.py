"""The manager's HTTPS server as a client sees it: where it is, who we are to it, and what it answers.

It is found by the ConfigMap that the manager publishes, or said on the command line. It checks the user's bearer
token or client certificate and their rights (``mirror.access``); this shows one of both, only to who has a certificate
of the published authority, the same as before (``trust``). What it answers is a worker's text at times.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import msgspec

from mirror.batch import views
from mirror.cli.user import printing, trust
from mirror.cli.user.cluster import Cluster, client_for, decode, proxy_for
from mirror.cli.user.failures import MANAGEMENT, MANAGER, Busy, Doing, Failure, NotAllowed, NotThere, NotYet, failure_of
from mirror.cli.user.logtexts import LogRequest, stream
from mirror.cli.user.naming import Named, kinds
from mirror.cli.user.options import Where
from mirror.kinds.base import Kind
from mirror.kinds.registry import resource_name
from mirror.kinds.report import Report
from mirror.kube import requests, tls
from mirror.kube.client import Client
from mirror.kube.credentials import Credentials, Endpoint, Identity, IdentityUnavailable
from mirror.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    KubeError,
    NotFound,
    OutcomeUnknown,
    ServerFailure,
    TooManyRequests,
    Unauthorized,
)
from mirror.kube.identities import bearer
from mirror.kube.requests import JSON, Request
from mirror.kube.resources import CONFIGMAPS, PODS
from mirror.model import names
from mirror.model.failures import file_words
from mirror.model.views import JobView, Moment

if TYPE_CHECKING:
    from mirror.placement.explaining import Choice

Json = Mapping[str, object]
Query = tuple[tuple[str, str], ...]

DEADLINE_SECONDS = 30.0
"""It asks a worker meanwhile, and gives that up sooner."""
MOST_PAGES = 1_000
_TOKEN_HINT = 'use --token "$(kubectl create token NAME)" with a ServiceAccount of yours that may read Jobs and pods'
NO_IDENTITY = (
    "the manager authenticates users by bearer token or client certificate, and this kubeconfig has neither: "
    f"{_TOKEN_HINT}, or --worker-context to read from the worker directly"
)
CERTIFICATE_REJECTED = (
    "the manager did not accept your client certificate (401): its operator has not enabled them "
    "(access.clientCertificates, config/rbac/access.yaml), or something between ends TLS; " + _TOKEN_HINT
)

_BROKEN_OFF = ("reset", "closed", "alert", "rejected")
"""How a server ends a TLS 1.3 connection whose certificate it refuses: after the handshake, as clients see it."""


class NoManager(Failure):
    """The address at which the manager serves users is not published, or may not be read."""

    def __init__(self, why: str, *, is_forbidden: bool) -> None:
        self.is_forbidden = is_forbidden
        what = "access endpoint not readable" if is_forbidden else "access is not enabled"
        super().__init__(
            f"{what}: {why}; "
            "use --server URL, or --worker-context NAME to read from the worker with your own permissions there"
        )


@dataclass(frozen=True, slots=True)
class Address:
    """Where it is, and whom to trust."""

    url: str
    authority: bytes = b""
    """PEM; empty: the system's authorities."""
    server_name: str = ""
    """What its certificate says, where that is not the URL's host."""


class KnownJob(msgspec.Struct, frozen=True):
    """What it knows of a Job."""

    job: JobView | None = None
    timeline: tuple[Moment, ...] = ()
    obstacles: dict[str, str] = msgspec.field(name="lacks", default={})
    unavailable: str = ""
    """What is missing here, since another manager knows it and does not say; empty: nothing."""


class Along(msgspec.Struct, frozen=True, kw_only=True):
    """One object that goes along, on the management cluster: ``Exists``, ``Missing``, ``Refused`` or ``Unknown``."""

    object: str = ""
    state: str = ""
    message: str = ""


class OnWorker(msgspec.Struct, frozen=True, kw_only=True):
    """One object as a worker has it: ``Exists``, ``Copied``, ``Foreign``, ``Missing`` or ``Unknown``."""

    worker: str = ""
    object: str = ""
    state: str = ""
    message: str = ""


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """How many the manager did not look at."""

    objects: int = 0
    workers: int = 0


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """How a source differs from its mirror; also how it looks as JSON."""

    worker: str = ""
    report: Report
    obstacles: dict[str, str] = msgspec.field(name="lacks", default={})
    """For each worker that is not eligible: why."""
    goes_along: list[Along] = msgspec.field(name="goesAlong", default=[])
    on_worker: list[OnWorker] = msgspec.field(name="onWorker", default=[])
    """What the pods name, as the worker has it, or some of those that are eligible."""
    left_out: LeftOut = msgspec.field(name="leftOut", default=LeftOut())
    note: str = ""


class _Jobs(msgspec.Struct, frozen=True):
    items: list[JobView] = []


@asynccontextmanager
async def manager(where: Where, cluster: Cluster) -> AsyncIterator[AccessEndpoint]:
    """Connected, as the user: by token, or by the client certificate that the cluster knows them by.

    Raises:
        NoManager: nothing says where it is.
        Failure: there is neither, or the address cannot be used.
    """
    address = await find(where, cluster)
    endpoint = _endpoint(address)
    if not (where.server and where.server_ca):  # else nothing of it was found, all of it was said
        of = " ".join((cluster.credentials.endpoint.server, where.manager_namespace, where.server)).rstrip()
        trust.check(of, trust.known(address.url, address.authority), accepts_change=where.accept_manager)
    identity = await _identity(where, cluster)
    if identity.certificate_pem and endpoint.tls is not None:
        tls.load_client_certificate(endpoint.tls, identity.certificate_pem, identity.key_pem)
    client = client_for(MANAGER, Credentials(endpoint, Identity(authorization=identity.authorization)))
    try:
        yield AccessEndpoint(client, by_certificate=bool(identity.certificate_pem))
    finally:
        await client.close()


async def find(where: Where, cluster: Cluster) -> Address:
    """Where the manager serves users.

    Raises:
        NoManager: nothing says so.
        Failure: it cannot be found out.
    """
    if where.server and where.server_ca:
        return Address(where.server.rstrip("/"), _file(where.server_ca), _server_name(where))
    try:
        published = await _published(where, cluster)
    except NoManager:
        if not where.server:
            raise
        published = Address("")
    if where.server:
        return Address(where.server.rstrip("/"), published.authority, _server_name(where))
    return published


def _server_name(where: Where) -> str:
    """Through a port-forward its certificate cannot say the host that is dialled: then it has to be its Service's."""
    host = urlsplit(where.server).hostname or ""
    try:
        is_here = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_here = False
    return f"{names.SERVICE}.{where.manager_namespace}.svc" if is_here and not where.server_ca else ""


async def _published(where: Where, cluster: Cluster) -> Address:
    request = requests.get(CONFIGMAPS, names.ACCESS_CONFIGMAP, namespace=where.manager_namespace)
    named = f"ConfigMap {names.ACCESS_CONFIGMAP} in namespace {where.manager_namespace}"
    try:
        found = await cluster.client.send_object(request)
    except NotFound:
        fix = "its operator sets access.enabled and access.url, or it runs in another --manager-namespace"
        raise NoManager(f"{named} not found; {fix}", is_forbidden=False) from None
    except Forbidden as error:
        missing = f"missing permission: get configmaps {names.ACCESS_CONFIGMAP} in namespace {where.manager_namespace}"
        fix = "config/rbac/access.yaml grants it to everybody"
        raise NoManager(f"{missing} on {MANAGEMENT}; {fix} ({error.brief})", is_forbidden=True) from None
    except KubeError as error:
        raise failure_of(error, Doing("get", "configmaps", where.manager_namespace, names.ACCESS_CONFIGMAP)) from error
    data = found.data_dict()
    url = views.text(data.get("url")).rstrip("/")
    if not url:
        raise NoManager(f"{named} has no url (setting access.url)", is_forbidden=False)
    return Address(url, views.text(data.get("ca.crt")).encode())


def _endpoint(address: Address) -> Endpoint:
    parts = urlsplit(address.url)
    if parts.scheme != "https" or not parts.hostname:
        raise Failure(f"{address.url!r} is not an https:// URL: the token is not sent")
    try:
        context: ssl.SSLContext = tls.client_context(ca_pem=address.authority)
    except tls.BadCertificate as error:
        raise Failure(f"the authority of {address.url} {error}") from None
    proxy = proxy_for(address.url) or None
    return Endpoint(address.url, context, address.server_name or None, proxy, peer=MANAGER)


async def _identity(where: Where, cluster: Cluster) -> Identity:
    """The user's bearer token as a header, or else their client certificate, whose key stays here.

    Raises:
        Failure: there is neither.
    """
    if where.token:
        try:
            return Identity(authorization=bearer(where.token.strip()))
        except IdentityUnavailable as error:
            raise Failure(f"--token: {error}") from None
    try:
        headers = await cluster.credentials.headers()
    except KubeError as error:
        raise failure_of(error, Doing("", "")) from error
    found = headers.get("Authorization", "")
    if found.startswith("Bearer "):
        return Identity(authorization=found)
    certificate = cluster.credentials.certificate
    if certificate is None or found:
        raise Failure(NO_IDENTITY)
    return certificate


def _file(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise Failure(f"--server-ca {path}: {file_words(error)}") from None


@dataclass(frozen=True, slots=True)
class AccessEndpoint:
    """The server, asked as the user about objects of one namespace. Every method raises ``Failure`` in words."""

    client: Client
    by_certificate: bool = False
    """Whether the user is known by a client certificate, and no token is sent."""

    async def job(self, namespace: str, wanted: Named) -> KnownJob:
        """What it knows of a Job."""
        raw = await self._get(_path(namespace, wanted), _getting(namespace, wanted))
        return decode(raw, MANAGER, KnownJob)

    async def pods(self, namespace: str, wanted: Named) -> list[Json]:
        """The pods of the mirror."""
        found: list[Json] = []
        token = ""
        for _ in range(MOST_PAGES):
            query = (("continue", token),) if token else ()
            raw = await self._get(_path(namespace, wanted, "/pods"), Doing("list", "pods", namespace), query)
            page = decode(raw, MANAGER, dict)
            found += map(views.mapping, views.items(page.get("items")))
            token = views.text(views.mapping(page.get("metadata")).get("continue"))
            if not token:
                return found
        raise Failure("the manager does not end the list of pods")

    async def events(self, namespace: str, wanted: Named) -> list[Json]:
        """Events of the mirror and its pods; of very many the newest."""
        raw = await self._get(_path(namespace, wanted, "/events"), Doing("list", "events", namespace))
        page = decode(raw, MANAGER, dict)
        if page.get("isCut") is True:
            printing.remark("More events exist than the manager returns; these are the newest.")
        return [views.mapping(item) for item in views.items(page.get("items"))]

    async def diff(self, namespace: str, wanted: Named) -> Comparison:
        """How a mirror differs from its source."""
        raw = await self._get(_path(namespace, wanted, "/diff"), _getting(namespace, wanted))
        return decode(raw, MANAGER, Comparison)

    async def diff_before(self, kind: Kind, job: Json) -> Comparison:
        """How a mirror of this Job, which need not exist, would differ from it."""
        return decode(await self._about("/v1/diff", kind, job), MANAGER, Comparison)

    async def choice(self, kind: Kind, job: Json) -> Choice:
        """Where this Job, which need not exist, would be placed."""
        from mirror.placement.explaining import Choice  # with all of placement, which other commands need not wait for

        return decode(await self._about("/v1/place", kind, job), MANAGER, Choice)

    async def _about(self, path: str, kind: Kind, job: Json) -> bytes:
        namespace = views.text(views.mapping(job.get("metadata")).get("namespace"))
        request = Request("create", "POST", path, (), msgspec.json.encode(job), JSON, deadline_seconds=DEADLINE_SECONDS)
        return await self._sent(request, Doing("create", resource_name(kind), namespace))

    async def jobs(self, kind: Kind, namespace: str | None) -> list[JobView]:
        """All objects of a kind that it mirrors, or those of one namespace: the newest, if there are very many."""
        resource = quote(kinds().path_name(kind), safe="")
        path = f"/v1/{resource}" if namespace is None else f"/v1/namespaces/{quote(namespace, safe='')}/{resource}"
        request = Request("list", "GET", path, deadline_seconds=DEADLINE_SECONDS)
        doing = Doing("list", resource_name(kind), namespace or "")
        return decode(await self._sent(request, doing), MANAGER, _Jobs).items

    def log(
        self, namespace: str, source: Named, wanted: LogRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """A container's text as it comes."""
        doing = Doing("get", "pods/log", namespace, source.name)
        return stream(
            self.client,
            _path(namespace, source, "/log"),
            wanted.query_of_manager,
            follow=wanted.follow,
            describe=lambda error: self.failure(error, doing),
        )

    async def _get(self, path: str, doing: Doing, query: Query = ()) -> bytes:
        return await self._sent(Request("get", "GET", path, query, deadline_seconds=DEADLINE_SECONDS), doing)

    async def _sent(self, request: Request, doing: Doing) -> bytes:
        try:
            body = await self.client.send(request)
        except KubeError as error:
            raise self.failure(error, doing) from error
        return body

    def failure(self, error: KubeError, doing: Doing) -> Failure:
        """A request's failure in words."""
        if self.by_certificate and isinstance(error, Unauthorized):
            return Failure(CERTIFICATE_REJECTED)
        told = refusal(error, doing)
        if (
            self.by_certificate
            and isinstance(error, OutcomeUnknown)
            and any(sign in str(error) for sign in _BROKEN_OFF)
        ):
            return Failure(f"{told.message}; it may not accept your client certificate: {_TOKEN_HINT}")
        return told


def _path(namespace: str, wanted: Named, what: str = "") -> str:
    """Where an object is; a Job's is the one that older managers know, too."""
    parts = (namespace, kinds().path_name(wanted.kind), wanted.name)
    namespace, resource, name = (quote(part, safe="") for part in parts)
    return f"/v1/namespaces/{namespace}/{resource}/{name}{what}"


def _getting(namespace: str, wanted: Named) -> Doing:
    return Doing("get", wanted.resource_name, namespace, wanted.name)


def refusal(error: KubeError, doing: Doing) -> Failure:
    """A failure of the manager's in words, which are mostly its own: it knows what is wrong, and whose right is."""
    match error:
        case Unauthorized():
            return Failure("the manager rejected your token (401): it may have expired, or belong to another cluster")
        case Forbidden():
            return NotAllowed(error.message or str(failure_of(error, doing)))
        case Conflict() if error.message:
            return NotYet(error.message)
        case TooManyRequests():
            return Busy(error.message or "the manager limits requests (429); retry")
        case ServerFailure() if not error.reason:
            return failure_of(error, doing_of_manager(doing))
        case NotFound() if error.message and error.about_kind not in ("", PODS.plural):
            return NotThere(error.message)
        case ApiError() if error.message:
            return Failure(error.message)
    return failure_of(error, doing_of_manager(doing))


def doing_of_manager(doing: Doing) -> Doing:
    """The same request as asked of the manager, for texts of failures."""
    return Doing(doing.verb, doing.resource, doing.namespace, doing.name, MANAGER)
