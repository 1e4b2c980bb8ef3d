"""Objects as we keep them: metadata decoded, everything else as the bytes that came (docs/libraries.md).

The structs are immutable by convention; spec and status are decoded on demand, so nobody can change what is cached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, TypeVar

import msgspec

from mirror.kube.amounts import MOST_OBJECT_BYTES, MOST_VALUES, Skimmed, exceeds
from mirror.kube.errors import BadAnswer, TooLarge

T = TypeVar("T")

JUNK = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises when a server sends something else than it should; RecursionError is for nests of brackets."""


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Who owns an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


_LONGEST_NAME = 256
_Name = Annotated[str, msgspec.Meta(max_length=_LONGEST_NAME)]
"""The API allows 253 characters of a name, and 63 of a namespace; what is longer is refused while it is decoded."""


class Meta(msgspec.Struct, gc=False, rename="camel", omit_defaults=True):
    """ObjectMeta without its managed fields, which the server keeps when a write does not name them.

    Everything else is here, since what a PUT leaves out is lost, a status PUT included (DF12).
    """

    name: _Name = ""
    generate_name: str = ""
    namespace: _Name = ""
    uid: _Name = ""
    resource_version: _Name = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None

    @property
    def version(self) -> int:
        """See ``Object.version``."""
        return _number(self.resource_version)


NO_PART = msgspec.Raw(b"null")
"""In place of a part that an object has not."""
_decode_any = msgspec.json.Decoder().decode


class Object(msgspec.Struct, gc=False):
    """Any object: metadata, and its other parts as JSON bytes."""

    metadata: Meta
    spec: msgspec.Raw = NO_PART
    status: msgspec.Raw = NO_PART
    data: msgspec.Raw = NO_PART

    @property
    def version(self) -> int:
        """The resourceVersion as a number, for comparing; 0 when the server uses something else."""
        return _number(self.metadata.resource_version)

    @property
    def is_controlled(self) -> bool:
        """Whether another object owns it as its controller, and has made it."""
        owners = self.metadata.owner_references
        return owners is not None and any(owner.controller for owner in owners)

    def spec_dict(self) -> dict[str, Any]:
        """The spec, decoded anew on each call.

        Raises:
            BadAnswer: it cannot be decoded; whole objects are only skimmed when they arrive.
        """
        return decode_part(self.spec)

    def status_dict(self) -> dict[str, Any]:
        """The status, as ``spec_dict``."""
        return decode_part(self.status)

    def data_dict(self) -> dict[str, Any]:
        """The data of a Secret or ConfigMap, as ``spec_dict``."""
        return decode_part(self.data)

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations or {}


class Partial(Object):
    """What identifies an object, and nothing else of it: it is too large, or nobody's (D29).

    Nothing may be concluded from what is missing; whoever needs the rest reads the object from its server.
    """


def partial_of(found: Object, labels: Collection[str]) -> Partial:
    """What identifies an object, with these of its labels, whether a controller owns it, and what keeps it; bounded."""
    metadata = found.metadata
    kept = {name: value for name in labels if (value := found.labels.get(name)) and len(value) <= _LONGEST_KEPT_ONCE}
    first = (metadata.finalizers or ())[:_MOST_FINALIZERS]
    finalizers = [_kept_once(one) for one in first if len(one) <= _LONGEST_KEPT_ONCE]
    return Partial(
        Meta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            resource_version=metadata.resource_version,
            creation_timestamp=_cut(metadata.creation_timestamp) if metadata.creation_timestamp is not None else None,
            deletion_timestamp=_cut(metadata.deletion_timestamp) if metadata.deletion_timestamp is not None else None,
            labels=kept,
            finalizers=finalizers or None,
            owner_references=[OwnerReference(controller=True)] if found.is_controlled else None,
        )
    )


def skimmed(found: Skimmed) -> Partial:
    """An object of which only the beginning was read.

    Raises:
        BadAnswer: that holds no name.
    """
    texts = found.texts
    if not texts.get("name"):
        raise BadAnswer("an object that is too large, and has no name")
    return Partial(
        Meta(
            name=texts["name"],
            namespace=texts.get("namespace", ""),
            uid=texts.get("uid", ""),
            resource_version=texts.get("resourceVersion", ""),
            creation_timestamp=texts.get("creationTimestamp"),
            deletion_timestamp=texts.get("deletionTimestamp"),
            labels=found.labels,
        )
    )


