"""Makes a test program of upstream's suite in which ours has the place of the controller.

The suite is taken from the Go module that ``controlplane/build`` pins. What starts and measures a controller within
the test's process is cut out; ``ours/*.go`` has functions of the same names that start a process and read its metrics.
Nothing of upstream's is kept here: it is copied to our cache, and compiled there. Called by ``__main__``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from e2e.controlplane import build
from e2e.controlplane.toolchain import CannotBuild, Go

_OURS = Path(__file__).parent / "ours"
_SUITE = "test/integration/job"
_CUT = (
    "validateCounterMetric",
    "resetMetrics",
    "startJobControllerAndWaitForCaches",
    "createJobControllerWithSharedInformers",
)
"""Functions that ours replace."""
_RENAMED = {"featuregatetesting.SetFeatureGateDuringTest(": "setGateDuringTest("}
"""A gate that changes must reach another process."""
_UNUSED = (r'\t"k8s\.io/component-base/metrics/testutil"\n', r'\tbasemetrics "k8s\.io/component-base/metrics"\n')
"""Imports that nothing needs then."""


@dataclass(frozen=True)
class Suite:
    """What can be run."""

    program: Path
    directory: Path
    """The tests are meant to run in it."""
    modules: Path
    """The module cache: the suite looks for files beside its sources, which the program does not know."""


def build_suite(*, theirs: bool = False) -> Suite:
    """Compile the suite, unmodified for ``theirs``: some minutes for the first time, seconds afterwards.

    Raises:
        CannotBuild: there is no Go, a compilation failed, or the suite is not the one that we know.
    """
    go = build.go_toolchain()
    root = build.cache_directory() / "upstream-jobs"
    package = root / ("theirs" if theirs else "ours")
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    for name in ("go.mod", "go.sum"):
        shutil.copy(build.GOMOD / "kubernetes" / name, root / name)
    modules = Path(_go(go, root, "env", "GOMODCACHE").strip())
    _go(go, root, "mod", "download", "k8s.io/kubernetes")
    source = modules / "k8s.io" / f"kubernetes@v{build.KUBERNETES}" / _SUITE
    for file in source.glob("*_test.go"):
        text = file.read_text()
        (package / file.name).write_text(text if theirs else _replaced(text) if file.name == "job_test.go" else text)
    if not theirs:
        for file in _OURS.glob("*.go"):
            shutil.copy(file, package / file.name)
    program = package / "suite"
    _go(go, root, "test", "-mod=mod", "-trimpath", "-c", "-o", str(program), f"./{package.name}")
    return Suite(program, package, modules)


def _replaced(text: str) -> str:
    for name in _CUT:
        text, count = re.subn(rf"(?ms)^func {name}\(.*?^}}\n", "", text)
        if count != 1:
            raise CannotBuild(f"this version of the suite has {count} functions {name}")
    for old, new in _RENAMED.items():
        text = text.replace(old, new)
    for line in _UNUSED:
        text = re.sub(line, "", text)
    return text


def _go(go: Go, directory: Path, *arguments: str) -> str:
    environment = go.environment() | {"GOFLAGS": "-buildvcs=false"}
    done = subprocess.run([go.program, *arguments], cwd=directory, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise CannotBuild(f"go {' '.join(arguments)} failed:\n{done.stderr[-4000:]}")
    return done.stdout
