"""Who sends a request, by what the transport has identified or by a bearer token."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from random import Random

from mirror.embedded.apiserver.apimachinery.errors import unauthorized
from mirror.embedded.apiserver.apimachinery.objects import new_uid
from mirror.embedded.apiserver.authn.tokens import ISSUER, Refusal, Tokens, Verified
from mirror.embedded.apiserver.messages import (
    ANONYMOUS,
    AUTHENTICATED_GROUP,
    UNAUTHENTICATED_GROUP,
    Request,
    User,
)
from mirror.embedded.apiserver.storage import keys
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.runtime.clock import Clock

NOBODY = User(ANONYMOUS, (UNAUTHENTICATED_GROUP,))
_KEY_BYTES = 32
_BEARER = "bearer "


class Authenticator:
    """Authenticates requests of one API server.

    Args:
        tokens: bearer tokens that never expire, and whose they are.
        allows_anonymous: whether a request without credentials is that of ``system:anonymous``; else it is refused.
    """

    def __init__(
        self,
        *,
        storage: Storage,
        clock: Clock,
        random: Random,
        tokens: Mapping[str, User],
        allows_anonymous: bool,
    ) -> None:
        self._allows_anonymous = allows_anonymous
        # By digest, so that how long a look-up takes does not depend on a token's text.
        self._given = {_digest(token): _authenticated(user) for token, user in tokens.items()}
        self.tokens = Tokens(
            storage,
            clock,
            key=lambda: keys.kept(storage, "service-account-tokens", lambda: random.randbytes(_KEY_BYTES)),
            new_id=lambda: new_uid(random),
        )

    def authenticate(self, request: Request) -> User:
        """Whose credentials the request shows. Raises: StatusError 401."""
        return request.user or self._bearer(request.headers.get("authorization", ""))

    def verify(self, token: str, audiences: tuple[str, ...] = ()) -> Verified | None:
        """Whose token this is; None: nobody's.

        Raises:
            Refusal: it is a service account's and not valid (any more).
        """
        given = self._given.get(_digest(token))
        if given is not None:
            return Verified(given, tuple(audiences) or (ISSUER,))
        return self.tokens.verify(token, audiences)

    def _bearer(self, header: str) -> User:
        """The user of an Authorization header; other schemes than bearer tokens count as none."""
        token = header[len(_BEARER) :].strip() if header[: len(_BEARER)].lower() == _BEARER else ""
        if not token:
            if not self._allows_anonymous:
                raise unauthorized()
            return NOBODY
        try:
            found = self.verify(token)
        except Refusal:
            found = None
        if found is None:
            raise unauthorized()
        return found.user


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()


def _authenticated(user: User) -> User:
    if AUTHENTICATED_GROUP in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED_GROUP), user.uid, user.extra)
