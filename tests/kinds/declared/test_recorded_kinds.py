"""Kinds as a manager records them: what is read is what was written."""

from __future__ import annotations

import pytest

from mirror.kinds import registry
from mirror.kinds.declared.choosing import BadKinds, built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.recorded import kinds_in, text_of
from mirror.kinds.registry import BUILT_IN, Kinds
from mirror.settings.kinds import KindEntry
from mirror.settings.load import parse

OWN = b"""
kinds:
- kind: Simulation
  resource: simulations.v1.example.com
  suspend: {path: spec.mode, held: paused, running: null}
  done: {succeeded: [phase=Done], failed: [phase=Broken]}
  status: {limit: 64Ki, defaults: {rounds: 0}}
  lost: {conditions: [{type: Broken}], set: {phase: Broken, completionTime: now}}
- {kind: MPIJob, managedBy: {value: example.com/own}}
- {kind: TrainJob, managedBy: {value: ""}, status: {maxConditions: 0}, needs: []}
"""


def entries(kinds: Kinds) -> list[KindEntry]:
    return [kind.entry for kind in kinds if isinstance(kind, DeclaredKind)]


@pytest.mark.parametrize("name", [*built_in()])
def test_what_is_built_in_comes_back(name: str) -> None:
    """Every field of the table."""
    kinds = kinds_of([KindEntry(kind=name)])
    assert entries(kinds_in(text_of(kinds))) == entries(kinds)


def test_what_is_declared_comes_back() -> None:
    """Sizes, values that are null, and what differs from the table, be it by having the default."""
    kinds = kinds_of(parse(OWN, "mirror.yaml").kinds)
    assert entries(kinds_in(text_of(kinds))) == entries(kinds)
    assert "managedBy" in text_of(kinds)


def test_jobs_alone_are_nothing_to_record() -> None:
    """So that a ConfigMap without the annotation means them."""
    assert text_of(BUILT_IN) == ""


def test_what_is_code_is_nothing_to_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one that is made of an entry: commands have the same code, and it would stand there twice."""
    (made,) = (kind for kind in kinds_of([KindEntry(kind="JobSet")]) if kind.name == "JobSet")
    monkeypatch.setattr(registry, "BUILT_IN", Kinds.of(registry.JOB, made))

    assert text_of(kinds_of([])) == ""
    told = text_of(kinds_of([KindEntry(kind="MPIJob")]))
    assert [kind.name for kind in kinds_in(told)] == ["Job", "JobSet", "MPIJob"]


@pytest.mark.parametrize("text", ["{", "[1]", '[{"kind": "JobSet", "colour": "red"}]', '[{"kind": "None"}]'])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    """A kind that is left out would be overlooked by a drain."""
    with pytest.raises(BadKinds):
        kinds_in(text)
