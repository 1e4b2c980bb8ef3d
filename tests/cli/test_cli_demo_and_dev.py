"""``mirror demo`` and ``mirror dev`` as real processes: what people see, and how they end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from mirror.kube import requests
from mirror.kube.connect import connect_management
from mirror.kube.objects import Object
from mirror.kube.resources import JOBS
from mirror.planes.samples import EXPECTED
from mirror.planes.samples import folder as samples
from mirror.settings.schema import Limits
from mirror.telemetry.metrics import Metrics

COMMAND = (sys.executable, "-c", "from mirror.cli.main import main; main()")
HELD = """
import asyncio, sys
from mirror.cli.main import main
from mirror.planes import demonstration
play = demonstration.play
async def held(fleet, *rest):
    shown = await play(fleet, *rest)
    print(f"Held: {fleet.kubeconfig()}")
    await asyncio.to_thread(sys.stdin.readline)
    return shown
demonstration.play = held
main(["demo"])
"""
"""``mirror demo`` that waits for a line before it ends."""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_ends_well(tmp_path: Path) -> None:
    """Every sample ends as it says, three of each; its story and a summary are told; nothing is left behind."""
    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin", "COLUMNS": "80"}
    done = subprocess.run([*COMMAND, "demo"], capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    for name, end in EXPECTED.items():
        assert len(re.findall(rf"^ ?{name}-[123] +(?:east|west) +{end} ", done.stdout, re.MULTILINE)) == 3, done.stdout
    assert re.search(r"15 Jobs finished in [0-9.]+ s, .* on east, .* on west\.", done.stdout)
    told = (
        r" s  15 Jobs are created; each worker takes 3 at a time, so others wait\.",
        r" s  The API server of worker east goes down; its Jobs stay its own\.",
        r" s  The API server of worker east is up again\.",
        r" s  Worker east is connected again; its Jobs' statuses are read\.",
        r" s  failing-1 on (east|west): Failed \(BackoffLimitExceeded, as expected\)",
        r"^ ?failing-1 .* expected: BackoffLimit",
        r"^\d+ failed as expected; none ended otherwise than expected\.",
        r"^A Job was on its worker \d+ ms after it was seen, where there was room;",
        r"^a change there was the Job's status \d+ ms later",
    )
    assert [one for one in told if not re.search(one, done.stdout, re.MULTILINE)] == [], done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80, done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_shows_other_kinds_beside_jobs(tmp_path: Path) -> None:
    """A JobSet and an MPIJob, each run by a worker to its end."""
    environment = {"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin", "COLUMNS": "100"}
    command = [*COMMAND, "demo", "--kinds"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "15 Jobs, 1 JobSet and 1 MPIJob are created" in done.stdout
    for name in ("jobset.jobset.x-k8s.io/jobset-1", "mpijob.kubeflow.org/mpijob-1"):
        assert re.search(rf"^ ?{re.escape(name)} +(?:east|west) +Complete ", done.stdout, re.MULTILINE), done.stdout
    assert list(tmp_path.iterdir()) == []


def said_with(kubeconfig: Path, home: Path, *arguments: str, **more: str) -> str:
    """What a command prints to who has this kubeconfig: no token, no address, no option; it has to go well."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "XDG_CONFIG_HOME": str(home)}
    environment = {key: value for key, value in environment.items() if not key.startswith("MIRROR_")} | more
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=True, env=environment
    ).stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_gives_access_while_it_runs(tmp_path: Path) -> None:
    """It is held when its wave is over: what takes the manager's access works with the kubeconfig in its folder."""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", HELD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as running:
        try:
            assert running.stdin is not None
            assert running.stdout is not None
            lines = iter(running.stdout.readline, "")
            held = next((line for line in lines if line.startswith("Held: ")), "")
            said = partial(said_with, Path(held.removeprefix("Held: ").strip()), tmp_path)

            assert said("logs", "plain-1").strip()
            assert said("pods", "plain-1", "-o", "name").startswith("pod/plain-1-")
            assert "Completed" in said("events", "plain-1")
            assert "spec.managedBy" in said("diff", "plain-1")
            assert "manager: Connected" in said("worker", "check")
            ages = {one["name"]: one["lagSeconds"] for one in json.loads(said("get", "-o", "json"))["items"]}
            assert set(ages) == {f"{name}-{number}" for name in EXPECTED for number in (1, 2, 3)}
            running.stdin.write("over\n")
            running.stdin.close()
            assert "15 Jobs finished in" in "".join(lines)
            assert running.wait(60) == 0
        finally:
            running.kill()


