"""What commands print for machines and on a terminal: one shape of JSON; colours, widths, tables that are redrawn."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner
from user_fleet import UserFleet, has, user_fleet

from mirror.cli.main import main
from mirror.cli.user.printing import API_VERSION

pytestmark = pytest.mark.timeout(300)

_LISTENS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
COMMAND = (sys.executable, "-c", f"{_LISTENS}; from mirror.cli.main import main; main()")
MANIFEST = """
apiVersion: batch/v1
kind: Job
metadata: {name: new, annotations: {jobmirror.io/worker-selector: region=mars}}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: main}]}}
"""
MAPS = {"labels", "obstacles", "object"}
"""Fields whose keys are names of users, or another API's."""

WITH_OUTPUT: dict[str, tuple[tuple[str, ...], str]] = {
    "get": (("get",), "MirroredJobList"),
    "explain": (("explain", "done"), "ExplanationList"),
    "pods": (("pods", "done", "--worker-context", "WORKER"), "MirrorPodList"),
    "events": (("events", "done", "--worker-context", "WORKER"), "MirrorEventList"),
    "diff": (("diff", "done", "--worker-context", "WORKER"), "ComparisonList"),
    "place": (("place", "--dry-run", "-f", "MANIFEST"), "PlacementList"),
    "kinds": (("kinds",), "KindList"),
    "managers": (("managers",), "ManagerList"),
    "worker list": (("worker", "list"), "WorkerList"),
    "worker check": (("worker", "check", "--allow", "loopback"), "WorkerCheckList"),
    "worker add": (
        ("worker", "add", "north", "--context", "east", "--allow", "loopback", "--dry-run"),
        "RegistrationStepList",
    ),
}
"""Every command with ``-o``: how it is called here, and the kind of what it prints."""


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory, required_program: Callable[..., Path]) -> Iterator[UserFleet]:
    """A finished Job and one that waits."""
    required_program("sleep")
    with user_fleet(tmp_path_factory.mktemp("shape")) as found:
        found.create("done", "exit 0")
        found.create("waits", "exit 0", annotations={"jobmirror.io/worker-selector": "region=mars"})
        found.wait("done", has("Complete"))
        found.wait("waits", lambda job: "jobmirror.io/waiting-because" in job["metadata"]["annotations"])
        yield found


def with_output(group: click.Group, path: str = "") -> Iterator[str]:
    """Every command that has ``-o``."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from with_output(command, f"{path}{name} ")
        elif any("--output" in option.opts for option in command.params):
            yield path + name


def test_every_command_with_an_output_option_is_looked_at() -> None:
    """A new one has to be listed above."""
    assert set(with_output(main)) == set(WITH_OUTPUT)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(("arguments", "kind"), WITH_OUTPUT.values(), ids=WITH_OUTPUT)
def test_everything_for_machines_is_a_list_of_items(
    planes: UserFleet, arguments: tuple[str, ...], kind: str, form: str, tmp_path: Path
) -> None:
    """``apiVersion``, ``kind`` and ``items``; names of fields in camelCase, as in Kubernetes' API."""
    placed = next(
        one["message"]
        for one in planes.wait("done", has("Complete"))["status"]["conditions"]
        if one["type"] == "jobmirror.io/Placed"
    )
    manifest = tmp_path / "job.yaml"
    manifest.write_text(MANIFEST)
    typed = [{"WORKER": placed, "MANIFEST": str(manifest)}.get(part, part) for part in arguments]
    result = CliRunner().invoke(main, [*typed, "-o", form], env={"KUBECONFIG": planes.kubeconfig("admin")})

    assert result.exit_code == 0, result.output + repr(result.exception)
    found = json.loads(result.stdout) if form == "json" else yaml.safe_load(result.stdout)
    assert list(found) == ["apiVersion", "kind", "items"]
    assert (found["apiVersion"], found["kind"]) == (API_VERSION, kind)
    assert found["items"]
    for key in keys(found):
        assert re.fullmatch(r"[a-z][a-zA-Z0-9]*", key), key


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from keys(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            if key not in MAPS:
                yield from keys(one)


@contextmanager
def on_terminal(planes: UserFleet, *arguments: str, width: int = 80, **more: str) -> Iterator[tuple[Any, int]]:
    """A command on a terminal of this width: the process, and the terminal's other end."""
    near, far = pty.openpty()
    ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    hidden = ("COLUMNS", "LINES", "NO_COLOR")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    environment |= {"KUBECONFIG": planes.kubeconfig("admin"), "TERM": "xterm-256color", **more}
    with subprocess.Popen([*COMMAND, *arguments], stdin=far, stdout=far, stderr=far, env=environment) as running:
        os.close(far)
        try:
            yield running, near
        finally:
            running.kill()
            os.close(near)


def read_until(near: int, text: str) -> str:
    """What was drawn until this is there."""
    seen = b""
    while text.encode() not in seen:
        seen += os.read(near, 65_536)
    return seen.decode()


def read_all(near: int) -> str:
    seen = b""
    while True:
        try:
            more = os.read(near, 65_536)
        except OSError:  # the other end is closed
            more = b""
        if not more:
            return seen.decode()
        seen += more


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 60])
def test_a_table_fits_a_terminal_and_has_colors(planes: UserFleet, width: int) -> None:
    """AGE and WHY are there; a state has its colour."""
    with on_terminal(planes, "get", width=width) as (_, near):
        text = read_all(near)
    lines = click.unstyle(text).splitlines()

    assert {"AGE", "WHY"} <= set(lines[0].split())
    assert max(map(len, lines)) <= width
    assert "\x1b[32mComplete\x1b[0m" in text
    assert "\x1b[33mWaiting\x1b[0m" in text
    assert lines[-1] == "2 Jobs: 1 Waiting, 1 Complete"


