"""The values of the management cluster's PriorityClasses, by which Jobs that wait are ordered (``placement.waiting``).

Listed from time to time, where the setting ``placement.priorityClasses`` is on: there are few, and a value never
changes. What cannot be read is left as it was last known; a class that is not known counts as none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import BadAnswer, KubeError
from mirror.kube.objects import JUNK, Object
from mirror.kube.resources import PRIORITY_CLASSES
from mirror.model import names
from mirror.placement.preferences import priority_of
from mirror.runtime.environment import Environment

INTERVAL_SECONDS = 60.0
MOST_CLASSES = 5_000


class _Metadata(msgspec.Struct):
    name: str


class _Class(msgspec.Struct, rename="camel"):
    metadata: _Metadata
    value: int = 0
    global_default: bool = False


class _ListMetadata(msgspec.Struct, rename="camel"):
    token: str = msgspec.field(name="continue", default="")


class _Classes(msgspec.Struct):
    metadata: _ListMetadata
    items: list[_Class]


_decoder = msgspec.json.Decoder(_Classes)


class Priorities:
    """By name of PriorityClass; ``""`` is the one that is the default of all. Empty until they are known."""

    def __init__(self) -> None:
        self._values: Mapping[str, int] = {}

    def of(self, kind: Kind, source: Object) -> int:
        """A source's: its annotation's, else that of the class of its pods, else 0.

        Raises:
            BadPreference: the annotation cannot be understood.
        """
        if names.PRIORITY in source.annotations or not self._values:
            return priority_of(source.annotations)
        return self._values.get(kind.priority_class(source), 0)

    def set(self, values: Mapping[str, int]) -> bool:
        """These are the values now; return whether that is news."""
        before, self._values = self._values, values
        return before != values


class PriorityClassRounds:
    """Keeps ``Priorities`` up to date."""

    def __init__(
        self,
        management: Client,
        priorities: Priorities,
        *,
        environment: Environment,
        on_change: Callable[[], None],
    ) -> None:
        """``on_change``: some class has another value than was known."""
        self._management = management
        self._priorities = priorities
        self._log = environment.log
        self._on_change = on_change
        self._failed = False

    async def run(self) -> None:
        """Read them every minute, until cancelled."""
        while True:
            try:
                found = await self._read()
            except KubeError as error:
                if not self._failed:
                    self._log.warning("PriorityClasses not read", error=error)
                self._failed = True
            else:
                self._failed = False
                if self._priorities.set(found):
                    self._on_change()
            await asyncio.sleep(INTERVAL_SECONDS)

    async def _read(self) -> Mapping[str, int]:
        """Raises KubeError."""
        values: dict[str, int] = {}
        token = ""
        while len(values) < MOST_CLASSES:
            raw = await self._management.send(requests.list_page(PRIORITY_CLASSES, continue_token=token))
            try:
                page = _decoder.decode(raw)
            except JUNK as error:
                raise BadAnswer("no list of PriorityClasses") from error
            for one in page.items:
                values[one.metadata.name] = one.value
                if one.global_default:
                    values[""] = max(one.value, values.get("", one.value))
            token = page.metadata.token
            if not token or not page.items:
                break
        return values
