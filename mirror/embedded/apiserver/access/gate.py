"""Who may do what: every request passes here, first to be given a user, then to be allowed or refused.

``server`` calls ``identify`` and ``check``; the strategies of RBAC and the reviews ask about rights. Two ways of
deciding: ``AlwaysAllow``, where whoever is known may do everything, and ``RBAC``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Literal

from mirror.batch import times
from mirror.embedded.apiserver.access import bootstrap, impersonating, requests, reviews, strategies
from mirror.embedded.apiserver.access.policy import Held, Policy, RoleRef
from mirror.embedded.apiserver.access.rules import FULL, Attributes, Rule
from mirror.embedded.apiserver.access.tokens import ISSUER, Refusal, Tokens, Verified
from mirror.embedded.apiserver.apimachinery.errors import unauthorized
from mirror.embedded.apiserver.apimachinery.kinds import Kind, Registry
from mirror.embedded.apiserver.messages import (
    ANONYMOUS,
    AUTHENTICATED_GROUP,
    MASTERS_GROUP,
    UNAUTHENTICATED_GROUP,
    Request,
    User,
)
from mirror.embedded.apiserver.request.info import RequestInfo
from mirror.embedded.apiserver.storage import keys
from mirror.runtime.clock import Clock

if TYPE_CHECKING:
    from mirror.embedded.apiserver.access.reviews import Action
    from mirror.embedded.apiserver.storage.mvcc import Storage

Authorization = Literal["AlwaysAllow", "RBAC"]

NOBODY = User(ANONYMOUS, (UNAUTHENTICATED_GROUP,))
_KEY_BYTES = 32
_BEARER = "bearer "


class Access:
    """The gate of one API server.

    Args:
        tokens: bearer tokens that never end, and whose they are.
    """

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        random: Random,
        authorization: Authorization = "AlwaysAllow",
        tokens: Mapping[str, User] | None = None,
        registry: Registry | None = None,
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._random = random
        self._policy = Policy(storage)
        self._modes = impersonating.Modes()
        self._is_open = authorization == "AlwaysAllow"
        # By digest, so that how long a look takes tells nothing of a token.
        self._given = {_digest(token): _authenticated(user) for token, user in (tokens or {}).items()}
        self.tokens = Tokens(
            storage,
            clock,
            key=lambda: keys.kept(storage, "service-account-tokens", lambda: random.randbytes(_KEY_BYTES)),
            new_id=self._new_id,
        )
        self.actions: Mapping[tuple[str, str, str], Action] = reviews.actions(self)
        """What answers to reviews; see ``resources.actions``."""

    def kinds(self) -> list[Kind]:
        """Roles, bindings and reviews."""
        return [*reviews.kinds(), *strategies.kinds(self)]

    def bootstrap(self) -> None:
        """Store the roles and bindings with which a cluster begins, where they are not there."""
        bootstrap.store(self._storage, now=times.of(self._clock.now()), new_uid=self._new_id)

    def identify(self, request: Request, info: RequestInfo) -> User:
        """Who asks, or on whose behalf.

        Args:
            info: what ``paths`` read in the request.

        Raises:
            Refused: 401, nobody knows; 403 or 400, not on behalf of that user.
        """
        user = request.user or self._bearer(request.headers.get("authorization", ""))
        for name in request.headers:
            if name.startswith(impersonating.PREFIX):
                return self._impersonated(user, request, info)
        return user

    def check(self, user: User, verb: str, kind: Kind, subresource: str, namespace: str, name: str) -> None:
        """Whether the user may do this with an object. Raises: Refused 403."""
        if not (self._is_open or MASTERS_GROUP in user.groups):
            self.confirm(user, Attributes(verb, kind.group, kind.plural, subresource, namespace, name))

    def check_request(self, user: User, info: RequestInfo) -> None:
        """The same of what the request wants, whether or not it is served. Raises: Refused 403."""
        if not (self._is_open or MASTERS_GROUP in user.groups):
            self.confirm(user, requests.attributes_of(info))

    def confirm(self, user: User, wanted: Attributes) -> None:
        """Raises: Refused 403."""
        is_allowed, reason = self.decide(user, wanted)
        if not is_allowed:
            raise requests.refusal(user, wanted, reason)

    def decide(self, user: User, wanted: Attributes) -> tuple[bool, str]:
        """Whether the user may, and why, or why not if there is more to say than that nothing allows it."""
        if self._is_open or MASTERS_GROUP in user.groups:
            return True, ""
        held = self._policy.held(user, wanted.namespace)
        source = held.source_of(wanted)
        return (True, f"RBAC: allowed by {source}") if source else (False, held.reason())

    def may(self, user: User, wanted: Attributes) -> bool:
        """Whether the user may."""
        return self.decide(user, wanted)[0]

    def held(self, user: User, namespace: str) -> Held:
        """The user's rules."""
        return Held([("", rule) for rule in FULL]) if self._is_open else self._policy.held(user, namespace)

    def rules_of(self, ref: RoleRef, namespace: str) -> Sequence[Rule]:
        """What a binding gives. Raises: Refused (404) if there is no such role."""
        return self._policy.rules_of(ref, namespace)

    def all_rules(self, user: User, namespace: str) -> tuple[list[Rule], str, bool]:
        """What the user may do there, what is wrong with some bindings, and whether that is all."""
        if self._is_open:
            return list(FULL), "", True
        held = self._policy.held(user, namespace)
        rules = [rule for _, rule in held.rules]
        return rules, held.reason().removeprefix("RBAC: "), True

    def verify(self, token: str, audiences: tuple[str, ...] = ()) -> Verified | None:
        """Whose token this is; None: nobody's.

        Raises:
            Refusal: it is a service account's and not good (any more).
        """
        given = self._given.get(_digest(token))
        if given is not None:
            return Verified(given, tuple(audiences) or (ISSUER,))
        return self.tokens.verify(token, audiences)

    def _bearer(self, header: str) -> User:
        """The user of an Authorization header; other ways than tokens count as none."""
        token = header[len(_BEARER) :].strip() if header[: len(_BEARER)].lower() == _BEARER else ""
        if not token:
            if self._is_open:
                raise unauthorized()
            return NOBODY
        try:
            found = self.verify(token)
        except Refusal:
            found = None
        if found is None:
            raise unauthorized()
        return found.user

    def _impersonated(self, user: User, request: Request, info: RequestInfo) -> User:
        wanted = impersonating.wanted_user(request.headers)
        if wanted is None:
            return user
        attributes = requests.attributes_of(info)
        return impersonating.impersonated(user, wanted, attributes, lambda one: self.confirm(user, one), self._modes)

    def _new_id(self) -> str:
        """A random (version 4) UUID."""
        digits = f"{self._random.getrandbits(128):032x}"
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _authenticated(user: User) -> User:
    if AUTHENTICATED_GROUP in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED_GROUP), user.uid, user.extra)
