"""``mirror kinds``, and what ``mirror check-config`` says of kinds."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from mirror.cli.main import main

FILE = """
managedBy: example.com/mirror
kinds:
- JobSet
- kind: Simulation
  resource: simulations.v1.example.com
  done: {succeeded: [phase=Done], failed: [phase=Broken]}
  lost: {set: {phase: Broken}}
"""


def test_what_is_built_in_is_listed() -> None:
    """With resource, where it says who runs it, and by which value it is ours."""
    result = CliRunner().invoke(main, ["kinds"])
    assert result.exit_code == 0
    heading, job, first, *_ = (line.split() for line in result.output.splitlines())
    assert (heading[0], job[0]) == ("KIND", "Job")
    assert first == ["JobSet", "jobsets.v1alpha2.jobset.x-k8s.io", "spec.managedBy", "setting", "managedBy"]
    assert "kueue.x-k8s.io/multikueue" in result.output


def test_what_a_file_enables_is_listed_first(tmp_path: Path) -> None:
    """Jobs among it; what is built in and not enabled follows."""
    file = tmp_path / "mirror.yaml"
    file.write_text(FILE)
    result = CliRunner().invoke(main, ["kinds", "--config", str(file)])
    assert result.exit_code == 0
    rows = [line.split() for line in result.output.splitlines()[1:]]
    assert [(row[0], row[-1]) for row in rows][:4] == [
        ("Job", "yes"),
        ("JobSet", "yes"),
        ("Simulation", "yes"),
        ("MPIJob", "no"),
    ]
    assert rows[2][1:4] == ["simulations.v1.example.com", "spec.managedBy", "example.com/mirror"]


def test_a_kind_that_is_wrong_is_told_by_every_command_that_reads_settings(tmp_path: Path) -> None:
    """With the path of the key; exit code 2."""
    file = tmp_path / "mirror.yaml"
    file.write_text("kinds: [JobSets]")
    for command in (["check-config", str(file)], ["kinds", "--config", str(file)], ["run", "--config", str(file)]):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 2
        assert f"{file}: kinds[0]: JobSets is not built in (did you mean JobSet?)" in result.output


def test_a_kind_that_is_recorded_by_annotation_is_refused_with_several_slots(tmp_path: Path) -> None:
    """Who trusts such a record looks at all workers (D25), and each manager is connected to its own only."""
    file = tmp_path / "mirror.yaml"
    text = "kinds: [JobSet, RayJob]\n"
    file.write_text(text)
    assert CliRunner().invoke(main, ["check-config", str(file)]).exit_code == 0
    file.write_text(f"{text}sharding: {{slots: 4}}\n")
    for command in (["check-config", str(file)], ["run", "--config", str(file)]):
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 2
        assert f"{file}: kinds[1].record: a record by annotation cannot be used yet" in result.output
        assert "kinds[0]" not in result.output
