"""What goes along when a Job moves: joined into a new mirror's status, clipped, never counted twice (D14)."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from doubles.jobs import as_object, job

from mirror.batch import indexes
from mirror.batch.status_rules import check_status_update
from mirror.kinds.base import MirrorTransform
from mirror.kinds.batch_job.kind import BatchJob
from mirror.kinds.batch_job.seeding import held_body
from mirror.model import names

Json = dict[str, Any]

KIND = BatchJob()
INDEXED = {"completionMode": "Indexed", "completions": 10, "parallelism": 2}
PER_INDEX = INDEXED | {"backoffLimitPerIndex": 1}
SUSPENDED = {"type": "Suspended", "status": "True", "reason": "JobSuspended"}


def source_of(spec: Json, status: Json) -> Any:
    body = job(**spec) | {"status": status}
    body["metadata"] |= {"uid": "u-1"}
    return KIND.stored(as_object(body))


def mirror_of(status: Json | None = None, **more: Any) -> Any:
    body = job(annotations={names.SEED: names.SEED_PENDING}, suspend=True, managed_by=None) | {"status": status or {}}
    return as_object(body | more)


@pytest.mark.parametrize(
    ("spec", "status", "seed"),
    [
        pytest.param(
            INDEXED,
            {"completedIndexes": "0-4", "succeeded": 5, "failed": 2},
            {"completedIndexes": "0-4", "succeeded": 5, "failed": 2},
            id="44: finished indexes",
        ),
        pytest.param({"completions": 5}, {"succeeded": 3}, {"succeeded": 3, "failed": 0}, id="45: three of five"),
        pytest.param({}, {"failed": 2}, {"succeeded": 0, "failed": 2}, id="46: failures alone"),
        pytest.param(
            INDEXED | {"completions": 4, "parallelism": 4},
            {"completedIndexes": "0-7", "succeeded": 8},
            {"completedIndexes": "0-3", "succeeded": 4, "failed": 0},
            id="49: clipped to the completions of now",
        ),
        pytest.param(
            PER_INDEX,
            {"completedIndexes": "1", "failedIndexes": "0,1,3", "succeeded": 1},
            {"completedIndexes": "1", "failedIndexes": "0,3", "succeeded": 1, "failed": 0},
            id="completed wins over failed",
        ),
        pytest.param(
            {"parallelism": 3},
            {"succeeded": 1, "failed": 1},
            {"succeeded": 1, "failed": 1},
            id="one completion",
        ),
    ],
)
def test_what_was_counted_is_joined(spec: Json, status: Json, seed: Json) -> None:
    """Into the status as it is there; once it is there, nothing is left to do."""
    if spec == {"parallelism": 3}:
        spec, seed = spec | {"completions": None}, seed | {"succeeded": 0}  # a work queue: one success would end it
    source = source_of(spec, status)
    there = {"conditions": [SUSPENDED]}

    seeded = source.seeded_status(mirror_of(there))

    assert source.has_seed
    assert seeded == there | seed
    assert source.seeded_status(mirror_of(seeded)) is None


@pytest.mark.parametrize("status", [{}, {"startTime": "2026-03-01T12:00:00Z", "active": 1}], ids=["new", "running"])
def test_nothing_counted_is_no_seed(status: Json) -> None:
    """Such a mirror is not held at all."""
    assert not source_of(INDEXED, status).has_seed


def test_what_the_mirror_has_more_stays() -> None:
    """A union and a maximum, never a sum."""
    source = source_of(INDEXED, {"completedIndexes": "0-2", "succeeded": 3, "failed": 1})

    seeded = source.seeded_status(mirror_of({"completedIndexes": "2,5", "succeeded": 2, "failed": 4}))

    assert seeded == {"completedIndexes": "0-2,5", "succeeded": 4, "failed": 4}


def test_joining_twice_is_joining_once_and_the_api_takes_it() -> None:
    """Whatever is stored: by random histories, and by the API's own rules."""
    for seed in range(400):
        random = Random(seed)
        spec = dict(random.choice((INDEXED, PER_INDEX, {"completions": 6}, {"completions": 3, "parallelism": 3})))
        completions = spec["completions"]
        done, failed = (sorted(random.sample(range(12), random.randrange(6))) for _ in range(2))
        status: Json = {"failed": random.randrange(4)}
        if "completionMode" in spec:
            text = indexes.write(tuple((one, one) for one in done))
            status |= {"completedIndexes": text, "failedIndexes": indexes.write(tuple((one, one) for one in failed))}
        else:
            status["succeeded"] = random.randrange(completions)
        source = source_of(spec, status)
        if not source.has_seed:
            continue
        first = source.seeded_status(mirror_of())
        assert first is not None
        assert check_status_update({"spec": spec | {"suspend": True}}, first) == []
        assert source.seeded_status(mirror_of(first)) is None
        if "completionMode" in spec:
            assert first["succeeded"] == len([one for one in done if one < completions])


def test_a_held_mirror_is_suspended_and_says_why() -> None:
    """Noted as it was sent: that it shall run is then a change of its source (D9)."""
    source = as_object(job() | {"status": {}})
    body = KIND.mirror_body(source, namespace="default", transform=MirrorTransform(origin="o"))

    held = held_body(body)
    changes = KIND.changes(source, as_object(held), transform=MirrorTransform(origin="o"))

    assert held["spec"]["suspend"] is True
    assert held["metadata"]["annotations"][names.SEED] == "pending"
    assert changes is not None
    assert ("/spec/suspend", False) in [(one["path"], one["value"]) for one in changes.operations]


@pytest.mark.parametrize(
    "mirror",
    [
        pytest.param(mirror_of({"startTime": "2026-03-01T12:00:00Z"}), id="it has run"),
        pytest.param(mirror_of({"active": 1}), id="it has pods"),
        pytest.param(mirror_of({"conditions": [{"type": "FailureTarget", "status": "True"}]}), id="it ends"),
        pytest.param(as_object(job(suspend=True)), id="not ours to seed"),
        pytest.param(as_object(job(annotations={names.SEED: "pending"})), id="somebody resumed it"),
        pytest.param(as_object(job(annotations={names.SEED: "done"}, suspend=True)), id="it has it"),
    ],
)
def test_what_is_not_held(mirror: Any) -> None:
    """Only a mirror that was made for it, and of which nothing has run."""
    assert KIND.is_held_for_seed(mirror_of({"conditions": [SUSPENDED]}))
    assert not KIND.is_held_for_seed(mirror)
