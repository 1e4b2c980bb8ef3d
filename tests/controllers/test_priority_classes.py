"""PriorityClasses of the management cluster: how they are read, and what they are worth."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec
import pytest
from doubles.clock import LoopClock
from doubles.jobs import job

from mirror.controllers.priority_classes import INTERVAL_SECONDS, Priorities, PriorityClassRounds
from mirror.kinds.registry import JOB
from mirror.kube.client import Client
from mirror.kube.errors import Unreachable
from mirror.kube.objects import Object, decode_object
from mirror.kube.requests import Request
from mirror.model import names
from mirror.runtime.environment import Environment
from mirror.telemetry.logs import get_log
from mirror.telemetry.metrics import Metrics

pytestmark = pytest.mark.looptime


class Management:
    """Answers lists, page by page, or not at all."""

    def __init__(self, *pages: bytes) -> None:
        self.pages = pages
        self.asked: list[Request] = []

    async def send(self, request: Request) -> bytes:
        self.asked.append(request)
        token = dict(request.query).get("continue", "0")
        if not self.pages:
            raise Unreachable("nobody is there")
        return self.pages[int(token)]


def page(classes: dict[str, int], *, default: str = "", token: str = "") -> bytes:
    items = [
        {"metadata": {"name": name}, "value": value, "globalDefault": name == default, "description": "x"}
        for name, value in classes.items()
    ]
    return msgspec.json.encode({"kind": "PriorityClassList", "metadata": {"continue": token}, "items": items})


def source(class_name: str | None = None, priority: str | None = None) -> Object:
    body: dict[str, Any] = job(annotations={names.PRIORITY: priority} if priority else {})
    if class_name is not None:
        body["spec"]["template"]["spec"]["priorityClassName"] = class_name
    return decode_object(msgspec.json.encode(body))


def rounds(management: Management, priorities: Priorities, changes: list[str]) -> PriorityClassRounds:
    environment = Environment(LoopClock(), get_log("mirror"), Metrics())
    return PriorityClassRounds(
        cast(Client, management), priorities, environment=environment, on_change=lambda: changes.append("")
    )


async def test_all_pages_are_read_and_a_change_is_told_once() -> None:
    """With the default of the cluster; nothing is said while they stay what they are."""
    priorities, changes = Priorities(), list[str]()
    management = Management(page({"a": 1}, token="1"), page({"b": -2, "c": 3}, default="c"))
    task = asyncio.create_task(rounds(management, priorities, changes).run())
    await asyncio.sleep(3 * INTERVAL_SECONDS + 1)
    assert [priorities.of(JOB, source(name)) for name in ("a", "b", "c", None, "unknown")] == [1, -2, 3, 3, 0]
    assert len(changes) == 1
    management.pages = (page({"a": 9}),)
    await asyncio.sleep(INTERVAL_SECONDS)
    assert priorities.of(JOB, source("a")) == 9
    assert len(changes) == 2
    task.cancel()


@pytest.mark.parametrize("pages", [(), (b"{}",), (b"no JSON",), (b'{"metadata": {}, "items": [{"value": 1}]}',)])
async def test_what_cannot_be_read_leaves_what_was_known(pages: tuple[bytes, ...]) -> None:
    """Unreachable, forbidden or nonsense: it is tried again, and Jobs keep their order."""
    priorities, changes = Priorities(), list[str]()
    management = Management(page({"a": 1}))
    task = asyncio.create_task(rounds(management, priorities, changes).run())
    await asyncio.sleep(1)
    management.pages = pages
    await asyncio.sleep(2 * INTERVAL_SECONDS)
    assert priorities.of(JOB, source("a")) == 1
    assert len(changes) == 1
    assert not task.done()
    task.cancel()


def test_an_annotation_goes_before_the_class() -> None:
    priorities = Priorities()
    assert priorities.of(JOB, source("a", "7")) == 7
    priorities.set({"a": 100})
    assert priorities.of(JOB, source("a", "7")) == 7
    assert priorities.of(JOB, source("a")) == 100
