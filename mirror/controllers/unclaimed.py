"""Sources whose ``managedBy`` is almost ours, and that nobody runs: most likely it is misspelt (D22).

Every Job of the management cluster passes by (``routes``). One whose value has our domain, or one like it, is read a
minute later; if nothing has written a status by then, an event on it says what was probably meant. Another manager with
such a value would have written one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from mirror.kinds.base import Kind
from mirror.kube import requests
from mirror.kube.client import Client
from mirror.kube.errors import KubeError
from mirror.kube.objects import Object
from mirror.model import names
from mirror.model.reasons import Reason
from mirror.model.text import clean, nearest
from mirror.runtime.clock import Clock

UNCLAIMED_AFTER_SECONDS = 60.0
LOOK_SECONDS = 5.0
MOST = 500
"""So many are looked at later; of still more the first are forgotten."""
LONGEST_SHOWN = 100

Warn = Callable[[Kind, Object, str, str], None]
"""Records a warning about a source: a reason and a message."""


@dataclass(frozen=True, slots=True)
class _Seen:
    kind: Kind
    found: Object
    at: float


class Unclaimed:
    """Those that are to be looked at, by uid, the oldest first."""

    def __init__(self, management: Client, warn: Warn, *, managed_by: str, clock: Clock) -> None:
        self._management = management
        self._warn = warn
        self._managed_by = managed_by
        self._clock = clock
        self._seen: OrderedDict[str, _Seen] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def note(self, kind: Kind, found: Object, managed_by: str) -> None:
        """A source that somebody else should run has come."""
        if managed_by == self._value_of(kind) or not self._is_like_ours(managed_by) or kind.is_suspended(found):
            return
        self._seen[found.metadata.uid] = _Seen(kind, found, self._clock.monotonic())
        if len(self._seen) > MOST:
            self._seen.popitem(last=False)

    async def run(self) -> None:
        """Look at each a minute after it was seen, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            before = self._clock.monotonic() - UNCLAIMED_AFTER_SECONDS
            while self._seen and (first := next(iter(self._seen.values()))).at <= before:
                self._seen.popitem(last=False)
                await self._look(first)

    async def _look(self, seen: _Seen) -> None:
        kind, metadata = seen.kind, seen.found.metadata
        try:
            found = await self._management.send_object(
                requests.get(kind.resource, metadata.name, namespace=metadata.namespace)
            )
            if found.metadata.uid != metadata.uid or found.status_dict() or kind.is_suspended(found):
                return
        except KubeError:
            return  # it is gone, or cannot be read: a hint is nothing to insist on
        value = clean(kind.managed_by(found) or "", longest=LONGEST_SHOWN)
        text = (
            f"nobody runs this {kind.name}: {kind.managed_by_field} is {value} (did you mean {self._value_of(kind)}?); "
            "it cannot be changed, so create it anew"
        )
        self._warn(kind, found, Reason.UNKNOWN_MANAGED_BY, text)

    def _value_of(self, kind: Kind) -> str:
        """What makes one of a kind ours: of some, the setting's own value makes none."""
        return kind.managed_by_value or self._managed_by

    def _is_like_ours(self, managed_by: str) -> bool:
        domain, _, _ = managed_by.partition("/")
        own, _, _ = self._managed_by.partition("/")
        return nearest(domain, (own, names.PREFIX.rstrip("/"))) is not None
