"""The workflows of .github and the pre-commit hooks, as far as a reader can judge: what they may do, and what they run.

Not here: their syntax and their scripts (``e2e/test_workflows.py``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

TOP = Path(__file__).parents[2]
WORKFLOWS = {file.name: yaml.safe_load(file.read_text()) for file in sorted((TOP / ".github/workflows").iterdir())}
MAKEFILE = (TOP / "Makefile").read_text()
WRITES = {
    ("release.yaml", "image"): {"packages"},
    ("release.yaml", "chart"): {"packages"},
    ("release.yaml", "python-package-index"): {"id-token"},
    ("release.yaml", "github-release"): {"contents"},
}
"""The jobs that may write, and what. All others read the sources."""


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, workflow in WORKFLOWS.items():
        for job, body in workflow["jobs"].items():
            yield name, job, body


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, _, job in jobs():
        yield from ((name, step) for step in job["steps"])


def test_permissions_are_the_least() -> None:
    """None for a workflow as a whole; each job's own, of which few write."""
    assert [name for name, workflow in WORKFLOWS.items() if workflow["permissions"] != {}] == []
    writes = {
        (name, job): {what for what, level in body["permissions"].items() if level == "write"}
        for name, job, body in jobs()
    }
    assert {place: what for place, what in writes.items() if what} == WRITES
    levels = {(what, level) for _, _, body in jobs() for what, level in body["permissions"].items() if level != "write"}
    assert levels == {("contents", "read")}


def test_what_publishes_does_so_for_tags_only() -> None:
    """A workflow that is started by hand publishes nothing."""
    for name, job in WRITES:
        body = WORKFLOWS[name]["jobs"][job]
        if job == "image":
            by_use = {step.get("uses", "").partition("@")[0]: step for step in body["steps"]}
            assert by_use["docker/login-action"]["if"] == "github.ref_type == 'tag'"
            assert by_use["docker/build-push-action"]["with"]["push"] == "${{ github.ref_type == 'tag' }}"
        elif job == "github-release":
            assert {"chart", "python-package-index"} <= set(body["needs"])
        else:
            assert body["if"] == "github.ref_type == 'tag'"


def test_strangers_code_gets_no_secrets() -> None:
    """Pull requests run as themselves, and no step leaves a token in the checkout."""
    for workflow in WORKFLOWS.values():
        assert "pull_request_target" not in workflow[True]  # YAML 1.1 reads the key `on` so
    checkouts = [step for _, step in steps() if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert [step for step in checkouts if step["with"].get("persist-credentials") is not False] == []


def test_actions_are_pinned_by_commit() -> None:
    """A tag can be moved; the comment says which version it is. One action, one commit everywhere."""
    used: dict[str, set[str]] = {}
    for file in (TOP / ".github/workflows").iterdir():
        for line in file.read_text().splitlines():
            if "uses:" in line:
                found = re.fullmatch(r" +(?:- )?uses: ([\w./-]+)@([0-9a-f]{40} # v\d+\.\d+\.\d+)", line)
                assert found, f"{file.name}: {line.strip()}"
                used.setdefault(found[1], set()).add(found[2])
    assert used
    assert {action: commits for action, commits in used.items() if len(commits) > 1} == {}


def test_scripts_have_no_expressions() -> None:
    """The name of a branch or an input would become a part of the script; by the environment it stays a text."""
    assert [step["run"] for _, step in steps() if "${{" in step.get("run", "")] == []


def test_every_job_has_an_end() -> None:
    """Without a limit a job that hangs takes six hours."""
    assert [(name, job) for name, job, body in jobs() if body.get("timeout-minutes", 360) > 120] == []


def test_what_they_run_is_in_the_tree() -> None:
    """Targets of make, and programs by their path."""
    lines = [line.strip() for _, step in steps() for line in step.get("run", "").splitlines()]
    targets = {target for line in lines for target in re.findall(r"^make (\S+)$", line)}
    files = {file for line in lines for file in re.findall(r"(?:\.ci|deploy|e2e)/[\w./-]+", line)}

    assert targets >= {"static", "units", "dist", "build-controlplane"}
    assert [target for target in targets if not re.search(rf"(?m)^{target}:", MAKEFILE)] == []
    assert files == {".ci/run", "e2e/kind/run.sh", "deploy/release.py", "deploy/krew/build.sh"}
    assert [file for file in files if not (TOP / file).is_file()] == []


def test_the_oldest_python_is_checked() -> None:
    """That of pyproject.toml; and tests run on the image's."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    versions = WORKFLOWS["check.yaml"]["jobs"]["check"]["strategy"]["matrix"]["python"]
    base = re.search(r"^ARG BASE=(python:[\d.]+)-slim-(\w+)$", (TOP / "deploy/image/Dockerfile").read_text(), re.M)

    assert f">={versions[0]}" == project["requires-python"]
    assert base is not None
    assert WORKFLOWS["check.yaml"]["jobs"]["test"]["container"] == f"{base[1]}-{base[2]}"


@pytest.mark.parametrize("file", sorted((TOP / ".github/ISSUE_TEMPLATE").glob("*.yaml")), ids=lambda file: file.name)
def test_issue_forms_are_complete(file: Path) -> None:
    """Each has what the host demands of a form: a name, a description, and fields with distinct ids and labels."""
    form = yaml.safe_load(file.read_text())
    fields = [field for field in form["body"] if field["type"] != "markdown"]

    assert form["name"]
    assert form["description"]
    assert {field["type"] for field in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    assert len({field["id"] for field in fields}) == len({field["attributes"]["label"] for field in fields})
    assert len({field["id"] for field in fields}) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_hooks_are_the_checks_of_make() -> None:
    """`pre-commit` runs what `make check` runs, in the same order, with the project's own tools."""
    recipes = [re.search(rf"(?ms)^{target}: .*?\n(.*?)\n\n", MAKEFILE) for target in ("static", "check")]
    variables = {"$(PY)": ".venv/bin/python", "$(VENV)": ".venv"}
    lines = [line.strip() for recipe in recipes if recipe for line in recipe[1].splitlines()]
    commands = [line for line in lines if "$(call" not in line]
    for name, value in variables.items():
        commands = [command.replace(name, value) for command in commands]
    (repository,) = yaml.safe_load((TOP / ".pre-commit-config.yaml").read_text())["repos"]
    first, *hooks = repository["hooks"]

    assert repository["repo"] == "local"
    assert first["entry"] == "make --quiet .venv/.installed"
    assert [hook["entry"] for hook in hooks] == commands
    for hook in (first, *hooks):
        assert (hook["language"], hook["pass_filenames"], hook["always_run"]) == ("system", False, True)
