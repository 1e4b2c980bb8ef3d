"""Whatever is stored and whatever a worker answers: what we write is accepted, never goes back, and comes to rest."""

from __future__ import annotations

import json
import os
from random import Random
from typing import Any

from doubles.examples import examples
from hypothesis import given
from hypothesis import strategies as st
from job_status_worlds import NOW, some_history, some_worker_answer
from msgspec.structs import replace

from mirror.batch import conditions, indexes
from mirror.batch.status_rules import check_status_update
from mirror.kinds.batch_job.status import (
    StoredJob,
    clean,
    lost_status,
    next_status,
    placed_status,
    placed_worker,
    suspended_status,
    verdict,
)
from mirror.kinds.batch_job.status_clean import MAX_CONDITIONS, MAX_UNCOUNTED
from mirror.kinds.batch_job.status_stored import served
from mirror.kinds.stored_source import NextStatus

Json = dict[str, Any]

# A seed and no drawn Random: its values are far more diverse, and a seed is all that is needed to see a failure again.
worlds = st.tuples(st.integers(0, 2**32).map(Random), st.integers(0, 8))
thoroughly = examples(int(os.environ.get("MIRROR_PROPERTY_EXAMPLES", "300")))


def refusals(stored: StoredJob, status: Json) -> list[str]:
    job = {"spec": stored.spec, "status": stored.status}
    return [f"{cause.field}: {cause.message}" for cause in check_status_update(job, status)]


def after(stored: StoredJob, status: Json | None) -> StoredJob:
    return stored if status is None else StoredJob.of(stored.spec, json.loads(json.dumps(status)))


def assert_nothing_goes_back(before: StoredJob, status: Json) -> None:
    """Verdicts, counters, completionTime, startTime, completed indexes and the conditions of others."""
    was, now = before.conditions, conditions.of(status)
    assert all(conditions.is_true(now, one) for one in conditions.STANDARD - {"Suspended"} if before.is_true(one))
    assert status.get("failed", 0) >= before.status.get("failed", 0)
    if not before.wanted.is_elastic:
        assert status.get("succeeded", 0) >= before.status.get("succeeded", 0)
    if before.completion:
        assert before.completion == status["completionTime"]
    if before.start and status.get("startTime") != before.start:
        assert before.wanted.suspend or (before.is_true("Suspended") and not conditions.is_true(now, "Suspended"))
    completions = before.wanted.completions or 0
    completed = indexes.read(before.status.get("completedIndexes", ""), completions)
    assert indexes.minus(completed, indexes.read(status.get("completedIndexes", ""), completions)) == ()
    assert placed_worker(before.status) == placed_worker(status)
    types = [one["type"] for one in was]
    assert types == [one["type"] for one in now][: len(types)] or len(set(types)) < len(types)


def assert_well_formed(status: Json) -> None:
    """In the shape that the API serves, bounded, and text that every UTF-8 consumer can take."""
    assert served(status) == status
    assert len(json.dumps(status, ensure_ascii=False, allow_nan=False).encode()) <= 64 * 1024
    assert len(status.get("conditions", ())) <= 2 * MAX_CONDITIONS
    assert sum(map(len, status.get("uncountedTerminatedPods", {}).values())) <= MAX_UNCOUNTED
    assert status.get("ready", 0) <= status.get("active", 0) or not status.get("ready")
    if conditions.is_finished(conditions.of(status)):
        ended = conditions.find(status["conditions"], verdict(status) or "", "True")
        assert ended is not None
        assert ended["lastTransitionTime"]


def follow_to_rest(stored: StoredJob, answer: object, random: Random) -> tuple[StoredJob, list[NextStatus]]:
    suspended, offset = random.random() < 0.3, random.choice((None, 0.0, -3600.0, 3600.0))
    settled, steps = random.random() < 0.2, list[NextStatus]()
    while not steps or steps[-1].status is not None:
        assert len(steps) < 4, steps
        following = next_status(
            stored, answer, now=NOW, mirror_suspended=suspended, clock_offset_seconds=offset, settled=settled
        )
        steps.append(following)
        if following.status is not None:
            assert refusals(stored, following.status) == []
            assert_nothing_goes_back(stored, following.status)
            assert_well_formed(following.status)
        stored = after(stored, following.status)
    return stored, steps


