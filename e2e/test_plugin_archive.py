"""The kubectl plugin as krew installs it: an archive with a Python of its own, built as a release does it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.manifests import TOP

BUILD_SECONDS = 1800
"""A minute on a machine that does nothing else."""
pytestmark = pytest.mark.timeout(BUILD_SECONDS)
ALL_THAT_IT_GETS = {"PATH": "/nonexistent", "HOME": "/nonexistent", "LANG": "C.UTF-8"}
VERSION = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory, required_program: Callable[..., Path]) -> Path:
    """The program, unpacked from the archive into a folder of its own."""
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        required_program("objdump")  # with it PyInstaller finds a shared library of Python elsewhere
    folder = tmp_path_factory.mktemp("plugin")
    subprocess.run(
        [TOP / "deploy/krew/build.sh", TOP, folder / "dist"],
        env={**os.environ, "PYTHON": sys.executable}, check=True, timeout=BUILD_SECONDS,
    )  # fmt: skip
    (archive,) = (folder / "dist").iterdir()
    assert re.fullmatch(r"kubectl-mirror_(linux|darwin)_(amd64|arm64)\.tar\.gz", archive.name)
    with tarfile.open(archive) as files:
        files.extractall(folder / "store", filter="data")
    return folder / "store/kubectl-mirror"


def called(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments], env=ALL_THAT_IT_GETS, capture_output=True, text=True, timeout=600, check=False
    )


def test_it_runs_without_python(plugin: Path, tmp_path: Path) -> None:
    """By krew's symbolic link, with nothing of this machine; the licence is beside it."""
    link = tmp_path / "kubectl-mirror"
    link.symlink_to(plugin)

    assert called(link, "--version").stdout == f"mirror {VERSION}\n"
    assert "kubectl mirror [OPTIONS] COMMAND" in called(link, "--help").stdout
    assert (plugin.parent / "LICENSE").read_text() == (TOP / "LICENSE").read_text()


def test_it_has_what_its_commands_import_and_read(plugin: Path, tmp_path: Path) -> None:
    """As far as a server that nobody listens on: kubeconfigs, TLS and HTTP are there; so are the files of settings."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nusers: []\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: ''}}]\n"
    )

    asked = called(plugin, "get", "--kubeconfig", str(kubeconfig))
    checked = called(plugin, "check-config", str(TOP / "config/mirror.yaml"))

    assert asked.returncode == 1
    assert "connection refused" in asked.stderr
    assert "Traceback" not in asked.stderr
    assert (checked.returncode, checked.stderr) == (0, "")
