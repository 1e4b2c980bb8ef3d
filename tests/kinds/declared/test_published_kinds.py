"""What a manager tells of its kinds, and what a user's command makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from declared_objects import job_set, source_of

from mirror.cli.user.sources import is_source
from mirror.kinds.declared import published
from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.registry import BUILT_IN, Kinds
from mirror.settings.load import parse

SIMULATION = """
kinds:
- JobSet
- {kind: MPIJob, status: {limit: 64Ki}}
- {kind: TrainJob, managedBy: {value: ""}, pods: {}}
- kind: Simulation
  resource: simulations.v1beta1.example.com
  shortNames: [sim]
  managedBy: {path: spec.run.managedBy}
  suspend: {path: spec.state, held: Held, running: null}
  done: {succeeded: [phase=Done], failed: [phase=Broken|Lost]}
  lost: {set: {phase: Lost}}
  pods: {example.com/simulation: "{name}"}
  sample: {state: Held}
"""


def kinds_read(text: str) -> Kinds:
    found = published.read(text, BUILT_IN)
    assert found is not None
    return found.kinds


def entry_of(kinds: Kinds, name: str) -> Any:
    kind = kinds[name]
    assert isinstance(kind, DeclaredKind)
    return kind.entry


def test_what_is_told_is_what_the_settings_say() -> None:
    """Built-in ones, changed ones and declared ones; but what only a manager needs is not told."""
    settings = parse(SIMULATION.encode(), "mirror.yaml")
    text = published.written(settings.kinds)
    told, own = kinds_read(text), kinds_of(settings.kinds)

    names = ["Job", "JobSet", "MPIJob", "TrainJob", "Simulation"]
    assert [kind.name for kind in told] == [kind.name for kind in own] == names
    for name in ("JobSet", "MPIJob", "TrainJob"):
        assert entry_of(told, name) == entry_of(own, name)
    assert "sample" not in text
    assert told.named("sim").name == "Simulation"
    assert entry_of(told, "Simulation").suspend == entry_of(own, "Simulation").suspend


@pytest.mark.parametrize("name", built_in())
def test_a_kind_that_is_built_in_is_told_by_its_name(name: str) -> None:
    """A short text, which another version reads by its own table."""
    text = json.dumps([name])
    assert entry_of(kinds_read(text), name) == built_in()[name]


@pytest.mark.parametrize(
    "one",
    [
        {"kind": "Simulation", "resource": "simulations.v1.example.com", "later": True},
        {"kind": "Simulation", "resource": "nonsense"},
        {"kind": "Simulation", "done": 7},
        "Simulation",
    ],
    ids=["a field of a later version", "a malformed resource", "a malformed field", "not built in here"],
)
def test_what_is_not_understood_is_left_out_and_named(one: object) -> None:
    """The others are known nevertheless."""
    found = published.read(json.dumps([one, "JobSet"]), BUILT_IN)

    assert found is not None
    assert [kind.name for kind in found.kinds] == ["Job", "JobSet"]
    assert found.left_out == ("Simulation",)


@pytest.mark.parametrize("one", [7, None, [], {}, {"kind": 7}, {"kind": "x" * 5000}])
def test_anything_may_stand_there(one: object) -> None:
    """Its name is short in any case."""
    found = published.read(json.dumps([one]), BUILT_IN)

    assert found is not None
    assert list(found.kinds) == list(BUILT_IN)
    assert [len(name) <= 2 * published.LONGEST_NAME for name in found.left_out] == [True]


@pytest.mark.parametrize("text", ["", "{}", "7", "[", "nonsense"])
def test_what_is_no_list_tells_nothing(text: str) -> None:
    """As if the manager had not told."""
    assert published.read(text, BUILT_IN) is None


def test_jobs_are_there_once_whatever_is_told() -> None:
    """The name alone is no mistake."""
    found = published.read('["Job", "JobSet", "JobSet"]', BUILT_IN)

    assert found is not None
    assert ([kind.name for kind in found.kinds], found.left_out) == (["Job", "JobSet"], ())


def test_without_a_word_of_the_manager_what_is_served_may_be_its() -> None:
    """An object that names MultiKueue alone is not taken for ours."""
    found = published.guessed(BUILT_IN, ["apps/v1", "jobset.x-k8s.io/v1alpha2", "trainer.kubeflow.org/v1alpha1"])

    assert [kind.name for kind in found] == ["Job", "JobSet", "TrainJob"]
    assert is_source(found["JobSet"], source_of(found["JobSet"], job_set()))
    theirs = source_of(found["TrainJob"], {"managedBy": "kueue.x-k8s.io/multikueue"})
    assert not is_source(found["TrainJob"], theirs)
    assert is_source(kinds_read('["TrainJob"]')["TrainJob"], theirs)