@pytest.mark.slow
def test_without_colors_there_is_no_escape(planes: UserFleet) -> None:
    """``NO_COLOR``, ``--color never``, and a pipe, which is not abridged either; ``--color always`` overrides all."""
    with on_terminal(planes, "get", NO_COLOR="1") as (_, near):
        assert "\x1b[3" not in read_all(near)
    with on_terminal(planes, "worker", "check", "--allow", "loopback", "--color", "never") as (_, near):
        assert "\x1b[3" not in read_all(near)
    environment = {"KUBECONFIG": planes.kubeconfig("admin"), "COLUMNS": "40"}
    piped = CliRunner().invoke(main, ["get"], env=environment).stdout
    assert "\x1b" not in piped
    assert "…" not in piped
    assert "LAG" in piped
    for command in (["get"], ["explain", "done"], ["worker", "list"], ["worker", "check", "--allow", "loopback"]):
        result = CliRunner().invoke(main, [*command, "--color", "always"], env=environment, color=True)
        assert "\x1b[32m" in result.stdout, command


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "first", "wanted"),
    [(("get", "-w"), "Waiting", "done"), (("worker", "list", "-w"), "Connected", "west")],
    ids=["get", "worker list"],
)
def test_a_live_table_is_redrawn_in_place(
    planes: UserFleet, arguments: tuple[str, ...], first: str, wanted: str
) -> None:
    """The cursor goes up again; Ctrl-C ends it."""
    with on_terminal(planes, *arguments) as (running, near):
        drawn = read_until(near, first)
        drawn += read_until(near, "\x1b[1A")
        assert wanted in drawn
        running.send_signal(signal.SIGINT)
        read_all(near)
        assert running.wait(60) == 130


@pytest.mark.slow
def test_workers_are_watched_until_it_is_interrupted(planes: UserFleet) -> None:
    """A line for each worker, then one for each change."""
    environment = {**os.environ, "KUBECONFIG": planes.kubeconfig("admin")}
    command = [*COMMAND, "worker", "list", "-w", "-o", "json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as running:
        try:
            assert running.stdout is not None
            seen = [json.loads(running.stdout.readline()) for _ in range(2)]
            assert {(one["name"], one["state"], one["cordoned"]) for one in seen} == {
                ("east", "Connected", False),
                ("west", "Connected", False),
            }
            path = "/api/v1/namespaces/jobmirror-system/secrets/west"
            cordoned = {"metadata": {"annotations": {"jobmirror.io/cordoned": "true"}}}
            planes.do(lambda: planes.fleet.management.plane.api.merge(path, cordoned))
            changed = json.loads(running.stdout.readline())
            assert (changed["name"], changed["cordoned"]) == ("west", True)
            running.send_signal(signal.SIGINT)
            _, errors = running.communicate(timeout=120)
            assert (running.returncode, errors) == (130, "")
        finally:
            running.kill()
