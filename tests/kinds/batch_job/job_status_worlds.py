"""Random Jobs, workers' answers and histories, for properties here and for the comparison with a real server in e2e.

Everything is drawn from a seeded ``random.Random``. Values come from small pools, so that the interesting coincidences
(the same time twice, a stored verdict contradicted) are common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

from mirror.batch.status_rules import check_status_update
from mirror.kinds.batch_job.reading import is_final
from mirror.kinds.batch_job.status import (
    StoredJob,
    lost_status,
    next_status,
    placed_status,
    suspended_status,
)
from mirror.kinds.batch_job.status_stored import served

Json = dict[str, Any]

NOW = datetime(2026, 3, 1, 12, 0, 30, 250_000, tzinfo=UTC)
TIMES = (
    "2026-03-01T11:59:00Z",
    "2026-03-01T12:00:00Z",
    "2026-03-01T12:00:30Z",
    "2026-03-01T12:00:35Z",
    "2026-03-01T13:00:00+01:00",
    "2026-03-01T12:00:00.750Z",
    "2026-02-27T00:00:00Z",
    "2031-01-01T00:00:00Z",
)
BAD_TIMES = (
    "",
    "yesterday",
    "0000-01-01T00:00:00Z",
    "99999-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z",
    "1899-01-01T00:00:00Z",
)
VERDICTS = ("SuccessCriteriaMet", "Complete", "FailureTarget", "Failed")
OTHER_TYPES = ("example.com/Seen", "Checked", "jobmirror.io/Placed")
BAD_TYPES = ("", "a b", "/x", "x/", "UPPER.example/x", "a/b/c", "x" * 400, "\ud800", "jobmirror.io/Fake")
REASONS = ("CompletionsReached", "BackoffLimitExceeded", "PodFailurePolicy_oom", "", "no reason", "R" * 300, "\x1b[2J")
MESSAGES = (
    "Job has reached the specified backoff limit",
    "",
    "two\nlines",
    "m" * 3000,
    "ü" * 900,
    "\u202e",
    "\ud800",
    '"<&',
)
UIDS = ("u-1", "u-2", "u-3", "u-4")
INDEX_TEXTS = ("", "0", "0-2", "0,1", "1,3", "3,4", "0-4", "2-7", "0,2,4")
BAD_INDEX_TEXTS = ("0-999999999", "x", "3-1", "4,2", "1,,2", "-1", "7" * 5000, "0,1,2")
NUMBERS = (True, False, -1, 2**31, 10**30, 1.5, float("nan"), float("inf"))
JUNK: tuple[Any, ...] = (*NUMBERS, None, "", "x", "\ud800", [], {}, [[[[]]]], {"a": {"b": []}})


def some_junk(random: Random, depth: int = 3) -> Any:
    """Any JSON value."""
    if depth == 0 or random.random() < 0.5:
        return random.choice(JUNK)
    if random.random() < 0.5:
        return [some_junk(random, depth - 1) for _ in range(random.randrange(4))]
    return {
        random.choice((*FIELDS, "type", "status", "x")): some_junk(random, depth - 1)
        for _ in range(random.randrange(4))
    }


def some_spec(random: Random) -> Json:
    """The part of a spec that status rules look at; the API accepts it."""
    spec: Json = {"parallelism": random.choice((0, 1, 2, 5)), "suspend": random.random() < 0.3}
    if random.random() < 0.6:
        spec |= {"completionMode": "Indexed", "completions": random.choice((0, 1, 3, 5))}
        if random.random() < 0.4:
            spec["parallelism"] = spec["completions"]
        if random.random() < 0.5:
            spec["backoffLimitPerIndex"] = 1
        if random.random() < 0.3 and spec["completions"]:
            spec["successPolicy"] = {"rules": [{"succeededCount": 1}]}
    elif random.random() < 0.8:
        spec["completions"] = random.choice((0, 1, 3))
    return spec


def some_condition(random: Random, *, wild: bool) -> Any:
    """A condition; a wild one may have anything anywhere."""
    pool: tuple[str, ...] = (*VERDICTS, "Suspended", "Suspended", *OTHER_TYPES, *(BAD_TYPES if wild else ()))
    condition: Json = {
        "type": random.choice(pool),
        "status": random.choice(("True", "True", "True", "False", "Unknown")),
        "lastTransitionTime": random.choice((None, *TIMES, *(BAD_TIMES if wild else ()))),
        "lastProbeTime": random.choice((None, *TIMES)),
    }
    if random.random() < 0.8:
        condition["reason"] = random.choice(REASONS if wild else REASONS[:5])
        condition["message"] = random.choice(MESSAGES if wild else MESSAGES[:3])
    if wild and random.random() < 0.2:
        condition[random.choice(("type", "status", "reason", "message", "lastTransitionTime"))] = some_junk(random, 1)
    return some_junk(random, 2) if wild and random.random() < 0.05 else condition


def _some_conditions(random: Random, *, wild: bool) -> Any:
    longest = random.choice((1, 2, 3, 5, 40 if wild else 5))
    return [some_condition(random, wild=wild) for _ in range(random.randint(0, longest))]


def _some_time(random: Random, *, wild: bool) -> Any:
    return random.choice(TIMES + (BAD_TIMES if wild else ()))


def _some_count(random: Random, *, wild: bool) -> Any:
    return random.choice((0, 0, 1, 2, 5, 2**31 - 1, *((-1, 2**31, True, 1.0, "1") if wild else ())))


def _some_indexes(random: Random, *, wild: bool) -> Any:
    return random.choice(INDEX_TEXTS + (BAD_INDEX_TEXTS if wild else ()))


def _some_uncounted(random: Random, *, wild: bool) -> Any:
    uids = random.sample(UIDS, random.randrange(4)) if random.random() < 0.5 else []
    if wild and random.random() < 0.3:
        bad: tuple[list[Any], ...] = (["u-1", "u-1"], ["", "x y"], [f"u-{i}" for i in range(700)], [None, 3])
        uids += random.choice(bad)
    half = random.randint(0, len(uids))
    return {name: part for name, part in (("succeeded", uids[:half]), ("failed", uids[half:])) if part or wild}


_DRAWN: Mapping[str, Callable[..., Any]] = {
    "conditions": _some_conditions,
    "startTime": _some_time,
    "completionTime": _some_time,
    "active": _some_count,
    "succeeded": _some_count,
    "failed": _some_count,
    "ready": _some_count,
    "terminating": _some_count,
    "completedIndexes": _some_indexes,
    "failedIndexes": _some_indexes,
    "uncountedTerminatedPods": _some_uncounted,
}
FIELDS = tuple(_DRAWN)


def some_status(random: Random, *, wild: bool = False) -> Json:
    """A status with the API's types, or a wild one: whatever a worker might answer."""
    likely = random.choice((0.2, 0.5, 0.9))
    status = {name: draw(random, wild=wild) for name, draw in _DRAWN.items() if random.random() < likely}
    if wild and random.random() < 0.3:
        status[random.choice((*FIELDS, "unknown"))] = some_junk(random)
    return status


