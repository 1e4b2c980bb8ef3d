"""Which of some resources a server serves, by one document about all that it serves (aggregated discovery).

Whoever is authenticated may read it (``system:discovery``). It has an ETag, by which it is sent again only once
something in it has changed. What a server sends is bounded in bytes and values before it is decoded (D29), and decoded
in several turns of the event loop. Not here: when it is asked for (``runtime.discovering``).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Protocol

import msgspec

from mirror.kube.client import Tagged
from mirror.kube.discovery import DEADLINE_SECONDS, MOST_VERSIONS
from mirror.kube.errors import BadAnswer, TooLarge
from mirror.kube.objects import JUNK
from mirror.kube.requests import JSON, Rank, Request
from mirror.kube.resources import Resource

MOST_BYTES = 2 * 2**20
"""Of the document: a resource has some 400, so these are five thousand; large clusters have two thousand."""
MOST_VALUES = 160_000
"""Of the document: a resource has some thirty."""
_FORM = f"{JSON};g=apidiscovery.k8s.io;v={{}};as=APIGroupDiscoveryList"
ACCEPT = ",".join((_FORM.format("v2"), _FORM.format("v2beta1"), JSON))
"""Kubernetes 1.29 has the second form alone; what knows neither answers in the last one."""
_CURRENT = (b"null", b'""', b'"Current"')
_MARKS = (b",", b"[", b"{", b"\\")
"""Before a value; or escapes, which no name has, and which take time."""
_A_TURN = 500
"""Of items that are decoded in one turn of the event loop."""
_TAG = re.compile(r'(W/)?"[\x21\x23-\x7e]{1,256}"')
"""What may be sent back as an ETag."""


class Served(Enum):
    """Whether a server serves a resource."""

    YES = "yes"
    NO = "no"
    """Or takes no new objects of it: its definition is being deleted."""
    UNKNOWN = "unknown"
    """The server does not know itself: its group is another server's, which does not answer (``Stale``)."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """What one document says."""

    tag: str
    """By which it is asked for again; empty: it has none."""
    served: Mapping[Resource, Served]


class Sender(Protocol):
    """Sends a request, whose answer has a version."""

    async def send_tagged(self, request: Request) -> Tagged: ...


_NOTHING = msgspec.Raw(b"null")


class _Resource(msgspec.Struct, frozen=True, gc=False):
    """As all below: what is text or may be long stays as bytes."""

    resource: msgspec.Raw = _NOTHING
    verbs: msgspec.Raw = _NOTHING


class _Version(msgspec.Struct, frozen=True, gc=False):
    version: msgspec.Raw = _NOTHING
    freshness: msgspec.Raw = _NOTHING
    resources: msgspec.Raw = _NOTHING


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: msgspec.Raw = _NOTHING


class _Group(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()
    versions: msgspec.Raw = _NOTHING


class _Document(msgspec.Struct, frozen=True, gc=False):
    kind: msgspec.Raw = _NOTHING
    items: list[msgspec.Raw] | None = None


_NO_VERSION = _Version()
_Items = list[msgspec.Raw] | None
_decode_document = msgspec.json.Decoder(_Document).decode
_decode_items = msgspec.json.Decoder(_Items).decode
_decode_group = msgspec.json.Decoder(_Group).decode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_resource = msgspec.json.Decoder(_Resource).decode


async def discover(sender: Sender, wanted: Collection[Resource], *, tag: str = "") -> Discovered | None:
    """Ask a server whether it serves some resources of groups, and takes new objects of them.

    Args:
        sender: of requests to it.
        wanted: the resources.
        tag: of the document that was read last; empty: none was.

    Returns:
        What it says; None where that is the same as last time.

    Raises:
        TooLarge: the document is larger than any that is known.
        BadAnswer: the server has no such document.
        KubeError: it does not say.
    """
    request = Request(
        "get",
        "GET",
        "/apis",
        deadline_seconds=DEADLINE_SECONDS,
        rank=Rank.LAST,
        most_bytes=MOST_BYTES,
        accept=ACCEPT,
        compressed=True,
        if_none_match=tag,
    )
    answer = await sender.send_tagged(request)
    if answer.body is None:
        return None
    if sum(map(answer.body.count, _MARKS)) > MOST_VALUES:  # its texts are names, which have none of these
        raise TooLarge(f"a discovery document of more than {MOST_VALUES} values")
    await asyncio.sleep(0)
    try:
        served = await _served(answer.body, wanted)
    except JUNK as error:
        raise BadAnswer("the response is not a discovery document") from error
    return Discovered(answer.tag if _TAG.fullmatch(answer.tag) else "", served)


async def _served(raw: bytes, wanted: Collection[Resource]) -> dict[Resource, Served]:
    """Raises ``JUNK``, or BadAnswer where it is another document, such as a list of groups without their resources."""
    document = _decode_document(raw)
    if bytes(document.kind) != _quoted("APIGroupDiscoveryList"):
        raise BadAnswer("the server has no aggregated discovery")
    groups = {_quoted(one.group) for one in wanted}
    found = dict[bytes, msgspec.Raw]()
    for number, item in enumerate(document.items or (), start=1):
        if number % _A_TURN == 0:
            await asyncio.sleep(0)
        group = _decode_group(item)
        if (name := bytes(group.metadata.name)) in groups:
            found[name] = group.versions
    served: dict[Resource, Served] = {}
    for (group_name, version), resources in groupby(sorted(wanted, key=_by_version), key=_by_version):
        takes_new = await _taking_new(found.get(_quoted(group_name), _NOTHING), version, resources)
        for resource in (one for one in wanted if _by_version(one) == (group_name, version)):
            served[resource] = _verdict(resource, takes_new)
    return served


def _by_version(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.version


def _verdict(resource: Resource, takes_new: Collection[bytes] | None) -> Served:
    """``takes_new``: see ``_taking_new``. What has no group is in another document."""
    if takes_new is None or not resource.group:
        return Served.UNKNOWN
    return Served.YES if _quoted(resource.plural) in takes_new else Served.NO


async def _taking_new(versions: msgspec.Raw, version: str, wanted: Iterable[Resource]) -> Collection[bytes] | None:
    """Which of some resources of a version takes new objects; None: the server does not know. Raises ``JUNK``."""
    plurals, found = {_quoted(one.plural) for one in wanted}, set[bytes]()
    listed = (_decode_version(item) for item in (_decode_items(versions) or [])[:MOST_VERSIONS])
    one = next((one for one in listed if bytes(one.version) == _quoted(version)), _NO_VERSION)
    if bytes(one.freshness) not in _CURRENT:
        return None
    for number, item in enumerate(_decode_items(one.resources) or (), start=1):
        if number % _A_TURN == 0:
            await asyncio.sleep(0)
        resource = _decode_resource(item)
        if (name := bytes(resource.resource)) in plurals and _quoted("create") in bytes(resource.verbs):
            found.add(name)
    return found


def _quoted(text: str) -> bytes:
    """As it stands in the document, since no name has to be escaped."""
    return f'"{text}"'.encode()
