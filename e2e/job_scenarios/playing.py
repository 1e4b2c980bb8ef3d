"""Plays scenarios on a side, all at once, since they mostly wait. Called by the tests, ``__main__`` and ``kills``.

A script that does two things as one stimulus counts on both being seen within the second by which the controllers
batch (H1): on a machine that stands still in between, one side sees them in one sync and the other in two. What differs
is therefore played again with little beside it, and is a difference when it differs every time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import groupby

import aiohttp

from e2e.controlplane.client import StatusError
from e2e.job_scenarios.explained import EXPLAINED
from e2e.job_scenarios.report import Difference, compare
from e2e.job_scenarios.scenario import Scenario
from e2e.job_scenarios.side import CONTROLLER_USER, KINDS, NEIGHBOURS_USER, Side
from e2e.job_scenarios.stage import CatchUp, Stage
from e2e.job_scenarios.trace import Trace, make_trace
from e2e.job_scenarios.writes import read_writes

_BETWEEN_STARTS_SECONDS = 0.2
_LONGEST_SECONDS = 600.0
_MOST_ROUNDS = 3
_PROBLEMS = (TimeoutError, AssertionError, StatusError, aiohttp.ClientError, KeyError, ValueError, IndexError)


@dataclass(frozen=True, slots=True)
class Played:
    """A script that was played, or broke off."""

    scenario: Scenario
    stage: Stage
    problem: str = ""


CatchUpFor = Callable[[Scenario], CatchUp]


async def play(
    side: Side, scenarios: Iterable[Scenario], *, catch_up: CatchUpFor | None = None, suffix: str = ""
) -> list[Played]:
    """Play scripts: those that stop the controller together, after all others.

    Args:
        side: where.
        scenarios: which.
        catch_up: what each awaits before each stimulus, besides quiet.
        suffix: of the namespaces' names, where the same side sees several rounds.
    """
    chosen = list(scenarios)
    played: list[Played] = []
    for has_outage in (False, True):
        wave = [one for one in chosen if one.has_outage == has_outage]
        side.expect_outages(len(wave))
        async with asyncio.TaskGroup() as scope:
            tasks = []
            for one in wave:
                waits = catch_up(one) if catch_up else None
                tasks.append(scope.create_task(_play_one(side, one, waits, suffix), name=f"play {one.name}"))
                await asyncio.sleep(_BETWEEN_STARTS_SECONDS)
        played += [task.result() for task in tasks]
    return played


async def play_and_trace(side: Side, scenarios: Iterable[Scenario]) -> Mapping[str, Trace]:
    """Play scripts and give their traces by the scenarios' names."""
    played = await play(side, scenarios)
    await side.flush_audit_log()
    writes = read_writes(side.audit_log(), CONTROLLER_USER, neighbours=NEIGHBOURS_USER)
    traces = {}
    for one in played:
        namespace = one.stage.namespace
        trace = make_trace(
            one.stage.place,
            one.stage.steps,
            writes.get(namespace, []),
            tells_pods_apart=one.scenario.tells_pods_apart,
        )
        traces[one.scenario.name] = Trace(trace.lines, one.problem)
    return traces


async def play_on_both(
    chosen: Iterable[Scenario], left: str, right: str
) -> tuple[Mapping[str, Trace], Mapping[str, Trace]]:
    """Play the same scripts on two new sides at the same time; those with gangs on two others, afterwards."""
    lefts: dict[str, Trace] = {}
    rights: dict[str, Trace] = {}
    for has_gangs, found in groupby(sorted(chosen, key=_has_gangs), _has_gangs):
        scripts = list(found)
        async with AsyncExitStack() as stack:
            sides = [
                await stack.enter_async_context(Side.start(name, KINDS[kind], has_gangs=has_gangs))
                for name, kind in (("left", left), ("right", right))
            ]
            async with asyncio.TaskGroup() as scope:
                tasks = [scope.create_task(play_and_trace(side, scripts), name="play a side") for side in sides]
        lefts |= tasks[0].result()
        rights |= tasks[1].result()
    return lefts, rights


def _has_gangs(one: Scenario) -> bool:
    return one.has_gangs


async def find_differences(
    chosen: Iterable[Scenario], left: str, right: str, *, tell: Callable[[Scenario, Trace, Trace], None] | None = None
) -> Mapping[str, Difference]:
    """What differs each time that it is played, by the scenarios' names; explained differences are among them.

    Args:
        chosen: the scenarios.
        left: a side, one of ``KINDS``.
        right: the other side.
        tell: called with both traces of everything that is played.
    """
    explained: dict[str, Difference] = {}
    unexplained: dict[str, Difference] = {}
    left_over = list(chosen)
    for _ in range(_MOST_ROUNDS):
        unexplained = {}
        lefts, rights = await play_on_both(left_over, left, right)
        for one in left_over:
            traces = lefts[one.name], rights[one.name]
            if tell is not None:
                tell(one, *traces)
            difference = compare(*traces)
            if difference is not None:
                is_known = difference.is_explained_by(EXPLAINED.get(one.name))
                (explained if is_known else unexplained)[one.name] = difference
        left_over = [one for one in left_over if one.name in unexplained]
        if not left_over:
            break
    return explained | unexplained


async def _play_one(side: Side, one: Scenario, waits: CatchUp | None, suffix: str) -> Played:
    stage = Stage(side, one.name + suffix, catch_up=waits)
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            await side.make_namespace(stage.namespace)
            await one.play(stage)
            await stage.finish()
    except _PROBLEMS as error:
        if one.has_outage and not stage.had_outage:
            await side.miss_outage()
        step = stage.steps[-1].label if stage.steps else "the start"
        return Played(one, stage, f"broke off after {step}: {type(error).__name__}: {error}")
    return Played(one, stage)