@given(worlds)
@thoroughly
def test_what_we_write_is_accepted_never_goes_back_and_comes_to_rest(world: tuple[Random, int]) -> None:
    """D7, for arbitrary histories and arbitrary JSON: at most two writes, and ``more`` announces the second."""
    random, length = world
    stored = some_history(random, length)

    _, steps = follow_to_rest(stored, some_worker_answer(random), random)

    written = [one for one in steps if one.status is not None]
    assert [one.more for one in written] in ([], [False], [True, False])
    assert "allows no such write" not in steps[-1].because


@given(worlds)
@thoroughly
def test_a_mirror_that_ended_without_pods_finishes_its_source(world: tuple[Random, int]) -> None:
    """No answer leaves a Job hanging that has ended; the stored verdict decides how (V30, V31)."""
    random, length = world
    stored = some_history(random, length)
    answer = some_worker_answer(random)
    mirror = clean(answer, completions=stored.wanted.completions)
    expected = stored.verdict or conditions.verdict(mirror.conditions)

    rested, steps = follow_to_rest(stored, answer, random)

    if conditions.is_finished(mirror.conditions) and not steps[-1].waits_for_pods:
        assert rested.is_finished
    assert expected == rested.verdict


@given(worlds)
@thoroughly
def test_at_rest_the_source_shows_the_mirrors_pods(world: tuple[Random, int]) -> None:
    """active, ready and terminating are always the mirror's own, unless the Job was finished before."""
    random, length = world
    stored = some_history(random, length)
    answer = some_worker_answer(random)
    mirror = clean(answer, completions=stored.wanted.completions)

    rested, _ = follow_to_rest(stored, answer, random)

    if not rested.is_finished:
        assert mirror.active == rested.status.get("active", 0)
        assert mirror.terminating == rested.status.get("terminating")
        reported = mirror.condition("Suspended")
        assert reported is None or (reported["status"] == "True") == rested.is_true("Suspended")
        resumed = reported is not None and reported["status"] == "False"
        # Of a suspended source a queue may have taken the start away, which it gets back when it is resumed.
        is_reset = stored.wanted.suspend and stored.start is None
        if mirror.start and resumed and stored.verdict is None and not is_reset:
            assert mirror.start == rested.start


@given(worlds)
@thoroughly
def test_our_own_statuses_are_accepted_from_any_state(world: tuple[Random, int]) -> None:
    """D3, D5, D11: suspended, placed and lost, written once and then at rest."""
    random, length = world
    stored = some_history(random, length)
    worker = random.choice(("east", "west", None))
    written = {
        "suspended": (suspended_status(stored, NOW), lambda job: suspended_status(job, NOW)),
        "placed": (placed_status(stored, worker, NOW), lambda job: placed_status(job, worker, NOW)),
        "lost": (lost_status(stored, NOW, message="gone"), lambda job: lost_status(job, NOW, message="gone")),
    }

    for name, (status, again) in written.items():
        if status is not None:
            assert refusals(stored, status) == [], name
            assert served(status) == status
            assert again(after(stored, status)) is None, name
    lost, placed = written["lost"][0], written["placed"][0]
    assert (lost is None) == stored.is_finished
    assert placed_worker(placed if placed is not None else stored.status) == worker
    if lost is not None:
        assert_nothing_goes_back(stored, lost)
        assert verdict(lost) == (stored.verdict or "Failed")


@given(worlds)
@thoroughly
def test_a_finished_status_is_final(world: tuple[Random, int]) -> None:
    """Nothing a worker says afterwards changes anything."""
    random, length = world
    stored = some_history(random, length)
    stored = after(stored, lost_status(stored, NOW, message="gone"))

    following = next_status(replace(stored), some_worker_answer(random), now=NOW)

    assert following.status is None
