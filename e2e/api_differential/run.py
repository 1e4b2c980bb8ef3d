"""Asks a real API server and us the same, thousands of times, and tells where we differ.

A difference is made as small as it gets by leaving out steps, and told with everything that is needed to see it again:
the stored object, the request, both answers.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from random import Random

from e2e.api_differential import compare, coverage, ours
from e2e.api_differential.cases import Case, Kind, creates, status_writes, updates
from e2e.api_differential.steps import Json
from e2e.api_differential.stored import store_all
from e2e.api_differential.wire import PANIC, Answer, Wire
from mirror.batch.feature_gates import DEFAULT_GATES, FeatureGates

_AT_ONCE = 32
_UPDATES_PER_STORED = 15
_FEWEST_STORED = 57
_PARTICULARS = re.compile(r'"[^"]*"|\d+|\{.*\}')


@dataclass(frozen=True, slots=True)
class Difference:
    """One case about which we and the server do not agree."""

    case: Case
    real: Answer
    ours: Answer | None
    """None: we failed."""
    lines: tuple[str, ...]

    @property
    def key(self) -> str:
        """Equal for cases that most likely differ for the same reason."""
        return f"{self.case.kind} {_PARTICULARS.sub('…', self.lines[0])}"

    def __str__(self) -> str:
        parts: list[str] = [str(self.case), *(f"  {line}" for line in self.lines)]
        if self.case.kind is not Kind.CREATE:
            parts.append(f"stored: {_json(self.case.start)}")
        parts.append(f"request: {_json(self.case.body)}")
        parts.append(f"theirs: {self.real.code} {_json(self.real.body)} {list(self.real.warnings)}")
        if self.ours is not None:
            parts.append(f"ours: {self.ours.code} {_json(self.ours.body)} {list(self.ours.warnings)}")
        return "\n".join(parts)


@dataclass(slots=True)
class Report:
    """What a run has seen."""

    asked: Counter[str] = field(default_factory=Counter)
    """How many of each kind were accepted or refused."""
    rules: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)

    @property
    def rules_not_met(self) -> list[str]:
        return sorted(coverage.RULES - self.rules.keys())

    def __str__(self) -> str:
        asked = ", ".join(f"{count} {what}" for what, count in sorted(self.asked.items()))
        return f"{coverage.table(self.rules)}\n{asked}; {len(self.differences)} differences"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A real server, and ours with the same feature gates."""

    wire: Wire
    gates: FeatureGates = DEFAULT_GATES

    async def run(self, *, seed: int, count: int) -> Report:
        """Ask for so many creates, updates and status writes each."""
        random = Random(seed)
        stored = await store_all(self.wire, random, max(_FEWEST_STORED, count // _UPDATES_PER_STORED))
        cases = chain(creates(random, count), updates(random, count, stored), status_writes(random, count, stored))
        report = Report()
        async with asyncio.TaskGroup() as group:
            for number in range(_AT_ONCE):
                group.create_task(self._ask_all(cases, report), name=f"asking {number}")
        return report

    async def shrink(self, difference: Difference) -> Difference:
        """The same difference with as few steps as possible."""
        position = 0
        while position < len(difference.case.steps):
            _, smaller = await self._ask_both(difference.case.without(position))
            if smaller and smaller.key == difference.key:
                difference = smaller
            else:
                position += 1
        return difference

    async def _ask_all(self, cases: Iterable[Case], report: Report) -> None:
        for case in cases:
            real, difference = await self._ask_both(case)
            verdict = "accepted" if real.is_accepted else "panics" if real.code == PANIC else "refused"
            report.asked[f"{case.kind} {verdict}"] += 1
            report.rules.update(coverage.met(case, real))
            if difference:
                report.differences.append(difference)

    async def _ask_both(self, case: Case) -> tuple[Answer, Difference | None]:
        """The server's answer, and how ours differs."""
        real = await self.wire.ask(case)
        try:
            mine = ours.answer(case, real, namespace=self.wire.namespace, gates=self.gates)
            lines = compare.differences(real, mine)
        except Exception as failure:  # noqa: BLE001 - whatever it is, it is a finding, and the others are to be heard too
            return real, Difference(case, real, None, (f"ours failed: {type(failure).__name__}: {failure}",))
        return real, Difference(case, real, mine, tuple(lines)) if lines else None


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
