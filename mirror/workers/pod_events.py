"""Warnings on a worker about our mirrors and their pods: what no status tells (D22). Pure, but for ``follow``.

A volume that cannot be mounted and a pod that may not be created are told by events only. Used by ``pods``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import msgspec

from mirror.kube import requests
from mirror.kube.amounts import Head
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.objects import JUNK
from mirror.kube.resources import EVENTS
from mirror.runtime.backoff import Backoff

FIELD_SELECTOR = "type=Warning"
WATCH_SECONDS = 600
SILENT_SECONDS = 700.0
LONGEST_LINE = 64 * 1024
BREATH_BYTES = 256 * 1024
"""After so many others get their turn: a worker may send lines faster than they are read (D12)."""
_BYTES_OF_LINE = 1024
"""What one line counts beside its length: many short ones take longer than few long ones."""
AGAIN = Backoff(first=1.0, most=60.0, jitter=0.3)


class About(msgspec.Struct, gc=False, rename="camel"):
    """What an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""


class _Series(msgspec.Struct, gc=False, rename="camel"):
    last_observed_time: str | None = None


_COMBINED = "(combined from similar events): "
"""What Kubernetes' event recorder puts before the message of an event that took the place of ten."""
_FIELDS = {"about": "involvedObject", "last_timestamp": "lastTimestamp", "event_time": "eventTime"}


class Warned(msgspec.Struct, gc=False, rename=_FIELDS):
    """One event, as far as it is read."""

    about: About
    reason: str | None = None
    message: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    series: _Series | None = None

    @property
    def text(self) -> str:
        """The message on one line; the same for an event that stands for several of its kind."""
        return " ".join((self.message or "").split()).removeprefix(_COMBINED)

    def seconds_ago(self, now: datetime) -> float:
        """Since it happened last; 0 where it does not say when."""
        series = self.series.last_observed_time if self.series is not None else None
        at = series or self.last_timestamp or self.event_time or ""
        try:
            return (now - datetime.fromisoformat(at)).total_seconds()
        except (ValueError, TypeError):
            return 0.0


class _Line(msgspec.Struct, gc=False):
    type: str
    object: Warned


_decode = msgspec.json.Decoder(_Line).decode


def decode_warning(line: bytes) -> Warned | None:
    """An event of a line of a watch; None where it is none that counts, however it is malformed."""
    if type(line) is Head or len(line) > LONGEST_LINE or b'"involvedObject"' not in line:
        return None
    try:
        found = _decode(line)
    except JUNK:
        return None
    return found.object if found.type in ("ADDED", "MODIFIED") else None


async def follow(
    client: Callable[[], Client],
    namespace: str | None,
    *,
    take: Callable[[Warned], None],
    on_trouble: Callable[[KubeError], None],
) -> None:
    """Hand out warnings as they happen, those of the last hour first; ends only by cancellation."""
    failures, taken = 0, 0
    while True:
        request = requests.watch(
            EVENTS, namespace=namespace, field_selector=FIELD_SELECTOR, timeout_seconds=WATCH_SECONDS
        )
        try:
            async with client().stream(request, silent_seconds=SILENT_SECONDS) as lines:
                async for line in lines:
                    failures = 0
                    taken += len(line) + _BYTES_OF_LINE
                    if taken > BREATH_BYTES:
                        taken = 0
                        await asyncio.sleep(0)
                    if (found := decode_warning(line)) is not None:
                        take(found)
        except KubeError as error:
            on_trouble(error)
        failures += 1
        await asyncio.sleep(AGAIN.delay(failures))
