"""Events of a watch and pages of a list, decoded. Used by the informers of ``runtime``, which keep what comes of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from mirror.kube import amounts, requests
from mirror.kube.amounts import Head
from mirror.kube.answers import Status, error_from_status
from mirror.kube.client import Client
from mirror.kube.errors import BadAnswer, KubeError, TooLarge
from mirror.kube.objects import JUNK, Object, decode_object, decoded, is_too_large, own, skimmed
from mirror.kube.requests import Request
from mirror.kube.resources import Resource
from mirror.kube.streaming import Silence

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial events of a watch-list."""

_MOST_PAGES = 20_000
_DECODED_AT_ONCE = 500
"""Objects, some 2 ms of work; a server may ignore ``limit`` and send everything as one page."""
_LONG_LINE_BYTES = 32 * 1024
_USUAL_SECONDS = 0.004
_BREATH_BYTES = 256 * 1024
"""How much is decoded before others get their turn, if that is less than so many objects."""
_LONGEST_TOKEN = 8192
_SMALLER = 8
"""A page that is too large is requested again with so many times fewer objects."""


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
    if type(line) is Head or is_too_large(line):
        return _event_of_head(line)
    try:
        event = decoded(_decode_event_line, line)
        own(event.object)
    except JUNK as error:
        raise _error_of(line) from error
    # Always set, since a server could write the field into the line.
    event.initial_events_end = event.type == "BOOKMARK" and event.object.annotations.get(INITIAL_EVENTS_END) == "true"
    return event


def _event_of_head(line: bytes) -> WatchEvent:
    """The event of an object that is too large: it exists, or is gone, and that is all that is known (D29)."""
    found = amounts.skim(line, is_event=True)
    match found.event_type:
        case "ADDED" | "MODIFIED" | "DELETED" as kind:
            return WatchEvent(kind, skimmed(found))
    raise BadAnswer("a watch event that is too large")


async def watch(
    client: Client, request: Request, *, silent_seconds: Silence, on_accepted: Callable[[], None] = lambda: None
) -> AsyncGenerator[WatchEvent, None]:
    """Events until the server ends the watch, which is normal: go on from the last version.

    Wrap it in ``contextlib.aclosing`` wherever the loop over it may be left early. ``on_accepted`` is called once the
    server has accepted the request.

    Raises:
        Expired: by HTTP status or by event; the version is too old to go on from.
        Unreachable: it broke, or there was silence for ``silent_seconds`` (bookmarks come about once a minute).
        KubeError: as ``Client.stream`` and ``decode_event``.
    """
    async with client.stream(request, silent_seconds=silent_seconds) as lines:
        on_accepted()
        taken, seconds = 0, 0.0
        async for line in lines:
            taken += len(line)
            if taken > _BREATH_BYTES:  # a worker that sends as fast as it can delays nobody else (D12)
                # What takes longer than usual objects do is made of thousands of values: it gets a third of the time.
                await asyncio.sleep(2 * seconds if seconds > _USUAL_SECONDS else 0)
                taken, seconds = 0, 0.0
            if len(line) < _LONG_LINE_BYTES:
                yield decode_event(line)
                continue
            began = time.thread_time()
            event = decode_event(line)
            seconds += time.thread_time() - began
            yield event


async def list_pages(  # noqa: PLR0913 - the options of a list
    client: Client,
    resource: Resource,
    *,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    limit: int = 500,
    resource_version: str = "",
    metadata_only: bool = False,
) -> AsyncGenerator[Page, None]:
    """The whole collection, some hundred objects at a time; the loop gets its turn in between.

    Of an object that is too large only a ``Partial`` is handed out; a page that is too large is read in smaller ones.

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
        if metadata_only:
            request = request.metadata_only()
        try:
            found = _decode_page(await client.send(request))
        except TooLarge:
            if limit <= 1:
                raise
            limit = max(1, limit // _SMALLER)
            continue
        items = found.items or []
        last, token = token, found.metadata.continue_
        if token and token == last:
            raise BadAnswer("the list continues with the page it just sent")
        begin = 0
        while True:
            objects, begin = _decode_some(items, begin)
            yield Page(objects, found.metadata.resource_version)
            await asyncio.sleep(0)
            if begin >= len(items):
                break
        if not token:
            return
    raise BadAnswer(f"the list has more than {_MOST_PAGES} pages")


def _decode_page(body: bytes) -> _List:
    if amounts.exceeds(body, amounts.MOST_PAGE_VALUES):
        raise TooLarge(f"a page of more than {amounts.MOST_PAGE_VALUES} values")
    try:
        found = decoded(_decode_list, body)
    except JUNK as error:
        raise BadAnswer("the response is not a list of Kubernetes objects") from error
    if len(found.metadata.continue_) > _LONGEST_TOKEN or len(found.metadata.resource_version) > _LONGEST_TOKEN:
        raise BadAnswer("the list has a continue token that is longer than any server gives")
    return found


def _decode_some(items: list[msgspec.Raw], begin: int) -> tuple[list[Object], int]:
    """As many as may be decoded without a pause, and where the next ones begin."""
    objects: list[Object] = []
    size = 0
    for item in items[begin : begin + _DECODED_AT_ONCE]:
        if size > _BREATH_BYTES:
            break
        size += len(item)
        is_skimmed = is_too_large(item)
        objects.append(skimmed(amounts.skim(bytes(item), is_event=False)) if is_skimmed else decode_object(item))
    return objects, begin + len(objects)


def _error_of(line: bytes) -> KubeError:
    try:
        return error_from_status(_decode_error_line(line).object)
    except JUNK:
        return BadAnswer("the watch sent something that is not an event")
