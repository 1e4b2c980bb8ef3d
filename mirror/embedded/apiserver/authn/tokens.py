"""Tokens of service accounts: JSON web tokens that only this control plane signs.

The ``token`` subresource issues them, ``authenticator`` verifies them with every request, ``TokenReview`` for others.
A token is valid until it expires, as long as its account and the object that it is bound to exist. PyJWT signs and
checks signatures; claims are judged here, by the control plane's clock and in kube-apiserver's words.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import jwt
import msgspec

from mirror.batch.quoting import quoted, quoted_list
from mirror.embedded.apiserver.apimachinery.errors import Json
from mirror.embedded.apiserver.messages import AUTHENTICATED_GROUP, User
from mirror.embedded.apiserver.storage.mvcc import Storage
from mirror.embedded.apiserver.storage.records import Record
from mirror.runtime.clock import Clock

ACCOUNT_PREFIX = "system:serviceaccount:"
ISSUER = "https://kubernetes.default.svc"
_CLAIMS = "authentication.kubernetes.io"
NODE_NAME = f"{_CLAIMS}/node-name"
"""What a user's extra tells of the node that it, or its pod, is bound to."""
_BOUND = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
_MOST_REMEMBERED = 4096
_LEEWAY_SECONDS = 60


class Refusal(Exception):
    """The token is one of ours and not good; the message says why, to reviewers."""


class _Ref(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    uid: str = ""


class _Private(msgspec.Struct, frozen=True, omit_defaults=True):
    namespace: str
    serviceaccount: _Ref
    pod: _Ref | None = None
    secret: _Ref | None = None
    node: _Ref | None = None


class _Payload(msgspec.Struct, frozen=True):
    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str
    jti: str
    kubernetes: _Private = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


class _Issuer(msgspec.Struct, frozen=True):
    iss: str = ""


_ALGORITHM = "HS256"
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Payload).decode
_signer = jwt.PyJWS(algorithms=[_ALGORITHM])


@dataclass(frozen=True, slots=True)
class Verified:
    """Whom a token names, and for which of the wanted audiences it is."""

    user: User
    audiences: tuple[str, ...]


