""".ci/packages: what it lists is what tests ask for, and it says what a machine lacks."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
SCRIPT = TOP / ".ci/packages"
LINE = re.compile(r"packages: (\S+) is not installed \(Debian's package (\S+)\); skipped: (.+)")
SHELL = shutil.which("sh") or "/bin/sh"


def checked(*programs: str, folder: Path) -> tuple[int, list[tuple[str, str, list[str]]]]:
    """Its exit code, and program, package and tests of each line, on a machine with these programs."""
    for name in programs:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(
        [SHELL, SCRIPT, "--check"], env={"PATH": str(folder)}, capture_output=True, text=True, timeout=60
    )
    found = [LINE.fullmatch(line) for line in done.stderr.splitlines()]
    assert all(found), done.stderr
    return done.returncode, [(one[1], one[2], one[3].split()) for one in found if one]


def test_a_machine_without_any_is_told_all(tmp_path: Path) -> None:
    """Each program with its package and with tests that exist; the script itself needs nothing but a shell."""
    code, lacking = checked(folder=tmp_path)

    assert code == 1
    assert ("chromium", "chromium", ["e2e/test_page.py", "e2e/test_page_dashboard.py"]) in lacking
    for _, _, tests in lacking:
        assert [name for name in tests if not (TOP / name).is_file()] == []


def test_what_is_there_is_not_listed(tmp_path: Path) -> None:
    """One program less, one line less; with all of them, nothing is said, and the exit code is 0."""
    _, lacking = checked(folder=tmp_path)
    every = [program for program, _, _ in lacking]

    assert checked(every[0], folder=tmp_path) == (1, lacking[1:])
    assert checked(*every, folder=tmp_path) == (0, [])


@pytest.mark.parametrize("folder", ["tests", "e2e"])
def test_what_tests_ask_for_is_listed(folder: str, tmp_path: Path) -> None:
    """A test that skips for want of a program is named beside that program."""
    _, lacking = checked(folder=tmp_path)
    listed = {(program, test) for program, _, tests in lacking for test in tests if test.startswith(f"{folder}/")}
    asked = set()
    for file in (TOP / folder).rglob("test_*.py"):
        text = file.read_text()
        if "required_program: Callable" in text:
            names = re.findall(r'required_program\("([\w-]+)"', text)
            names += re.findall(r'"([\w-]+)"', " ".join(re.findall(r"for program in (\(.*\)):", text)))
            asked |= {(name, str(file.relative_to(TOP))) for name in names}

    assert asked == listed
