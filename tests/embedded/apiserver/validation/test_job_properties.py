"""What holds for any Job of right types, however odd: nothing raises, and preparing twice is preparing once."""

from __future__ import annotations

from copy import deepcopy
from random import Random

import pytest
from doubles.examples import examples
from hypothesis import given
from hypothesis import strategies as some

from mirror.embedded.apiserver.apimachinery.batch_schema import STRUCTS
from mirror.embedded.apiserver.apimachinery.errors import invalid
from mirror.embedded.apiserver.apimachinery.objects import canonical, same
from mirror.embedded.apiserver.registry.resources.jobs import warnings_of
from mirror.embedded.apiserver.validation.jobs import check_create, check_status_write, check_update
from tests.embedded.apiserver.validation.jobs import JOBS, NOW, Json, created, status_updated, updated

WORDS = (
    *("", "a", "A", "-", "a.b", "a/b", "example.com/x", "main", "é", "a=b", "..", "/x", "../y", "x:1", "0-2,5"),
    *("In", "NotIn", "Exists", "Gt", "Never", "Always", "OnFailure", "Indexed", "NonIndexed", "Failed", "FailJob"),
    *("FailIndex", "Count", "Localhost", "None", "windows", "linux", "Enabled", "metadata.labels['a']", "limits.cpu"),
    *("orphan", "foregroundDeletion", "10.0.0.1", "::1", "cpu", "hugepages-2Mi"),
)
NUMBERS = (-1, 0, 1, 2, 3, 80, 70_000, 100_001, 2**31)
KEYS = ("a", "A b", "example.com/x", "job-name", "cpu", "memory", "example.com/gpu", "hugepages-2Mi")
SCALARS: dict[str, tuple[object, ...]] = {
    "s": WORDS,
    "i": NUMBERS,
    "b": (True, False),
    "q": ("0", "1", "-1", "100m", "1.5Gi", "2Mi", "1e3", 3, 0.5),
    "t": (NOW, "2026-01-01T00:00:00.5+02:00"),
    "x": (*NUMBERS, *WORDS),
    "?": (None,),
}


def value(random: Random, kind: str) -> object:
    """Any value of this type of the schema, null included."""
    kind = kind.strip("*!")
    if random.random() < 0.1:
        return None
    if kind.startswith("["):
        return [value(random, kind[1:-1]) for _ in range(random.randrange(4))]
    if kind.startswith("{"):
        return {random.choice(KEYS): value(random, kind[1:-1]) for _ in range(random.randrange(4))}
    return struct(random, kind) if kind in STRUCTS else random.choice(SCALARS[kind])


def struct(random: Random, name: str) -> Json:
    """A struct with a few of its fields."""
    fields = random.sample(sorted(STRUCTS[name].items()), min(4, len(STRUCTS[name])))
    return {field: value(random, kind) for field, kind in fields}


def some_job(random: Random) -> Json:
    container = {"name": "main", "image": "x", **struct(random, "Container")}
    pod = {"restartPolicy": "Never", "containers": [container], **struct(random, "PodSpec")}
    template = {"metadata": struct(random, "ObjectMeta"), "spec": pod}
    return {
        "metadata": {"name": "train", "namespace": "team", **struct(random, "ObjectMeta")},
        "spec": {"template": template, **struct(random, "JobSpec")},
        "status": struct(random, "JobStatus"),
    }


# A random source of ours, because drawing each field from hypothesis takes a hundred times as long as what is tested.
randoms = some.integers(min_value=0, max_value=2**32).map(Random)
jobs = randoms.map(some_job)


@pytest.mark.slow
@examples(300, deadline=None)
@given(jobs, jobs)
def test_nothing_raises_and_inputs_stay(one: Json, other: Json) -> None:
    before = deepcopy((one, other))

    made = created(one)
    violations = check_create(made)
    invalid("Job", "batch", made["metadata"].get("name", ""), violations)
    warnings_of(made, None)
    old = JOBS.served(made)
    new = updated(other, old)
    check_update(new, old)
    warnings_of(new, old)
    written = status_updated(other, old)
    check_status_write(written, old)

    assert before == (one, other)


@examples(200, deadline=None)
@given(jobs)
def test_preparing_what_was_stored_changes_nothing(one: Json) -> None:
    """DF1: what storage gives back is defaulted again."""
    first = JOBS.served(created(one))
    second = JOBS.served(created(first))

    # Some empty lists are read, since they are refused; storage never has them.
    assert same(first, second)


@examples(200, deadline=None)
@given(jobs)
def test_a_job_put_back_as_it_is_has_the_generation_it_had(one: Json) -> None:
    """DF11, DF15."""
    old = JOBS.served(created(one))

    assert same(old, JOBS.served(updated(old, old)))


@examples(200, deadline=None)
@given(jobs)
def test_decoding_twice_is_decoding_once(one: Json) -> None:
    found = canonical(one)

    assert found == canonical(found)
    assert JOBS.served(found) == JOBS.served(JOBS.served(found))
