"""What an API server asks about a source, and how it is answered (``admission.k8s.io/v1``). Pure; called by ``routes``.

Everything that is read may be anything: whoever reaches our address can send it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from mirror.kinds.base import Kind
from mirror.kinds.registry import BUILT_IN, Kinds
from mirror.kube.errors import BadAnswer
from mirror.kube.objects import JUNK, Object, decode_object

API_VERSION = "admission.k8s.io/v1"
CREATE, UPDATE = "CREATE", "UPDATE"
_NULL = msgspec.Raw(b"null")


class BadReview(Exception):
    """The request is no review of a mirrored kind; the text says why and quotes nothing."""


class Question(msgspec.Struct, frozen=True):
    """May this object be stored?"""

    kind: Kind
    uid: str
    operation: str
    namespace: str
    found: Object
    old: Object | None = None


class Verdict(msgspec.Struct, frozen=True):
    """What we say: yes (perhaps with changes), or why not; and what the user should know anyhow."""

    denied_because: str = ""
    operations: Sequence[Mapping[str, Any]] = ()
    """A JSON Patch."""
    warnings: Sequence[str] = ()


class _Resource(msgspec.Struct):
    group: str = ""
    version: str = ""
    resource: str = ""


class _Request(msgspec.Struct, rename="camel"):
    uid: str
    operation: str
    resource: _Resource
    sub_resource: str | None = None
    namespace: str | None = None
    object: msgspec.Raw = _NULL
    old_object: msgspec.Raw = _NULL


class _Review(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_decode = msgspec.json.Decoder(_Review).decode
_encode = msgspec.json.Encoder().encode


def read(raw: bytes, kinds: Kinds = BUILT_IN) -> Question:
    """Understand a review.

    Raises:
        BadReview: it is none, or about something else than an object of these kinds that is created or changed.
    """
    try:
        review = _decode(raw)
    except JUNK as error:
        raise BadReview("not an AdmissionReview") from error
    asked = review.request
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise BadReview(f"not an AdmissionReview of {API_VERSION}")
    kind = _kind_of(asked.resource, kinds)
    if kind is None or asked.sub_resource:
        wanted = ", ".join(f"{kind.resource.plural} of {kind.resource.api_version}" for kind in kinds)
        raise BadReview(f"not about {wanted}")
    if asked.operation not in (CREATE, UPDATE):
        raise BadReview(f"only {CREATE} and {UPDATE} are answered here")
    try:
        found = decode_object(asked.object)
        old = None if asked.operation == CREATE else decode_object(asked.old_object)
    except BadAnswer as error:
        raise BadReview(f"what it is about is not a {kind.name}") from error
    return Question(kind, asked.uid, asked.operation, asked.namespace or found.metadata.namespace, found, old)


def _kind_of(asked: _Resource, kinds: Kinds) -> Kind | None:
    wanted = (asked.group, asked.version, asked.resource)
    found = (kind for kind in kinds if wanted == (kind.resource.group, kind.resource.version, kind.resource.plural))
    return next(found, None)


def answer(uid: str, verdict: Verdict) -> bytes:
    """The review that answers the one with this uid."""
    response: dict[str, Any] = {"uid": uid, "allowed": not verdict.denied_because}
    if verdict.denied_because:
        response["status"] = {"code": 422, "reason": "Invalid", "message": verdict.denied_because}
    if verdict.operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(_encode(verdict.operations)).decode()
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return _encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})