def size_of(found: Object) -> int:
    """About how many bytes an object takes in memory."""
    metadata, size = found.metadata, len(found.spec) + len(found.status) + len(found.data)
    for texts in (metadata.labels, metadata.annotations):
        if texts:
            size += sum(map(len, chain(texts, texts.values()))) + len(texts) * _ENTRY_BYTES
    if finalizers := metadata.finalizers:
        size += sum(map(len, finalizers)) + len(finalizers) * _ENTRY_BYTES
    for owner in metadata.owner_references or ():
        size += len(owner.api_version) + len(owner.kind) + len(owner.name) + len(owner.uid) + 4 * _ENTRY_BYTES
    return size + _OBJECT_BYTES


_OBJECT_BYTES = 1024
_ENTRY_BYTES = 128
_LONGEST_KEPT_ONCE = 256
_MOST_FINALIZERS = 4

_decode = msgspec.json.Decoder(Object).decode


def decode_object(raw: bytes | msgspec.Raw) -> Object:
    """Decode one object, with copies of the kept parts (a Raw would otherwise pin the whole message).

    Raises:
        TooLarge: it has more bytes or values than one object may have.
        BadAnswer: it is not JSON, or has no usable metadata, such as names that are longer than any server gives.
    """
    if is_too_large(raw):
        raise TooLarge(f"an object of more than {MOST_OBJECT_BYTES} bytes or {MOST_VALUES} values")
    try:
        return own(decoded(_decode, raw))
    except JUNK as error:
        raise BadAnswer("the response is not a Kubernetes object") from error


def is_too_large(raw: bytes | msgspec.Raw) -> bool:
    """Whether only the metadata of an object is to be read."""
    size = len(raw)
    return size > MOST_OBJECT_BYTES or (size > MOST_VALUES and exceeds(bytes(raw)))


def decoded(decode: Callable[[bytes | msgspec.Raw], T], raw: bytes | msgspec.Raw) -> T:
    """What a decoder makes of a message, however deep it is nested: what is too deep to be read is left out.

    Whoever may create an object chooses how deep its managed fields are, and may not stop a watch by it.

    Raises:
        JUNK: it is no message at all.
    """
    try:
        return decode(raw)
    except RecursionError:
        return decode(_shallow(bytes(raw)))


_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_MOST_DEPTH = 64


def _shallow(raw: bytes) -> bytes:
    """JSON in which maps and lists of a certain depth are empty."""
    kept: list[bytes] = []
    begin = depth = 0
    for token in _TOKENS.finditer(raw):
        mark = token.group()
        if mark in (b"{", b"["):
            depth += 1
            if depth == _MOST_DEPTH:
                kept.append(raw[begin : token.end()])
        elif mark in (b"}", b"]"):
            if depth == _MOST_DEPTH:
                begin = token.start()
            depth -= 1
    kept.append(raw[begin:])
    return b"".join(kept)


def own(found: Object) -> Object:
    """Replace the parts that point into a larger message by copies, in place: only for what was just decoded.

    Texts that many objects have are kept once: namespaces, times, labels.
    """
    if found.spec is not NO_PART:
        found.spec = found.spec.copy()
    if found.status is not NO_PART:
        found.status = found.status.copy()
    if found.data is not NO_PART:
        found.data = found.data.copy()
    metadata = found.metadata
    metadata.namespace = _kept_once(metadata.namespace)
    if metadata.creation_timestamp is not None:
        metadata.creation_timestamp = _cut(metadata.creation_timestamp)
    if metadata.deletion_timestamp is not None:
        metadata.deletion_timestamp = _cut(metadata.deletion_timestamp)
    if labels := metadata.labels:
        is_usual = max(map(len, chain(labels, labels.values()))) <= _LONGEST_KEPT_ONCE
        if is_usual:
            metadata.labels = dict(zip(map(_kept_once, labels), map(_kept_once, labels.values()), strict=True))
    return found


def keep_spec(found: Object, before: Object | None) -> None:
    """Keep a spec that has not changed as the bytes that are known, in place: what was read of them stays known."""
    if before is not None and found.spec == before.spec:
        found.spec = before.spec


def _cut(time: str) -> str:
    """A time as it came, of a usual length; one that is no time stays none."""
    return _kept_once(time[:_LONGEST_TIME])


_LONGEST_TIME = 64


@lru_cache(maxsize=8192)
def _kept_once(text: str) -> str:
    """The same text once. Only of short ones: they are remembered although nobody needs them any more."""
    return text


@lru_cache(maxsize=256)
def _number(version: str) -> int:
    return int(version) if version.isascii() and version.isdecimal() and len(version) <= 20 else 0


def decode_part(raw: bytes | msgspec.Raw) -> dict[str, Any]:
    """One part; {} when it is missing or not an object at all.

    Raises:
        BadAnswer: it cannot be decoded.
    """
    try:
        found = _decode_any(raw)
    except JUNK as error:
        raise BadAnswer("a part of the object cannot be decoded") from error
    return found if isinstance(found, dict) else {}
