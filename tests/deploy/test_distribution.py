"""What is uploaded as a package: `make dist` builds it, and whoever installs it has every command."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PROJECT = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
NAME = f"jobmirror-{PROJECT['version']}"


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(source: Path, target: Path, *options: str) -> Sequence[str]:
    """As `make dist` does; gives the names of the files."""
    run(sys.executable, "-m", "hatchling", "build", "--directory", target, *options, cwd=source)
    return sorted(file.name for file in target.iterdir())


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as they are uploaded, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    assert build(TOP, folder, "--target", "sdist") == [f"{NAME}.tar.gz"]
    with tarfile.open(folder / f"{NAME}.tar.gz") as files:
        files.extractall(folder, filter="data")
    return folder / NAME


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the uploaded sources, as pip does where it does not use the uploaded wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    (name,) = build(sdist, folder, "--target", "wheel")
    return folder / name


@pytest.mark.slow
def test_the_sources_can_be_tested_and_deployed(sdist: Path) -> None:
    """Whoever packages it for a system gets the licence, the tests, the documents and what is deployed."""
    for name in ("LICENSE", "Makefile", "constraints.txt", "CHANGELOG.md", "tests", "e2e", "docs", "deploy", "config"):
        assert (sdist / name).exists(), name


@pytest.mark.slow
def test_the_wheel_is_installed_with_all_of_its_commands(wheel: Path, tmp_path: Path) -> None:
    """Each of pyproject.toml's commands runs from the installed files, what they read included."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path, cwd=tmp_path)
    run(*pip, "--python", tmp_path / "bin/python", "install", "--no-compile", "--no-deps", wheel, cwd=tmp_path)
    (packages,) = tmp_path.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    where = run(tmp_path / "bin/python", "-c", "import mirror; print(mirror.__file__)", cwd=tmp_path)

    assert Path(where.strip()).is_relative_to(packages)
    assert {file.name for file in (tmp_path / "bin").iterdir()} >= PROJECT["scripts"].keys()
    for command in ("mirror", "kubectl-mirror"):
        assert run(tmp_path / "bin" / command, "--version", cwd=tmp_path) == f"mirror {PROJECT['version']}\n"
    assert "worker\t" in run(tmp_path / "bin/kubectl_complete-mirror", "wor", cwd=tmp_path)
    for shared, place in (("config/rbac", "cli/worker/operations/rbac"), ("config/samples", "planes/sample_jobs")):
        assert {file.name for file in (packages / "mirror" / place).iterdir()} == {
            file.name for file in (TOP / shared).iterdir()
        }
