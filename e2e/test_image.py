"""The image's steps outside a container: from what `docker build` sees to a manager that nobody gives a place to write.

Not here: the Dockerfile's own text (``tests/deploy``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from e2e.manifests import TOP

USER = "65532"
ALL_THAT_IT_GETS = {"PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}

BUILD_SECONDS = 1800
"""Half a minute on a machine that does nothing else."""
pytestmark = pytest.mark.timeout(BUILD_SECONDS)


def context() -> list[Path]:
    """The files that .dockerignore lets through, as Docker reads it: the last line that matches decides."""
    rules = [line for line in (TOP / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    listed = subprocess.run(
        ["git", "-C", TOP, "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [Path(name) for name in listed.stdout.splitlines() if lets_through(name, rules) and (TOP / name).is_file()]


def lets_through(name: str, rules: list[str]) -> bool:
    parents = [name, *map(str, Path(name).parents)][:-1]
    is_let = True
    for rule in rules:
        pattern = re.escape(rule.removeprefix("!")).replace(r"\*\*/", "(.*/)?").replace(r"\*", "[^/]*")
        if any(re.fullmatch(pattern, part) for part in parents):
            is_let = rule.startswith("!")
    return is_let


@pytest.fixture(scope="module")
def installed(
    tmp_path_factory: pytest.TempPathFactory,
    required_program: Callable[..., Path],
    do_without: Callable[..., NoReturn],
) -> Path:
    """The directory that the image gets, installed by the Dockerfile's script from the files that Docker would see."""
    if os.geteuid() != 0:
        do_without("only root can become another user, as the image's process is one")
    for program in ("git", "setpriv"):
        required_program(program)
    folder = tmp_path_factory.mktemp("image")
    for file in context():
        (folder / "source" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(TOP / file, folder / "source" / file)
    target = folder / "opt/jobmirror"
    subprocess.run(
        [folder / "source/deploy/image/install.sh", folder / "source", target],
        env={**os.environ, "PYTHON": sys.executable}, check=True, timeout=BUILD_SECONDS,
    )  # fmt: skip
    for parent in (target, *target.parents):
        if parent.owner() == "root" and parent != Path("/tmp"):
            parent.chmod(0o755)
    return target


def called(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`mirror` as the pod runs it: a user without name, home or rights, in a folder that it cannot write."""
    as_user = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "--no-new-privs", "--inh-caps=-all"]
    return subprocess.run(
        [*as_user, installed / "bin/mirror", *arguments],
        cwd="/", env=ALL_THAT_IT_GETS, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def test_it_is_installed_and_runs_without_a_home(installed: Path) -> None:
    """The version is ours, all that it needs is there in the tested versions, and pip is not."""
    version = called(installed, "version")
    assert (version.returncode, version.stderr) == (0, "")
    assert version.stdout.startswith("mirror 0.")
    pinned = dict(re.findall(r"(?m)^(\S+)==([^\s;]+)", (TOP / "constraints.txt").read_text()))
    (packages,) = installed.glob("lib/python*/site-packages")
    found = {one.name.rpartition(".")[0].partition("-") for one in packages.glob("*.dist-info")}
    versions = {name.replace("_", "-").lower(): version for name, _, version in found}
    assert versions.pop("jobmirror")
    assert versions == {name: pinned[name] for name in versions}
    assert {"aiohttp", "uvloop", "kubernetes-asyncio"} <= versions.keys()
    assert not {"pip", "pytest", "ruff", "setuptools"} & versions.keys()


def test_it_reads_the_configuration_that_is_mounted(installed: Path, tmp_path: Path) -> None:
    """The command of the Deployment gets as far as looking for its cluster, says what is missing, and ends."""
    deployment = yaml.safe_load((TOP / "deploy/kustomize/base/deployment.yaml").read_text())
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    file = Path("/tmp") / f"{tmp_path.parent.name}-{tmp_path.name}.yaml"
    file.write_text((TOP / "deploy/kustomize/base/mirror.yaml").read_text() + "kubeconfig: /nowhere\n")
    try:
        arguments = [str(file) if part.startswith("/etc/") else part for part in container["args"]]
        done = called(installed, *arguments)
    finally:
        file.unlink()

    assert done.returncode == 1
    assert "/nowhere" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_nothing_is_written_into_it(installed: Path) -> None:
    """After all that, what was installed is as it was: whatever is needed was compiled before."""
    newest = max(path.stat().st_mtime for path in installed.rglob("*"))
    called(installed, "version")
    called(installed, "check-config", str(TOP / "config/mirror.yaml"))

    assert max(path.stat().st_mtime for path in installed.rglob("*")) == newest
    assert not [path for path in installed.rglob("*") if path.stat().st_uid == int(USER)]
