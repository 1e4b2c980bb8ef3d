"""The schema of one kind as a server publishes it (OpenAPI v3), and whether it knows a field.

Documents are megabytes: of each level only what lies on a path is decoded. Whoever is authenticated may read them.
What a server sends is bounded in bytes and values before it is decoded (D29).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from mirror.kube import amounts
from mirror.kube.errors import BadAnswer, NotFound, NotServed, PageNotFound, TooLarge
from mirror.kube.objects import JUNK
from mirror.kube.requests import Request
from mirror.kube.resources import Resource
from mirror.model.field_paths import FieldPath

DEADLINE_SECONDS = 20.0
MOST_BYTES = 16 * 2**20
"""Of a document. Ray's, the largest of those that are known, has five million."""
MOST_VALUES = 500_000
"""Of a document: Ray's schemas have some seventy thousand per MiB. So many are decoded in less than half a second."""
_MOST_DEPTH = 64
_ROOT = "/openapi/v3"


class Sender(Protocol):
    """Sends a request and returns the answer's body."""

    async def send(self, request: Request) -> bytes: ...


class _Node(
    msgspec.Struct,
    frozen=True,
    rename={
        "reference": "$ref",
        "all_of": "allOf",
        "additional": "additionalProperties",
        "is_open": "x-kubernetes-preserve-unknown-fields",
    },
):
    """One schema; what lies in it stays as bytes."""

    properties: dict[str, msgspec.Raw] = {}
    items: msgspec.Raw = msgspec.Raw(b"")
    additional: msgspec.Raw = msgspec.Raw(b"")
    is_open: bool = False
    reference: str = ""
    all_of: list[msgspec.Raw] = []

    @property
    def says_nothing(self) -> bool:
        """Whether anything may be in it, or what is in it is said elsewhere: the API's own types."""
        return self.is_open or bool(self.reference) or bool(self.all_of)


class _Components(msgspec.Struct, frozen=True):
    schemas: dict[str, msgspec.Raw] = {}


class _Document(msgspec.Struct, frozen=True):
    components: _Components = _Components()


class _Published(msgspec.Struct, frozen=True, rename={"address": "serverRelativeURL"}):
    address: str = ""


class _Index(msgspec.Struct, frozen=True):
    paths: dict[str, _Published] = {}


class Schema:
    """The schema of a kind. Levels that were looked at are kept, while it is."""

    def __init__(self, raw: bytes) -> None:
        self._nodes: dict[tuple[str, ...], _Node] = {(): _decode(msgspec.Raw(raw))}

    def part(self, name: str) -> dict[str, object]:
        """What it says of one field of the kind, decoded; empty where it says nothing."""
        raw = self._nodes[()].properties.get(name)
        try:
            return msgspec.json.decode(raw, type=dict[str, object]) if raw is not None else {}
        except JUNK as error:
            raise BadAnswer("the response is not an OpenAPI document") from error

    def missing(self, path: FieldPath) -> str:
        """The first part of a path that no object of the kind has; empty if some may have all of it.

        Raises:
            BadAnswer: the schema is none.
        """
        node, seen = self._nodes[()], list[str]()
        for name, is_every in path.steps:
            if node.says_nothing or len(seen) > _MOST_DEPTH:
                return ""
            seen.append(name)
            found = self._below(tuple(seen), node.properties.get(name) or _of_map(node))
            if found is None:
                return ".".join(seen)
            node = found
            if is_every or (path.key and len(seen) == len(path.steps)):
                if node.says_nothing:
                    return ""
                seen[-1] += "[]"
                found = self._below(tuple(seen), node.items)
                if found is None:
                    return ".".join(seen)
                node = found
        return ""

    def _below(self, place: tuple[str, ...], raw: msgspec.Raw | None) -> _Node | None:
        if place not in self._nodes:
            if not raw or not bytes(raw):
                return None
            self._nodes[place] = _decode(raw)
        return self._nodes[place]


def _of_map(node: _Node) -> msgspec.Raw | None:
    """The schema of every value of a map, where the node is one; ``true`` lets anything be there."""
    said = bytes(node.additional).strip()
    if said == b"true":
        return msgspec.Raw(b'{"x-kubernetes-preserve-unknown-fields":true}')
    return node.additional if said.startswith(b"{") else None


def _decode(raw: msgspec.Raw) -> _Node:
    try:
        return msgspec.json.decode(raw, type=_Node)
    except JUNK as error:
        raise BadAnswer("the response is not an OpenAPI document") from error


async def addresses(sender: Sender) -> Mapping[str, str]:
    """Where a server publishes its documents, by ``document_of``: each address has a hash of what is said there.

    Raises:
        TooLarge: it names more than any server has.
        KubeError: it does not say.
    """
    most = amounts.MOST_SMALL_BYTES
    request = Request("get", "GET", _ROOT, deadline_seconds=DEADLINE_SECONDS, most_bytes=most, any_type=True)
    try:
        raw = await sender.send(request)
    except (NotFound, NotServed, PageNotFound):
        return {}
    if amounts.exceeds(raw):
        raise TooLarge(f"an index of more than {amounts.MOST_VALUES} values")
    try:
        index = msgspec.json.decode(raw, type=_Index)
    except JUNK as error:
        raise BadAnswer("the response is not an index of OpenAPI documents") from error
    return {name: one.address for name, one in index.paths.items()}


def document_of(resource: Resource) -> str:
    """The document that a kind of a group is in."""
    return f"apis/{resource.api_version}"


async def schema_of(sender: Sender, resource: Resource) -> Schema | None:
    """The schema of a kind of a group; None where a server does not publish it.

    Raises:
        TooLarge: the document, or what it says of the kind, is larger than any that is known.
        KubeError: it does not say.
    """
    path = f"{_ROOT}/{document_of(resource)}"
    request = Request("get", "GET", path, deadline_seconds=DEADLINE_SECONDS, most_bytes=MOST_BYTES)
    try:
        raw = await sender.send(request)
    except (NotFound, NotServed, PageNotFound):
        return None
    if amounts.exceeds(raw, MOST_VALUES):
        raise TooLarge(f"an OpenAPI document of more than {MOST_VALUES} values")
    try:
        schemas = msgspec.json.decode(raw, type=_Document).components.schemas
    except JUNK as error:
        raise BadAnswer("the response is not an OpenAPI document") from error
    found = schemas.get(".".join([*_reversed(resource.group), resource.version, resource.kind]))
    if found is None:
        return None
    kept = bytes(found)  # a copy: the whole document would be kept with a part of it
    if len(kept) > amounts.MOST_OBJECT_BYTES:
        raise TooLarge(f"a schema of more than {amounts.MOST_OBJECT_BYTES} bytes")
    return Schema(kept)


def _reversed(group: str) -> Sequence[str]:
    return group.split(".")[::-1]
