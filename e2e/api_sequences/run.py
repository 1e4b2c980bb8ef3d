"""Plays sequences on both servers, and tells where they differ. Not here: making a difference smaller (``shrink``).

Each sequence has a namespace of its own on both. Requests of one are sent one after the other, to both servers at once.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeAlias

import aiohttp

from e2e.api_contract import servers
from e2e.api_sequences.compare import different
from e2e.api_sequences.explained import is_explained
from e2e.api_sequences.requests import History, history
from mirror.embedded.apiserver import build as apiserver
from mirror.runtime.clock import SystemClock
from tests.contract.api import Api
from tests.contract.files import written
from tests.contract.in_process import InProcess
from tests.contract.script import Script
from tests.contract.server import Server
from tests.contract.shared import prepare
from tests.contract.wire import Asked, Reply, Streaming, Wire

Json: TypeAlias = dict[str, Any]
_AT_ONCE = 24
CRASHED = 0
"""The status of what was answered with the end of the connection."""
_PATIENCE_SECONDS = 180
_PATIENT_WATCH_SECONDS = 10
_PARTICULARS = re.compile(r"\[?\"[^\"]*\"|'[^']*'|\d+|<[^>]*>|\{.*\}|\[\d+\]")


@dataclass(frozen=True, slots=True)
class Difference:
    """One sequence about which the servers do not agree; told by the first step where that shows."""

    history: History
    position: int
    lines: tuple[str, ...]
    real: Json
    ours: Json

    @property
    def step(self) -> Json:
        """What was asked."""
        return self.history.steps[self.position]

    @property
    def key(self) -> str:
        """Equal for differences that most likely have the same reason."""
        method, target = self.step["ask"].split(" ", 1)
        collection = target.split("?")[0].rpartition("namespaces/OURS/")[2].split("/")
        where = "/".join([collection[0], *(["NAME"] if len(collection) > 1 else []), *collection[2:]])
        content = self.step.get("content", "").removeprefix("application/")
        return f"{method} {where} {content} {_PARTICULARS.sub('…', self.lines[0])}"[:200]

    def __str__(self) -> str:
        shown = [{**step, "pick": []} for step in self.history.steps[: self.position]]
        case = {"case": f"number {self.history.number}", "steps": [*shown, {**self.step, "says": self.real}]}
        lines = "\n".join(f"  {line[:600]}" for line in self.lines[:6])
        return f"{written(case)}{lines}\n  ours: {json.dumps(self.ours, ensure_ascii=False)[:1500]}"


@dataclass(slots=True)
class Report:
    """What a run has seen."""

    requests: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    """Of the real server, by method and status."""
    differences: list[Difference] = field(default_factory=list)
    explained: int = 0
    """How many sequences differ as they should."""

    @property
    def accepted(self) -> int:
        """How many of the requests were."""
        return sum(count for what, count in self.answers.items() if what.split(" ")[1].startswith("2"))

    def __str__(self) -> str:
        answers = ", ".join(f"{count} {what}" for what, count in sorted(self.answers.items()))
        found = f"{len(self.differences)} sequences differ, and {self.explained} as explained"
        return f"{answers}\n{self.requests} requests; {found}"


@dataclass(frozen=True, slots=True)
class Pair:
    """A real server and ours."""

    real: Server
    ours: Server

    async def run(self, *, seed: int, count: int) -> Report:
        """Play so many sequences of a seed."""
        report = Report()
        numbers = iter(range(count))

        async def play_some() -> None:
            for number in numbers:
                played = history(seed, number)
                found = await self.play(played, report)
                # Under load a watch of a second may end before a real server has told what it knows.
                patient = replace(played, steps=tuple(map(_patient, played.steps)))
                if found is None or (again := await self.play(patient)) is None or again.key != found.key:
                    continue
                if is_explained(found.step["ask"], found.lines):
                    report.explained += 1
                else:
                    report.differences.append(found)

        async with asyncio.TaskGroup() as scope:
            for one in range(_AT_ONCE):
                scope.create_task(play_some(), name=f"playing {one}")
        return report

    async def play(self, played: History, report: Report | None = None) -> Difference | None:
        """The first difference of a sequence."""
        namespace = f"sequence-{_MARK}-{next(_NUMBERS)}x"
        async with asyncio.timeout(_PATIENCE_SECONDS):
            real, ours = await asyncio.gather(_said(self.real, namespace, played), _said(self.ours, namespace, played))
        if report is not None:
            report.requests += len(played.steps)
            asked = [step["ask"].split(" ")[0] for step in played.steps]
            report.answers.update(f"{method} {said['status']}" for method, said in zip(asked, real, strict=True))
        for position, (one, other) in enumerate(zip(real, ours, strict=True)):
            if lines := different(one, other):
                return Difference(played, position, tuple(lines), one, other)
        return None


def _patient(step: Json) -> Json:
    return {**step, "ask": step["ask"].replace("timeoutSeconds=1&", f"timeoutSeconds={_PATIENT_WATCH_SECONDS}&")}


_MARK = secrets.token_hex(3)
_NUMBERS = itertools.count()


@asynccontextmanager
async def pair(real: Server | None = None) -> AsyncIterator[Pair]:
    """A real server, a new one unless given, and ours in this process without HTTP."""
    if real is None:
        async with servers.real() as started, pair(started) as both:
            yield both
        return
    server = apiserver.build(clock=SystemClock(), random=Random(1), authorization="RBAC")

    async def compact() -> None:
        server.storage.compact(server.storage.version)

    ours = Server("in process", InProcess(server), compact)
    await prepare(real)
    await prepare(ours)
    yield Pair(replace(real, wire=_Surviving(real.wire)), ours)


@dataclass(frozen=True, slots=True)
class _Surviving:
    """A ``Wire`` on which a handler that crashes ends one request, and not the whole run: its status is 0."""

    wire: Wire

    async def send(self, asked: Asked) -> Reply:
        """See ``Wire``."""
        try:
            return await self.wire.send(asked)
        except aiohttp.ServerDisconnectedError:
            return Reply(CRASHED, (), b"")
        except aiohttp.ClientResponseError as error:
            # Go's answer to what is no HTTP has a body that it does not announce.
            return Reply(error.status, (), b"")

    def stream(self, asked: Asked) -> AbstractAsyncContextManager[Streaming]:
        """See ``Wire``."""
        return self.wire.stream(asked)


async def _said(server: Server, namespace: str, played: History) -> list[Json]:
    api = Api(server, namespace)
    (await api.post("namespaces", {"metadata": {"name": namespace}})).ok(201)
    return await Script("", played.steps, keeps_managers=True).answers(api)
