"""Events are forgotten."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from mirror.embedded.apiserver.build import build
from mirror.embedded.apiserver.registry.event_expiry import Expiry
from tests.embedded.apiserver.registry.test_subresources import Asking

EVENTS = "/api/v1/namespaces/default/events"


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 11, 21, 12, 0, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


async def test_an_event_goes_an_hour_after_it_was_written_last() -> None:
    """Other objects stay."""
    clock = Hand()
    ask = Asking(build(clock=clock, random=Random(1)))
    expiry = Expiry(ask.server.storage, ask.server.registry, ask.server.dependencies.clock)

    async def names() -> list[Any]:
        _, found = await ask("GET", EVENTS)
        return [one["metadata"]["name"] for one in found["items"]]

    for name in ("once", "again"):
        body = {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}}
        assert (await ask("POST", EVENTS, body))[0] == 201
    expiry.look()
    clock.seconds = 1800
    assert (await ask("PATCH", f"{EVENTS}/again", {"count": 2}))[0] == 200
    expiry.look()
    assert sorted(await names()) == ["again", "once"]

    clock.seconds = 3600
    assert expiry.look() == 1
    assert await names() == ["again"]
    clock.seconds = 5400
    assert expiry.look() == 1
    assert await names() == []
    assert (await ask("GET", "/api/v1/namespaces/default"))[0] == 200
