"""Objects on the server that updates and status writes begin with: Jobs of all kinds in all states.

They are made once for a run and never changed afterwards, so that cases can be asked in any order, many at a time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from e2e.api_differential.cases import Kind, plain
from e2e.api_differential.features import FEATURES, jobs_of_all_kinds
from e2e.api_differential.job_mutations import JOB_MUTATIONS
from e2e.api_differential.status_mutations import STATUS_MUTATIONS, TIMES
from e2e.api_differential.steps import Json, applied, drawn, put
from e2e.api_differential.wire import Answer, Wire

_AT_ONCE = 16
_WALK = ("suspend", "tandem", "parallelism", "generated label", "selector", "labels")


@dataclass(frozen=True, slots=True)
class State:
    """How a Job gets into a state: by a status while it is suspended or not, and by what is done to the spec later."""

    suspend: bool | None = None
    """None: as the Job's features say."""
    status: Json | None = None
    suspend_later: bool | None = None
    is_deleted: bool = False
    walk: int = 0
    """How many random writes follow, those that are refused included."""


def _conditions(*types: str, status: str = "True") -> list[Json]:
    return [{"type": one, "status": status, "lastTransitionTime": TIMES[1], "lastProbeTime": TIMES[1]} for one in types]


_RUNNING: Json = {"startTime": TIMES[0], "active": 2, "ready": 1, "terminating": 0, "uncountedTerminatedPods": {}}
_STOPPED: Json = {**_RUNNING, "active": 0, "ready": 0, "terminating": 1}
_COMPLETE: Json = {
    "startTime": TIMES[0],
    "completionTime": TIMES[1],
    "succeeded": 1,
    "failed": 1,
    "conditions": _conditions("SuccessCriteriaMet", "Complete"),
}

STATES: Mapping[str, State] = {
    "fresh": State(),
    "suspended": State(suspend=True),
    "suspended, seen": State(suspend=True, status={"conditions": _conditions("Suspended"), "ready": 0}),
    "running": State(suspend=False, status=_RUNNING),
    "suspending": State(suspend=False, status=_RUNNING, suspend_later=True),
    "stopped": State(suspend=True, status={**_STOPPED, "conditions": _conditions("Suspended")}),
    "stopped, unseen": State(suspend=True, status=_STOPPED),
    "stopped, started anew": State(suspend=True, status={"active": 1, "conditions": _conditions("Suspended")}),
    "resuming": State(suspend=True, status={**_STOPPED, "conditions": _conditions("Suspended")}, suspend_later=False),
    "resumed": State(suspend=False, status={**_RUNNING, "conditions": _conditions("Suspended", status="False")}),
    "uncounted": State(
        suspend=False,
        status={**_RUNNING, "uncountedTerminatedPods": {"succeeded": ["u-1"], "failed": ["u-2"]}, "failed": 2},
    ),
    "met": State(suspend=False, status={**_RUNNING, "conditions": _conditions("SuccessCriteriaMet"), "succeeded": 1}),
    "target": State(suspend=False, status={**_RUNNING, "conditions": _conditions("FailureTarget")}),
    "complete": State(status=_COMPLETE),
    "failed": State(status={"startTime": TIMES[0], "conditions": _conditions("FailureTarget", "Failed")}),
    "deleted": State(is_deleted=True),
    "deleted while running": State(suspend=False, status=_RUNNING, is_deleted=True),
    "walked": State(walk=8),
    "walked while suspended": State(suspend=True, walk=5),
}
# Those whose pods may change (U4) more often than their share, since little else can be accepted of the others.
_ORDER = (*STATES, *("suspended", "suspended, seen", "stopped") * 2)


async def store_all(wire: Wire, random: Random, count: int) -> list[Json]:
    """Make so many stored objects, in all states in turn."""
    seeds = [random.getrandbits(32) for _ in range(count)]
    states = itertools.cycle(STATES[name] for name in _ORDER)
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int, seed: int, state: State) -> Json:
        async with gate:
            return await _store(wire, f"stored-{number}", Random(seed), state)

    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(one(number, seed, state), name=f"store {number}")
            for number, (seed, state) in enumerate(zip(seeds, states, strict=False))
        ]
    return [task.result() for task in tasks]


async def _store(wire: Wire, name: str, random: Random, state: State) -> Json:
    job = applied(FEATURES, jobs_of_all_kinds(random), plain(name))
    if state.suspend is not None:
        job["spec"]["suspend"] = state.suspend
    if state.is_deleted:
        put(job, ("metadata", "finalizers"), ["example.com/hold"])
    job = _accepted(await wire.store(Kind.CREATE, job))
    if state.status is not None:
        indexes = {"completedIndexes": "0"} if _has_indexes(job) and random.random() < 0.5 else {}
        job = _accepted(await wire.store(Kind.STATUS, job | {"status": state.status | indexes}))
    if state.suspend_later is not None:
        job["spec"]["suspend"] = state.suspend_later
        job = _accepted(await wire.store(Kind.UPDATE, job))
    for _ in range(state.walk):
        job = await _walk(wire, random, job)
    if state.is_deleted:
        await wire.delete(job)
    return _accepted(await wire.get(name))


async def _walk(wire: Wire, random: Random, job: Json) -> Json:
    """The object after one random write, or as it was if the server refused that."""
    if random.random() < 0.7:
        steps = drawn(random, random.choices(tuple(STATUS_MUTATIONS), k=random.randint(1, 2)))
        answer = await wire.store(Kind.STATUS, applied(STATUS_MUTATIONS, steps, job))
    else:
        steps = drawn(random, random.choices(_WALK, k=1))
        answer = await wire.store(Kind.UPDATE, applied(JOB_MUTATIONS, steps, job))
    return answer.body if answer.is_accepted else job


def _has_indexes(job: Json) -> bool:
    spec = job["spec"]
    return spec["completionMode"] == "Indexed" and bool(spec["completions"])


def _accepted(answer: Answer) -> Json:
    if not answer.is_accepted:
        raise AssertionError(f"{answer.code}: {answer.body.get('message')}")
    return answer.body
