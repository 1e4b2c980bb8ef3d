"""The workflows of .github, which no test can run: actionlint checks them, their scripts and expressions included.

Not here: that they ask for few permissions and pin what they use (``tests/deploy/test_workflows.py``).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from e2e.controlplane.assets import MissingBinaries, find_binaries

TOP = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((TOP / ".github/workflows").iterdir())


@pytest.fixture(scope="module")
def actionlint(do_without: Callable[..., NoReturn]) -> Path:
    """The program, from the cache of the control planes' binaries."""
    try:
        return find_binaries("actionlint")["actionlint"]
    except MissingBinaries as reason:
        do_without(reason, required_by="MIRROR_REQUIRE_CONTROLPLANE")


def linted(actionlint: Path, file: Path) -> tuple[int, str]:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run(
        [actionlint, "-no-color", "-shellcheck", shellcheck, "-pyflakes=", file],
        cwd=TOP, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_are_clean(actionlint: Path, workflow: Path) -> None:
    """Syntax, expressions, outputs of jobs that are needed, labels of runners, and ShellCheck for each script."""
    assert linted(actionlint, workflow) == (0, "")


def test_what_is_wrong_is_found(actionlint: Path, tmp_path: Path) -> None:
    """Expressions and scripts really are checked: an output that no step has, and a variable without quotes."""
    text = (TOP / ".github/workflows/release.yaml").read_text()
    wrong = tmp_path / "release.yaml"
    wrong.write_text(text.replace("steps.build.outputs", "steps.built.outputs").replace('check "$TAG"', "check $TAG"))

    code, output = linted(actionlint, wrong)

    assert code == 1
    assert 'property "built" is not defined' in output
    assert "SC2086" in output
