"""Authenticates and authorizes callers by reviews of the management cluster, whose answers are cached for seconds.

A bearer token is shown to the cluster (TokenReview), a right is asked for (SubjectAccessReview); refusals are
remembered too. A client certificate of the cluster names its user as it does there. Tokens are kept as a digest only
and never logged. What is asked is bounded, in all, for each address and for each person, so that nobody makes the
manager flood its cluster. Which other manager a request comes from is not found out here (``elsewhere``).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

import msgspec

from mirror.access.answers import StatusError
from mirror.access.under_way import Most, UnderWay
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import ApiError, Forbidden, KubeError
from mirror.kube.limits import Limiter
from mirror.kube.objects import JUNK
from mirror.kube.permissions import Permission
from mirror.kube.requests import Rank, Request
from mirror.kube.resources import Resource
from mirror.serving.client_certificates import CertificateUser

K = TypeVar("K")
V = TypeVar("V")

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)

REMEMBERED_SECONDS = 10.0
MOST_REMEMBERED = 2_000
LONGEST_TOKEN = 16_384
AUTHENTICATED = "system:authenticated"
"""The group of everybody who is known, which no certificate names."""
DEADLINE_SECONDS = 5.0
MOST_BYTES = 1 << 20
TOKENS_A_SECOND, TOKENS_AT_ONCE = 50.0, 100
GUESSES_A_SECOND_OF_PEER, GUESSES_AT_ONCE_OF_PEER = 2.0, 20
GUESSES_A_SECOND_OF_MEMBER, GUESSES_AT_ONCE_OF_MEMBER = 10.0, 100
"""Of all that another manager passes on: at once more than it has under way here (``Bounds.requests_of_peer`` and
``streams``), and in the long run a fifth of the tokens that are looked at, since a proxy may have its address."""
REQUESTS_A_SECOND_OF_ONE, REQUESTS_AT_ONCE_OF_ONE = 10.0, 50


class Allowance(NamedTuple):
    """How many refused tokens are put up with, and from whom."""

    kind: str
    whom: str
    a_second: float
    at_once: int


def allowances(address: str) -> tuple[Allowance, ...]:
    """Of a request that comes from this address (``serving.peers``)."""
    return (Allowance("peer", address, GUESSES_A_SECOND_OF_PEER, GUESSES_AT_ONCE_OF_PEER),)


def allowances_passed_on(member: str, caller: str) -> tuple[Allowance, ...]:
    """Of a request that another manager passes on: of its caller, and of all that it passes on.

    Args:
        member: its address; that it is one is certain.
        caller: whom it takes the caller for. Believed for nothing but this.
    """
    return (
        Allowance("member", member, GUESSES_A_SECOND_OF_MEMBER, GUESSES_AT_ONCE_OF_MEMBER),
        Allowance("passed on", f"{member} {caller}", GUESSES_A_SECOND_OF_PEER, GUESSES_AT_ONCE_OF_PEER),
    )


@dataclass(frozen=True, slots=True)
class Person:
    """The user of a token, as the management cluster reports."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Remembered(Generic[K, V]):
    """Values for a while; the oldest go where there are too many."""

    def __init__(self, now: Callable[[], float], *, seconds: float, most: int) -> None:
        self._now = now
        self._seconds = seconds
        self._most = most
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value, unless it is too old."""
        found = self._kept.get(key)
        if found is None or found[0] <= self._now():
            return None
        return found[1]

    def put(self, key: K, value: V) -> V:
        """Remember a value, and give it back."""
        self._kept.pop(key, None)
        self._kept[key] = (self._now() + self._seconds, value)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return value


class _User(msgspec.Struct):
    username: str = ""
    uid: str = ""
    groups: list[str] | None = None
    extra: dict[str, list[str]] | None = None


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User | None = None


class _AccessStatus(msgspec.Struct):
    allowed: bool = False
    denied: bool = False


class _TokenReview(msgspec.Struct):
    status: _TokenStatus | None = None


class _AccessReview(msgspec.Struct):
    status: _AccessStatus | None = None


_token_review = msgspec.json.Decoder(_TokenReview)
_access_review = msgspec.json.Decoder(_AccessReview)


class Reviews:
    """Asks the management cluster. Make it in the running loop."""

    def __init__(self, management: Client, *, wall: Callable[[], float] = time.time) -> None:
        self._management = management
        self._wall = wall
        now = self._now = asyncio.get_running_loop().time
        self._persons: Remembered[bytes, Person | bool] = Remembered(
            now, seconds=REMEMBERED_SECONDS, most=MOST_REMEMBERED
        )
        self._rights: Remembered[tuple[Person, Permission], bool] = Remembered(
            now, seconds=REMEMBERED_SECONDS, most=MOST_REMEMBERED
        )
        self._looked_at = UnderWay()
        """Tokens that the cluster is just asked about: each may be a guess."""
        self._pace = Limiter(TOKENS_A_SECOND, TOKENS_AT_ONCE, now)
        self._pace_of: Remembered[tuple[str, str], Limiter] = Remembered(now, seconds=3600.0, most=MOST_REMEMBERED)

    async def person(self, authorization: str, held_against: Sequence[Allowance]) -> Person:
        """Whose token an ``Authorization`` header carries.

        Args:
            authorization: the header.
            held_against: whom a token is held against that is refused, the one with most users first.

        Raises:
            StatusError: 401; 429 when too many are shown; 503 or 504 when the cluster does not say.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > LONGEST_TOKEN or not token.isascii():
            raise StatusError(401, "send a bearer token of the management cluster, or present its client certificate")
        digest = hashlib.sha256(token.encode()).digest()
        found = self._persons.get(digest)
        if found is None:
            found = await self._look_at(token, digest, held_against)
        if not isinstance(found, Person):
            raise StatusError(401, "the management cluster does not accept this token; it may be over")
        self.bound("person", found.name, REQUESTS_A_SECOND_OF_ONE, REQUESTS_AT_ONCE_OF_ONE)
        return found

    async def _look_at(self, token: str, digest: bytes, held_against: Sequence[Allowance]) -> Person | bool:
        """Only what is refused is held against anybody: many users may share an address."""
        bounds = (Most(one, self._left(one), _too_many("tokens are shown")) for one in held_against)
        with self._looked_at.one_more(bounds):
            if not self._pace.acquire_nowait():
                raise _throttled("tokens are shown")
            found = self._persons.put(digest, await self._review_token(token) or False)
        if found is False:
            for one in held_against:
                self._pace_for(*one).acquire_nowait()
        return found

    def _left(self, allowance: Allowance) -> int:
        return int(self._pace_for(*allowance).describe().tokens)

    def person_of_certificate(self, certificate: CertificateUser) -> Person:
        """Whom a client certificate names, as an API server sees them.

        Args:
            certificate: its authority is one of the cluster's, and was verified when the connection began.

        Raises:
            StatusError: 401 once it has expired, 429.
        """
        if certificate.ends <= self._wall():
            raise StatusError(401, "the client certificate has expired")
        self.bound("person", certificate.name, REQUESTS_A_SECOND_OF_ONE, REQUESTS_AT_ONCE_OF_ONE)
        return Person(certificate.name, groups=(*certificate.groups, AUTHENTICATED))

    async def require(self, person: Person, right: Permission) -> None:
        """Go on only with this right.

        Raises:
            StatusError: 403, which names it; 503 or 504 when the cluster does not say.
        """
        allowed = self._rights.get((person, right))
        if allowed is None:
            allowed = self._rights.put((person, right), await self._review_access(person, right))
        if not allowed:
            where = f"in namespace {right.namespace}" if right.namespace else "in all namespaces"
            missing = f"missing permission: user {person.name} cannot {_words(right)} {where} of the management cluster"
            details = {"group": right.group, "kind": right.resource, "name": right.name}
            raise StatusError(403, missing, details={key: value for key, value in details.items() if value})

    async def _review_token(self, token: str) -> Person | None:
        body = {"apiVersion": TOKEN_REVIEWS.api_version, "kind": TOKEN_REVIEWS.kind, "spec": {"token": token}}
        status = (await self._ask(requests.create(TOKEN_REVIEWS, body), _token_review)).status
        if status is None or not status.authenticated or status.user is None or not status.user.username:
            return None
        user = status.user
        extra = tuple(sorted((key, tuple(values)) for key, values in (user.extra or {}).items()))
        return Person(user.username, user.uid, tuple(user.groups or ()), extra)

    async def _review_access(self, person: Person, right: Permission) -> bool:
        spec = {
            "user": person.name,
            "uid": person.uid,
            "groups": list(person.groups),
            "extra": {key: list(values) for key, values in person.extra},
            "resourceAttributes": right.attributes,
        }
        body = {"apiVersion": ACCESS_REVIEWS.api_version, "kind": ACCESS_REVIEWS.kind, "spec": spec}
        status = (await self._ask(requests.create(ACCESS_REVIEWS, body), _access_review)).status
        return status is not None and status.allowed and not status.denied

    async def _ask(self, request: Request, decoder: msgspec.json.Decoder[V]) -> V:
        request = replace(request, deadline_seconds=DEADLINE_SECONDS, rank=Rank.SECOND, most_bytes=MOST_BYTES)
        request = request.by_any_replica()  # a question, sent as a create
        try:
            return decoder.decode(await self._management.send(request))
        except Forbidden:
            missing = "the manager has no permission to create token and access reviews; apply config/rbac/access.yaml"
            raise StatusError(503, missing) from None
        except ApiError as error:
            raise StatusError(503, f"the management cluster did not authenticate the token: {error.reason}") from error
        except JUNK as error:
            raise StatusError(502, "the management cluster's answer cannot be read") from error
        except KubeError as error:
            raise StatusError(504, "the management cluster does not answer") from error

    def bound(self, kind: str, whom: str, rate: float, burst: int) -> None:
        """Go on only if not too much of this kind comes from the same.

        Raises:
            StatusError: 429.
        """
        if not self._pace_for(kind, whom, rate, burst).acquire_nowait():
            raise _throttled("requests come")

    def _pace_for(self, kind: str, whom: str, rate: float, burst: int) -> Limiter:
        found = self._pace_of.get((kind, whom))
        return found or self._pace_of.put((kind, whom), Limiter(rate, burst, self._now))


def _throttled(what: str) -> StatusError:
    return StatusError(429, _too_many(what), retry_after_seconds=1)


def _too_many(what: str) -> str:
    return f"too many {what}; try again in a second"


def _words(right: Permission) -> str:
    what = f"{right.resource}/{right.subresource}" if right.subresource else right.resource
    what += f".{right.group}" if right.group else ""
    return f"{right.verb} {what} {right.name}".rstrip()
