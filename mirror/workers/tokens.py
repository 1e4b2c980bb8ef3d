"""The bearer token in a worker's kubeconfig: whose it is, when it ends, when to renew it, and how it is replaced. Pure.

What a token says of itself is only read, never trusted: whether it is good the worker decides. Used by ``renewing``,
``worker`` and ``checking``. Not here: asking for a new one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import yaml

from mirror.kube.kubeconfig import KubeconfigRefused, check_kubeconfig
from mirror.kube.objects import JUNK
from mirror.settings.rules import ALLOW_NAMES
from mirror.settings.strict_yaml import read_yaml

LONGEST_TOKEN = 32 * 1024
SHORTEST_SECONDS = 600
"""What an API server gives at least."""
LONGEST_SECONDS = 2**32
USUAL_SECONDS = 24 * 3600
RENEWED_AT_SHARE = (0.62, 0.70)
"""How much of its life has passed when a token is renewed; where between, its worker's name decides."""
WARN_SHARE = 0.25
WARN_SECONDS = 7 * 24 * 3600

_EVERYTHING = dict.fromkeys(ALLOW_NAMES, True)
"""Reading a token out of a kubeconfig opens nothing: whether it may be used is judged elsewhere."""
_ACCOUNT = re.compile(
    r"system:serviceaccount:([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?):([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)"
)
_PRINTABLE = re.compile(r"[\x21-\x7e]+")
_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


class _Claims(msgspec.Struct):
    exp: float | None = None
    iat: float | None = None
    sub: str = ""


@dataclass(frozen=True, slots=True)
class Token:
    """What a token says of itself. Without ``expires`` it never ends, or does not tell."""

    expires: datetime | None = None
    issued: datetime | None = None
    namespace: str = ""
    account: str = ""
    """Of the service account; both are empty when it is somebody else's."""

    @property
    def lifetime_seconds(self) -> float:
        """How long it is good altogether; a usual time where it does not say when it was made."""
        if self.expires is None or self.issued is None or self.issued >= self.expires:
            return USUAL_SECONDS
        return (self.expires - self.issued).total_seconds()

    @property
    def is_renewable(self) -> bool:
        """Whether its worker can be asked for another one."""
        return self.expires is not None and bool(self.account)

    def is_ending(self, now: datetime) -> bool:
        """Whether somebody should know: less than a quarter of its life, or than seven days, is left."""
        if self.expires is None:
            return False
        left = (self.expires - now).total_seconds()
        return left < max(WARN_SECONDS, WARN_SHARE * self.lifetime_seconds)

    def has_ended(self, now: datetime) -> bool:
        return self.expires is not None and self.expires <= now


NO_TOKEN = Token()


def read_token(text: str) -> Token:
    """What a token says; ``NO_TOKEN`` for one that is not readable, which may be good all the same."""
    parts = text.split(".") if len(text) <= LONGEST_TOKEN and text.isascii() else []
    if len(parts) != 3:
        return NO_TOKEN
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=_Claims)
    except (*JUNK, binascii.Error):
        return NO_TOKEN
    found = _ACCOUNT.fullmatch(claims.sub)
    namespace, account = (found[1], found[3]) if found else ("", "")
    return Token(_moment(claims.exp), _moment(claims.iat), namespace, account)


def token_of(kubeconfig: bytes) -> Token:
    """What the token of a kubeconfig's current context says; ``NO_TOKEN`` where there is none."""
    text = bearer_of(kubeconfig)
    return read_token(text) if text else NO_TOKEN


def bearer_of(kubeconfig: bytes) -> str:
    """The token of a kubeconfig's current context itself; empty where there is none."""
    try:
        return check_kubeconfig(kubeconfig, _EVERYTHING).user.token
    except KubeconfigRefused:
        return ""


def renew_at(worker: str, token: Token) -> datetime | None:
    """When to renew it: when about two thirds of its life are over, not for all workers at once. None: never."""
    if token.expires is None or not token.is_renewable:
        return None
    first, last = RENEWED_AT_SHARE
    chance = int.from_bytes(hashlib.sha256(worker.encode()).digest()[:4], "big") / 2**32
    used = first + (last - first) * chance
    return token.expires - timedelta(seconds=(1 - used) * token.lifetime_seconds)


def seconds_to_ask_for(token: Token) -> int:
    """A new token lives as long as the old one did."""
    return int(min(LONGEST_SECONDS, max(SHORTEST_SECONDS, token.lifetime_seconds)))


class UselessToken(ValueError):
    """A worker answered with something that must not take the place of the token; the text quotes nothing of it."""


def check_renewed(old: Token, text: object, now: datetime) -> Token:
    """What a new token says, if it may take the old one's place.

    Raises:
        UselessToken: it is none, somebody else's, or does not last longer.
    """
    if not isinstance(text, str) or not _PRINTABLE.fullmatch(text) or len(text) > LONGEST_TOKEN:
        raise UselessToken("the worker's answer holds no token")
    new = read_token(text)
    if (new.namespace, new.account) != (old.namespace, old.account):
        raise UselessToken("the worker answered with the token of another account")
    if new.expires is None or new.expires <= now or (old.expires is not None and new.expires <= old.expires):
        raise UselessToken("the worker answered with a token that does not last longer")
    return new


def with_token(kubeconfig: bytes, new: str) -> bytes:
    """A kubeconfig with another token in its current context; the rest stays as it is, byte for byte if possible.

    Raises:
        UselessToken: it has no token that could be replaced.
    """
    old = bearer_of(kubeconfig)
    if not old:
        raise UselessToken("the kubeconfig holds no token")
    plain = kubeconfig.replace(old.encode(), new.encode())
    if _differs_in_token_only(kubeconfig, plain, new):
        return plain
    changed = _written_anew(kubeconfig, new)
    if _differs_in_token_only(kubeconfig, changed, new):
        return changed
    raise UselessToken("the token cannot be replaced in this kubeconfig")


def _differs_in_token_only(kubeconfig: bytes, changed: bytes, new: str) -> bool:
    before = check_kubeconfig(kubeconfig, _EVERYTHING)
    try:
        after = check_kubeconfig(changed, _EVERYTHING)
    except KubeconfigRefused:
        return False
    return (after.cluster, after.user) == (before.cluster, replace(before.user, token=new))


def _written_anew(kubeconfig: bytes, new: str) -> bytes:
    """For a token that is folded or escaped: the document is the same, its spelling is not."""
    document: Any = read_yaml(kubeconfig, lambda _path, _problem: None)  # it was read so before, without complaint
    context = next(one for one in document["contexts"] if one["name"] == document["current-context"])["context"]
    user = next(one for one in document["users"] if one["name"] == context["user"])["user"]
    user["token"] = new
    return str(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False)).encode()


def _moment(seconds: float | None) -> datetime | None:
    if seconds is None or not 0 < seconds < _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC)