class Tokens:
    """Issues and verifies them.

    Args:
        key: gives the secret that signs; called when it is first needed.
        new_id: gives a name for each token.
    """

    def __init__(self, storage: Storage, clock: Clock, *, key: Callable[[], bytes], new_id: Callable[[], str]) -> None:
        self._storage = storage
        self._clock = clock
        self._get_key = key
        self._key = b""
        self._new_id = new_id
        self._remembered: dict[str, _Payload] = {}
        """Tokens whose signature was right."""

    def issue(
        self,
        *,
        namespace: str,
        name: str,
        uid: str,
        audiences: Sequence[str] = (),
        seconds: int = 3600,
        bound: Json | None = None,
    ) -> tuple[str, str]:
        """A token of a service account, and when it expires.

        Args:
            uid: of the account.
            audiences: whom it is for; none: this API server.
            seconds: how long it is good.
            bound: ``kind``, ``name`` and ``uid`` of the object with which it ends, and, of a pod, ``node``, if it has
                one: its name and its uid, which is empty if there is no such node.
        """
        now = int(self._clock.now().timestamp())
        refs = {"serviceaccount": _Ref(name, uid)}
        if bound:
            refs[str(bound["kind"]).lower()] = _Ref(bound["name"], bound.get("uid", ""))
            if "node" in bound:
                refs["node"] = _Ref(*bound["node"])
        payload = _Payload(
            aud=tuple(audiences) or (ISSUER,),
            exp=now + seconds,
            iat=now,
            iss=ISSUER,
            jti=self._new_id(),
            kubernetes=_Private(namespace, **refs),
            nbf=now,
            sub=f"{ACCOUNT_PREFIX}{namespace}:{name}",
        )
        key = self._signing_key()
        token = _signer.encode(_encode(payload), key, _ALGORITHM, headers={"kid": _id_of(key)})
        return token, datetime.fromtimestamp(payload.exp, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def verify(self, token: str, audiences: Sequence[str] = ()) -> Verified | None:
        """Whom it names; None: it is none of ours.

        Args:
            audiences: for one of which it must be; none: this API server.

        Raises:
            Refusal: it is one of ours and not good.
        """
        payload = self._remembered.get(token) or self._read(token)
        if payload is None:
            return None
        wanted = tuple(audiences) or (ISSUER,)
        meant = tuple(one for one in payload.aud if one in wanted)
        if not meant:
            told = (
                f"token audiences {quoted_list(payload.aud)} is invalid for the target audiences {quoted_list(wanted)}"
            )
            raise Refusal(told)
        now = self._clock.now().timestamp()
        if now > payload.exp + _LEEWAY_SECONDS:
            raise Refusal("service account token has expired")
        if now < payload.nbf - _LEEWAY_SECONDS:
            raise Refusal("service account token is not valid yet")
        self._check_bound(payload.kubernetes)
        return Verified(_user(payload), meant)

    def _read(self, token: str) -> _Payload | None:
        try:
            if _issuer(token) != ISSUER:
                return None
            raw = _signer.decode(token, self._signing_key(), algorithms=[_ALGORITHM])
        except jwt.InvalidSignatureError as error:
            raise Refusal("invalid signature") from error
        except (jwt.InvalidTokenError, msgspec.DecodeError, ValueError, RecursionError):
            return None
        payload = _decode(raw)
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[token] = payload
        return payload

    def _check_bound(self, claims: _Private) -> None:
        namespace, account = claims.namespace, claims.serviceaccount
        record = self._storage.get("serviceaccounts", namespace, account.name)
        if record is None:
            raise Refusal(f"serviceaccounts {quoted(account.name)} not found")
        if record.uid != account.uid:
            raise Refusal(f"service account UID ({record.uid}) does not match claim ({account.uid})")
        for what, plural in _BOUND.items():
            ref: _Ref | None = getattr(claims, what.lower())
            if ref is None or (what == "Node" and claims.pod is not None):
                continue
            found = self._storage.get(plural, "" if what == "Node" else namespace, ref.name)
            self._check_same(what, ref, found)

    def _check_same(self, what: str, ref: _Ref, found: Record | None) -> None:
        if found is None:
            raise Refusal("service account token has been invalidated")
        if found.uid != ref.uid:
            kind = what.lower()
            raise Refusal(f"{kind} UID ({found.uid}) does not match service account {kind} ref claim ({ref.uid})")

    def _signing_key(self) -> bytes:
        self._key = self._key or self._get_key()
        return self._key


def account_of(user_name: str) -> tuple[str, str] | None:
    """The namespace and name of the service account that a user name names."""
    namespace, found, name = user_name.removeprefix(ACCOUNT_PREFIX).partition(":")
    if not (user_name.startswith(ACCOUNT_PREFIX) and found and namespace and name) or ":" in name:
        return None
    return namespace, name


def account_user(
    namespace: str, name: str, *, uid: str = "", extra: Mapping[str, tuple[str, ...]] | None = None
) -> User:
    """The user that a service account is."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED_GROUP)
    return User(f"{ACCOUNT_PREFIX}{namespace}:{name}", groups, uid, extra or {})


def _user(payload: _Payload) -> User:
    claims = payload.kubernetes
    extra = {f"{_CLAIMS}/credential-id": (f"JTI={payload.jti}",)}
    for what, ref in (("node", claims.node), ("pod", claims.pod)):
        if ref is not None:
            extra[f"{_CLAIMS}/{what}-name"] = (ref.name,)
            if ref.uid:
                extra[f"{_CLAIMS}/{what}-uid"] = (ref.uid,)
    account = claims.serviceaccount
    return account_user(claims.namespace, account.name, uid=account.uid, extra=extra)


def _issuer(token: str) -> str:
    """Who issued a token according to itself; nothing is verified."""
    content = _signer.decode(token, options={"verify_signature": False})
    return msgspec.json.decode(content, type=_Issuer).iss


def _id_of(key: bytes) -> str:
    digest = hashlib.sha256(b"id of " + key).digest()[:16]
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
