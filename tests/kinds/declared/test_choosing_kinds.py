"""Which kinds a manager mirrors: names of the table, and what the settings declare."""

from __future__ import annotations

import pytest
from declared_objects import condition, source_of
from doubles import drills
from msgspec.structs import replace

from mirror.controllers.mirroring_settings import mirroring_settings
from mirror.kinds import registry
from mirror.kinds.declared.choosing import BadKinds, built_in, kinds_of
from mirror.kinds.declared.kind import DeclaredKind
from mirror.kinds.registry import Kinds
from mirror.model import names
from mirror.settings.kinds import KindEntry
from mirror.settings.load import SettingsError, parse

OWN = """
- kind: Simulation
  resource: simulations.v1beta1.example.com
  suspend: {path: spec.run.paused}
  managedBy: {path: spec.run.by, value: example.com/mirror}
  done: {succeeded: [phase=Done], failed: [phase=Broken|Lost]}
  lost: {set: {phase: Lost}}
"""


def chosen(text: str) -> Kinds:
    """The kinds of a manager with these settings."""
    return kinds_of(parse(f"kinds: {text}".encode(), "f").kinds)


def problems(text: str) -> list[str]:
    """What is wrong, with the paths of the keys."""
    try:
        chosen(text)
    except (BadKinds, SettingsError) as error:
        return [str(one) for one in error.problems]
    return []


def test_without_the_setting_jobs_alone_are_mirrored() -> None:
    """As before there were others."""
    settings = mirroring_settings(parse(b"", "f"), management_uid="u", server_knows_rule_names=False)
    assert [kind.name for kind in settings.kinds] == ["Job"]


def test_a_name_switches_a_kind_on_and_jobs_stay() -> None:
    """In their order; Job may be named, too."""
    settings = parse(b"kinds: [Job, JobSet, MPIJob]", "f")
    kinds = mirroring_settings(settings, management_uid="u", server_knows_rule_names=False).kinds
    assert [kind.name for kind in kinds] == ["Job", "JobSet", "MPIJob"]
    assert kinds["JobSet"].resource.path("team", "a") == "/apis/jobset.x-k8s.io/v1alpha2/namespaces/team/jobsets/a"


def test_one_of_the_table_can_be_had_otherwise() -> None:
    """Only what is said differs, within a part of it, too."""
    kind = chosen("\n- {kind: TrainJob, managedBy: {value: example.com/x}, status: {limit: 64Ki}}")["TrainJob"]
    assert isinstance(kind, DeclaredKind)
    assert (kind.managed_by_value, kind.managed_by_field) == ("example.com/x", "spec.managedBy")
    assert (kind.entry.status.limit_bytes, kind.entry.status.max_conditions) == (64 * 1024, 8)
    by_resource = chosen("\n- {resource: jobsets.v1alpha2.jobset.x-k8s.io, theirs: [spec.network]}")["JobSet"]
    assert isinstance(by_resource, DeclaredKind)
    assert by_resource.entry.theirs == ("spec.network",)


def test_an_operator_may_say_that_multikueue_dispatches_none() -> None:
    """Of a built-in kind, too; of one that does not name it the field would mean nothing."""
    for text, is_shared in (("TrainJob", True), ("{kind: TrainJob, besideKueue: true}", False)):
        kind = chosen(f"\n- {text}")["TrainJob"]
        assert isinstance(kind, DeclaredKind)
        assert (kind.managed_by_value, kind.is_shared) == (names.MULTIKUEUE_MANAGED_BY, is_shared)
    with pytest.raises(BadKinds, match=r"^kinds\[0\].besideKueue: has no effect where managedBy.value is not kueue"):
        chosen("\n- {kind: JobSet, besideKueue: true}")


RESET = """
- kind: TrainJob
  managedBy: {value: ""}
  suspend: {path: ""}
  done: {withdrawable: []}
  status: {maxConditions: 0, own: first}
- {kind: PyTorchJob, theirs: [], pods: {}, timeToLive: "", carry: {suspended: []}}
- {kind: RayJob, record: condition, requires: [], lost: {conditions: [], zero: []}}
- {kind: RayCluster, done: {never: false, succeeded: [state=done], failed: [state=failed]}}
"""


