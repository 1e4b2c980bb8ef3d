"""``make test`` with a PATH that has only Python and make: its recipes need no other program of the system."""

from __future__ import annotations

import re
from pathlib import Path

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text()
OURS = re.compile(r"\$\((?:PY|PYTHON|SHELL)\)$|\$\(VENV\)/bin/")
BUILT_IN = {":", "echo", "printf", "true"}
"""Of every shell."""


def recipe(target: str) -> list[str]:
    """The commands of a target, and of the section's heading where it has one."""
    lines = re.search(rf"^{re.escape(target)}:[^\n]*\n((?:\t[^\n]*\n)*)", MAKEFILE, re.MULTILINE)
    assert lines is not None, target
    unquoted = re.sub(r"'[^'\n]*'|\"[^\"\n]*\"", "''", lines[1])
    return [one.strip().removeprefix("@") for one in re.split(r"\n|&&|[|;]+", unquoted) if one.strip()]


def targets(target: str) -> list[str]:
    """What ``make test`` makes, the target itself last."""
    asked = re.search(rf"^{re.escape(target)}:([^#\n]*)", MAKEFILE, re.MULTILINE)
    assert asked is not None, target
    words = asked[1].replace("$(CONTROLPLANE)", "build-controlplane").split()
    first = [one for one in words if not one.endswith((".toml", ".txt"))]
    return [*dict.fromkeys(each for one in first for each in targets(one)), target]


def test_test_makes_all_that_it_needs() -> None:
    assert targets("test") == ["programs", "$(READY)", "static", "units", "build-controlplane", "test"]


def test_nothing_but_python_and_the_shell_is_called() -> None:
    """A program that is not there ends the run, or takes away what it should have printed."""
    commands = [command for target in targets("test") for command in recipe(target)]
    called = {command.split()[0] for command in commands if not command.startswith("$(call section")}
    assert {word for word in called if not OURS.match(word) and word not in BUILT_IN} == set()


def test_headings_need_no_program_either() -> None:
    heading = re.search(r"^section = (.*)$", MAKEFILE, re.MULTILINE)
    assert heading is not None
    assert re.findall(r"\$\$\((\S+)", heading[1]) == ["$(PYTHON)"]