def some_ending(random: Random) -> Json:
    """What a worker shows of a Job near its end; most of it makes sense together."""
    complete = random.random() < 0.6
    types = VERDICTS[:2] if complete else VERDICTS[2:]
    at = random.choice(TIMES)
    status: Json = {
        "startTime": random.choice(TIMES[:3]),
        "succeeded": random.choice((1, 3)),
        "failed": random.choice((0, 2)),
        "ready": 0,
        "terminating": random.choice((0, 0, 0, 1)),
        "uncountedTerminatedPods": {},
        "conditions": [
            {"type": one, "status": "True", "lastTransitionTime": at, "lastProbeTime": at, "reason": "Because"}
            for one in random.choice((types, types, types[:1], types[1:]))
        ],
    }
    if complete:
        status["completionTime"] = at
    if random.random() < 0.3:
        status["conditions"].append({"type": "Suspended", "status": random.choice(("True", "False"))})
    return status


def some_running(random: Random) -> Json:
    """What a worker shows of a Job that runs, is suspended or was resumed."""
    status: Json = {"ready": random.choice((0, 1)), "terminating": random.choice((0, 1)), "uncountedTerminatedPods": {}}
    if random.random() < 0.8:
        status |= {
            "startTime": random.choice(TIMES[:4]),
            "active": random.choice((0, 1, 2)),
            "failed": random.choice((0, 1)),
        }
    if random.random() < 0.6:
        suspension = random.choice(("True", "False", "False"))
        status["conditions"] = [{"type": "Suspended", "status": suspension, "lastTransitionTime": random.choice(TIMES)}]
    if random.random() < 0.4:
        status |= {"completedIndexes": random.choice(INDEX_TEXTS), "failedIndexes": random.choice(INDEX_TEXTS)}
    return status


def some_worker_answer(random: Random) -> Any:
    """A mirror's status as a worker may report it: sensible, nearly so, or junk."""
    kind = random.random()
    if kind < 0.2:
        return some_ending(random)
    if kind < 0.45:
        return some_running(random)
    if kind < 0.65:
        return some_status(random)
    return some_status(random, wild=True) if kind < 0.9 else some_junk(random)


def step(random: Random, stored: StoredJob) -> Json | None:
    """One legal write on a stored Job by anybody, or None when the one that was drawn is not."""
    kind = random.random()
    if kind < 0.45:
        answer = some_worker_answer(random)
        return next_status(stored, answer, now=NOW, mirror_suspended=random.random() < 0.3).status
    if kind < 0.55:
        return placed_status(stored, random.choice(("east", "west", None)), NOW)
    if kind < 0.65:
        return suspended_status(stored, NOW)
    if kind < 0.68:
        return lost_status(stored, NOW, message="gone")
    status = {**stored.status, **some_status(random)} if kind < 0.9 else some_status(random)
    job = {"spec": stored.spec, "status": stored.status}
    return None if check_status_update(job, status) else status


def change_spec(random: Random, spec: Json) -> Json:
    """What a user may change at any time: the suspension, the parallelism, and the size of an elastic Job (U1, U3)."""
    changed = spec | {"suspend": random.random() < 0.4}
    if random.random() < 0.3 and spec.get("completionMode") == "Indexed" and "successPolicy" not in spec:
        size = random.choice((0, 1, 3, 5))
        changed |= {"completions": size, "parallelism": size}
    elif random.random() < 0.3:
        changed["parallelism"] = random.choice((1, 2, 3))
    return changed


def some_history(random: Random, steps: int) -> StoredJob:
    """A stored Job that legal writes have led to, beginning with an empty status."""
    stored = StoredJob.of(some_spec(random), {})
    for _ in range(steps):
        spec, status = dict(stored.spec), step(random, stored)
        if status is not None and is_final(status) and random.random() < 0.9:
            continue  # or nearly every history would have ended
        if random.random() < 0.25:
            spec = change_spec(random, spec)
        stored = StoredJob.of(spec, served(stored.status if status is None else status))
    return stored
