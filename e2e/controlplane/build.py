"""Build the control-plane binaries from Go modules and cache them by version.

``python -m e2e.controlplane.build`` prints the directory that holds them. Uses only the standard library, so that it
runs before anything is installed. The versions are pinned by the ``go.mod`` files beside it. Not here: which Go does it
(``toolchain``).
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from e2e.controlplane.toolchain import CannotBuild, Go, find_go

GOMOD = Path(__file__).parent / "gomod"
KUBERNETES, ETCD, KWOK = "1.36.3", "3.6.5", "0.8.0"
JOBSET, MPI_OPERATOR = "0.12.0", "0.8.2"
TRAINING_OPERATOR, APPWRAPPER, TRAINER, TEKTON = "1.9.4", "1.2.2", "2.3.0", "1.15.0"


@dataclass(frozen=True)
class Binary:
    """One command: its name, the module folder that pins it, its package, and its linker settings."""

    name: str
    module: str
    package: str
    ldflags: str = ""
    folder: str = ""
    """Below the cache's directory, of what has a version that the directory's name does not have."""

    def path(self, directory: Path) -> Path:
        """Where it is in a cache."""
        return directory / self.folder / self.name


def _kubernetes_ldflags() -> str:
    major, minor, _ = KUBERNETES.split(".")
    values = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
    return " ".join(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())


BINARIES = (
    Binary("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    *(
        Binary(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", _kubernetes_ldflags())
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
    ),
    Binary("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Binary("helm-template", "helm", "."),  # for e2e/test_manifests.py
    Binary("actionlint", "actionlint", "github.com/rhysd/actionlint/cmd/actionlint"),  # for e2e/test_workflows.py
    Binary("jobset-controller", "jobset", "sigs.k8s.io/jobset", folder=f"jobset-{JOBSET}"),  # for e2e/operators.py
    Binary("mpi-operator", "mpi-operator", ".", folder=f"mpi-operator-{MPI_OPERATOR}"),
)
FURTHER = (
    # The number is raised when our program changes (gomod/training-operator): since 2 it may be given its kinds.
    Binary("training-operator", "training-operator", ".", folder=f"training-operator.2-{TRAINING_OPERATOR}"),
    Binary("appwrapper-controller", "appwrapper", ".", folder=f"appwrapper-{APPWRAPPER}"),
    Binary("trainer-controller", "trainer", ".", folder=f"trainer-{TRAINER}"),
    Binary("tekton-controller", "tekton", ".", folder=f"tekton-{TEKTON}"),
)
"""Controllers of further kinds (``e2e/operators``), which take minutes each: built only where they are asked for."""


def cache_directory() -> Path:
    """Where the binaries of these versions are kept, outside the checkout."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "jobmirror" / f"kubernetes-{KUBERNETES}_etcd-{ETCD}_kwok-{KWOK}"


def missing(directory: Path, wanted: Iterable[Binary] = BINARIES) -> list[Binary]:
    """The binaries that are not in this directory yet."""
    return [binary for binary in wanted if not os.access(binary.path(directory), os.X_OK)]


def cached(name: str) -> Path:
    """Where our cache has the binary of this name, or would have it."""
    known = (one for one in (*BINARIES, *FURTHER) if one.name == name)
    return next(known, Binary(name, "", "")).path(cache_directory())


def build(directory: Path | None = None, wanted: Iterable[Binary] = BINARIES) -> Path:
    """Build what is missing and return the directory.

    Raises:
        CannotBuild: there is no Go and it cannot be installed, or a compilation failed.
    """
    directory = directory or cache_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (absent := missing(directory, wanted)):
            return directory
        go = go_toolchain()
        for binary in absent:
            started = time.monotonic()
            print(f"building {binary.name} …", file=sys.stderr, flush=True)
            _go_build(go, binary, directory)
            print(f"built {binary.name} in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return directory


def go_toolchain() -> Go:
    """The Go to compile with, installed beside the binaries where it is missing.

    Raises:
        CannotBuild: there is none, and it cannot be installed.
    """
    return find_go(cache_directory().parent)


def _go_build(go: Go, binary: Binary, directory: Path) -> None:
    finished = binary.path(directory)
    finished.parent.mkdir(exist_ok=True)
    unfinished = finished.with_name(f".{binary.name}.unfinished")
    flags = ["-buildvcs=false", "-trimpath", "-ldflags", f"-s -w {binary.ldflags}"]
    command = [str(go.program), "build", *flags, "-o", str(unfinished), binary.package]
    done = subprocess.run(command, cwd=GOMOD / binary.module, env=go.environment(), capture_output=True, text=True)
    if done.returncode:
        raise CannotBuild(f"go build {binary.package} failed:\n{done.stderr[-4000:]}")
    unfinished.rename(finished)


if __name__ == "__main__":
    try:
        print(build())
    except CannotBuild as error:
        raise SystemExit(f"cannot build the control plane: {error}") from None
