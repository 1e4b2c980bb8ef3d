"""The page's login, answered by access: who a token belongs to, what they may, and what is inside their mirrors.

``page`` and ``access`` do not know each other; this is ``page.visiting.Visitors`` made of ``access``' reviews and
answers. Each question goes the way of any user's request: by their own token, within the same bounds, with a line in
the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from mirror.access.answers import Answer, StatusError
from mirror.access.logs import Cut
from mirror.access.request_parsing import Asked
from mirror.access.reviews import Person, Reviews, allowances
from mirror.access.service import Access
from mirror.kinds.registry import Kinds, resource_name
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object, size_of
from mirror.kube.permissions import Permission
from mirror.model.keys import SourceKey
from mirror.page.visiting import Bodies, LogOut, Refused, Visitor

MOST_BODY_BYTES = 96 * 1024
"""Of a source and its mirror, together: longer ones are not laid side by side."""
_LOG_PARAMETERS = ("pod", "container", "follow", "tailLines")
_WORKER, _POD = "X-Jobmirror-Worker", "X-Jobmirror-Pod"


class _Visitor(Visitor, frozen=True):
    """With what the cluster says of them, so that many rights cost one look at the token."""

    person: Person

    def __repr__(self) -> str:
        return f"Visitor({self.name!r})"


class AccessVisitors:
    """Make it in the running loop. ``access`` None: only rights are asked for, nothing inside a mirror is shown."""

    def __init__(self, reviews: Reviews, kinds: Kinds, access: Access | None) -> None:
        self._reviews = reviews
        self._kinds = kinds
        self._access = access

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind.name for kind in self._kinds)

    @property
    def has_inside(self) -> bool:
        return self._access is not None

    async def visitor(self, token: str, peer: str) -> Visitor:
        try:
            person = await self._reviews.person(f"Bearer {token}", allowances(peer))
        except StatusError as refused:
            raise Refused(refused.code, refused.message) from refused
        return _Visitor(person.name, token, peer, person)

    async def may(self, visitor: Visitor, verb: str, key: SourceKey) -> bool:
        kind = self._kinds.by_name.get(key.kind)
        if kind is None or not isinstance(visitor, _Visitor):
            return False
        resource = kind.resource
        right = Permission(verb, resource.group, resource.plural, name=key.name, namespace=key.namespace)
        try:
            await self._reviews.require(visitor.person, right)
        except StatusError as refused:
            if refused.code == 403:
                return False
            raise Refused(refused.code, refused.message) from refused
        return True

    async def ask(self, visitor: Visitor, key: SourceKey, what: str) -> Mapping[str, Any]:
        reply = _Reply()
        await self._handle(visitor, key, what, {}, reply)
        found = msgspec.json.decode(reply.answer.body)
        return found if isinstance(found, dict) else {}

    async def bodies(self, visitor: Visitor, key: SourceKey) -> Bodies:
        because = ""
        try:
            # Whether they may, and what is wrong with the mirror, is told as for `mirror diff`.
            await self.ask(visitor, key, "diff")
        except Refused as refused:
            if refused.code not in (409, 503):
                raise
            because = refused.text
        assert self._access is not None
        kind = self._kinds[key.kind]
        try:
            source, mirror, missing = self._access.bodies(kind, key)
        except StatusError as refused:
            raise Refused(refused.code, refused.message) from refused
        if size_of(source) + (size_of(mirror) if mirror is not None else 0) > MOST_BODY_BYTES:
            raise Refused(413, "The manifests are too long to be shown here.")
        try:
            return Bodies(
                source=_body(kind.resource.api_version, kind.resource.kind, source),
                mirror=None if mirror is None else _body(kind.resource.api_version, kind.resource.kind, mirror),
                worker=kind.summary(source).placed or "",
                because=because or missing,
            )
        except KubeError:
            raise Refused(502, "The stored object cannot be read.") from None

    async def log(self, visitor: Visitor, key: SourceKey, wanted: Mapping[str, str], out: LogOut) -> None:
        parameters = {name: wanted[name] for name in _LOG_PARAMETERS if wanted.get(name)}
        await self._handle(visitor, key, "log", parameters, _Reply(out))

    async def _handle(
        self, visitor: Visitor, key: SourceKey, what: str, parameters: Mapping[str, str], reply: _Reply
    ) -> None:
        kind = self._kinds.by_name.get(key.kind)
        if self._access is None or kind is None:
            raise Refused(404, f"{key.kind} is not mirrored here.")
        place = f"{quote(key.namespace, safe='')}/{resource_name(kind)}/{quote(key.name, safe='')}"
        target = f"/v1/namespaces/{place}/{what}"
        target += f"?{urlencode(parameters)}" if parameters else ""
        headers = {"authorization": f"Bearer {visitor.token}"}
        try:
            await self._access.handle(Asked("GET", target, headers, visitor.peer), reply)
        except Cut as error:
            raise ConnectionError("the log was cut") from error
        if reply.answer.status >= 400:
            raise Refused(reply.answer.status, _message(reply.answer.body))


@dataclass(slots=True)
class _Reply:
    """``access.service.Reply``: an answer is kept, a log handed on."""

    out: LogOut | None = None
    answer: Answer = field(default_factory=lambda: Answer(200, b"{}"))

    async def body(self, most_bytes: int) -> bytes:
        return b""

    async def whole(self, answer: Answer) -> None:
        self.answer = answer

    async def begin(self, headers: tuple[tuple[str, str], ...]) -> None:
        assert self.out is not None
        await self.out.begin({name: text for name, text in headers if name in (_WORKER, _POD)})

    async def write(self, piece: bytes) -> None:
        assert self.out is not None
        await self.out.write(piece)


class _Status(msgspec.Struct):
    message: str = ""


def _message(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Status).message
    except msgspec.DecodeError:
        return ""


def _body(api_version: str, kind: str, found: Object) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": msgspec.to_builtins(found.metadata),
        "spec": found.spec_dict(),
        "status": found.status_dict(),
    }
