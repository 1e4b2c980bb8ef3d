"""Events of a watch and pages of a list, decoded. Used by the informers of ``runtime``, which keep what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal

import msgspec

from mirror.kube import requests
from mirror.kube.answers import Status, error_from_status
from mirror.kube.client import Client, Silence
from mirror.kube.errors import BadAnswer, KubeError
from mirror.kube.objects import JUNK, Object, decode_object, decoded, own
from mirror.kube.requests import Request
from mirror.kube.resources import Resource

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial events of a watch-list."""

_MOST_PAGES = 20_000
_DECODED_AT_ONCE = 500
"""Objects, some 2 ms of work; a server may ignore ``limit`` and send everything as one page."""


class WatchEvent(msgspec.Struct, gc=False):
    """One line of a watch. A BOOKMARK's object has nothing but a resourceVersion and annotations."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Object
    initial_events_end: bool = False
    """This bookmark says that all objects that existed at the beginning have been sent."""


class _ErrorEvent(msgspec.Struct, gc=False):
    type: Literal["ERROR"]
    object: Status


class _ListMeta(msgspec.Struct, gc=False, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
    resource_version: str = ""
    continue_: str = ""


class _List(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a list, all of one version of the collection."""

    objects: list[Object]
    resource_version: str
    """From where to watch, once the last page has been seen."""
    is_last: bool


_decode_event_line = msgspec.json.Decoder(WatchEvent).decode
_decode_error_line = msgspec.json.Decoder(_ErrorEvent).decode
_decode_list = msgspec.json.Decoder(_List).decode


def decode_event(line: bytes) -> WatchEvent:
    """Read one line of a watch.

    Raises:
        Expired: the server cannot go on from that version; list again.
        ApiError: another ERROR event.
        BadAnswer: it is no event at all.
    """
    try:
        event = decoded(_decode_event_line, line)
        own(event.object)
    except JUNK as error:
        raise _error_of(line) from error
    # Always set, since a server could write the field into the line.
    event.initial_events_end = event.type == "BOOKMARK" and event.object.annotations.get(INITIAL_EVENTS_END) == "true"
    return event


async def watch(client: Client, request: Request, *, silent_seconds: Silence) -> AsyncGenerator[WatchEvent, None]:
    """Events until the server ends the watch, which is normal: go on from the last version.

    Wrap it in ``contextlib.aclosing`` wherever the loop over it may be left early.

    Raises:
        Expired: by HTTP status or by event; the version is too old to go on from.
        Unreachable: it broke, or there was silence for ``silent_seconds`` (bookmarks come about once a minute).
        KubeError: as ``Client.stream`` and ``decode_event``.
    """
    async with client.stream(request, silent_seconds=silent_seconds) as lines:
        async for line in lines:
            yield decode_event(line)


async def list_pages(
    client: Client,
    resource: Resource,
    *,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    limit: int = 500,
    resource_version: str = "",
) -> AsyncGenerator[Page, None]:
    """The whole collection, some hundred objects at a time; the loop gets its turn in between.

    Raises:
        Expired: too old to go on from, perhaps after some pages: forget those and start anew.
        KubeError: as ``Client.send``.
    """
    token = ""
    for _ in range(_MOST_PAGES):
        request = requests.list_page(
            resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=limit,
            continue_token=token,
            resource_version=resource_version,
        )
        found = _decode_page(await client.send(request))
        items = found.items or []
        last, token = token, found.metadata.continue_
        if token and token == last:
            raise BadAnswer("the list continues with the page it just sent")
        for begin in range(0, max(len(items), 1), _DECODED_AT_ONCE):
            if begin:
                await asyncio.sleep(0)
            objects = [decode_object(item) for item in items[begin : begin + _DECODED_AT_ONCE]]
            is_last = not token and begin + _DECODED_AT_ONCE >= len(items)
            yield Page(objects, found.metadata.resource_version, is_last)
        if not token:
            return
        await asyncio.sleep(0)
    raise BadAnswer(f"the list has more than {_MOST_PAGES} pages")


def _decode_page(body: bytes) -> _List:
    try:
        return decoded(_decode_list, body)
    except JUNK as error:
        raise BadAnswer("the response is not a list of Kubernetes objects") from error


def _error_of(line: bytes) -> KubeError:
    try:
        return error_from_status(_decode_error_line(line).object)
    except JUNK:
        return BadAnswer("the watch sent something that is not an event")
