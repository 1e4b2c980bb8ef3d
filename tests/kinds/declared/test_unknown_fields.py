"""Entries whose paths are no fields of their kind are told, by the path of the key."""

from __future__ import annotations

from collections.abc import Collection

from mirror.kinds.declared.choosing import built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.declared.schemas import lacking_on_worker, unknown_fields, unusable
from mirror.model.field_paths import FieldPath
from mirror.settings.load import parse

OWN = b"""
kinds:
- kind: Simulation
  resource: simulations.v1.example.com
  suspend: {path: spec.pausd}
  started: [phase=Running, stge=Run or condition Ready=True]
  done: {succeeded: [phase=Done], failed: [condition Broken=True]}
  carry: {always: [spec.size, spec.colour]}
  theirs: ["metadata.annotations[example.com/*]"]
  templates: [spec.template]
  needs: [Secret spec.secretName]
  status: {drop: [note], complete: [size.unit], defaults: {stage: none}}
  counts: {active: [replicaz], failed: [active], ready: [raedy], desired: [spec.size, status.size]}
  autoscaling: {path: spec.elastic, theirs: [spec.size]}
  pods: {example.com/cluster: "{status.clster}", example.com/name: "{name}"}
  morePods: {example.com/of: "{status.phase}-{status.nowhere.x}"}
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
        "kinds[0].started[1]: status.stge is no field of Simulation",
        "kinds[0].status.defaults.stage: status.stage is no field of Simulation",
        "kinds[0].status.drop[0]: status.note is no field of Simulation",
        "kinds[0].status.complete[0]: status.size.unit is no field of Simulation",
        "kinds[0].counts.active[0]: status.replicaz is no field of Simulation",
        "kinds[0].counts.ready[0]: status.raedy is no field of Simulation",
        "kinds[0].counts.desired[1]: status.size is no field of Simulation",
        "kinds[0].autoscaling.path: spec.elastic is no field of Simulation",
        "kinds[0].pods.example.com/cluster: status.clster is no field of Simulation",
        "kinds[0].morePods.example.com/of: status.nowhere.x is no field of Simulation",
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


def test_what_nothing_works_without_is_told_apart() -> None:
    """Who runs it, how it is held, where our record is, how it ends; one of several ways to end is enough."""
    entry = entry_of(OWN, "Simulation").entry
    assert [one.path for one in unusable(entry, Known(*FIELDS))] == ["suspend.path"]
    assert [one.path for one in unusable(entry, Known())] == [
        "managedBy.path",
        "record",
        "suspend.path",
        "done.succeeded[0]",
        "done.failed[0]",
    ]
    several = OWN.replace(b"[phase=Done]", b"[phase=Done or state=Done]").replace(b"spec.pausd", b"spec.paused")
    assert unusable(entry_of(several, "Simulation").entry, Known(*FIELDS)) == []
    told = [one.path for one in unknown_fields(entry_of(several, "Simulation").entry, Known(*FIELDS))]
    assert told[:2] == ["done.succeeded[0]", "carry.always[1]"]


def test_a_worker_needs_what_mirrors_have() -> None:
    """Not who runs them, nor our record, which are the source's: an older release there runs mirrors all the same."""
    entry = entry_of(OWN, "Simulation").entry
    assert lacking_on_worker(entry, Known(*FIELDS)) == ("spec.pausd",)
    assert lacking_on_worker(entry, Known("spec.pausd", "status.phase", "status.conditions")) == ()
    assert lacking_on_worker(entry, Known()) == ("spec.pausd", "status.phase", "status.conditions")
    several = OWN.replace(b"[phase=Done]", b"[phase=Done or state=Done]")
    assert lacking_on_worker(entry_of(several, "Simulation").entry, Known(*FIELDS, "spec.pausd")) == ()
    for name, built in built_in().items():
        fields = lacking_on_worker(built, Known())
        assert not any("managedBy" in field for field in fields), name
