"""Entries whose paths are no fields of their kind are told, by the path of the key."""

from __future__ import annotations

from collections.abc import Collection

from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.schemas import unknown_fields
from mirror.model.field_paths import FieldPath
from mirror.settings.load import parse

OWN = b"""
kinds:
- kind: Simulation
  resource: simulations.v1.example.com
  suspend: {path: spec.pausd}
  done: {succeeded: [phase=Done], failed: [condition Broken=True]}
  carry: {always: [spec.size, spec.colour]}
  theirs: ["metadata.annotations[example.com/*]"]
  templates: [spec.template]
  needs: [Secret spec.secretName]
  counts: {active: [active], ready: [raedy], desired: [spec.size, status.size]}
  lost: {conditions: [{type: Broken}], set: {finishd: now}, zero: [active]}
"""
FIELDS = (
    "spec.managedBy",
    "spec.paused",
    "status.phase",
    "status.conditions",
    "spec.size",
    "spec.template",
    "status.active",
)


class Known:
    """A schema with these fields."""

    def __init__(self, *fields: str) -> None:
        self._fields: Collection[str] = fields

    def missing(self, path: FieldPath) -> str:
        return "" if path.text in self._fields else path.text


def entry_of(settings: bytes, name: str) -> DeclaredKind:
    kind = kinds_of(parse(settings, "mirror.yaml").kinds)[name]
    assert isinstance(kind, DeclaredKind)
    return kind


def test_every_path_that_leads_nowhere_is_named() -> None:
    """With its key; annotations of the worker's are in every object."""
    found = unknown_fields(entry_of(OWN, "Simulation").entry, Known(*FIELDS), path="kinds[0]")
    assert list(map(str, found)) == [
        "kinds[0].suspend.path: spec.pausd is no field of Simulation",
        "kinds[0].carry.always[1]: spec.colour is no field of Simulation",
        "kinds[0].needs[0]: spec.secretName is no field of Simulation",
        "kinds[0].counts.ready[0]: status.raedy is no field of Simulation",
        "kinds[0].counts.desired[1]: status.size is no field of Simulation",
        "kinds[0].lost.set.finishd: status.finishd is no field of Simulation",
    ]


def test_the_table_is_for_several_releases() -> None:
    """Of a kind that is built in only what nothing works without is told, and what the settings add."""
    known = Known("spec.managedBy", "spec.suspend", "status.conditions")
    assert unknown_fields(built_in()["JobSet"], known) == []
    older = Known("spec.suspend", "status.conditions")
    assert [one.path for one in unknown_fields(built_in()["JobSet"], older)] == ["managedBy.path"]
    added = entry_of(b"kinds: [{kind: JobSet, strip: [spec.size]}]", "JobSet").entry
    assert [one.path for one in unknown_fields(added, known)] == ["strip[0]"]
