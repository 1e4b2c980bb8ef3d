"""Plays cases on a server, many at a time, each in a namespace of its own, and tells what was not as it should be."""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from tests.contract.answer import Wrong
from tests.contract.api import Api
from tests.contract.case import Case
from tests.contract.server import Server
from tests.contract.shared import prepare

_AT_ONCE = 12
_PATIENCE_SECONDS = 180.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one case went; ``problem`` is empty if all was well."""

    case: Case
    problem: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.case}\n    {self.problem}" if self.problem else str(self.case)


async def play(server: Server, cases: Sequence[Case]) -> list[Outcome]:
    """Play them all, in the end those that must be alone."""
    outcomes: list[Outcome] = []
    await prepare(server)
    together = iter([one for one in cases if not one.is_alone])
    mark = secrets.token_hex(3)
    numbers = itertools.count()

    async def play_one(case: Case) -> None:
        outcomes.append(await _play_one(server, case, f"contract-{mark}-{next(numbers)}x"))

    async def play_some() -> None:
        for case in together:
            await play_one(case)

    async with asyncio.TaskGroup() as scope:
        for number in range(_AT_ONCE):
            scope.create_task(play_some(), name=f"playing {number}")
    for case in cases:
        if case.is_alone:
            await play_one(case)
    return outcomes


async def _play_one(server: Server, case: Case, namespace: str) -> Outcome:
    api = Api(server, namespace)
    problem = ""
    began = time.monotonic()
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            made = await api.post("namespaces", {"metadata": {"name": namespace}})
            made.ok(201)
            await case.play(api)
    except Wrong as wrong:
        problem = str(wrong)
    except Exception:  # noqa: BLE001 - whatever it is, it is a finding, and the others are to be heard too
        problem = traceback.format_exc(limit=-4)
    return Outcome(case, problem, time.monotonic() - began)
