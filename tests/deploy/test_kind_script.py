"""e2e/kind/run.sh without Docker: its programs are stand-ins that note how they are called."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import yaml

from mirror.cli.worker.commands import add

TOP = Path(__file__).parents[2]
NOTING = """#!/bin/sh
echo "$(basename "$0") $*" >>"$NOTES"
case "$(basename "$0") $*" in
"kind get clusters") [ ! -e "$CLUSTERS" ] || cat "$CLUSTERS" ;;
"kind create cluster"*) echo "$4" >>"$CLUSTERS" && touch "$6" ;;
"$FAILS"*) exit 3 ;;
esac
"""
pytestmark = pytest.mark.usefixtures("bash")
NAMES = ["jobmirror-management", "jobmirror-east", "jobmirror-west"]


@pytest.fixture
def bash(required_program: Callable[..., Path]) -> None:
    """What the script is written in."""
    required_program("bash")


def played(folder: Path, *arguments: str, fails: str = "nothing", **environment: str) -> tuple[int, list[str]]:
    """Run the script in a tree of links; gives its exit code and the commands that it gave."""
    tree = folder / "tree"
    (tree / "e2e").mkdir(parents=True)
    (tree / "e2e/kind").symlink_to(TOP / "e2e/kind")
    for name in ("config", "deploy", "pyproject.toml"):
        (tree / name).symlink_to(TOP / name)
    programs, venv = folder / "programs", folder / "venv/bin"
    for place, names in ((programs, ("kind", "kubectl", "docker")), (venv, ("python", "mirror"))):
        place.mkdir(parents=True)
        for name in names:
            (place / name).write_text(NOTING)
            (place / name).chmod(0o755)
    notes = folder / "notes"
    done = subprocess.run(
        ["bash", tree / "e2e/kind/run.sh", *arguments],
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "NOTES": str(notes),
            "CLUSTERS": str(folder / "clusters"),
            "FAILS": fails,
            "VENV": str(venv.parent),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=280,
    )
    return done.returncode, notes.read_text().splitlines() if notes.exists() else []


def starting(commands: list[str], text: str) -> list[str]:
    return [command for command in commands if command.startswith(text)]


def test_it_installs_registers_runs_and_cleans_up(tmp_path: Path) -> None:
    """Three clusters, the image, the overlay, two workers, a Job, the tests with the arguments given, no clusters."""
    code, commands = played(tmp_path, "-k", "lifecycle")

    assert code == 0
    created = [shlex.split(command)[4] for command in starting(commands, "kind create")]
    deleted = [shlex.split(command)[4] for command in starting(commands, "kind delete")]
    assert created == deleted == NAMES
    (build,) = starting(commands, "docker build")
    (load,) = starting(commands, "kind load")
    image = shlex.split(build)[shlex.split(build).index("--tag") + 1]
    base = yaml.safe_load((TOP / "deploy/kustomize/base/kustomization.yaml").read_text())
    assert image == f"jobmirror:{base['images'][0]['newTag']}"
    assert load == f"kind load docker-image {image} --name jobmirror-management"
    assert starting(commands, "python") == ["python -m pytest e2e -k lifecycle"]


def test_files_that_it_names_are_there(tmp_path: Path) -> None:
    """The Dockerfile, the overlay, the sample and the clusters' configuration."""
    _, commands = played(tmp_path)
    words = {word for command in commands for word in shlex.split(command)}

    for file in (
        "deploy/image/Dockerfile",
        "deploy/kustomize/overlays/high-availability",
        "config/samples/plain.yaml",
        "e2e/kind/cluster.yaml",
    ):
        assert file in words
        assert (TOP / file).exists()


def test_workers_are_registered_as_the_command_has_it(tmp_path: Path) -> None:
    """`mirror worker add` takes the arguments, and the server is one that a pod reaches."""
    _, commands = played(tmp_path)
    added = [shlex.split(command)[3:] for command in starting(commands, "mirror worker add")]

    for name, arguments in zip(("east", "west"), added, strict=True):
        with click.Context(add) as context:
            add.parse_args(context, list(arguments))
        assert context.params["name"] == name
        assert context.params["server"] == f"https://jobmirror-{name}-control-plane:6443"


@pytest.mark.parametrize("fails", ["docker build", "kubectl", "mirror worker add", "python -m pytest"])
def test_clusters_go_whatever_fails(tmp_path: Path, fails: str) -> None:
    """A step that fails ends the run with its code, and every cluster that was made is deleted."""
    code, commands = played(tmp_path, fails=fails)

    assert code == 3
    assert [shlex.split(command)[4] for command in starting(commands, "kind delete")] == NAMES


def test_clusters_stay_if_wished(tmp_path: Path) -> None:
    """KEEP=1 leaves them for the next run."""
    code, commands = played(tmp_path, KEEP="1")

    assert code == 0
    assert starting(commands, "kind delete") == []