@contextmanager
def dev(*options: str) -> Iterator[list[str]]:
    """``mirror dev`` that is ready; gives what it says. It has to end by Ctrl-C, and well."""
    with subprocess.Popen([*COMMAND, "dev", *options], stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            lines = []
            while not (lines and lines[-1].startswith("Log: ")):
                lines.append(running.stdout.readline())
                assert lines[-1], lines
            yield lines
            running.send_signal(signal.SIGINT)
            assert running.wait(15) == 0
        finally:
            running.kill()


async def ask(kubeconfig: Path, request: requests.Request) -> Object:
    """One request of the administrator."""
    client = await connect_management(str(kubeconfig), limits=Limits(), observer=Metrics())
    try:
        return await client.send_object(request)
    finally:
        await client.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_dev_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    """Kubeconfigs and three lines to try; with --dir, everything is there again the next time, also on the page."""
    options = ("--workers", "1", "--dir", str(tmp_path / "dev"))
    kubeconfig = tmp_path / "dev" / "management.kubeconfig"
    with dev(*options) as lines:
        assert lines[0].startswith("Ready: ")
        assert [line.split()[0] for line in lines[1:3]] == ["management", "east"]
        tried = [line.split() for line in lines if line.startswith(("  kubectl", "  export"))]
        assert len(tried) == 3
        assert tried[0][1:] == [f"KUBECONFIG={kubeconfig}", "MIRROR_WORKER_ALLOW=loopback"]
        sample = yaml.safe_load(Path(tried[1][3]).read_text())
        asyncio.run(ask(kubeconfig, requests.create(JOBS, sample, namespace="default")))
    with dev(*options, "--page") as lines:
        found = asyncio.run(ask(kubeconfig, requests.get(JOBS, "plain", namespace="default")))
        assert found.metadata.name == "plain"
        page = next(line.split()[1] for line in lines if line.startswith("Page: "))
        with urlopen(page, timeout=120) as answer:
            assert "plain" in answer.read().decode()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_command_of_the_readme_works_on_dev(tmp_path: Path) -> None:
    """With the kubeconfig that it gives, whose user has a client certificate: no token, no address, no option."""
    with dev("--workers", "1", "--dir", str(tmp_path / "dev")):
        said = partial(said_with, tmp_path / "dev" / "management.kubeconfig", tmp_path)
        sample = yaml.safe_load((samples() / "plain.yaml").read_text())
        asyncio.run(ask(tmp_path / "dev/management.kubeconfig", requests.create(JOBS, sample, namespace="default")))
        assert said("logs", "-f", "plain").strip()
        assert "plain" in said("get")
        assert said("pods", "plain", "-o", "name").startswith("pod/plain-")
        for command in (("events", "plain"), ("explain", "plain"), ("diff", "plain"), ("worker", "list")):
            assert said(*command)
        assert "manager: Connected" in said("worker", "check")
        assert said(
            "worker", "add", "east", "--context", "east", "--labels", "region=eu", MIRROR_WORKER_ALLOW="loopback"
        )
        assert "permissions: all required permissions granted" in said("worker", "check", "east")


def test_dev_says_what_is_wrong_with_its_folder(tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / "file").write_text("")
    done = subprocess.run(
        [*COMMAND, "dev", "--dir", str(tmp_path / "file" / "under")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: --dir ")