def reset_kinds() -> dict[str, KindEntry]:
    """The entries of kinds of the table, fields of which have their default again."""
    return {kind.name: kind.entry for kind in chosen(RESET) if isinstance(kind, DeclaredKind)}


def test_what_a_mapping_names_holds_even_if_it_is_the_default() -> None:
    """What is said counts, not what differs from the default; beside it the table's stays."""
    found, table = reset_kinds(), built_in()
    train, torch, ray, cluster = (found[name] for name in ("TrainJob", "PyTorchJob", "RayJob", "RayCluster"))

    assert (train.managed_by.value, train.managed_by.since) == ("", table["TrainJob"].managed_by.since)
    assert (train.suspend.path, train.status.max_conditions) == ("", 0)
    assert train.done == replace(table["TrainJob"].done, withdrawable=())
    assert (torch.theirs, torch.pods, torch.time_to_live) == ((), {}, "")
    assert torch.carry == replace(table["PyTorchJob"].carry, suspended=())
    assert (ray.record, ray.requires, ray.lost) == ("condition", (), replace(table["RayJob"].lost, zero=()))
    assert (cluster.done.never, cluster.done.succeeded) == (False, ("state=done",))


def test_an_empty_part_changes_nothing() -> None:
    """A mapping without a key says nothing, nor does one that only repeats the table."""
    entry = chosen("\n- {kind: TrainJob, status: {}, carry: {}, done: {}}")["TrainJob"]
    assert isinstance(entry, DeclaredKind)
    assert entry.entry == built_in()["TrainJob"]


def test_one_of_ones_own_is_declared_in_six_lines() -> None:
    """Everything that is asked of a kind follows from them."""
    kind = chosen(OWN)["Simulation"]
    found = source_of(kind, {"run": {"by": "example.com/mirror", "paused": True}}, {"phase": "Done"})
    assert kind.managed_by(found) == kind.managed_by_value
    assert kind.is_suspended(found)
    assert kind.progress(found).end == "Complete"
    assert kind.set_suspended(False) == {"op": "add", "path": "/spec/run/paused", "value": False}
    assert kind.progress(source_of(kind, {}, {"conditions": [condition("Failed")]})).end == ""


WRONG = {
    "a name nearly right": ("[JobSets]", ["kinds[0]: JobSets is not built in (did you mean JobSet?)"]),
    "an unknown key": ("\n- {kind: JobSet, carries: {}}", ["kinds[0].carries: unknown key (did you mean carry?)"]),
    "no kind": ("\n- {done: {}}", ["kinds[0].kind: is missing"]),
    "no end": (OWN.replace("done: {", "done: {}  #"), ["kinds[0].done.succeeded: is missing", "kinds[0].done.failed"]),
    "an end of what never ends": (
        OWN.replace("done: {", "done: {never: true, "),
        ["kinds[0].done.succeeded: contradicts done.never", "kinds[0].done.failed: contradicts done.never"],
    ),
    "an end that is withdrawn, and nothing to hold it by": (
        OWN.replace("failed: [", "withdrawable: [phase=Broken], failed: [").replace(
            "  suspend: {path: spec.run.paused}", ""
        ),
        ["kinds[0].done.withdrawable: without suspend.path nothing keeps a mirror from beginning anew"],
    ),
    "a withdrawal of what never ends": (
        "\n- {kind: RayCluster, done: {withdrawable: [state=failed]}}",
        ["kinds[0].done.withdrawable: contradicts done.never"],
    ),
    "an alternative that is none": (
        OWN.replace("phase=Done", "phase=Done or so"),
        ["kinds[0].done.succeeded[0]: expected a clause"],
    ),
    "a requirement without a way out": (
        "\n- {kind: JobSet, requires: [{path: spec.network}]}",
        ["kinds[0].requires[0].because: is missing"],
    ),
    "a record elsewhere": (
        "\n- {kind: JobSet, record: label}",
        ["kinds[0].record: expected one of condition, annotation"],
    ),
    "an end that is none": (OWN.replace("phase: Lost", "phase: Odd"), ["kinds[0].lost: must make a status"]),
    "a path that is none": (
        OWN.replace("spec.run.paused", "spec.run-paused"),
        ["kinds[0].suspend.path: expected the path of a field"],
    ),
    "a path elsewhere": (OWN.replace("spec.run.by", "metadata.name"), ["kinds[0].managedBy.path: expected one field"]),
    "a clause that is none": (OWN.replace("phase=Done", "phase is Done"), ["kinds[0].done.succeeded[0]: expected"]),
    "a clause of nothing": (OWN.replace("phase=Done", "phase="), ["kinds[0].done.succeeded[0]: expected a clause"]),
    "a need of nothing, two places, a path that is none": (
        "\n- {kind: TaskRun, needs: [Task, Task tasks.v1.tekton.dev spec.a spec.b, Task spec-a]}",
        [f"kinds[0].needs[{at}]: expected KIND PATH or KIND PLURAL.VERSION.GROUP PATH" for at in range(2)]
        + ["kinds[0].needs[2]: "],
    ),
    "a need of a resource that is none": (
        "\n- {kind: TaskRun, needs: [Task tasks.v1.tekton.dev]}",
        ["kinds[0].needs[0]: expected KIND PATH or KIND PLURAL.VERSION.GROUP PATH"],
    ),
    "a beginning that an empty status has": (
        OWN + "  started: [phase!=Queued]\n",
        ["kinds[0].started: holds of an object without a status", "kinds[0].started: holds of what suspended makes"],
    ),
    "a beginning that a lost one has for ever": (
        "\n- {kind: RayCluster, started: [state=lost], lost: {set: {state: lost}}}",
        ["kinds[0].started: holds of what lost makes"],
    ),
    "a resource of a need with a mistake": (
        "\n- {kind: TaskRun, needs: [Task tasks.tekton.dev spec.taskRef.name]}",
        ["kinds[0].needs[0]: expected KIND PATH or KIND PLURAL.VERSION.GROUP PATH"],
    ),
    "another's resource": (
        "\n- {kind: JobSet, resource: sets.v1.example.com}",
        ["kinds[0].resource: JobSet is built in with jobsets.v1alpha2.jobset.x-k8s.io"],
    ),
    "twice": ("[JobSet, JobSet]", ["kinds[1].kind: JobSet stands there twice"]),
    "one resource twice": (
        OWN + OWN.replace("Simulation", "Other"),
        ["kinds[1].resource: simulations.example.com stands there twice"],
    ),
    "Jobs by another name": (
        OWN.replace("simulations.v1beta1.example.com", "jobs.v1.batch"),
        ["kinds[0].resource: jobs.batch are mirrored anyway"],
    ),
    "Job with something": ("\n- {kind: Job, theirs: [spec.x]}", ["kinds[0].kind: batch/v1 Jobs are mirrored anyway"]),
    "no list": (" JobSet", ["kinds: expected a list"]),
    "a number": ("[5]", ["kinds[0]: expected a mapping"]),
}


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_with_its_path(text: str, expected: list[str]) -> None:
    """All of it at once."""
    found = problems(text)
    assert len(found) == len(expected), found
    for one, start in zip(found, expected, strict=True):
        assert one.startswith(start)


def test_a_kind_in_code_stays_beside_those_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line in ``registry`` is enough, whatever a file enables; it is named and checked as Job is."""
    monkeypatch.setattr(registry, "BUILT_IN", drills.KINDS)

    assert [kind.name for kind in chosen("[JobSet]")] == ["Job", "Drill", "JobSet"]
    assert [kind.name for kind in chosen("[Drill, JobSet]")] == ["Job", "Drill", "JobSet"]
    assert problems("\n- {kind: Drill, theirs: [spec.x]}")[0].startswith("kinds[0].kind: example.com/v1 Drills are")
    drills_again = OWN.replace("simulations.v1beta1.example.com", "drills.v1.example.com")
    assert problems(drills_again) == ["kinds[0].resource: drills.example.com are mirrored anyway; remove this entry"]
